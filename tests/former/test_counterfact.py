"""CounterFact: what is asked, which of two objects is likelier, and the scores that follow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import exp, log
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sonde
from sonde.core.abilities import Identity
from sonde.core.answers import Scored
from sonde.core.errors import DataError
from sonde.core.facts import Dataset, Fact, Selection, Template
from sonde.core.prompts import Prompt, Score
from sonde.core.reports import Report
from sonde.models.scripted import Scripted
from sonde.former.counterfact.probe import Counterfact
from sonde.former.counterfact.report import harmonic
from sonde.testing import oracle_for
from tests.rows import answer_all, asked
from tests.worlds import dataset_of, fact, relation

TEMPLATES = (
    Template(id="own", text="[details.prompt] [Y].", group="own"),
    Template(id="other", text="[details.other] [Y].", group="own", source="paraphrase"),
)
MAJOR = ("efficacy", "paraphrase", "neighbourhood", "score")


def case(id: str, true: str, new: str, relation: str = "P36", **details: str) -> Fact:
    made = fact(relation, f"subject {id}", true, id=id, wrong=[new])
    return replace(made, details={"prompt": f"own {id}", "other": f"other {id}", **details})


def neighbour(of: str, number: int, true: str, new: str, relation: str = "P36") -> Fact:
    id = f"{of}-{number}"
    made = fact(relation, f"near {id}", true, id=id, wrong=[new], split="neighbourhood")
    return replace(made, details={"prompt": f"near {id}", "case": of})


CASES = (
    case("a", "Lima", "Oslo"),
    neighbour("a", 1, "Lima", "Oslo"),
    neighbour("a", 2, "Lima", "Oslo"),
    case("b", "Oslo", "Rome"),
    neighbour("b", 1, "Oslo", "Rome"),
    case("c", "jazz", "opera", "P136"),
)


def world(*facts: Fact, **selection: Any) -> Dataset:
    relations = dict.fromkeys(f.relation for f in facts)
    return dataset_of(facts, *(relation(id, *TEMPLATES) for id in relations), **selection)


class Told:
    """A model that scores by a prompt's text: log-probabilities of each option's tokens."""

    def __init__(self, scores: dict[tuple[str, str], Sequence[float]]) -> None:
        self.scores = scores
        self.identity = Identity(name="told", architecture="table", weights="1")

    def score(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Scored]]:
        for number, prompt in enumerate(prompts):
            assert isinstance(prompt.want, Score)
            options = prompt.want.options
            rows = (self.scores.get((prompt.prefix.strip(), o), [log(0.1)]) for o in options)
            yield number, Scored(options=options, logps=tuple(map(tuple, rows)))


def report(
    dataset: Dataset, likelier: Iterable[tuple[str, str]], probe: Counterfact | None = None
) -> Report:
    probe = probe or Counterfact()
    model = Told({key: [log(0.6)] for key in likelier})
    return probe.read(dataset, answer_all(model, probe.ask(dataset)))


def test_two_options_follow_each_prompt_of_a_case_and_of_its_neighbours() -> None:
    prompts = asked(Counterfact(), world(*CASES[:3]))
    assert [(p.prefix, p.suffix, p.own["role"], p.key.fact) for p in prompts] == [
        ("own a ", ".", "efficacy", "a"),
        ("other a ", ".", "paraphrase", "a"),
        ("near a-1 ", ".", "neighbourhood", "a-1"),
        ("near a-2 ", ".", "neighbourhood", "a-2"),
    ]
    assert {p.want.options for p in prompts if isinstance(p.want, Score)} == {("Lima", "Oslo")}
    assert {p.own["case"] for p in prompts} == {"a"}


def test_the_scores_are_shares_of_cases() -> None:
    right = [("own a", "Lima"), ("own b", "Oslo"), ("other a", "Lima"), ("near a-1", "Lima")]
    estimates = report(world(*CASES), right).estimates
    assert estimates["efficacy.mean_over_facts"].value == pytest.approx(2 / 3)
    assert estimates["paraphrase.mean_over_facts"].value == pytest.approx(1 / 3)
    assert estimates["neighbourhood.mean_over_facts"].value == 0.25  # half of a's, none of b's
    assert estimates["neighbourhood.mean_over_facts"].n == 2  # c has no neighbours
    assert estimates["efficacy.mean_over_relations"].value == 0.5
    assert estimates["efficacy.relation.P136"].value == 0.0
    assert estimates["score.mean_over_facts"].value == pytest.approx(
        3 / (1 / (2 / 3) + 1 / (1 / 3) + 1 / 0.25)
    )
    assert estimates["score.relation.P136"].value is None


def test_the_majority_control_chooses_the_object_that_more_cases_have() -> None:
    twice = case("d", "Oslo", "Lima")  # Oslo is true of two cases, Lima of one
    dataset = world(*CASES[:5], twice)
    estimates = report(dataset, [("own a", "Lima"), ("own b", "Oslo")]).estimates
    control = {name: estimates[f"control.majority.{name}.mean_over_facts"] for name in MAJOR[:3]}
    assert control["efficacy"].value == control["paraphrase"].value == pytest.approx(2 / 3)
    assert control["neighbourhood"].value == 0.5  # not a's, but b's
    above = estimates["above_control.efficacy.mean_over_facts"]
    assert above.value == pytest.approx(0.0) and above.n == 3
    edited = report(dataset, [], Counterfact(edited=True)).estimates
    assert edited["control.majority.efficacy.mean_over_facts"].value == pytest.approx(1 / 3)
    assert edited["control.majority.neighbourhood.mean_over_facts"].value == 0.5


def test_the_control_stands_beside_the_scores_and_is_told_of() -> None:
    made = report(world(*CASES), [])
    assert made.headlines[0].control == "control.majority.efficacy.mean_over_facts"
    assert made.headlines[0].difference == "above_control.efficacy.mean_over_facts"
    assert sum("the majority control" in line for line in made.findings) == 3


def test_a_run_has_the_role_of_each_prompt_beside_the_kind_of_its_answer(tmp_path: Path) -> None:
    dataset = world(*CASES[:3])
    frame = sonde.run(Counterfact(), oracle_for(dataset), dataset, tmp_path / "run").to_polars()
    assert set(frame["kind"]) == {"scored"}
    assert frame["role"].to_list() == ["efficacy", "paraphrase", "neighbourhood", "neighbourhood"]


def test_magnitudes_are_differences_of_probabilities() -> None:
    estimates = report(world(*CASES), [("own a", "Lima"), ("own c", "opera")]).estimates
    assert estimates["efficacy_magnitude.relation.P36"].value == pytest.approx(0.5 / 2)
    assert estimates["efficacy_magnitude.relation.P136"].value == pytest.approx(-0.5)
    assert estimates["paraphrase_less_efficacy.relation.P36"].value == -0.5


def test_cases_whose_prompt_names_the_answer_are_told_apart() -> None:
    told = case("t", "Lima", "Oslo", prompt="The region of Lima is run from")
    made = report(world(told, CASES[3]), [("The region of Lima is run from", "Lima")])
    assert made.estimates["efficacy.mean_over_facts"].value == 0.5
    assert made.estimates["efficacy_unnamed.mean_over_facts"].value == 0.0
    assert made.counts["cases_with_the_answer_in_the_prompt"] == 1
    assert any("own prompts of 1 case name what is true" in line for line in made.findings)


def test_ties_are_wrong_and_counted() -> None:
    made = report(world(*CASES), [])
    assert made.estimates["efficacy.mean_over_facts"].value == 0.0
    assert made.counts["ties"] == 9 and made.counts["cases"] == 3


def test_an_edited_model_should_say_what_is_new_but_not_of_neighbours() -> None:
    said = [("own a", "Oslo"), ("other a", "Oslo"), ("near a-1", "Lima"), ("near a-2", "Oslo")]
    edited = report(world(*CASES[:3]), said, Counterfact(edited=True)).estimates
    assert [edited[f"{name}.mean_over_facts"].value for name in MAJOR[:3]] == [1.0, 1.0, 0.5]
    assert edited["efficacy_magnitude.mean_over_facts"].value == pytest.approx(0.5)
    plain = report(world(*CASES[:3]), said).estimates
    assert [plain[f"{name}.mean_over_facts"].value for name in MAJOR] == [0.0, 0.0, 0.5, 0.0]


def test_options_can_be_compared_by_token() -> None:
    dataset, probe = world(CASES[0]), Counterfact()
    model = Told({("own a", "Lima"): [-1.0, -1.0], ("own a", "Oslo"): [-1.5]})
    answers = answer_all(model, probe.ask(dataset))
    assert probe.read(dataset, answers).estimates["efficacy.mean_over_facts"].value == 0.0
    by_token = Counterfact(normalise="tokens").read(dataset, answers).estimates
    assert by_token["efficacy.mean_over_facts"].value == 1.0
    assert by_token["efficacy_magnitude.mean_over_facts"].value == pytest.approx(
        exp(-1.0) - exp(-1.5)
    )


def test_a_limit_keeps_the_neighbours_of_the_cases_that_are_asked() -> None:
    many = [
        one
        for number in range(20)
        for one in (case(str(number), "Lima", "Oslo"), neighbour(str(number), 1, "Lima", "Oslo"))
    ]
    prompts = asked(Counterfact(), world(*many).select(Selection(limit=5)))
    assert len(prompts) == 15
    assert len({p.own["case"] for p in prompts}) == 5


def test_a_case_without_a_paraphrase_is_asked_with_what_it_has() -> None:
    lacking = replace(CASES[3], details={"prompt": "own b"})
    made = report(world(CASES[0], lacking), [("other a", "Lima")])
    assert made.estimates["paraphrase.mean_over_facts"].n == 1
    assert made.counts["efficacy_prompts"] == 2


def test_where_no_wrong_object_is_named_one_of_the_relation_is_drawn() -> None:
    none = replace(fact("P36", "Peru", "Lima", id="n"), details=CASES[0].details)
    prompts = asked(Counterfact(), world(CASES[3], none))
    assert {p.want.options for p in prompts if p.key.fact == "n"} == {("Lima", "Oslo")}  # type: ignore[union-attr]
    assert report(world(CASES[3], none), []).counts["new_objects_drawn"] == 1


def test_facts_without_any_wrong_object_are_counted_and_a_dataset_of_them_refused() -> None:
    none = replace(fact("P36", "Peru", "Lima", id="n"), details=CASES[0].details)
    with pytest.raises(DataError, match="has no case to ask: a case is a fact with a wrong object"):
        asked(Counterfact(), world(none))
    right = replace(fact("P36", "Peru", "Lima", wrong=["Lima"], id="r"), details=none.details)
    made = report(world(CASES[0], right), [])
    assert made.counts["facts_without_a_new_object"] == 1 and made.counts["cases"] == 1


def test_templates_with_a_subject_do_as_well() -> None:
    data = dataset_of([fact("P36", "Peru", "Lima", wrong=["Oslo"])], relation("P36", "[X] has [Y]"))
    assert [p.prefix for p in asked(Counterfact(), data)] == ["Peru has "]


def test_answers_are_judged_in_any_order_and_the_later_one_counts() -> None:
    dataset, probe = world(*CASES), Counterfact()
    first = answer_all(Told({}), probe.ask(dataset))
    later = answer_all(Told({("own a", "Lima"): [-0.1]}), probe.ask(dataset))
    one = probe.read(dataset, [*first, *later[::-1]]).estimates
    assert one == probe.read(dataset, later).estimates


def test_what_was_judged_says_what_was_answered() -> None:
    dataset, probe = world(*CASES), Counterfact()
    model = Told({("own a", "Oslo"): [log(0.3)], ("near a-1", "Lima"): [log(0.9)]})
    frame = probe.judged(dataset, answer_all(model, probe.ask(dataset))).frame()
    rows = {(r["fact"], r["template"]): r for r in frame.iter_rows(named=True)}
    assert len(rows) == 9
    assert rows["a", "own"]["answer"] == "Oslo" and rows["a", "own"]["rank"] == 2
    assert rows["a", "own"]["confidence"] == pytest.approx(0.75)
    assert rows["a-1", "own"]["right"] and rows["a-1", "own"]["confidence"] == pytest.approx(0.9)
    assert exp(rows["a", "own"]["gold_logprob"]) == pytest.approx(0.25)


@pytest.mark.parametrize(("edited", "gold"), [(False, "Lima"), (True, "Oslo")])
def test_gold_is_the_new_object_of_a_case_that_was_edited(edited: bool, gold: str) -> None:
    dataset, probe = world(*CASES), Counterfact(edited=edited)
    model = Told({(f"{how} a", gold): [log(0.9)] for how in ("own", "other")})
    facts = probe.judged(dataset, answer_all(model, probe.ask(dataset))).facts()
    rows = {row["fact"]: row for row in facts.iter_rows(named=True)}
    assert [rows["a"][c] for c in ("gold", "answer", "verdict")] == [gold, gold, "right"]
    assert rows["a-1"]["gold"] == "Lima", "a neighbor's object stays"


def test_an_oracle_has_every_score(tmp_path: Path) -> None:
    dataset = world(*CASES)
    made = sonde.run(Counterfact(), oracle_for(dataset), dataset, tmp_path / "run").report()
    assert [made.estimates[f"{name}.mean_over_facts"].value for name in MAJOR] == [1.0] * 4
    assert made.estimates["ranking_full.mean_over_facts"].value == 1.0


def test_runs_before_and_after_an_edit_can_be_compared(tmp_path: Path) -> None:
    many = [
        one
        for number in range(12)
        for one in (case(str(number), "Lima", "Oslo"), neighbour(str(number), 1, "Lima", "Oslo"))
    ]
    dataset = world(*many)
    edited = Scripted(
        answers={**oracle_for(dataset).answers, **{str(n): "Oslo" for n in range(12)}}
    )
    for name, model in (("before", oracle_for(dataset)), ("after", edited)):
        sonde.run(Counterfact(), model, dataset, tmp_path / name)
    made = sonde.compare(f"A={tmp_path / 'before'}", f"B={tmp_path / 'after'}")
    flips = {row["fact"]: row["right B"] for row in made.flipped.iter_rows(named=True)}
    assert flips == {str(n): 0.0 for n in range(12)}  # neighbours stay as they are


@given(st.lists(st.floats(0.01, 1.0), min_size=2, max_size=5))
def test_the_harmonic_mean_lies_between_the_least_and_the_mean(values: list[float]) -> None:
    found = float(harmonic(np.array(values)))
    assert min(values) - 1e-9 <= found <= np.mean(values) + 1e-9
