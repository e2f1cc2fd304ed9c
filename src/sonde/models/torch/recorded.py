"""Training steps recorded as CUDA graphs, whose kernels start without Python between them.

Small models keep a GPU waiting: a step has hundreds of kernels, each shorter than what it takes to
start it. Knows functions of tensors, nothing of what they train.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch

log = logging.getLogger("sonde")

FIRST = 2  # times that a step runs as it is before it is recorded: kernels are chosen, buffers made


class Recorded:
    """A step that moves weights in place and gives nothing back, recorded for each shape it meets.

    All that changes from step to step has to be in its inputs, tensors on the device, and it must
    not wait for the device. On a CPU, and where it cannot be recorded, it runs as it is.
    """

    def __init__(self, step: Callable[..., None], device: Any) -> None:
        self.step = step
        self.records = torch.device(device).type == "cuda"
        self.met: Counter[tuple[Any, ...]] = Counter()
        self.graphs: dict[tuple[Any, ...], tuple[Any, tuple[Any, ...]]] = {}
        self.pool: Any = None
        self.stream: Any = None

    def __call__(self, *inputs: Any) -> None:
        """Take the step."""
        if not self.records:
            self.step(*inputs)
            return
        shape = tuple(tuple(tensor.shape) for tensor in inputs)
        self.met[shape] += 1
        if shape not in self.graphs and (self.met[shape] <= FIRST or not self._record(inputs)):
            self._aside(inputs)
            return
        graph, held = self.graphs[shape]
        for own, given in zip(held, inputs, strict=True):
            own.copy_(given)
        graph.replay()

    def _aside(self, inputs: tuple[Any, ...]) -> None:
        """Run the step on a stream of its own, as one that is to be recorded has to."""
        cuda: Any = torch.cuda
        main = cuda.current_stream()
        self.stream = self.stream or cuda.Stream()
        self.stream.wait_stream(main)
        with cuda.stream(self.stream):
            self.step(*inputs)
        main.wait_stream(self.stream)

    def _record(self, inputs: tuple[Any, ...]) -> bool:
        """Record the step without taking it; whether that worked."""
        held = tuple(tensor.clone() for tensor in inputs)
        graph = torch.cuda.CUDAGraph()
        self.pool = self.pool or torch.cuda.graph_pool_handle()  # they never run at the same time
        try:
            with torch.cuda.graph(graph, pool=self.pool, capture_error_mode="thread_local"):
                self.step(*held)
        except Exception:  # whatever waits for the device is refused, each in its own way
            log.debug("the step is not recorded", exc_info=True)
            self.records = False
            torch.cuda.synchronize()
            return False
        self.graphs[tuple(tuple(tensor.shape) for tensor in inputs)] = graph, held
        return True
