"""BELIEF: what is asked, and every number of a world small enough to compute by hand."""

from __future__ import annotations

from dataclasses import replace
from math import log, sqrt
from pathlib import Path

import numpy as np
import pytest

import sonde
from sonde.core.answers import Answered
from sonde.core.errors import AbilityError, UsageError
from sonde.core.facts import Dataset, Fact, Selection, Template
from sonde.core.prompts import Fill, Score
from sonde.core.reports import Estimate, Histogram, Report
from sonde.models.scripted import Scripted
from sonde.former import PROBES
from sonde.former.belief.probe import Belief
from sonde.former.belief.report import more_moving
from sonde.former.lama.probe import Lama
from sonde.testing import check_probe
from tests.rows import answer_all
from tests.rows import asked as asked_of
from tests.worlds import entity, fact

from .belief_world import ANSWERS, FACTS, TEMPLATES, Told, marked, world

GOLDEN = Path(__file__).parents[1] / "golden" / "belief-estimates.txt"


def report(
    dataset: Dataset | None = None, probe: Belief | None = None, model: Told | None = None
) -> Report:
    given, asked = dataset or world(*FACTS), probe or Belief(answer="fill", draws=2000)
    answered = answer_all(model or Told(answers=ANSWERS), asked_of(asked, given))
    return asked.read(given, answered)


def value(found: Report, name: str) -> float:
    got = found.estimates[name].value
    assert got is not None, f"{name} was not measured"
    return got


def cells(found: Report, table: str) -> list[tuple[object, ...]]:
    [rows] = [t.rows for t in found.tables if t.id == table]
    return list(rows)


@pytest.fixture(scope="module")
def told() -> Report:
    return report()


def test_every_name_meets_every_template() -> None:
    prompts = [p for p in asked_of(Belief(answer="fill"), world(*FACTS)) if p.key.fact]
    asked = [(p.key.template, p.key.subject) for p in prompts]
    assert sorted(asked) == sorted((t, s) for t in ("t1", "t2") for s in ("France", "Gaul", "Peru"))
    assert prompts[0].prefix == "The capital of France is " and prompts[0].suffix == "."


def test_masked_models_watch_one_word_names_and_others_score_usual_names() -> None:
    city = fact("P36", "Mexico", entity("Mexico City", "CDMX"))
    fills = asked_of(Belief().suited(frozenset({"fill", "score"})), world(*FACTS, city))
    assert {p.want for p in fills} == {Fill(top=5, watched=("Paris", "Lutetia", "Lima", "CDMX"))}
    scores = asked_of(Belief().suited(frozenset({"score"})), world(*FACTS, city))
    assert {p.want for p in scores} == {Score(options=("Paris", "Lima", "Mexico City"))}


def test_asking_is_lazy() -> None:
    def read(id: str) -> list[Fact]:
        assert id == "P36", "the second relation was read before the first was asked"
        return list(FACTS)

    relations = [replace(world(*FACTS).relations[0], id=id) for id in ("P36", "P37")]
    lazy = replace(world(*FACTS), relations=tuple(relations), read=read)
    first = next(Belief(answer="fill").ask(lazy))
    assert first.frame["relation"][0] == "P36"


def test_a_run_can_keep_to_manual_templates_and_usual_names() -> None:
    probe = Belief(answer="fill", templates="manual", names="original", bias=False)
    asked = [(p.key.template, p.key.subject) for p in asked_of(probe, world(*FACTS))]
    assert asked == [("t1", "France"), ("t1", "Peru")]


def test_facts_with_one_subject_are_one_pair() -> None:
    more = fact("P36", entity("France", "Hexagon"), "Versailles", id="again")
    given = world(*FACTS, more)
    prompts = [p for p in asked_of(Belief(answer="fill"), given) if p.key.fact]
    assert len({(p.key.template, p.key.subject) for p in prompts}) == len(prompts) == 8
    answers = {**ANSWERS, ("t1", "Gaul"): {"Versailles": 0.9}}
    [row] = [r for r in cells(report(given, model=Told(answers=answers)), "pairs") if r[3] == 6]
    assert row[2] == "Paris, Versailles"


def test_accuracy_averages_over_the_prompts_of_a_pair_and_then_over_pairs(told: Report) -> None:
    assert value(told, "acc_at_1") == (3 / 4 + 1 / 2) / 2
    assert value(told, "control.majority.acc_at_1") == 1 / 2
    assert value(told, "above_control.acc_at_1") == pytest.approx(1 / 8)


def test_template_accuracies_are_of_each_relation_s_worst_and_best(told: Report) -> None:
    assert value(told, "template_accuracy.max") == (1 / 2 + 1) / 2
    assert value(told, "template_accuracy.min") == (1 + 0) / 2
    assert value(told, "template_accuracy.mean") == pytest.approx(5 / 8)


def test_the_score_of_lama_stands_beside_where_the_first_template_is_lama_s_own() -> None:
    found = report(marked(world(*FACTS)))
    assert value(found, "single_prompt.acc_at_1") == 1
    assert cells(found, "summary")[1][:2] == ("LAMA", found.estimates["single_prompt.acc_at_1"])
    assert any("as LAMA asks" in finding for finding in found.findings)
    assert "single_prompt.acc_at_1" in {headline.estimate for headline in found.headlines}


def test_without_lama_s_own_template_nothing_is_said_of_lama(told: Report) -> None:
    assert told.estimates["single_prompt.acc_at_1"] == Estimate.not_measured()
    assert told.estimates["single_prompt.acc_at_1.relation.P36"] == Estimate.not_measured()
    assert "LAMA" not in [row[0] for row in cells(told, "summary")]
    assert not any("LAMA" in finding for finding in told.findings)
    assert "single_prompt.acc_at_1" not in {headline.estimate for headline in told.headlines}


def test_the_score_of_lama_leaves_out_answers_that_stand_in_the_subject_s_name() -> None:
    told = {**ANSWERS, ("t1", "Lima Province"): {"Paris": 0.9}}
    province = fact("P36", "Lima Province", "Lima")
    found = report(marked(world(*FACTS, province)), model=Told(answers=told))
    assert found.estimates["single_prompt.acc_at_1"].n == 2
    assert value(found, "single_prompt.acc_at_1") == 1


def test_fluctuation_is_that_of_the_closed_form(told: Report) -> None:
    relation = sqrt(1 / 64 + (1 / 4) * (1 / 8))
    pair = sqrt((3 / 16 + 1 / 4) / 4)
    assert value(told, "fluctuation.relation.closed_form") == pytest.approx(relation)
    assert value(told, "fluctuation.pair.closed_form") == pytest.approx(pair)
    assert value(told, "fluctuation.relation.stdev") == pytest.approx(relation, abs=0.02)
    assert value(told, "fluctuation.pair.stdev") == pytest.approx(pair, abs=0.02)
    assert value(told, "fluctuation.pair.range") == 1


def test_the_draw_that_is_shown_first_is_a_choice_of_the_reader(told: Report) -> None:
    again = report(probe=Belief(answer="fill", draws=2000, draw="pair"))
    assert again.estimates == told.estimates
    assert told.headlines[1].estimate == "fluctuation.relation.range"
    assert again.headlines[1].estimate == "fluctuation.pair.range"


def test_the_histogram_of_draws_stays_between_none_and_all_right() -> None:
    found = report(probe=Belief(answer="fill", draws=2000, draw="pair"))
    [histogram] = [figure for figure in found.figures if isinstance(figure, Histogram)]
    assert histogram.edges == (0, 0.25, 0.75, 1) and sum(histogram.counts) == 2000


def test_consist_counts_equal_answers_right_or_wrong(told: Report) -> None:
    assert value(told, "consist") == pytest.approx((1 / 6 + 0) / 2)
    assert value(told, "names_only.consist") == 0
    assert value(told, "names_only.min") == 1 / 2
    assert value(told, "names_only.max") == 3 / 4
    assert value(told, "templates_only.consist") == 0
    assert value(told, "templates_only.min") == 1 / 2
    assert value(told, "templates_only.max") == 3 / 4


def test_overconf_is_confidence_minus_accuracy(told: Report) -> None:
    assert value(told, "overconf") == pytest.approx(4.2 / 6 - 4 / 6)
    assert told.counts["prompts"] == told.counts["prompts_with_confidence"] == 6
    assert sum(float(str(row[6])) for row in cells(told, "calibration")) == 6


def test_coverage_grows_with_the_choice_of_prompts(told: Report) -> None:
    kinds = ("average", "average_best_name", "maximum", "oracle")
    assert [value(told, f"coverage.{kind}") for kind in kinds] == [5 / 8, 3 / 4, 1, 1]


def test_bias_is_that_of_templates_asked_about_nothing(told: Report) -> None:
    def level(*shares: float) -> float:
        return 1 + sum(share * log(share) for share in shares) / log(len(shares))

    assert value(told, "bias.single") == pytest.approx(level(0.5, 0.25, 0.25))
    assert value(told, "bias.multi") == pytest.approx(level(0.375, 0.25, 0.375))
    assert [row[6] for row in cells(told, "every-template")] == ["Paris", "Lima"]
    assert told.counts["content_free_prompts"] == 6


def test_without_content_free_subjects_bias_is_not_measured() -> None:
    found = report(probe=Belief(answer="fill", bias=False, draws=10))
    assert found.estimates["bias.single"] == Estimate.not_measured()
    assert found.estimates["bias.multi.relation.P36"] == Estimate.not_measured()
    assert any("bias level was not measured" in note for note in found.notes)


def test_names_help_where_the_correct_answer_gets_likelier(told: Report) -> None:
    assert value(told, "names_help.subject") == 1 / 2
    assert told.estimates["names_help.subject"].n == 2
    assert value(told, "names_help.object") == 1 / 4
    assert told.estimates["names_help.object"].n == 4


def test_a_name_under_which_the_answer_gets_less_likely_does_not_help() -> None:
    answers = {**ANSWERS, ("t2", "Gaul"): {"Lyon": 0.7, "Paris": 0.15}}
    assert value(report(model=Told(answers=answers)), "names_help.subject") == 0


def test_the_control_is_right_where_the_commonest_object_is() -> None:
    more = fact("P36", "Viceroyalty", "Lima")
    found = report(world(*FACTS, more))
    assert value(found, "control.majority.acc_at_1") == pytest.approx(2 / 3)


def test_every_content_free_subject_weighs_the_same_whatever_its_candidates_hold() -> None:
    faint = {"Paris": 0.001, "Lutetia": 0.001, "Lima": 0.002}
    found = report(world(*FACTS), model=Told(answers={**ANSWERS, ("t1", "?"): faint}))
    [row, _] = cells(found, "every-template")
    assert row[6] == "Paris"
    assert row[7] == pytest.approx((0.5 + 0.5 + 0.25) / 3)


def test_manual_templates_are_ranked_among_all(told: Report) -> None:
    assert value(told, "manual.rank") == 1
    assert value(told, "manual.rank_by_chance") == 1.5
    assert value(told, "groups.inner_consist") == value(told, "consist")
    assert told.estimates["groups.inter_consist"] == Estimate.not_measured()


def test_templates_without_groups_leave_the_groups_unmeasured() -> None:
    loose = [replace(t, group=t.id) for t in TEMPLATES]
    found = report(world(*FACTS, templates=loose))
    assert found.estimates["groups.inner_consist"] == Estimate.not_measured()
    assert found.estimates["groups.inter_consist"] == Estimate.not_measured()


def test_scoring_reads_the_share_of_the_best_option() -> None:
    answers = {**ANSWERS, ("t2", "Peru"): {"Paris": 0.6, "Lima": 0.3}}
    found = report(probe=Belief(answer="score", draws=10), model=Told(answers=answers))
    assert value(found, "acc_at_1") == (1 + 1 / 2) / 2  # Lyon and Lutetia are no options
    peru = cells(found, "pairs")[1]
    assert peru[7] == pytest.approx((1 + 2 / 3) / 2)
    assert value(found, "overconf") == pytest.approx((5 + 2 / 3) / 6 - 5 / 6)
    assert found.estimates["names_help.object"] == Estimate.not_measured()


def test_a_relation_with_one_template_has_no_fluctuation_and_no_consistency() -> None:
    peru = world(FACTS[1], templates=TEMPLATES[:1])
    found = report(peru)
    for name in ("fluctuation.relation.range", "fluctuation.pair.stdev", "consist", "manual.rank"):
        assert found.estimates[name] == Estimate.not_measured(), name
        assert found.estimates.get(f"{name}.relation.P36", Estimate.not_measured()).value is None
    assert value(found, "acc_at_1") == 1
    assert found.counts["relations_with_one_template"] == 1
    assert not any(figure.id == "fluctuation" for figure in found.figures)
    assert any("no relation has two templates" in finding for finding in found.findings)
    assert any("no pair was asked twice" in finding for finding in found.findings)


def test_answers_that_are_all_the_same_agree_and_do_not_fluctuate() -> None:
    same = {key: {"Lima": 0.6, "Paris": 0.4} for key in ANSWERS}
    found = report(model=Told(answers=same))
    assert value(found, "consist") == 1
    assert value(found, "acc_at_1") == value(found, "coverage.oracle") == 1 / 2
    assert value(found, "fluctuation.relation.range") == 0
    assert value(found, "overconf") == pytest.approx(0.6 - 2 / 6)
    [histogram] = [figure for figure in found.figures if figure.id == "fluctuation"]
    assert isinstance(histogram, Histogram) and histogram.counts == (2000,)


def test_pairs_without_a_one_token_name_are_left_out_and_counted() -> None:
    city = fact("P36", "Mexico", "Mexico City")
    found = report(world(*FACTS, city))
    assert found.counts["pairs_left_out_not_one_token"] == 1
    assert found.counts["prompts_left_out_not_one_token"] == 2
    assert found.counts["pairs"] == 2
    assert value(found, "acc_at_1") == 5 / 8


def test_a_dataset_without_any_one_token_name_measures_nothing_and_says_so() -> None:
    found = report(world(fact("P36", "Mexico", "Mexico City")))
    assert all(estimate.value is None for estimate in found.estimates.values())
    assert found.summary.startswith("No pair could be asked")
    assert found.counts["pairs_left_out_not_one_token"] == 1


def test_a_tie_counts_as_wrong_and_is_counted() -> None:
    tied = {**ANSWERS, ("t1", "Peru"): {"Lima": 0.4, "Paris": 0.4}}
    for probe in (Belief(answer="fill", draws=10), Belief(answer="score", draws=10)):
        found = report(model=Told(answers=tied), probe=probe)
        assert found.counts["ties"] == 1
        assert value(found, "coverage.average") < value(report(probe=probe), "coverage.average")


def test_of_two_answers_to_one_prompt_the_later_counts() -> None:
    probe = Belief(answer="fill", draws=10)
    rows = answer_all(Told(answers=ANSWERS), asked_of(probe, world(*FACTS)))
    [old] = [r for r in rows if r.key.subject == "Peru" and r.key.template == "t2"]
    [better] = [r for r in rows if r.key.subject == "Peru" and r.key.template == "t1"]
    later: Answered = replace(old, answer=better.answer)
    found = probe.read(world(*FACTS), [*rows, later])
    assert found.counts["prompts"] == 6
    assert value(found, "acc_at_1") == (3 / 4 + 1) / 2


def test_nothing_to_ask_is_an_error_that_says_so(tmp_path: Path) -> None:
    mined = world(*FACTS, templates=[replace(TEMPLATES[0], source="mined")])
    with pytest.raises(UsageError, match="finds nothing to ask"):
        sonde.run(Belief(templates="manual"), Told(answers={}), mined, out=tmp_path / "out")


def test_written_texts_are_refused() -> None:
    with pytest.raises(AbilityError, match="fill"):
        Belief().suited(frozenset({"generate"}))


@pytest.mark.parametrize(
    "settings",
    [{"bias": False}, {"names": "original"}, {"templates": "manual"}, {"draw": "pair"}],
)
def test_belief_passes_the_checks_with_other_settings(settings: dict[str, object]) -> None:
    small = sonde.dataset("atlas", relations=("P30", "P36"), limit=4)
    check_probe(sonde.probe("belief", draws=200, **settings), small)


def test_belief_is_found_by_its_name() -> None:
    assert PROBES["belief"] is Belief


def test_the_first_prompt_gives_the_score_of_lama() -> None:
    atlas = marked(sonde.dataset("atlas", relations=("P36", "P30"), limit=12))
    facts = [f for r in atlas.asked_relations() for f in atlas.asked(r.id)]
    half = Scripted(answers={f.id: f.objects[0].name for f in facts[::3]})
    belief, lama = Belief(answer="score", draws=10), Lama(answer="score")
    many = belief.read(atlas, answer_all(half, asked_of(belief, atlas)))
    one = lama.read(atlas, answer_all(half, asked_of(lama, atlas)))
    assert 0 < value(one, "uhn.p_at_1.mean_over_facts") < 1
    assert value(many, "single_prompt.acc_at_1") == value(one, "uhn.p_at_1.mean_over_facts")
    for id in ("P36", "P30"):
        mine = many.estimates[f"single_prompt.acc_at_1.relation.{id}"]
        assert mine == one.estimates[f"uhn.p_at_1.relation.{id}"]


def test_the_names_of_the_estimates_are_as_they_always_were(told: Report) -> None:
    assert sorted(told.estimates) == GOLDEN.read_text().split()


def test_overconf_of_the_templates_is_summed_up_where_they_were_asked_often_enough() -> None:
    found = report(probe=Belief(answer="fill", draws=10, floor=3)).estimates
    # t1: sure .8, .5, .9, right but for the second; t2: .6, .7, .7, the first two right
    one, two = (0.8 + 0.5 + 0.9 - 2) / 3, (0.6 + 0.7 + 0.7 - 2) / 3
    names = ("mean", "stdev", "min", "max")
    values = [found[f"overconf_by_template.{name}"].value for name in names]
    spread = abs(one - two) / sqrt(2)
    assert values == pytest.approx([(one + two) / 2, spread, two, one], abs=1e-6)
    assert [found[f"overconf_by_template.{name}"].n for name in names] == [2, 2, 3, 3]
    fewer = report(probe=Belief(answer="fill", draws=10)).estimates
    assert fewer["overconf_by_template.stdev"] == Estimate.not_measured()


@pytest.mark.parametrize(("pairs", "told"), [(3, False), (12, True)])
def test_what_changes_answers_more_often_is_said_only_where_a_paired_test_says_so(
    pairs: int, told: bool
) -> None:
    facts = [fact("P36", entity(f"Land{i}", f"Old{i}"), "Paris") for i in range(pairs)]
    answers = {
        (template, name): {"Paris" if template == "t1" else "Lima": 0.9}
        for template in ("t1", "t2")
        for name in (name for f in facts for name in f.subject.names)
    }
    found = report(world(*facts), Belief(answer="fill", draws=10), Told(answers=answers))
    [said] = [f for f in found.findings if "over templates" in f]
    assert said.endswith("answers agree 100.0% over names, 0.0% over templates.")
    more = "Another template changes the answer more often than another name of the subject"
    assert said.startswith(more) == told
    assert said.startswith("Whether another name or another template changes the answer") != told


def test_what_changes_answers_more_often_is_tested_within_relations() -> None:
    """Relations that pull apart, each of them steadily, leave a mean that is known well."""
    relations = np.repeat([0, 1], [260, 250])
    wobble = np.tile([0.0, 0.02], 255)
    over_names = np.where(relations == 0, 0.9, 0.1) + wobble
    further = {"names_only.consist": over_names, "templates_only.consist": np.full(510, 0.5)}
    [said] = more_moving(further, relations, 0)
    assert said.startswith("Another template changes the answer more often")


def test_a_limit_asks_about_some_pairs_only() -> None:
    few = world(*FACTS).select(Selection(limit=1))
    subjects = {p.key.fact for p in asked_of(Belief(answer="fill", bias=False), few)}
    assert len(subjects) == 1


def test_a_template_may_be_the_only_manual_one() -> None:
    lone = (Template(id="t1", text="The capital of [X] is [Y].", group="t1"),)
    found = report(world(*FACTS, templates=lone))
    assert found.estimates["manual.rank_by_chance"] == Estimate.not_measured()
    assert value(found, "consist") == 0  # France's two names are two prompts
