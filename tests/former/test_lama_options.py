"""LAMA where facts name options of their own: these are chosen from, unless all are wanted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import sonde
from sonde.core.facts import Dataset
from sonde.core.prompts import Fill, Score
from sonde.testing import answer_all
from tests.rows import asked
from tests.worlds import dataset_of, fact, relation

FACTS = (
    fact("P36", "Peru", "Lima", wrong=("Oslo", "Bern")),
    fact("P36", "Chile", "Lima", wrong=("Oslo", "Rome")),
    fact("P36", "Norway", "Oslo", wrong=("Bern",)),
)


def prompts(dataset: Dataset, **settings: Any) -> list[Any]:
    return [prompt.want for prompt in asked(sonde.probe("lama", **settings), dataset)]


def test_each_fact_is_scored_with_what_it_names() -> None:
    wants = prompts(dataset_of(FACTS), answer="score")
    assert [want.options for want in wants] == [
        ("Bern", "Lima", "Oslo"),
        ("Lima", "Oslo", "Rome"),
        ("Bern", "Oslo"),
    ]


def test_the_relations_objects_are_scored_where_that_is_wanted_or_a_fact_names_nothing() -> None:
    every = Score(options=("Lima", "Oslo"))
    assert prompts(dataset_of(FACTS), answer="score", options="relation") == [every] * 3
    bare = (*FACTS[:2], fact("P36", "Norway", "Oslo"))
    assert prompts(dataset_of(bare), answer="score") == [every] * 3


def test_a_mask_is_watched_for_every_name_that_may_be_chosen() -> None:
    (want,) = set(prompts(dataset_of(FACTS), answer="fill"))
    assert isinstance(want, Fill) and set(want.watched) == {"Lima", "Oslo", "Bern", "Rome"}


@pytest.mark.parametrize("answer", ["score", "fill"])
def test_the_majority_control_chooses_the_commonest_of_a_facts_options(answer: str) -> None:
    dataset = dataset_of(FACTS)
    probe = sonde.probe("lama", answer=answer)
    model = sonde.model("control:majority", data=dataset)
    report = probe.read(dataset, answer_all(model, probe.ask(dataset)))
    assert report.estimates["p_at_1.mean_over_facts"].value == 1.0, "Lima, or Oslo without it"
    assert report.estimates["control.majority.p_at_1.mean_over_facts"].value == 1.0
    before = sonde.probe("lama", answer=answer, options="relation")
    report = before.read(dataset, answer_all(model, before.ask(dataset)))
    assert report.estimates["p_at_1.mean_over_facts"].value == pytest.approx(2 / 3)
    assert report.estimates["control.majority.p_at_1.mean_over_facts"].value == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ("score", "scored the options that each fact names"),
        ("fill", "of the options that each fact names, the likeliest is its answer"),
    ],
)
def test_a_report_says_what_was_chosen_from(answer: str, told: str) -> None:
    dataset = dataset_of(FACTS)
    model = sonde.model("control:majority", data=dataset)
    probe = sonde.probe("lama", answer=answer)
    report = probe.read(dataset, answer_all(model, probe.ask(dataset)))
    assert told in report.notes[0]


def test_the_control_is_described_by_what_it_chooses_from() -> None:
    dataset = dataset_of(FACTS)
    model = sonde.model("control:majority", data=dataset)
    told = "the commonest of a fact's own options"
    for options, chooses in (("own", True), ("relation", False)):
        probe = sonde.probe("lama", answer="score", options=options)
        report = probe.read(dataset, answer_all(model, probe.ask(dataset)))
        metrics = {metric.id: metric for metric in report.metrics}
        table = next(table for table in report.tables if table.id == "by-relation")
        assert (told in report.summary) is chooses
        assert (told in report.headlines[0].control_label) is chooses
        assert (told in metrics["control.majority.p_at_1"].sentence) is chooses
        titles = {column.title for column in table.columns}
        assert ("commonest object" in titles) is not chooses


@pytest.mark.parametrize(("language", "parts"), [("en", 2), ("fr", 0), ("", 2)])
def test_parts_of_names_are_asked_about_in_english_alone(language: str, parts: int) -> None:
    same = "P19" if language else ""
    born = relation(f"P19.{language}" if language else "P19", "[X] was born in [Y].")
    facts = [fact(born.id, "Ann Lee", "Lima")]
    dataset = dataset_of(facts, replace(born, language=language, same=same))
    assert len(prompts(dataset, answer="score", uhn="names")) == 1 + parts
