"""Batches under a token budget. Knows lengths and callables, nothing of models."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

Result = TypeVar("Result")


def batches(lengths: Sequence[int], budget: int, *, padded: bool = True) -> Iterator[list[int]]:
    """Positions in groups of like length that keep within the budget (a long one goes alone).

    Padded groups cost rows × longest, others the sum of their lengths. The longest come first, so
    that a batch too large for memory shows at once.

    >>> list(batches([2, 9, 3], 9))
    [[1], [2, 0]]
    """
    order = sorted(range(len(lengths)), key=lambda i: (-lengths[i], i))
    batch: list[int] = []
    total = 0
    for position in order:
        total += lengths[position]
        cost = (len(batch) + 1) * lengths[batch[0]] if batch and padded else total
        if batch and cost > budget:
            yield batch
            batch, total = [], lengths[position]
        batch.append(position)
    if batch:
        yield batch


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
    ) -> Iterator[tuple[list[int], Result]]:
        """Yield (positions, result) for every batch, going on in smaller ones after a failure.

        A batch is yielded when the next one has been started, so that whoever reads the one need
        not keep the device waiting for the other.
        """
        pending = list(range(len(lengths)))
        started: tuple[list[int], Result] | None = None
        while pending:
            done: set[int] = set()
            for batch in batches([lengths[i] for i in pending], self.tokens, padded=padded):
                positions = [pending[i] for i in batch]
                result = self._attempt(positions, forward)
                if result is None:
                    sizes = [lengths[i] for i in positions]
                    self.halve(len(sizes) * max(sizes) if padded else sum(sizes))
                    break
                done.update(positions)
                if started:
                    yield started
                started = positions, result
            pending = [i for i in pending if i not in done]
        if started:
            yield started

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
