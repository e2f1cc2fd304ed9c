"""CounterFact: prompts of cases and neighbors, and the scores that follow."""

from collections.abc import Iterable
from dataclasses import replace
from math import exp
from typing import Any

import pytest

from sonde.core.errors import DataError
from sonde.core.facts import Dataset, Fact, Selection, Template
from sonde.probes.counterfact import ROLES, Counterfact
from tests.worlds import dataset_of, fact, relation

from .shares import Model, Numbers, results, texts

TEMPLATES = (
    Template(id="own", text="[details.prompt] [Y].", group="own"),
    Template(id="other", text="[details.other] [Y].", group="own", source="paraphrase"),
)


def case(id: str, true: str, new: str, relation: str = "P36", **details: str) -> Fact:
    made = fact(relation, f"subject {id}", true, id=id, wrong=[new])
    return replace(made, details={"prompt": f"own {id}", "other": f"other {id}", **details})


def neighbor(of: str, number: int, true: str, new: str) -> Fact:
    id = f"{of}-{number}"
    made = fact("P36", f"near {id}", true, id=id, wrong=[new], split="neighbourhood")
    return replace(made, details={"prompt": f"near {id}", "case": of})


CASES = (
    case("a", "Lima", "Oslo"),
    neighbor("a", 1, "Lima", "Oslo"),
    neighbor("a", 2, "Lima", "Oslo"),
    case("b", "Oslo", "Rome"),
    neighbor("b", 1, "Oslo", "Rome"),
    case("c", "jazz", "opera", "P136"),
)


def world(*facts: Fact) -> Dataset:
    relations = dict.fromkeys(f.relation for f in facts)
    return dataset_of(facts, *(relation(id, *TEMPLATES) for id in relations))


def likely(*chosen: tuple[str, str]) -> Model:
    """A model that gives 0.6 to these objects after these texts, and 0.1 to all others."""

    def model(prompt: dict[str, Any]) -> dict[str, float]:
        named = [name for text, name in chosen if text == prompt["prefix"].strip()]
        return {"Lima": 0.1, "Oslo": 0.1, "Rome": 0.1, "jazz": 0.1, "opera": 0.1} | dict.fromkeys(
            named, 0.6
        )

    return model


def numbers(facts: Iterable[Fact], *chosen: tuple[str, str], **settings: Any) -> Numbers:
    return Numbers(Counterfact(**settings), world(*facts), likely(*chosen))


def test_two_options_follow_each_prompt_of_a_case_and_of_its_neighbors() -> None:
    batches = list(Counterfact().prompts(world(*CASES[:3])))
    assert texts(batches) == [
        ("own a ", "."),
        ("other a ", "."),
        ("near a-1 ", "."),
        ("near a-2 ", "."),
    ]
    assert {options for b in batches for options in b.options} == {("Lima", "Oslo")}
    frames = [row for b in batches for row in b.frame.iter_rows(named=True)]
    assert [(row["role"], row["case"], row["fact"]) for row in frames] == [
        ("efficacy", "a", "a"),
        ("paraphrase", "a", "a"),
        ("neighborhood", "a", "a-1"),
        ("neighborhood", "a", "a-2"),
    ]


def test_scores_are_means_over_cases() -> None:
    chosen = [("own a", "Lima"), ("own b", "Oslo"), ("other a", "Lima"), ("near a-1", "Lima")]
    of = numbers(CASES, *chosen)
    assert of("efficacy") == pytest.approx(2 / 3)
    assert of("paraphrase") == pytest.approx(1 / 3)
    assert of("neighborhood") == 0.25  # half of a's, none of b's
    assert of.line("neighborhood")["n"] == 2  # c has no neighbors
    assert of("efficacy", over="relations") == 0.5
    assert of("efficacy", "P136") == 0.0
    assert of("score") == pytest.approx(3 / (1 / (2 / 3) + 1 / (1 / 3) + 1 / 0.25))
    assert of.line("score")["n"] == 3
    assert of.frame.filter(metric="score", group=["P136"]).is_empty()


def test_the_control_chooses_the_object_that_more_cases_have() -> None:
    twice = case("d", "Oslo", "Lima")  # Oslo is true in two cases, Lima in one
    facts = [*CASES[:5], twice]
    of = numbers(facts, ("own a", "Lima"), ("own b", "Oslo"))
    assert of("efficacy", of="baseline") == of("paraphrase", of="baseline") == pytest.approx(2 / 3)
    assert of("neighborhood", of="baseline") == 0.5  # not a's, but b's
    assert of("efficacy", of="difference") == pytest.approx(0.0)
    edited = numbers(facts, edited=True)
    assert edited("efficacy", of="baseline") == pytest.approx(1 / 3)
    assert edited("neighborhood", of="baseline") == 0.5


def test_magnitudes_are_differences_of_probabilities() -> None:
    of = numbers(CASES, ("own a", "Lima"), ("own c", "opera"))
    assert of("efficacy_magnitude", "P36") == pytest.approx(0.5 / 2)
    assert of("efficacy_magnitude", "P136") == pytest.approx(-0.5)


def test_ties_are_wrong_and_counted() -> None:
    of = numbers(CASES)
    assert of("efficacy") == 0.0 and of("efficacy_magnitude") == 0.0
    counts = of.results.counts()
    assert (counts["tied"], counts["facts"], counts["prompts"]) == (9, 3, 9)


def test_an_edited_model_should_name_the_new_object_but_not_for_neighbors() -> None:
    chosen = [("own a", "Oslo"), ("other a", "Oslo"), ("near a-1", "Lima"), ("near a-2", "Oslo")]
    edited = numbers(CASES[:3], *chosen, edited=True)
    assert [edited(role) for role in ROLES] == [1.0, 1.0, 0.5]
    assert edited("efficacy_magnitude") == pytest.approx(0.5)
    plain = numbers(CASES[:3], *chosen)
    assert [plain(name) for name in (*ROLES, "score")] == [0.0, 0.0, 0.5, 0.0]


@pytest.mark.parametrize(("edited", "gold"), [(False, "Lima"), (True, "Oslo")])
def test_gold_of_an_edited_case_is_the_new_object(edited: bool, gold: str) -> None:
    probe, model = Counterfact(edited=edited), likely(("own a", gold), ("near a-1", "Lima"))
    found = results(probe, world(*CASES), model)
    assert found.facts.row(0, named=True)["gold"] == gold
    rows = found.table(["fact", "role", "neighbor", "answer", "correct"]).collect().rows()
    assert ("a", "efficacy", "", gold, True) in rows
    assert ("a", "neighborhood", "a-1", "Lima", True) in rows, "a neighbor's object stays"


def test_options_can_be_compared_per_token() -> None:
    def model(prompt: dict[str, Any]) -> dict[str, Any]:
        return {"Lima": (exp(-1.0), exp(-1.0)), "Oslo": exp(-1.5)}

    data = world(CASES[0])
    assert Numbers(Counterfact(), data, model)("efficacy") == 0.0
    by_token = Numbers(Counterfact(normalize="tokens"), data, model)
    assert by_token("efficacy") == 1.0
    assert by_token("efficacy_magnitude") == pytest.approx(exp(-1.0) - exp(-1.5), abs=1e-6)


def test_a_limit_keeps_the_neighbors_of_the_cases() -> None:
    many = [
        one
        for number in range(20)
        for one in (case(str(number), "Lima", "Oslo"), neighbor(str(number), 1, "Lima", "Oslo"))
    ]
    batches = list(Counterfact().prompts(world(*many).select(Selection(limit=5))))
    assert sum(map(len, batches)) == 15
    assert len({id for b in batches for id in b.frame["case"]}) == 5


def test_a_case_that_lacks_a_paraphrase_has_its_other_prompts() -> None:
    of = numbers([CASES[0], replace(CASES[3], details={"prompt": "own b"})], ("other a", "Lima"))
    assert of.line("paraphrase")["n"] == 1 and of.line("efficacy")["n"] == 2


def test_without_a_named_wrong_object_one_of_the_relation_is_drawn() -> None:
    unnamed = replace(fact("P36", "Peru", "Lima", id="n"), details=CASES[0].details)
    batches = list(Counterfact().prompts(world(CASES[3], unnamed)))
    frames = [(b, row) for b in batches for row in b.frame.iter_rows(named=True)]
    options = {b.options[row["options_id"]] for b, row in frames if row["fact"] == "n"}
    assert options == {("Lima", "Oslo")}


def test_facts_without_any_wrong_object_are_excluded() -> None:
    right = replace(fact("P36", "Peru", "Lima", wrong=["Lima"], id="r"), details=CASES[0].details)
    assert numbers([CASES[0], right]).results.counts()["excluded.no wrong object"] == 1
    with pytest.raises(DataError, match="has no case to prompt: a case is a fact with a wrong"):
        list(Counterfact().prompts(world(replace(right, wrong=()))))


def test_templates_with_a_subject_do_as_well() -> None:
    data = dataset_of([fact("P36", "Peru", "Lima", wrong=["Oslo"])], relation("P36", "[X] has [Y]"))
    assert texts(Counterfact().prompts(data)) == [("Peru has ", "")]
