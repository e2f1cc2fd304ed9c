"""BELIEF: prompts, and every number of a world small enough to compute by hand.

France has two names and so has its capital; Peru has one of each.
"""

from dataclasses import replace
from math import log, sqrt
from typing import Any

import pytest

from sonde.core.facts import Dataset, Fact, Template
from sonde.probes.belief import Belief
from sonde.probes.lama import Lama
from sonde.prompts import FillMask, Score
from tests.worlds import dataset_of, entity, fact, relation, template

from .shares import Numbers, Shares, by_fact

TEMPLATES = (
    template("t1", "The capital of [X] is [Y].", origin="lama"),
    template("t2", "[X] is governed from [Y].", source="paraphrase", group="t1"),
)
SHARES: dict[tuple[str, str], Shares] = {
    ("t1", "France"): {"Paris": 0.8, "Lutetia": 0.1},
    ("t1", "Gaul"): {"Lyon": 0.5, "Paris": 0.3, "Lutetia": 0.1},
    ("t2", "France"): {"Lutetia": 0.6, "Paris": 0.2},
    ("t2", "Gaul"): {"Paris": 0.7, "Lutetia": 0.15},
    ("t1", "Peru"): {"Lima": 0.9},
    ("t2", "Peru"): {"Cusco": 0.7, "Lima": 0.1},
    **{("t1", s): {"Paris": 0.5, "Lutetia": 0.25, "Lima": 0.25} for s in ("N/A", "", "?")},
    **{("t2", s): {"Lima": 0.5, "Lutetia": 0.25, "Paris": 0.25} for s in ("N/A", "", "?")},
}
FACTS = (
    fact("P36", entity("France", "Gaul"), entity("Paris", "Lutetia")),
    fact("P36", "Peru", "Lima"),
)
FILL = Belief(answer="fill", fluctuation_draws=2000)


def world(*facts: Fact, templates: tuple[Template, ...] = TEMPLATES) -> Dataset:
    return dataset_of(facts or FACTS, relation("P36", *templates, kind="1-1"))


def numbers(data: Dataset | None = None, probe: Belief = FILL, **more: Shares) -> Numbers:
    """With other shares for some prompts: `t1_Gaul={"Versailles": 0.9}`."""
    shares = SHARES | {tuple(key.split("_")): value for key, value in more.items()}
    return Numbers(probe, data or world(), lambda p: shares.get((p["template"], p["subject"]), {}))


def prompts(probe: Belief, data: Dataset) -> list[tuple[str, str]]:
    frames = [batch.frame for batch in probe.prompts(data)]
    return [key for frame in frames for key in frame.select("template", "subject").iter_rows()]


@pytest.fixture(scope="module")
def of() -> Numbers:
    return numbers()


def test_content_free_subjects_come_first_then_every_name_in_every_template() -> None:
    empty = [(t, s) for t in ("t1", "t2") for s in ("N/A", "", "?")]
    named = [
        (t, s) for names in (("France", "Gaul"), ("Peru",)) for t in ("t1", "t2") for s in names
    ]
    assert prompts(FILL, world()) == [*empty, *named]
    few = replace(FILL, template_source="manual", aliases="original", bias=False)
    assert prompts(few, world()) == [("t1", "France"), ("t1", "Peru")]


def test_masked_models_have_one_word_targets_and_others_score_usual_names() -> None:
    data = world(*FACTS, fact("P36", "Mexico", entity("Mexico City", "CDMX")))
    fill = Belief().resolve(frozenset({"fill", "score"}))
    targets = ("Paris", "Lutetia", "Lima", "CDMX")
    assert {b.request for b in fill.prompts(data)} == {FillMask(top_k=5, targets=targets)}
    batches = list(Belief().resolve(frozenset({"score"})).prompts(data))
    assert {b.request for b in batches} == {Score()}
    assert all(b.options == [("Paris", "Lima", "Mexico City")] for b in batches)


def test_facts_of_one_subject_are_one_pair() -> None:
    more = fact("P36", entity("France", "Hexagon"), "Versailles", id="again")
    pairs = numbers(world(*FACTS, more), t1_Gaul={"Versailles": 0.9}).results
    assert pairs.facts["gold"].to_list() == ["Paris, Versailles", "Lima"]
    assert pairs.rows["fact_no"].to_list().count(0) == 6
    assert pairs.rows.filter(template_no=1, alias_no=1)["correct"].all()


def test_accuracy_averages_over_the_prompts_of_a_pair_and_then_over_pairs(of: Numbers) -> None:
    assert of("acc_at_1") == (3 / 4 + 1 / 2) / 2
    assert of("acc_at_1", of="baseline") == 1 / 2
    assert of("acc_at_1", of="difference") == pytest.approx(1 / 8)


def test_template_accuracies_are_of_each_relations_worst_and_best(of: Numbers) -> None:
    assert of("template_accuracy.max") == (1 / 2 + 1) / 2
    assert of("template_accuracy.min") == (1 + 0) / 2
    assert of("template_accuracy.mean") == pytest.approx(5 / 8)


def test_fluctuation_is_that_of_the_closed_form(of: Numbers) -> None:
    relation, pair = sqrt(1 / 64 + (1 / 4) * (1 / 8)), sqrt((3 / 16 + 1 / 4) / 4)
    for draw, closed_form in (("relation", relation), ("pair", pair)):
        assert of(f"fluctuation.{draw}.closed_form") == pytest.approx(closed_form)
        assert of(f"fluctuation.{draw}.stdev") == pytest.approx(closed_form, abs=0.02)
    assert of("fluctuation.pair.range") == 1


def test_consistency_counts_equal_answers_correct_or_not(of: Numbers) -> None:
    assert of("consistency") == pytest.approx((1 / 6 + 0) / 2)
    assert (of("only_aliases.min"), of("only_aliases.max")) == (1 / 2, 3 / 4)
    assert (of("only_templates.min"), of("only_templates.max")) == (1 / 2, 3 / 4)


def test_overconfidence_is_confidence_minus_accuracy(of: Numbers) -> None:
    assert of("overconfidence") == pytest.approx(4.2 / 6 - 4 / 6)


def test_coverage_grows_with_the_choice_of_prompts(of: Numbers) -> None:
    kinds = ("average", "average_best_name", "maximum", "oracle")
    assert [of(f"coverage.{kind}") for kind in kinds] == [5 / 8, 3 / 4, 1, 1]


def test_bias_is_that_of_content_free_prompts(of: Numbers) -> None:
    def level(*shares: float) -> float:
        return 1 + sum(share * log(share) for share in shares) / log(len(shares))

    assert of("bias.single") == pytest.approx(level(0.5, 0.25, 0.25))
    assert of("bias.multi") == pytest.approx(level(0.375, 0.25, 0.375))
    without = numbers(probe=replace(FILL, bias=False))
    assert without("bias.single") is None


def test_exhibits_show_calibration_and_templates(of: Numbers) -> None:
    extra = FILL.layout.extra
    assert extra is not None
    exhibits = {each.id: each.frame for each in extra(of.results, of.frame)}
    assert list(exhibits) == ["calibration", "templates"]
    curve = exhibits["calibration"].sum()
    assert curve.row(0) == pytest.approx((0.5 + 0.6 + 0.7 + 0.8 + 0.9, 3.5, 6))
    inflated = exhibits["templates"].select("text", "acc_at_1", "inflates", "share", "average")
    assert [row[2] for row in inflated.rows()] == ["Paris", "Lima"]
    assert [row[1] for row in inflated.rows()] == [3 / 4, 1 / 2]
    assert inflated["share"].to_list() == pytest.approx([0.5, 0.5])
    assert inflated["average"].to_list() == pytest.approx([0.375, 0.375])


def test_aliases_help_if_the_correct_answer_gets_more_likely(of: Numbers) -> None:
    assert (of("aliases_help.subject"), of.line("aliases_help.subject")["n"]) == (1 / 2, 2)
    assert (of("aliases_help.object"), of.line("aliases_help.object")["n"]) == (1 / 4, 4)


def test_manual_templates_are_ranked_among_all(of: Numbers) -> None:
    assert (of("manual.rank"), of("manual.rank_by_chance")) == (1, 1.5)


def test_overconfidence_of_templates_with_enough_prompts() -> None:
    three = numbers(probe=replace(FILL, min_prompts=3))
    # t1: confidence .8, .5, .9, correct but for the second; t2: .6, .7, .7, the first two correct
    one, two = (0.8 + 0.5 + 0.9 - 2) / 3, (0.6 + 0.7 + 0.7 - 2) / 3
    values = {"mean": (one + two) / 2, "stdev": abs(one - two) / sqrt(2), "min": two, "max": one}
    for name, value in values.items():
        assert three(f"template_overconfidence.{name}") == pytest.approx(value, abs=1e-6)


def test_the_first_prompt_is_lama_on_the_facts_of_uhn() -> None:
    province = fact("P36", "Lima Province", "Lima")
    names = {"P36-France": "Paris", "P36-Lima Province": "Lima"}
    data = world(*FACTS, province)
    first = Numbers(Belief(answer="score"), data, by_fact(**names))
    lama = Numbers(Lama(answer="score"), data, by_fact(**names))
    assert first("single_prompt.acc_at_1") == lama("uhn.p_at_1") == 1 / 2
    loose = tuple(replace(t, origin="") for t in TEMPLATES)
    assert numbers(world(templates=loose))("single_prompt.acc_at_1") is None


def test_scoring_takes_the_share_of_the_best_option() -> None:
    of = numbers(probe=Belief(answer="score"), t2_Peru={"Paris": 0.6, "Lima": 0.3})
    assert of("acc_at_1") == (1 + 1 / 2) / 2  # Lyon and Lutetia are no options
    assert of("overconfidence") == pytest.approx((5 + 2 / 3) / 6 - 5 / 6)
    assert of("aliases_help.object") is None


def test_one_template_and_one_name_leave_nothing_to_compare() -> None:
    of = numbers(world(FACTS[1], templates=TEMPLATES[:1]))
    for name in ("fluctuation.relation.range", "consistency"):
        assert of(name) is None, name
    assert of("acc_at_1") == 1


def test_answers_that_are_all_the_same_agree_and_do_not_fluctuate() -> None:
    of = Numbers(FILL, world(), lambda prompt: {"Lima": 0.6, "Paris": 0.4})
    assert of("consistency") == 1
    assert of("acc_at_1") == of("coverage.oracle") == 1 / 2
    assert of("fluctuation.relation.range") == 0


def test_a_tie_counts_as_wrong() -> None:
    tied: Any = {"Lima": 0.4, "Paris": 0.4}
    for probe in (FILL, Belief(answer="score", fluctuation_draws=10)):
        of = numbers(probe=probe, t1_Peru=tied)
        assert of("coverage.average") < numbers(probe=probe)("coverage.average")
        assert of.results.counts()["tied"] == 1


def test_pairs_without_a_one_token_object_are_excluded() -> None:
    of = numbers(world(*FACTS, fact("P36", "Mexico", "Mexico City")))
    assert of.line("acc_at_1")["n"] == 2 and of("acc_at_1") == 5 / 8
    assert of.results.facts["excluded"].to_list() == [None, None, FILL.exclusion_reason]
