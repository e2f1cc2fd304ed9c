"""Batches under a token budget, and how they are run. Knows lengths and callables, no models."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import TypeVar

import numpy as np

Batch = TypeVar("Batch")
Result = TypeVar("Result")

Scheduled = Generator[Batch, bool | None, None]
"""Batches in turn; whoever runs one sends True where memory ran out, and smaller ones follow."""

AHEAD = 2  # batches that are started before one is read


def batches(
    lengths: Sequence[int], budget: int, *, padded: bool = True, enough: int | None = None
) -> Iterator[list[int]]:
    """Positions in groups of like length that keep within the budget (a long one goes alone).

    Padded groups cost rows × longest, others the sum of their lengths. A group of `enough` tokens
    takes no shorter texts, which would be padded. The longest come first, so that a batch too
    large for memory shows at once.

    >>> list(batches([2, 9, 3], 9)), list(batches([2, 3, 3], 9, enough=6))
    ([[1], [2, 0]], [[1, 2], [0]])
    """
    sizes = np.asarray(lengths, dtype=np.int64)
    order = np.lexsort((np.arange(len(sizes)), -sizes))
    batch: list[int] = []
    longest = total = 0
    for run in np.split(order, np.flatnonzero(np.diff(sizes[order])) + 1) if len(order) else ():
        length, at = int(sizes[run[0]]), 0
        while at < len(run):
            room = _room(length, longest, len(batch), total, budget, padded, enough)
            if batch and room <= 0:
                yield batch
                batch, total = [], 0
                continue
            longest = longest if batch else length
            taken = run[at : at + max(room, 1)].tolist()
            batch += taken
            total += length * len(taken)
            at += len(taken)
    if batch:
        yield batch


def _room(
    length: int,
    longest: int,
    count: int,
    total: int,
    budget: int,
    padded: bool,
    enough: int | None,
) -> int:
    """How many more texts of a length a batch of `count` texts takes before it is looked at again.

    Texts come longest first, so these are no longer than what is in it.
    """
    if count == 0:
        return max(budget // length, 1)
    room = budget // longest - count if padded else (budget - total) // length
    if enough is not None and length < longest:
        room = min(room, -((total - enough) // length))
    return room


def packing(count: int, length: int, row: int) -> int:
    """How many of `count` texts of a length are laid end to end in a row of `row` tokens.

    >>> packing(9, 20, 128), packing(9, 65, 128)
    (6, 1)
    """
    return min(row // length, count) if 2 * length <= row else 1


class Budget:
    """A token budget that halves when memory runs out and stays there."""

    def __init__(self, tokens: int, out_of_memory: Callable[[BaseException], bool]) -> None:
        self.tokens = tokens
        self.out_of_memory = out_of_memory

    def schedule(
        self,
        lengths: Sequence[int] | Mapping[int, int],
        build: Callable[[list[int]], Batch],
        *,
        padded: bool = True,
        enough: int | None = None,
        most: int | None = None,
        alone: Callable[[int], Scheduled[Batch]] | None = None,
    ) -> Scheduled[Batch]:
        """What `build` makes of the positions, or keys, of each batch, as in `batches`.

        `most`: tokens of a batch, where the budget allows for more. `alone`: how a text that is a
        batch by itself is scheduled, where that may be in parts.
        """
        pending = list(lengths) if isinstance(lengths, Mapping) else list(range(len(lengths)))
        while pending:
            done: set[int] = set()
            sizes = [lengths[i] for i in pending]
            tokens = min(self.tokens, most or self.tokens)
            for batch in batches(sizes, tokens, padded=padded, enough=enough):
                positions = [pending[i] for i in batch]
                if alone is not None and len(positions) == 1:
                    yield from alone(positions[0])
                elif (yield build(positions)):
                    failed = [lengths[i] for i in positions]
                    self.halve(len(failed) * max(failed) if padded else sum(failed))
                    break
                done.update(positions)
            pending = [i for i in pending if i not in done]

    def execute(
        self,
        scheduled: Scheduled[Batch],
        forward: Callable[[Batch], Result],
        *,
        divisible: Callable[[Batch], bool] = attrgetter("divisible"),
        started: deque[tuple[Batch, Result]] | None = None,
    ) -> Iterator[tuple[Batch, Result]]:
        """Yield (batch, result) for every batch; one that is not divisible must fit into memory.

        A batch is yielded when the next ones have been started, so that whoever reads the one
        need not keep the device waiting for the others. The last ones are left in `started` where
        that is given, for what follows.
        """
        running: deque[tuple[Batch, Result]] = deque() if started is None else started
        batch = next(scheduled, None)
        while batch is not None:
            failed = False
            try:
                running.append((batch, forward(batch)))
            except Exception as error:
                if not divisible(batch) or not self.out_of_memory(error):
                    raise
                failed = True
            if len(running) > AHEAD:
                yield running.popleft()
            try:
                batch = scheduled.send(failed)
            except StopIteration:
                batch = None
        yield from running if started is None else ()

    def run(
        self,
        lengths: Sequence[int],
        forward: Callable[[list[int]], Result],
        *,
        padded: bool = True,
        enough: int | None = None,
    ) -> Iterator[tuple[list[int], Result]]:
        """Yield (positions, result) for every batch, where positions are all there is to know."""
        scheduled: Scheduled[list[int]] = self.schedule(lengths, list, padded=padded, enough=enough)
        return self.execute(scheduled, forward, divisible=_several)

    def halve(self, failed: int) -> None:
        """Go on with half of what failed, or of the budget if that was smaller."""
        self.tokens = max(min(self.tokens, failed) // 2, 1)


def _several(batch: list[int]) -> bool:
    return len(batch) > 1
