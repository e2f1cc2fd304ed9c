"""LAMA's outcomes in columns: any order, little memory, and facts left out of the table named."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

import pytest

import sonde
from sonde.core.facts import Dataset, Fact
from sonde.metrics.answers import Judgement
from sonde.models.scripted import Scripted
from sonde.probes.lama import probe as lama
from sonde.probes.lama.probe import Lama
from sonde.probes.lama.tally import Facts, Tally
from tests.rows import answer_all

RIGHT = Judgement(rank=1, probability=0.9, top=(("x", 0.9),), tied=False)
WRONG = replace(RIGHT, rank=3)


@pytest.fixture(scope="module")
def small() -> Dataset:
    return sonde.dataset("atlas", relations=("P36", "P19"), limit=8)


def asked(dataset: Dataset) -> list[Fact]:
    return [fact for r in dataset.asked_relations() for fact in dataset.asked(r.id)]


def test_facts_in_the_order_asked_are_found_without_reading_them_anew(small: Dataset) -> None:
    read = 0

    def counted(relation: str) -> Iterator[Fact]:
        nonlocal read
        for fact in small.facts(relation):
            read += 1
            yield fact

    unlimited = replace(small, read=counted, selection=replace(small.selection, limit=None))
    facts = asked(unlimited)
    find, read = Facts(unlimited), 0
    for place, fact in enumerate(facts[:5]):
        assert find.find(fact.id) == (place, fact)
        assert find.find(fact.id) == (place, fact)  # a fact may have several prompts
    assert read == 0  # they had been read when they were asked


def test_facts_in_any_order_are_found(small: Dataset) -> None:
    facts = asked(small)
    order = Random("order").choices(range(len(facts)), k=40)
    find = Facts(small)
    assert [find.find(facts[i].id) for i in order] == [(i, facts[i]) for i in order]


def test_a_fact_that_nobody_asked_about_is_refused(small: Dataset) -> None:
    with pytest.raises(KeyError):
        Facts(small).find("nobody")


def test_of_two_answers_to_a_fact_the_later_counts(small: Dataset) -> None:
    facts, tally = asked(small), Tally(small)
    tally.add(1, facts[1], "later", WRONG)
    tally.add(0, facts[0], "once", RIGHT)
    tally.add(1, facts[1], "latest", RIGHT)
    outcomes = tally.outcomes()
    assert outcomes.asked == 2
    assert outcomes.relations["P36"].ranks.tolist() == [1, 1]
    assert [shown.prompt for shown in outcomes.shown] == ["once", "latest"]


def test_the_facts_shown_are_a_draw_that_no_order_changes(small: Dataset) -> None:
    facts = list(enumerate(asked(small)))
    drawn = []
    for seed in range(3):
        Random(seed).shuffle(facts)
        tally = Tally(small, most=5)
        for place, fact in facts:
            tally.add(place, fact, "", RIGHT)
        outcomes = tally.outcomes()
        assert outcomes.asked == 16
        drawn.append([shown.fact.id for shown in outcomes.shown])
    assert len(drawn[0]) == 5
    assert drawn[0] == drawn[1] == drawn[2]


def test_facts_left_out_of_the_table_are_named_and_still_counted(
    small: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    probe = Lama(answer="score")
    answered = answer_all(Scripted(answers={}), list(probe.ask(small)))
    whole = probe.read(small, answered)
    monkeypatch.setattr(lama, "Tally", lambda dataset: Tally(dataset, most=5))
    few = probe.read(small, answered)
    assert few.estimates == whole.estimates
    assert few.counts == whole.counts
    assert (len(whole.tables[-1].rows), len(few.tables[-1].rows)) == (16, 5)
    assert "5 of the 16 facts" in few.tables[-1].note
    assert whole.tables[-1].note == ""
