"""Batches keep to the budget, and running out of memory makes them smaller, not fewer."""

from __future__ import annotations

from collections import deque
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonde.engine.batching import Budget, Scheduled, batches

LENGTHS = st.lists(st.integers(1, 30), max_size=25)


def cost(lengths: list[int], *, padded: bool) -> int:
    return len(lengths) * max(lengths) if padded else sum(lengths)


@given(lengths=LENGTHS, budget=st.integers(1, 80), padded=st.booleans())
def test_every_position_is_in_one_batch_within_the_budget(
    lengths: list[int], budget: int, padded: bool
) -> None:
    found = list(batches(lengths, budget, padded=padded))
    assert sorted(i for batch in found for i in batch) == list(range(len(lengths)))
    for batch in found:
        assert len(batch) == 1 or cost([lengths[i] for i in batch], padded=padded) <= budget


@given(lengths=LENGTHS, budget=st.integers(1, 80), padded=st.booleans())
def test_a_batch_ends_only_where_the_next_text_would_not_fit(
    lengths: list[int], budget: int, padded: bool
) -> None:
    found = [[lengths[i] for i in batch] for batch in batches(lengths, budget, padded=padded)]
    assert [x for batch in found for x in batch] == sorted(lengths, reverse=True)
    for batch, after in pairwise(found):
        assert cost([*batch, after[0]], padded=padded) > budget


@given(
    lengths=LENGTHS,
    budget=st.integers(1, 200),
    room=st.integers(30, 100),
    padded=st.booleans(),
)
def test_every_position_is_done_once_however_little_memory_there_is(
    lengths: list[int], budget: int, room: int, padded: bool
) -> None:
    def forward(batch: list[int]) -> list[int]:
        if cost([lengths[i] for i in batch], padded=padded) > room:
            raise MemoryError
        return [lengths[i] for i in batch]

    run = Budget(budget, lambda error: isinstance(error, MemoryError))
    found: list[tuple[int, int]] = []
    for batch, results in run.run(lengths, forward, padded=padded):
        found += zip(batch, results, strict=True)
    assert sorted(found) == list(enumerate(lengths))


def test_the_budget_stays_small_after_a_failure() -> None:
    tried: list[int] = []

    def forward(batch: list[int]) -> bool:
        tried.append(len(batch))
        if len(batch) > 2:
            raise MemoryError
        return True

    budget = Budget(80, lambda error: isinstance(error, MemoryError))
    list(budget.run([10] * 8, forward))
    assert (tried, budget.tokens) == ([8, 4, 2, 2, 2, 2], 20)
    list(budget.run([10] * 4, forward))
    assert tried[6:] == [2, 2]


def test_half_of_what_failed_is_tried_where_the_budget_was_not_used_up() -> None:
    budget = Budget(10**6, lambda _: True)
    budget.halve(100)
    assert budget.tokens == 50


def test_one_text_that_does_not_fit_is_fatal() -> None:
    def forward(batch: list[int]) -> bool:
        raise MemoryError

    with pytest.raises(MemoryError):
        list(Budget(20, lambda _: True).run([10, 10], forward))


def test_another_failure_is_not_mistaken_for_want_of_memory() -> None:
    calls = []

    def forward(batch: list[int]) -> bool:
        calls.append(batch)
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        list(Budget(20, lambda error: isinstance(error, MemoryError)).run([5, 5], forward))
    assert len(calls) == 1


def one_by_one(
    lengths: list[int], budget: int, padded: bool, enough: int | None
) -> list[list[int]]:
    """The same batches, made by looking at one text after the other."""
    made: list[list[int]] = []
    for i in sorted(range(len(lengths)), key=lambda i: (-lengths[i], i)):
        batch = made[-1] if made else []
        total = sum(lengths[j] for j in batch)
        fits = batch and cost([lengths[j] for j in (*batch, i)], padded=padded) <= budget
        full = batch and enough is not None and lengths[i] < lengths[batch[0]] and total >= enough
        if fits and not full:
            batch.append(i)
        else:
            made.append([i])
    return made


@given(
    lengths=st.lists(st.integers(1, 12), max_size=40),
    budget=st.integers(1, 80),
    padded=st.booleans(),
    enough=st.one_of(st.none(), st.integers(0, 60)),
)
def test_batches_made_by_runs_of_equal_length_are_those_made_one_by_one(
    lengths: list[int], budget: int, padded: bool, enough: int | None
) -> None:
    found = list(batches(lengths, budget, padded=padded, enough=enough))
    assert found == one_by_one(lengths, budget, padded, enough)


def test_the_last_batches_are_left_for_the_run_that_follows() -> None:
    run = Budget(2, lambda error: False)
    started: deque[tuple[list[int], list[int]]] = deque()

    def batched(count: int) -> list[list[int]]:
        scheduled: Scheduled[list[int]] = run.schedule([1] * count, list)
        return [batch for batch, _ in run.execute(scheduled, list, started=started)]

    first = batched(10)
    assert len(first) == 5 - len(started) and started
    again = batched(4)
    assert len(first) + len(again) + len(started) == 7
