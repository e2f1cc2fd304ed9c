"""BEAR: prompts, and over what accuracy is averaged."""

from dataclasses import replace
from typing import Any

import pytest

from sonde.core.errors import AbilityError
from sonde.core.facts import Dataset
from sonde.probes.bear import Bear
from sonde.prompts import Score
from tests.worlds import dataset_of, entity, fact, relation

from .shares import Numbers, by_fact, texts

SPACE = ("Lima", "paris", "Oslo", "Bonn")


def world(*ids: str, templates: tuple[str, ...] = ("[X] has [Y].", "[Y] rules [X].")) -> Dataset:
    """Two facts per relation; two of the four options are the object of no fact."""
    facts = [
        fact(id, subject, object, id=f"{id}-{subject[-4:]}")
        for id in ids
        for subject, object in (("Peru", "Lima"), ("la France", "paris"))
    ]
    answers = tuple(map(entity, SPACE))
    return dataset_of(facts, *(replace(relation(id, *templates), answers=answers) for id in ids))


def joined(*parts: Dataset, more: Any = ()) -> Dataset:
    facts = [f for part in parts for r in part.relations for f in part.facts(r.id)]
    return dataset_of([*facts, *more], *(r for part in parts for r in part.relations))


def test_every_fact_is_in_every_template_with_all_options() -> None:
    (batch,) = Bear().prompts(world("P36"))
    assert texts([batch]) == [
        ("Peru has ", "."),
        ("", " rules Peru."),
        ("La France has ", "."),  # a sentence begins with a capital
        ("", " rules la France."),
    ]
    assert batch.options == [SPACE]
    assert batch.request == Score(capitalize=True, punctuation=True, whole=True, mask="word")
    (alone,) = Bear(score="answer", mask="answer").prompts(world("P36"))
    assert alone.request == Score(capitalize=True, punctuation=True, whole=False, mask="answer")


def test_accuracy_is_averaged_over_templates_facts_and_relations() -> None:
    def model(prompt: dict[str, Any]) -> dict[str, float]:
        second = (prompt["relation"], prompt["template"]) == ("P37", "P37-2")
        return {"Oslo" if second else "Lima": 0.9} if prompt["subject"] == "Peru" else {}

    of = Numbers(Bear(), world("P36", "P37"), model)
    assert (of("accuracy", "P36"), of("accuracy", "P37")) == (0.5, 0.25)
    assert of("accuracy") == pytest.approx(0.375)
    assert (of("accuracy", "1"), of("accuracy", "2")) == (0.5, 0.25)
    assert of("accuracy", "P37", "2") == 0
    spread = of.line("template_spread")
    assert spread["value"] == pytest.approx(0.25 / 2**0.5)
    assert 0 <= spread["low"] <= spread["value"] <= spread["high"] <= 1
    assert of("accuracy", of="baseline") == 0.5


def test_the_mean_over_facts_weighs_relations_by_their_facts() -> None:
    more = [fact("P37", f"land {i}", "Oslo") for i in range(4)]
    data = joined(world("P36"), world("P37"), more=more)
    of = Numbers(Bear(), data, by_fact(**{"P36-Peru": "Lima", "P36-ance": "paris"}))
    assert of("accuracy") == pytest.approx(2 / 8)
    assert of("accuracy", over="relations") == pytest.approx(1 / 2)


def test_a_relation_with_fewer_templates_counts_only_in_those_it_has() -> None:
    data = joined(world("P36", templates=("[X] has [Y].",)), world("P37"))
    of = Numbers(Bear(), data, by_fact(**{"P36-Peru": "Lima"}))
    assert of.line("accuracy", "2")["n"] == 2
    assert of.line("accuracy")["n"] == 4


def test_each_fact_of_a_subject_has_its_own_object() -> None:
    facts = [fact("P36", "Peru", name, id=name) for name in ("Lima", "Oslo")]
    data = dataset_of(facts, *world("P36").relations)
    assert Numbers(Bear(), data, lambda prompt: {"Lima": 0.9})("accuracy") == 0.5


def test_a_tie_counts_as_wrong() -> None:
    of = Numbers(Bear(), world("P36"), by_fact())
    assert of("accuracy") == 0
    assert of.results.counts() | {"facts": 2, "prompts": 4, "tied": 4} == of.results.counts()


def test_a_model_that_cannot_score_is_rejected() -> None:
    with pytest.raises(AbilityError, match="'bear' needs a model that can score; this one can"):
        Bear().resolve(frozenset({"fill", "generate"}))
