"""Studies of in-context estimation: sizes and contexts in one run."""

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

import sonde
from sonde.core.errors import DataError, UsageError
from sonde.core.facts import Dataset, Source
from sonde.probes.presets import LkeBaselines, LkeShots
from sonde.prompts import Score
from tests.worlds import fact, template, world

from .shares import Numbers

CAPITALS: dict[str, Any] = {"relations": ("P36",)}
GOLD = {"P36-Austria": "Vienna", "P36-Egypt": "Cairo"}


def with_templates(data: Dataset, *texts: tuple[Source, str]) -> Dataset:
    """Capitals with these templates, t0, t1, and so on; other relations have none."""
    every = [template(f"t{i}", text, source=source) for i, (source, text) in enumerate(texts)]
    for i, (_, text) in enumerate(texts):
        every[i] = replace(every[i], style="question" if "?" in text else "statement")
    changed = (replace(r, templates=tuple(every) if r.id == "P36" else ()) for r in data.relations)
    return replace(data, relations=tuple(changed))


def ways(probe: LkeBaselines, data: Dataset) -> list[str]:
    """Context and template of each batch."""
    pairs = (batch.frame.select("context", "template").row(0) for batch in probe.prompts(data))
    return [f"{context}:{template}" for context, template in pairs]


def trained(*names: str, relation: str = "P36") -> list[Any]:
    return [fact(relation, name, f"{name} City", split="train") for name in names]


def gap(numbers: Numbers, group: str) -> float:
    """The difference of the accuracy in a group to that in the group it is compared with."""
    contrasts = numbers.frame.filter(metric="accuracy", of="difference", over="relations")
    contrasts = contrasts.filter(pl.col("reference").is_not_null(), pl.col("group") == [group])
    return float(contrasts["value"].item())


# lke-shots


def test_enough_is_the_fewest_examples_that_reach_the_share() -> None:
    def model(prompt: dict[str, Any]) -> dict[str, float]:
        return {GOLD[prompt["fact"]]: 0.9} if prompt["n_shots"] > 1 else {"Lima": 0.9}

    numbers = Numbers(LkeShots(shots=(4, 1, 2), seeds=2), world(**CAPITALS), model)
    assert [numbers("accuracy", n) for n in "124"] == [0, 1, 1]
    assert numbers("accuracy.full") == 1
    line = numbers.line("enough")
    assert (line["value"], line["n"]) == (2, 2)
    assert gap(numbers, "1") == -1


def test_without_a_correct_answer_nothing_is_enough() -> None:
    numbers = Numbers(LkeShots(shots=(1, 2), seeds=1), world(), lambda prompt: {})
    assert numbers("enough") is None


def test_the_share_is_exact_to_rounding() -> None:
    assert 19 / 53 < 0.95 * (20 / 53)
    assert LkeShots().smallest_sufficient_count(np.array([[19 / 53, 20 / 53]]), [1, 5]) == [1]


def test_more_examples_than_there_are_become_all_there_are() -> None:
    probe = LkeShots(shots=(2, 5, 50, 80), seeds=1)
    numbers = Numbers(probe, world(**CAPITALS), lambda prompt: {})
    assert numbers.results.rows["n_shots"].unique().sort().to_list() == [2, 5, 6]


def test_a_relation_with_fewer_facts_shows_all_it_has() -> None:
    held = [*trained("A", "B", "C", "D"), *trained("E", "F", relation="P1303"),
            fact("P36", "G", "A City"), fact("P1303", "H", "E City")]  # fmt: skip
    numbers = Numbers(LkeShots(shots=(1, 4), seeds=1), world(held), lambda prompt: {"E City": 0.9})
    assert numbers.results.counts()["prompts"] == 4
    assert numbers.line("accuracy", "P1303", "4")["value"] == 1


def test_without_training_facts_each_is_an_example_of_the_other() -> None:
    data = world([fact("P36", "Peru", "Lima"), fact("P36", "Chile", "Quito")])
    [batch] = LkeShots(shots=(1,), seeds=1).prompts(data)
    assert batch.frame["prefix"].to_list() == ["Chile Quito Peru ", "Peru Lima Chile "]


@pytest.mark.parametrize("shots", [(), (0, 1)])
def test_sizes_that_make_no_sense_are_rejected(shots: tuple[int, ...]) -> None:
    with pytest.raises(UsageError, match="shots"):
        list(LkeShots(shots=shots).prompts(world()))


# lke-baselines


def test_every_context_has_the_same_options_for_a_fact() -> None:
    data = sonde.dataset("atlas", relations=("P36",), limit=5)
    found: dict[str, set[tuple[str, ...]]] = {}
    for batch in LkeBaselines(shots=3).prompts(data):
        if isinstance(batch.request, Score):
            for name, number in zip(batch.frame["fact"], batch.options_ids(), strict=True):
                found.setdefault(name, set()).add(batch.options[number])
    assert [len(options) for options in found.values()] == [1] * 5


def test_each_context_is_compared_with_examples_fact_by_fact() -> None:
    known = {
        "examples": ["P36-Austria", "P36-Egypt"],
        "template": ["P36-Egypt"],
        "template-examples": [],
        "generate": ["P36-Austria"],
    }

    def model(prompt: dict[str, Any]) -> Any:
        if prompt["context"] == "generate":
            asked = prompt["fact"] in known["generate"] and prompt["template"] == "in-context"
            return GOLD[prompt["fact"]] if asked else "nothing"
        return {GOLD[prompt["fact"]]: 0.9} if prompt["fact"] in known[prompt["context"]] else {}

    data = with_templates(world(**CAPITALS), ("manual", "[X] has [Y]."), ("mined", "[X] , [Y]"))
    numbers = Numbers(LkeBaselines(shots=2), data, model)
    assert numbers("accuracy.examples.in-context") == 1
    for id, value, difference in (
        ("template.manual", 0.5, -0.5),
        ("template.mined", 0.5, -0.5),
        ("template-examples.manual", 0, -1),
        ("generate.in-context", 0.5, -0.5),
        ("generate.mined", 0, -0.5),  # compared with generated answers
    ):
        assert numbers(f"accuracy.{id}") == value
        assert numbers(f"accuracy.{id}", of="difference") == difference
    assert numbers("accuracy.template.paraphrase") is None


def test_a_relation_without_templates_counts_for_examples_alone() -> None:
    data = with_templates(world(), ("manual", "The capital of [X] is [Y]."))
    probe = LkeBaselines(context=("examples", "template"))
    numbers = Numbers(probe, data, lambda prompt: {"Vienna": 0.9, "guitar": 0.9})
    assert numbers("accuracy.examples.in-context", "P1303") == 0.5
    assert numbers.line("accuracy.template.manual")["n"] == 2


def test_contexts_can_be_left_out() -> None:
    data = with_templates(world(**CAPITALS), ("manual", "The capital of [X] is [Y]."))
    probe = LkeBaselines(context=("examples", "template"))
    probe.resolve(frozenset({"score"}))
    assert ways(probe, data) == ["examples:in-context", "template:t0"]


TEMPLATES: tuple[tuple[str, list[tuple[Source, str]], list[int]], ...] = (
    (
        "only templates with the answer last",
        [
            ("manual", "[Y] is the capital of [X]."),
            ("manual", "The capital of [X] is [Y]."),
            ("paraphrase", "[X] has [Y] as its capital."),
            ("mined", "[X] , capital [Y]"),
        ],
        [1, 3],
    ),
    (
        "statements before questions",
        [("manual", "What is the capital of [X]? [Y]."), ("manual", "The capital of [X] is [Y].")],
        [1, 0],
    ),
    (
        "one of those that are equal up to the answer",
        [("manual", f"The capital of [X] is [Y]{end}") for end in (" .", ".")],
        [0],
    ),
    (
        "paraphrases instead of manual ones",
        [("mined", "[X] , capital [Y]"), ("paraphrase", "The main city of [X] is [Y].")],
        [1, 0],
    ),
    (
        "paraphrases instead of mined ones",
        [("paraphrase", "The main city of [X] is [Y]."), ("manual", "[X] has [Y].")],
        [1, 0],
    ),
)


@pytest.mark.parametrize(("what", "texts", "chosen"), TEMPLATES, ids=[t[0] for t in TEMPLATES])
def test_templates_are_chosen(what: str, texts: list[Any], chosen: list[int]) -> None:
    found = ways(
        LkeBaselines(context=("examples", "template")), with_templates(world(**CAPITALS), *texts)
    )
    assert found[1:] == [f"template:t{i}" for i in chosen]


def test_of_more_templates_some_are_drawn_by_the_seed() -> None:
    texts: list[tuple[Source, str]] = [("manual", f"{c}, [X] has [Y].") for c in "abcdefghij"]
    probe = LkeBaselines(context=("examples", "template"))
    draws = [ways(probe, with_templates(world(seed=s, **CAPITALS), *texts))[1:] for s in range(20)]
    assert all(len(set(draw)) == 3 for draw in draws)
    assert {name for draw in draws for name in draw} == {f"template:t{i}" for i in range(10)}


def test_without_a_template_with_the_answer_last_nothing_is_compared() -> None:
    data = with_templates(world(**CAPITALS), ("manual", "[Y] is the capital of [X]."))
    with pytest.raises(DataError, match="no template with the answer last"):
        list(LkeBaselines().prompts(data))
