"""Shards are dealt out each once, in stretches, few at a time, and nobody idles while some wait."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonde.core.costs import Batches
from sonde.core.errors import PromptTooLong, UsageError
from sonde.runs.workers.crew import CrewBudgets
from sonde.runs.workers.dealing import STRETCH, Dealing
from sonde.runs.workers.messages import Failed, Standing, pack, unpack
from sonde.runs.workers.spec import Workers, parse_workers, tell_idle


@given(st.integers(0, 60), st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=200))
def test_every_shard_is_dealt_once_and_again_only_if_it_came_back(
    shards: int, turns: list[tuple[int, bool]]
) -> None:
    drawn: list[int] = []

    def coming() -> Iterator[int]:
        for number in range(shards):
            drawn.append(number)
            yield number

    dealing: Dealing[int] = Dealing(coming())
    done: list[int] = []
    for worker, lost in [*turns, *[(0, False)] * (shards + 1)]:
        found = dealing.next(worker)
        if found is None:
            assert len(done) == shards, "a worker idles while there are shards"
        elif lost:
            dealing.give_back(found)
        else:
            done.append(found)
        assert len(drawn) - len(done) <= STRETCH * 4, "more is held than stretches of all workers"
    assert sorted(done) == list(range(shards)) and dealing.held == 0


def test_a_worker_has_consecutive_shards_and_takes_the_last_of_others_at_the_end() -> None:
    dealing = Dealing(iter(range(2 * STRETCH)))
    assert [dealing.next("a"), dealing.next("b")] == [0, STRETCH]
    assert [dealing.next("a") for _ in range(STRETCH - 1)] == [1, 2, 3]
    assert [dealing.next("a") for _ in range(STRETCH)] == [7, 6, 5, None]


def test_what_came_back_goes_to_whoever_asks_next() -> None:
    dealing = Dealing(iter(range(10)))
    lost = dealing.next("a")
    assert lost == 0
    dealing.give_back(lost)
    assert dealing.next("b") == 0


@pytest.mark.parametrize(
    "text",
    [
        "",
        "local",
        "local:0",
        "local:-1",
        "local:two",
        "ray",
        "cluster:2",
        "local:2,gpu=1",
        "local:2,threads=0",
        "local:2,threads",
        "local:2,gpus=0.5",
        "local:2,address=auto",
        "ray:2,gpus=1.5",
        "ray:2,address=",
        "ray:99999999999",
    ],
)
def test_what_names_no_workers_is_refused_with_what_would(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_workers(text)
    assert repr(text) in str(caught.value)


def test_settings_of_workers_are_read() -> None:
    found = parse_workers("ray:4, gpus=0.5, threads=2, address=10.0.0.1:6379")
    assert found == Workers(place="ray", count=4, gpus=0.5, threads=2, address="10.0.0.1:6379")


def test_an_error_that_is_made_from_other_words_travels_whole() -> None:
    error = PromptTooLong("too long", needed=9, limit=8)
    found = unpack(pack(Failed.of(error))).error()
    assert type(found) is PromptTooLong and str(found) == "too long"
    assert (found.needed, found.limit) == (9, 8)


def test_where_memory_of_one_worker_ran_out_all_go_on_with_less() -> None:
    first = Standing(
        tokens={"score": 8, "fill": 8}, device="cuda", former={}, given=False, threads=0
    )
    budgets = CrewBudgets(first, lambda measure: Batches())
    budgets.fix({"score": 32}, 0)
    budgets.lower({"score": 16, "fill": 8})
    budgets.lower({"score": 32, "fill": 4})  # of another, that was begun before
    assert budgets.tokens == {"score": 16, "fill": 4}


@pytest.mark.parametrize(
    ("workers", "threads", "told"),
    [
        (
            Workers(place="local", count=1),
            1,
            "local:1 computes with 1 thread in all, and there",
        ),
        (Workers(place="ray", count=4), 1, "ray:8 uses all of them, and so does ray:4,threads=2"),
        (Workers(place="local", count=5), 1, ""),
        (Workers(place="local", count=2, threads=1), 1, ""),
        (Workers(place="local", count=2), 0, ""),  # on GPUs, or a model that has none of its own
    ],
)
def test_cores_that_would_have_nothing_to_do_are_told(
    workers: Workers, threads: int, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    tell_idle(workers, threads, 8)
    assert told in caplog.text and bool(told) is bool(caplog.text)
