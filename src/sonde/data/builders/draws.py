"""Draw some of many without holding the many: the names with the smallest draws stay.

What stays depends on the seed and the set of names alone, never on their order or repetition.
"""

from __future__ import annotations

from heapq import heappush, heappushpop

from sonde.core.fingerprints import draw_key

NONE: frozenset[str] = frozenset()


class Smallest:
    """The `size` names with the smallest draws among all that were offered, with their marks."""

    __slots__ = ("_heap", "_prefix", "_seed", "_size", "kept", "turned_away")

    def __init__(self, size: int, seed: int, prefix: str) -> None:
        self._size = size
        self._seed = seed
        self._prefix = prefix
        self._heap: list[tuple[int, str]] = []
        self.kept: dict[str, frozenset[str]] = {}
        self.turned_away = False

    def offer(self, name: str, mark: str = "") -> None:
        """Take a name in where its draw is small enough; all marks of a name that stays stay."""
        if name not in self.kept:
            entry = (-draw_key(self._seed, self._prefix + name), name)  # a heap gives its smallest
            if not self._room(entry):
                return
            self.kept[name] = NONE
        if mark and mark not in self.kept[name]:
            self.kept[name] |= {mark}

    def _room(self, entry: tuple[int, str]) -> bool:
        if len(self._heap) < self._size:
            heappush(self._heap, entry)
            return True
        self.turned_away = True
        if not self._heap or entry < self._heap[0]:
            return False
        _, gone = heappushpop(self._heap, entry)
        del self.kept[gone]
        return True

    def __len__(self) -> int:
        return len(self.kept)

    def ordered(self) -> list[str]:
        """The names, the smallest draw first."""
        return [name for _, name in sorted(self._heap, reverse=True)]
