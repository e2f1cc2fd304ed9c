"""Work of a GPU recorded as CUDA graphs, whose kernels start without Python between them.

Small models keep a GPU waiting: a pass has hundreds of kernels, each shorter than what it takes to
start it. What is recorded is held against the same work as it is. Knows functions of tensors,
nothing of what they compute.
"""

from __future__ import annotations

import gc
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

import torch

log = logging.getLogger("sonde")

FIRST = 2  # times that a step runs as it is before it is recorded: kernels are chosen, buffers made
CLOSE = 0.05  # share by which a recorded step may change weights more, or less, than as it is
ROUNDING = {True: 0.05, False: 0.001}
"""Share of the largest number by which two ways may differ, in half precision and otherwise."""

State = Callable[[], Sequence[Sequence[Any]]]
"""The tensors that a step changes in place, by sorts: weights, means …"""

_ONE = Lock()  # a process records one thing at a time


class Graph:
    """What `work` starts on a device, recorded and not done; raises what cannot be recorded.

    Graphs that never run at the same time may share memory: `beside` is one of them.
    """

    def __init__(
        self, work: Callable[[], object], device: torch.device, beside: Graph | None = None
    ) -> None:
        self.device = device
        self.graph: Any = torch.cuda.CUDAGraph()
        pool = None if beside is None else beside.graph.pool()
        stream = _side_stream(device)
        # torch records on a stream of the current device, and stays on it where recording fails
        with _recording(), torch.cuda.device(device), torch.cuda.stream(stream):
            try:
                # other threads go on using the device
                with torch.cuda.graph(
                    self.graph, pool=pool, stream=stream, capture_error_mode="thread_local"
                ):
                    work()
            except Exception:
                torch.cuda.synchronize()
                raise

    def replay(self) -> None:
        """Do what was recorded."""
        with torch.cuda.device(self.device):
            self.graph.replay()


@contextmanager
def _recording() -> Iterator[None]:
    """No garbage is collected meanwhile: an old graph freed while one is recorded aborts it all."""
    with _ONE:
        collects = gc.isenabled()
        gc.disable()
        try:
            yield
        finally:
            if collects:
                gc.enable()


@cache
def _side_stream(device: torch.device) -> Any:
    """The stream on which the work of a device is recorded."""
    stream: Any = torch.cuda.Stream
    return stream(device)


def agree(found: Any, plain: Any, *, half: bool) -> bool:
    """Whether what was recorded gives what the plain way gives, up to rounding."""
    apart = float((found - plain).abs().max() / plain.abs().max())
    if not apart <= ROUNDING[half]:
        log.debug("what was recorded differs from the plain way by %.3g of the largest", apart)
        return False
    return True


class Recorded:
    """Takes steps that change tensors in place and give nothing back; records each shape it meets.

    All that changes from step to step has to be in the inputs, tensors on the device, and a step
    must not wait for the device. On a CPU, and where it cannot be recorded, it runs as it is. A
    step is not kept, so that whoever owns both is freed with its last name.
    """

    def __init__(self, device: Any) -> None:
        self.device = torch.device(device)
        self.records = self.device.type == "cuda"
        self.agreed = False
        self.forget()

    def forget(self) -> None:
        """Drop what was recorded: other tensors are changed from now on."""
        self.met: Counter[tuple[Any, ...]] = Counter()
        self.graphs: dict[tuple[Any, ...], tuple[Graph, tuple[Any, ...]]] = {}

    def __call__(self, step: Callable[..., object], state: State, *inputs: Any) -> None:
        """Take the step."""
        if not self.records:
            step(*inputs)
            return
        shape = tuple(tuple(tensor.shape) for tensor in inputs)
        self.met[shape] += 1
        if shape not in self.graphs and self.met[shape] > FIRST:
            self._record(step, shape, inputs)
        if shape not in self.graphs:
            aside(self.device, step, inputs)
        elif self.agreed:
            self._replay(shape, inputs)
        else:
            tensors = [[tensor.detach() for tensor in sort] for sort in state()]
            self._compare(step, tensors, shape, inputs)

    def _record(
        self, step: Callable[..., object], shape: tuple[Any, ...], inputs: tuple[Any, ...]
    ) -> None:
        """Record the step without taking it, if that can be done."""
        try:
            held = tuple(tensor.clone() for tensor in inputs)
            beside = next((graph for graph, _ in self.graphs.values()), None)
            graph = Graph(lambda: step(*held), self.device, beside)
        except Exception:  # whatever waits for the device is refused, each in its own way
            log.debug("the step is not recorded", exc_info=True)
            self._give_up()
        else:
            self.graphs[shape] = graph, held

    def _replay(self, shape: tuple[Any, ...], inputs: tuple[Any, ...]) -> None:
        graph, held = self.graphs[shape]
        for own, given in zip(held, inputs, strict=True):
            own.copy_(given)
        graph.replay()

    def _compare(
        self,
        step: Callable[..., object],
        state: Sequence[Sequence[Any]],
        shape: tuple[Any, ...],
        inputs: tuple[Any, ...],
    ) -> None:
        """Take the step both ways; what stays is what it comes to as it is."""
        try:
            before = [[tensor.clone() for tensor in sort] for sort in state]
        except torch.OutOfMemoryError:
            log.debug("no room to try a recorded step")
            self._give_up()
            aside(self.device, step, inputs)
            return
        self._replay(shape, inputs)
        found = changes(state, before)
        for sort, olds in zip(state, before, strict=True):
            for tensor, old in zip(sort, olds, strict=True):
                tensor.copy_(old)
        aside(self.device, step, inputs)
        plain = changes(state, before)
        pairs = list(zip(found, plain, strict=True))
        self.agreed = all(abs(one - other) <= CLOSE * max(one, other) for one, other in pairs)
        if not self.agreed:
            log.debug("a recorded step changes %s, the same as it is %s", found, plain)
            self._give_up()

    def _give_up(self) -> None:
        self.records = False
        self.forget()


def changes(state: Sequence[Sequence[Any]], before: Sequence[Sequence[Any]]) -> list[float]:
    """How far tensors have moved, each sort as one vector."""
    return [
        float(torch.stack([(now.float() - old.float()).norm() for now, old in both]).norm())
        for both in (zip(sort, olds, strict=True) for sort, olds in zip(state, before, strict=True))
    ]


def aside(device: torch.device, step: Callable[..., object], inputs: tuple[Any, ...]) -> None:
    """Run a step on a stream of its own, as one that is to be recorded has to."""
    cuda: Any = torch.cuda
    main, stream = cuda.current_stream(device), _side_stream(device)
    stream.wait_stream(main)
    with cuda.stream(stream):
        step(*inputs)
    main.wait_stream(stream)
