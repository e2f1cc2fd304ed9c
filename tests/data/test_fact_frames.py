"""Frames of facts: read once, kept within bounds, and what they are made of."""

from __future__ import annotations

import pickle
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier

import polars
import pytest

from sonde.core import fact_frames
from sonde.core.errors import DataError
from sonde.core.fact_frames import completed, frame_of, has_blank
from sonde.core.facts import Card, Dataset, Entity, Fact, Selection, facts_of
from tests import worlds
from tests.worlds import entity


def fact(relation: str, number: int, split: str = "test") -> Fact:
    plain = worlds.fact(
        relation,
        entity(f"subject {number}", f"s{number}", id=f"s{number}"),
        *(entity(f"object {i}", id=f"o{i}") for i in range(number % 3 + 1)),
        id=f"{relation}:{number}",
        split=split,
        tags=("hard",) * (number % 2),
        wrong=(entity("wrong", "false", id="w"),) * (number % 2),
    )
    details = {"title": f"T{number}", "text": ""} if number % 2 else {}
    if number % 3 == 2:
        plain = replace(plain, date="2015", valid_from="2012-03", numbers={"views": number / 2})
    return replace(plain, details=details)


def counting(size: int) -> tuple[Dataset, Counter[str]]:
    read: Counter[str] = Counter()

    def facts(relation: str) -> Iterator[Fact]:
        read[relation] += 1
        return (fact(relation, i, "train" if i % 4 == 3 else "test") for i in range(size))

    relations = tuple(map(worlds.relation, ("P1", "P2", "P3")))
    data = Dataset(card=Card(name="counted"), relations=relations, read=facts, fingerprint="")
    return data, read


@pytest.mark.parametrize("size", [0, 1, 5, fact_frames.BATCH + 3])
def test_objects_come_back_as_they_were(size: int) -> None:
    facts = [fact("P1", i) for i in range(size)]
    assert list(facts_of(frame_of(facts))) == facts
    assert frame_of(facts).schema == frame_of([]).schema


def test_facts_are_read_once_however_they_are_selected() -> None:
    data, read = counting(20)
    few = data.select(Selection(limit=3, seed=1, relations=("P1", "P2")))
    for each in (data, few, replace(few, notes={"a": 1})):
        assert each.frame("P1").height == 20
        assert [f.id for f in each.asked("P1")] == each.asked_frame("P1")["fact"].to_list()
        assert set(each.split_frame("P2")["split"]) == {"test"}
    assert (data.size, few.asked_frame("P1").height) == (60, 3)
    assert read == {"P1": 1, "P2": 1, "P3": 1}


def test_what_is_too_large_to_keep_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    data, read = counting(50)
    size = data.frame("P1").estimated_size()
    monkeypatch.setattr(fact_frames, "KEPT", 2.5 * size)
    for relation in ("P2", "P1", "P3", "P1", "P2"):  # P2 was looked at longest ago
        assert data.frame(relation).height == 50
    assert read == {"P1": 1, "P2": 2, "P3": 1}


@pytest.fixture
def switching() -> Iterator[None]:
    """Threads take turns as often as they can."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


def look_at_once(data: Dataset) -> None:
    """Eight threads look at all relations, each beginning with another."""
    together = Barrier(8)

    def look(number: int) -> int:
        together.wait()
        return sum(data.frame(f"P{1 + (number + i) % 3}").height for i in range(12))

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(look, range(8))) == [12 * 50] * 8


@pytest.mark.usefixtures("switching")
def test_threads_that_look_at_once_read_once() -> None:
    data, read = counting(50)
    look_at_once(data)
    assert read == {"P1": 1, "P2": 1, "P3": 1}


@pytest.mark.usefixtures("switching")
def test_threads_that_look_at_once_leave_the_size_of_what_is_kept_right(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data, read = counting(50)
    size = data.frame("P1").estimated_size()
    monkeypatch.setattr(fact_frames, "KEPT", 0)
    look_at_once(data)
    data.frame("P1")
    monkeypatch.setattr(fact_frames, "KEPT", 2.5 * size)
    read.clear()
    for relation in ("P2", "P1", "P3", "P1", "P2"):  # as if nobody had looked before
        data.frame(relation)
    assert read == {"P2": 2, "P3": 1}


def test_frames_go_to_another_process_without_their_lock() -> None:
    frames = {"P1": frame_of(fact("P1", i) for i in range(3))}
    data = replace(counting(3)[0], read=frames.__getitem__)
    assert pickle.loads(pickle.dumps(data)).frame("P1").equals(frames["P1"])


def test_plain_facts_need_no_lists() -> None:
    columns = ("fact", "relation", "split", "subject", "subject_id", "object", "object_id")
    given = polars.LazyFrame({column: [column, "x"] for column in columns})
    frame = completed(given).collect()
    assert frame.schema == frame_of([]).schema
    first, _ = facts_of(frame)
    assert first.subject == Entity(id="subject_id", names=("subject",))
    assert first.objects == (Entity(id="object_id", names=("object",)),)
    assert not first.tags and not first.wrong and not first.details


@pytest.mark.parametrize("blank", ["", " ", "\t\n", "\x1c", "\u2003", "\x85", "a"])
def test_a_blank_text_is_what_strip_leaves_nothing_of(blank: str) -> None:
    named = replace(fact("P1", 0), subject=Entity(id="s", names=("s", blank)))
    assert has_blank(frame_of([named])) == (not blank.strip())


def test_half_a_character_is_refused() -> None:
    with pytest.raises(DataError, match="half a character"):
        frame_of([replace(fact("P1", 0), id="\ud800")])
