"""Batches under a token budget. Knows lengths and callables, nothing of models."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import numpy as np

Result = TypeVar("Result")

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


class Budget:
    """A token budget that halves when memory runs out and stays there."""

    def __init__(self, tokens: int, out_of_memory: Callable[[BaseException], bool]) -> None:
        self.tokens = tokens
        self.out_of_memory = out_of_memory

    def run(
        self,
        lengths: Sequence[int],
        forward: Callable[[list[int]], Result],
        *,
        padded: bool = True,
        enough: int | None = None,
        started: deque[tuple[list[int], Result]] | None = None,
    ) -> Iterator[tuple[list[int], Result]]:
        """Yield (positions, result) for every batch, going on in smaller ones after a failure.

        A batch is yielded when the next ones have been started, so that whoever reads the one
        need not keep the device waiting for the others. The last ones are left in `started` where
        that is given, for a run that follows.
        """
        pending = list(range(len(lengths)))
        rest = started is None
        started = deque() if started is None else started
        while pending:
            done: set[int] = set()
            sizes = [lengths[i] for i in pending]
            for batch in batches(sizes, self.tokens, padded=padded, enough=enough):
                positions = [pending[i] for i in batch]
                result = self._attempt(positions, forward)
                if result is None:
                    failed = [lengths[i] for i in positions]
                    self.halve(len(failed) * max(failed) if padded else sum(failed))
                    break
                done.update(positions)
                started.append((positions, result))
                if len(started) > AHEAD:
                    yield started.popleft()
            pending = [i for i in pending if i not in done]
        yield from started if rest else ()

    def _attempt(
        self, positions: list[int], forward: Callable[[list[int]], Result]
    ) -> Result | None:
        """The result, or None if memory ran out; a single text that does not fit is fatal."""
        try:
            return forward(positions)
        except Exception as error:
            if len(positions) == 1 or not self.out_of_memory(error):
                raise
        return None

    def halve(self, failed: int) -> None:
        """Go on with half of what failed, or of the budget if that was smaller."""
        self.tokens = max(min(self.tokens, failed) // 2, 1)
