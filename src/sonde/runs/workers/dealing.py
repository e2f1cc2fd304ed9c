"""Who answers which shard: stretches of consecutive ones, and at the end what others have left.

Draws shards only as workers want them, so that few are held however many there are. Knows nothing
of what a shard is, nor of how workers are reached.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator
from itertools import islice
from typing import Generic, TypeVar

Shard = TypeVar("Shard")

STRETCH = 4
"""Consecutive shards that are set aside for a worker."""


class Dealing(Generic[Shard]):
    """Deals out shards, each of them once, and again those that came back."""

    def __init__(self, coming: Iterator[Shard]) -> None:
        self._coming = coming
        self._own: dict[Hashable, deque[Shard]] = {}
        self._back: deque[Shard] = deque()

    def next(self, worker: Hashable) -> Shard | None:
        """What a worker answers next; None where there is nothing left.

        That is what came back, the next of its own stretch, a new stretch, or the last of the
        longest stretch that another has.
        """
        if self._back:
            return self._back.popleft()
        own = self._own.setdefault(worker, deque())
        if not own:
            own.extend(islice(self._coming, STRETCH))
        if own:
            return own.popleft()
        longest = max(self._own.values(), key=len)
        return longest.pop() if longest else None

    def give_back(self, shard: Shard) -> None:
        """A shard that was dealt out is not answered: whoever asks next has it."""
        self._back.append(shard)

    @property
    def held(self) -> int:
        """Shards that were drawn and are with nobody."""
        return len(self._back) + sum(map(len, self._own.values()))
