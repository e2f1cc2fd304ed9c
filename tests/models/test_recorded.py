"""What is recorded comes to what it comes to unrecorded, or is not used."""

from __future__ import annotations

import gc
import logging
from typing import Any

import pytest
import torch

from sonde.models.torch import recorded
from sonde.models.torch.recorded import FIRST, Graph, Recorded, agree
from tests.played import Played, play


class Empty(Played):
    """As a graph that was recorded on another device than the one that works."""

    def __init__(self, *_: Any) -> None:
        self.replay = lambda: None


class Twice(Played):
    """Does what was recorded, and does it again."""

    def __init__(self, work: Any, *_: Any) -> None:
        self.replay = lambda: (work(), work())


class Refused(Played):
    """Cannot be recorded."""

    def __init__(self, *_: Any) -> None:
        raise RuntimeError("operation not permitted when stream is capturing")


def taken(recorder: Recorded) -> tuple[Any, Any]:
    """Six steps of two shapes: what they add up to, and how many there were."""
    total, count = torch.zeros(3), torch.zeros((), dtype=torch.long)

    def step(values: Any) -> None:
        total.add_(values.sum(0))
        count.add_(1)

    for n in range(6):
        for rows in (1, 2):
            recorder(step, lambda: [[total], [count]], torch.full((rows, 3), n + 1.0))
    return total, count


@pytest.mark.parametrize("graph", [Played, Empty, Twice, Refused])
def test_steps_come_to_the_same_whatever_recording_gives(
    graph: type[Any], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "sonde")
    play(monkeypatch, graph)
    recorder = Recorded("cpu")
    assert not recorder.records
    recorder.records = True
    total, count = taken(recorder)
    assert total.tolist() == [63.0] * 3 and int(count) == 12
    works = graph is Played
    assert recorder.records == recorder.agreed == works == (len(recorder.graphs) == 2)
    assert bool(caplog.records) is not works
    assert {record.levelno for record in caplog.records} <= {logging.DEBUG}


def test_a_step_is_not_tried_where_memory_has_no_room_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    play(monkeypatch)
    recorder, total = Recorded("cpu"), torch.zeros(3)
    recorder.records = True

    class Full:
        def detach(self) -> Any:
            return self

        def clone(self) -> None:
            raise torch.OutOfMemoryError("none is left")

    for _ in range(FIRST + 2):
        recorder(total.add_, lambda: [[Full()]], torch.ones(3))
    assert total.tolist() == [FIRST + 2.0] * 3 and not recorder.records


def test_garbage_waits_while_something_is_recorded() -> None:
    assert gc.isenabled()
    with recorded._recording():
        assert not gc.isenabled()
    with pytest.raises(ZeroDivisionError), recorded._recording():
        raise ZeroDivisionError
    assert gc.isenabled()
    with pytest.raises((RuntimeError, AssertionError, ValueError)):
        Graph(lambda: None, torch.device("cpu"))
    assert gc.isenabled() and not recorded._ONE.locked()


@pytest.mark.parametrize("half", [False, True])
def test_ways_agree_up_to_rounding(half: bool) -> None:
    plain = torch.tensor([[1.0, -8.0]])
    assert agree(plain, plain, half=half)
    assert agree(plain + 0.1, plain, half=half) is half
    assert not agree(torch.zeros(1, 2), plain, half=half)
    assert not agree(plain, plain * float("nan"), half=half)


@pytest.mark.gpu
def test_a_graph_is_launched_and_the_stream_is_left_as_it_was() -> None:
    total = torch.zeros(3, device="cuda")
    before = torch.cuda.current_stream()
    graph = Graph(lambda: total.add_(1), total.device)
    assert total.tolist() == [0.0] * 3
    graph.replay()
    assert total.tolist() == [1.0] * 3
    with pytest.raises(Exception, match="captur"):
        Graph(lambda: print(float(total[0])), total.device)
    assert torch.cuda.current_stream() == before
    assert (total + 1).tolist() == [2.0] * 3
