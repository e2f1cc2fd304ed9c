"""LAMA's outcomes in columns: any order, little memory, and facts left out of the table named."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from random import Random

import pytest

import sonde
from sonde.core.answers import Answered, Scored
from sonde.core.facts import Dataset
from sonde.models.scripted import Scripted
from sonde.former.lama import probe as lama
from sonde.former.lama.judge import judge
from sonde.former.lama.probe import Lama
from tests.rows import answer_all

PROBE = Lama(answer="score")


@pytest.fixture(scope="module")
def small() -> Dataset:
    return sonde.dataset("atlas", relations=("P36", "P19"), limit=8)


@pytest.fixture(scope="module")
def rows(small: Dataset) -> list[Answered]:
    return answer_all(Scripted(answers={}), PROBE.ask(small))


def test_a_fact_that_nobody_asked_about_is_refused(small: Dataset, rows: list[Answered]) -> None:
    stranger = replace(rows[0], key=replace(rows[0].key, fact="nobody"))
    with pytest.raises(KeyError):
        judge(small, [stranger])


def test_of_two_answers_to_a_fact_the_later_counts(small: Dataset, rows: list[Answered]) -> None:
    first, second = rows[0], rows[1]
    [fact] = [f for f in small.asked("P36") if f.id == first.key.fact]
    assert isinstance(first.answer, Scored)
    logps = tuple((-1.0 if o == fact.objects[0].name else -9.0,) for o in first.answer.options)
    right = replace(first, prefix="later ", answer=replace(first.answer, logps=logps))
    outcomes = judge(small, [first, second, right])
    assert outcomes.asked == 2
    assert outcomes.judged.rank is not None and outcomes.judged.rank[0] == 1
    assert outcomes.shown[0].prompt.startswith("later ___")


def test_the_facts_shown_are_a_draw_that_no_order_changes(
    small: Dataset, rows: list[Answered]
) -> None:
    drawn = []
    for seed in range(3):
        shuffled = list(rows)
        Random(seed).shuffle(shuffled)
        outcomes = judge(small, shuffled, most=5)
        assert outcomes.asked == 16
        drawn.append([shown.subject for shown in outcomes.shown])
    assert len(drawn[0]) == 5
    assert drawn[0] == drawn[1] == drawn[2]


def test_facts_left_out_of_the_table_are_named_and_still_counted(
    small: Dataset, rows: list[Answered], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = PROBE.read(small, rows)
    monkeypatch.setattr(lama, "judge", partial(judge, most=5))
    few = PROBE.read(small, rows)
    assert few.estimates == whole.estimates
    assert few.counts == whole.counts
    assert (len(whole.tables[-1].rows), len(few.tables[-1].rows)) == (16, 5)
    assert "5 of the 16 facts" in few.tables[-1].note
    assert whole.tables[-1].note == ""
