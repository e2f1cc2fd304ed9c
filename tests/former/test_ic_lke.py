"""IC-LKE: what it asks, how it reads, and what it says about what it had to leave out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sonde
from sonde.core.errors import AbilityError, UsageError
from sonde.core.facts import Dataset, Entity
from sonde.core.fingerprints import draw_key
from sonde.core.prompts import Score
from sonde.core.reports import Curves
from sonde.models.controls import majority
from sonde.former.lke.eic import EicLke
from sonde.former.lke.ic import IcLke
from sonde.testing import check_probe
from tests.rows import answer_all
from tests.worlds import fact, facts, world

from .lke_literal import Reader, assert_equal, causal, cities
from .lke_world import Told, read, right

PAPER: dict[str, Any] = {"inside": "space", "between": "space"}
GOLDEN = Path(__file__).parents[1] / "golden" / "lke" / "ic-lke.txt"


def test_prompts_are_those_written_down() -> None:
    written = []
    others: dict[str, Any] = {"n": 2, "inside": " : ", "between": "\\n", "seeds": 2}
    for settings in ({"n": 3, **PAPER}, others):
        for prompt in IcLke(**settings).ask(world()):
            assert isinstance(prompt.want, Score)
            key = f"{prompt.key.fact} seed {prompt.own['seed']}"
            written.append(f"{key}\n{prompt.prefix!r}\n{', '.join(prompt.want.options)}\n")
    assert "\n".join(written) == GOLDEN.read_text(encoding="utf-8")


def test_examples_are_lines_with_a_colon_unless_set() -> None:
    for probe in (IcLke(n=2), EicLke(training=2, start=2, options=2)):
        prompt = next(iter(probe.ask(world(relations=("P36",)))))
        lines = prompt.prefix.strip("\n").split("\n")
        assert len(lines) == 3 and all(" : " in line for line in lines)


def test_the_report_names_the_separators_and_how_to_compare_others() -> None:
    caveats = [f for f in read(IcLke(), world()).findings if "lke-separators" in f]
    assert len(caveats) == 1 and "colon/newline only" in caveats[0]
    [caveat] = [f for f in read(EicLke(**PAPER), world()).findings if "lke-separators" in f]
    assert "space/space only" in caveat


@pytest.mark.parametrize("settings", [{"seeds": 3, "n": 2}, {"inside": "[X] has [Y]."}])
def test_other_settings_pass_the_checks(settings: dict[str, Any]) -> None:
    check_probe(IcLke(**settings), world())


def test_facts_of_a_relation_share_all_examples() -> None:
    prompts = [p for p in IcLke(n=4).ask(world()) if p.key.relation == "P36"]
    beginnings = {p.prefix.removesuffix(f"{p.key.subject} : ") for p in prompts}
    assert len(prompts) == 2
    assert len(beginnings) == 1


def test_every_fact_is_judged_by_its_own_object() -> None:
    probe = IcLke()
    report = read(probe, world())
    assert report.estimates["accuracy.relation.P36"].value == 0.5
    assert report.estimates["accuracy.relation.P1303"].value == 0.5
    assert report.estimates["accuracy.mean_over_relations"].n == 4


def test_mass_and_confidence_are_shares_of_the_options() -> None:
    data = world(relations=("P36",))
    probe = IcLke()
    model = Told(table={"Vienna": 0.02, "Cairo": 0.01, "Lima": 0.01})
    report = probe.read(data, answer_all(model, list(probe.ask(data))))
    assert report.estimates["mass.mean_over_facts"].value == pytest.approx(0.375, abs=1e-4)
    assert report.estimates["confidence.mean_over_facts"].value == pytest.approx(0.5, abs=1e-4)


def test_accuracy_at_k_keeps_only_sure_choices() -> None:
    data = world(relations=("P36",))
    report = read(IcLke(levels=(0.5, 0.95)), data, {"P36-Austria": "Vienna"})
    for over in ("mean_over_relations", "mean_over_choices", "relation.P36"):
        assert report.estimates[f"retained_at.0.5.{over}"].value == 0.5
        assert report.estimates[f"accuracy_at.0.5.{over}"].value == 1
        assert report.estimates[f"retained_at.0.95.{over}"].value == 0
        assert report.estimates[f"accuracy_at.0.95.{over}"].value is None


def test_accuracy_at_k_is_averaged_over_relations_and_pooled_under_another_name() -> None:
    # P36: sure twice, right once; P1303: sure once of two, and right
    found = read(IcLke(levels=(0.5,)), world()).estimates
    assert found["accuracy_at.0.5.relation.P36"].value == 0.5
    assert found["accuracy_at.0.5.relation.P1303"].value == 1
    assert found["accuracy_at.0.5.mean_over_relations"].value == 0.75
    assert found["accuracy_at.0.5.mean_over_choices"].value == pytest.approx(2 / 3)
    assert found["retained_at.0.5.mean_over_relations"].value == 0.75


def test_a_relation_of_whose_choices_none_is_sure_is_left_out_of_accuracy_at_k_and_counted() -> (
    None
):
    report = read(IcLke(levels=(0.5,)), world(), {"P36-Austria": "Vienna", "P36-Egypt": "Lima"})
    assert report.estimates["accuracy_at.0.5.relation.P1303"].value is None
    assert report.estimates["retained_at.0.5.relation.P1303"].value == 0
    assert report.estimates["accuracy_at.0.5.mean_over_relations"].value == 0.5
    assert report.estimates["retained_at.0.5.mean_over_relations"].value == 0.5
    [table] = [t for t in report.tables if t.id == "accuracy-at-k"]
    assert dict(zip((c.title for c in table.columns), table.rows[0], strict=True))["relations"] == 1
    [figure] = [f for f in report.figures if f.id == "accuracy-at-k"]
    assert isinstance(figure, Curves)
    by_level = dict(zip(figure.curves[0].x, figure.curves[0].y, strict=True))
    assert by_level[0.5] == 0.5 and by_level[0.0] == 0.25


def test_ties_are_wrong_and_counted() -> None:
    report = read(IcLke(), world(), {})
    assert report.counts["ties"] == 4
    assert report.estimates["accuracy.mean_over_facts"].value == 0


def test_the_control_in_the_report_is_the_control_as_a_model() -> None:
    data = sonde.dataset("atlas", relations=("P30", "P36", "P103"), limit=20)
    probe = IcLke(options=20)
    report = probe.read(data, answer_all(majority(data), list(probe.ask(data))))
    for over in ("mean_over_relations", "mean_over_facts", "relation.P30"):
        control = report.estimates[f"control.majority.accuracy.{over}"]
        assert report.estimates[f"accuracy.{over}"].value == control.value
    assert control.value
    assert report.estimates["above_control.accuracy.mean_over_facts"].value == 0


def test_seeds_draw_other_examples_for_the_same_options() -> None:
    prompts = [p for p in IcLke(n=3, seeds=2).ask(world()) if p.key.fact == "P36-Austria"]
    assert [p.own["seed"] for p in prompts] == [0, 1]
    assert prompts[0].prefix != prompts[1].prefix
    assert prompts[0].want == prompts[1].want


def test_seeds_begin_with_that_of_the_selection() -> None:
    alone = list(IcLke(n=3).ask(world(seed=1)))
    among = [p for p in IcLke(n=3, seeds=2).ask(world()) if p.own["seed"] == 1]
    assert [p.prefix for p in alone] == [p.prefix for p in among]


def test_the_spread_over_seeds_is_that_of_their_accuracies() -> None:
    data = world(relations=("P36",))
    probe = IcLke(seeds=2, n=2)
    answered = [
        row
        for row in answer_all(Told(table={"Vienna": 0.9, "Cairo": 0.5}), list(probe.ask(data)))
        if row.own["seed"] == 0
    ]
    other = Told(table={"Lima": 0.9})
    answered += [r for r in answer_all(other, list(probe.ask(data))) if r.own["seed"] == 1]
    estimates = probe.read(data, answered).estimates
    assert estimates["accuracy.seed.0.mean_over_relations"].value == 0.5
    assert estimates["accuracy.seed.1.mean_over_relations"].value == 0
    assert estimates["accuracy.seeds.stdev.mean_over_relations"].value == pytest.approx(
        np.std([0.5, 0], ddof=1)
    )
    assert estimates["accuracy.mean_over_relations"].value == 0.25


def test_one_seed_has_no_spread() -> None:
    spread = read(IcLke(), world()).estimates["accuracy.seeds.stdev.mean_over_relations"]
    assert spread.value is None


def test_judged_rows_say_what_each_fact_chose() -> None:
    data, probe = world(), IcLke()
    model = Told(table={"Vienna": 0.5, "guitar": 0.5})
    judged = probe.judged(data, answer_all(model, list(probe.ask(data))))
    assert right(judged) == {
        "P36-Austria": True,
        "P36-Egypt": False,
        "P1303-Gus": False,
        "P1303-Hal": True,
    }
    assert judged.way == "scored"
    assert {t.id for t in judged.templates} == {"lke-0"}


def test_every_seed_is_a_template_of_its_relation() -> None:
    data, probe = world(), IcLke(seeds=2)
    judged = probe.judged(data, answer_all(majority(data), list(probe.ask(data))))
    owners = judged.grid.template_relations[judged.grid.template]
    assert (owners == judged.grid.relations[judged.grid.pair]).all()
    asked = [(judged.templates[t].id, r) for t, r in zip(judged.grid.template, owners, strict=True)]
    assert sorted(asked) == [(f"lke-{seed}", r) for seed in (0, 1) for r in (0, 0, 1, 1)]


def test_an_object_that_is_right_by_another_fact_is_no_option() -> None:
    more = [*facts(), fact("P36", "Austria", "Lima", split="train")]
    [prompt] = [p for p in IcLke().ask(world(more)) if p.key.fact == "P36-Austria"][:1]
    assert isinstance(prompt.want, Score)
    assert "Lima" not in prompt.want.options
    assert "Vienna" in prompt.want.options


def test_training_facts_that_are_asked_about_do_not_answer_themselves() -> None:
    data = world(split="train", relations=("P36",))
    probe = IcLke(n=5)
    for prompt in probe.ask(data):
        assert prompt.prefix.count(prompt.key.subject) == 1
    assert read(probe, data).counts["facts_among_examples"] == 5  # the sixth was a spare itself


def test_of_two_answers_for_a_fact_the_later_one_counts() -> None:
    data, probe = world(relations=("P36",)), IcLke()
    prompts = list(probe.ask(data))
    wrong, correct = (Told(table={name: 0.9}) for name in ("Lima", "Vienna"))
    answered = [*answer_all(wrong, prompts), *answer_all(correct, prompts[:1])]
    assert right(probe.judged(data, answered)) == {"P36-Austria": True, "P36-Egypt": False}


def test_a_model_that_cannot_score_is_refused() -> None:
    with pytest.raises(AbilityError, match="score"):
        IcLke().suited(frozenset({"generate"}))


@pytest.mark.parametrize("level", [-0.1, 1.5])
def test_a_level_that_is_no_probability_is_refused(level: float) -> None:
    with pytest.raises(UsageError, match="levels"):
        IcLke(levels=(level,))


def test_the_table_of_facts_names_gold_and_choice() -> None:
    report = read(IcLke(), world(relations=("P36",)))
    [table] = [t for t in report.tables if t.id == "facts"]
    titles = [column.title for column in table.columns]
    rows = [dict(zip(titles, row, strict=True)) for row in table.rows]
    assert [(r["subject"], r["right"], r["chosen"], r["verdict"]) for r in rows] == [
        ("Austria", "Vienna", "Vienna", "right"),
        ("Egypt", "Cairo", "Lima", "wrong"),
    ]


def test_the_gold_name_is_the_usual_one() -> None:
    names = Entity(id="Vienna", names=("Vienna", "Wien"))
    asked = replace(fact("P36", "Austria", "Vienna"), objects=(names,))
    [prompt] = IcLke().ask(world([*facts()[:6], asked]))
    assert isinstance(prompt.want, Score)
    assert "Wien" not in prompt.want.options


def spelled_out() -> Dataset:
    """A city of two names is asked for; a wrong one has two names, too."""
    held = facts()[:6]
    held[0] = replace(held[0], objects=(Entity(id="Lima", names=("Lima", "City of Kings")),))
    names = Entity(id="Vienna", names=("Vienna", "Wien"))
    return world([*held, replace(fact("P36", "Austria", "Vienna"), objects=(names,))])


def test_all_names_of_every_option_are_scored_where_that_is_asked_for() -> None:
    [prompt] = IcLke(names="all").ask(spelled_out())
    assert isinstance(prompt.want, Score)
    assert {"Vienna", "Wien", "Lima", "City of Kings"} <= set(prompt.want.options)
    assert list(prompt.want.options) == sorted(prompt.want.options)


def test_names_are_pooled_for_the_mass_and_not_for_the_choice() -> None:
    data, probe = spelled_out(), IcLke(names="all")
    model = Told(table={"Vienna": 0.2, "Wien": 0.3, "Lima": 0.3, "City of Kings": 0.2})
    report = probe.read(data, answer_all(model, list(probe.ask(data))))
    assert report.estimates["mass.mean_over_facts"].value == pytest.approx(0.5, abs=1e-6)
    assert report.estimates["accuracy.mean_over_facts"].value == 0
    assert report.estimates["confidence.mean_over_facts"].value == pytest.approx(0.6, abs=1e-6)
    [table] = [t for t in report.tables if t.id == "facts"]
    assert table.rows[0][3] == "Lima"


def test_without_other_names_it_makes_no_difference_which_are_scored() -> None:
    data = world()
    plain, named = (IcLke(names=names) for names in ("usual", "all"))
    assert read(plain, data) == read(named, data)


def test_it_equals_its_definition(folder: Path) -> None:
    data, probe = cities(), IcLke(n=7, **PAPER)
    judged = probe.judged(data, answer_all(causal(folder), list(probe.ask(data))))
    held = list(data.facts("P36"))
    shown = [f for f in held if f.split == "train"]
    shown.sort(key=lambda f: draw_key(0, f"lke:{f.id}"))
    examples = " ".join(f"{f.subject.name} {f.objects[0].name}" for f in shown[:7])
    reads, expected = Reader(folder), dict[str, dict[str, float]]()
    for asked in (f for f in held if f.split == "test"):
        for option in {f.objects[0].name for f in held}:
            text = f"{examples} {asked.subject.name} {option}"
            [logp] = reads.parts(text, [(len(text) - len(option), len(text))])
            expected.setdefault(asked.id, {})[option] = logp
    assert_equal(judged, data, expected)
