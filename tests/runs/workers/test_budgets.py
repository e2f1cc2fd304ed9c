"""How much goes through at once is one number for all workers, whatever memory each of them finds.

Workers are of this process and take turns, so that it is known who answers what.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

import sonde
from sonde.core.threads import Behind
from sonde.models.options import LoadOptions
from sonde.models.torch.loading import budgets
from sonde.runs.workers.channels import Channel
from sonde.runs.workers.crew import Crew
from sonde.runs.workers.messages import Answered, Going, Order, Ready, unpack
from sonde.runs.workers.spec import Workers
from sonde.runs.workers.worker import Worker
from tests import tiny
from tests.parity.test_memory import ERRORS, limit
from tests.runs.test_batches import (
    FACTS,
    LAMA,
    WEIGHT,
    bytes_for,
    room,
    run,
    said,
    sessions,
    shards,
    stopped,
)

from .world import ask, kept, threads

MODELS: dict[str, Callable[..., Path]] = {"causal": tiny.llama, "masked": tiny.bert}

Loaded = Callable[[Any], object]


class Seat:
    """A worker that does the next thing when it is listened to, and sees memory of its own."""

    def __init__(self, patch: pytest.MonkeyPatch, free: float, loaded: Loaded | None) -> None:
        self._patch, self._free, self._loaded = patch, free, loaded
        self._inbox: SimpleQueue[Any] = SimpleQueue()
        self._said: deque[bytes] = deque()
        self._worker = Worker(self._inbox, self._said.append)
        self.told, self.asked = "a seat", 0
        self.answered: list[tuple[int, int]] = []

    def send(self, data: bytes) -> None:
        self._inbox.put(unpack(data))
        self.asked += 1

    def receive(self) -> bytes:
        if not self._said:
            self._patch.setattr(budgets, "free_bytes", lambda _: self._free)
            with Behind() as behind:
                self._worker.do_next(behind)
        data = self._said.popleft()
        self._note(unpack(data))
        return data

    def _note(self, message: Any) -> None:
        self.asked -= not isinstance(message, Going)
        if isinstance(message, Ready) and self._loaded is not None:
            self._loaded(self._worker.model)
        if isinstance(message, Answered):
            self.answered.append((message.number, message.tokens["score"]))

    def close(self) -> None:
        pass


class Table:
    """Where workers sit; when so many shards are answered the run is interrupted."""

    def __init__(self, seats: Sequence[Seat], until: int | None = None) -> None:
        self._seats, self._until, self.cores = seats, until, 1

    def start(self, number: int) -> Channel:
        return self._seats[number]

    def wait(self, channels: Sequence[Channel], seconds: float) -> list[Channel]:
        if self._until is not None and sum(len(s.answered) for s in self._seats) >= self._until:
            raise KeyboardInterrupt
        return [each for each in channels if isinstance(each, Seat) and each.asked]

    def close(self) -> None:
        pass


@contextmanager
def crew(folder: Path, seats: Sequence[Seat], until: int | None = None) -> Iterator[Crew]:
    order = Order(reference=f"hf:{folder}", options=LoadOptions(device="cpu"), dataset=None)
    made = Crew(Workers(place="local", count=len(seats)), Table(seats, until), order)
    yield made
    made.close()


@pytest.mark.parametrize("rooms", [(16, 64), (64, 16, 256)])
@pytest.mark.parametrize("kind", MODELS)
def test_workers_that_find_other_memory_leave_what_one_process_leaves(
    kind: str, rooms: tuple[int, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = MODELS[kind](tmp_path / "model")
    free = {tokens: bytes_for(folder, tokens) for tokens in rooms}

    def seats() -> list[Seat]:
        return [Seat(monkeypatch, free[tokens], None) for tokens in rooms]

    room(monkeypatch, folder, rooms[0])
    run(sonde.model(f"hf:{folder}", device="cpu"), tmp_path / "alone")
    stopped(sonde.model(f"hf:{folder}", device="cpu"), tmp_path / "parts", after=2)
    for out, asked in (("together", seats()), ("parts", seats()[1:])):
        with crew(folder, asked) as workers:
            run(workers, tmp_path / out)
        assert all(seat.answered for seat in asked)
        assert {tokens for seat in asked for _, tokens in seat.answered} == {rooms[0]}
        assert kept(tmp_path / out) == kept(tmp_path / "alone")
    assert said(tmp_path / "together")["tokens"]["score"] == rooms[0]


def test_a_worker_whose_memory_runs_out_halves_it_for_all_and_for_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    folder, out = tiny.llama(tmp_path / "model"), tmp_path / "out"
    free = bytes_for(folder, 2048)
    wide = Seat(monkeypatch, free, None)
    tight = Seat(monkeypatch, free, lambda each: limit(monkeypatch, each.model, 30, ERRORS[0]))
    with (
        caplog.at_level(logging.WARNING, logger="sonde"),
        crew(folder, [wide, tight], until=6) as workers,
        pytest.raises(KeyboardInterrupt),
    ):
        ask(workers, out)
    left = said(out)["halved"]["score"]
    assert said(out)["tokens"]["score"] == 1024 and left <= 30
    (told,) = [line for line in caplog.messages if "memory ran out" in line]
    assert f"{left} tokens go through the model at once from here on (before: 1,024)" in told
    assert [tokens for _, tokens in tight.answered] == [left] * 3
    assert [tokens for _, tokens in wide.answered] == [1024, 1024, left]  # two were with it by then
    after = [Seat(monkeypatch, free, None) for _ in range(3)]
    with crew(folder, after) as workers:
        ask(workers, out)
    later = dict(pair for seat in after for pair in seat.answered)
    assert len(later) == 6 and set(later.values()) == {left}
    assert said(out)["halved"]["score"] == left == sessions(out)[-1]["score"]
    # these are what a process leaves that never had more at once
    ask(sonde.model(f"hf:{folder}", device="cpu", batch_tokens=left), tmp_path / "small")
    ours, theirs = shards(out), shards(tmp_path / "small")
    assert [ours[number] for number in later] == [theirs[number] for number in later]


def test_workers_go_on_with_the_threads_that_a_run_was_begun_with(tmp_path: Path) -> None:
    """In passes of few rows BLAS rounds otherwise with one thread than with two."""
    name = f"hf:{tiny.bert(tmp_path / 'model')}"
    model = sonde.model(name, device="cpu")
    with threads(2):
        run(model, tmp_path / "whole")
        stopped(model, tmp_path / "part", 2)
    load = LoadOptions(device="cpu")
    sonde.run(LAMA, name, FACTS, tmp_path / "part", on="local:2", load=load, shard_weight=WEIGHT)
    assert said(tmp_path / "part")["threads"] == 2
    assert shards(tmp_path / "part") == shards(tmp_path / "whole")
