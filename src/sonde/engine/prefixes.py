"""Prefixes that several prompts share: found, computed once, kept. Knows token ids, no tensors."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from sonde.engine.batching import batches

State = TypeVar("State")
Ids = tuple[int, ...]

STEP = 16
"""Prefixes end at a multiple of this, so that other prompts of the same kind have the same one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefix:
    """Token ids that open every text of some prompts; none where sharing saves nothing."""

    ids: Ids
    members: tuple[int, ...]


def shared_prefixes(
    beginnings: Sequence[Ids], step: int = STEP, *, again: bool = False
) -> list[Prefix]:
    """Group prompts whose texts begin alike; those that share with none make a group of their own.

    `beginnings[i]` is what all texts of prompt i open with. In sorted order, a prompt joins the
    group before it as long as that saves tokens. What comes out depends on the prompts alone.
    `again`: those that share with none of their neighbours are looked at by themselves, since
    larger groups may have stood between them.

    >>> shared_prefixes([(1, 2, 3), (9,), (1, 2, 4)], step=2)
    [Prefix(ids=(1, 2), members=(0, 2)), Prefix(ids=(), members=(1,))]
    """
    order = sorted(range(len(beginnings)), key=lambda i: beginnings[i])
    groups: list[list[int]] = []
    length = 0
    for i in order:
        common = min(length, shared(beginnings[groups[-1][-1]], beginnings[i])) if groups else 0
        saves = common >= step and len(groups[-1]) * common >= (len(groups[-1]) - 1) * length
        if saves:
            groups[-1].append(i)
            length = common
        else:
            groups.append([i])
            length = len(beginnings[i])
    prefixes = [_prefix(beginnings, sorted(group), step) for group in groups]
    alone = sorted(i for prefix in prefixes if not prefix.ids for i in prefix.members)
    found = [prefix for prefix in prefixes if prefix.ids]
    if again and found and alone:
        more = shared_prefixes([beginnings[i] for i in alone], step, again=True)
        return found + [replace(p, members=tuple(alone[i] for i in p.members)) for p in more]
    return found + ([Prefix(ids=(), members=tuple(alone))] if alone else [])


def shared(one: Sequence[Any], other: Sequence[Any]) -> int:
    """How many tokens, or characters, two sequences have in common at their beginning."""
    low, size = 0, min(len(one), len(other))
    while low < size:  # by halves, because comparing slices is quicker than comparing tokens
        middle = (low + size + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            size = middle - 1
    return low


def _prefix(beginnings: Sequence[Ids], members: list[int], step: int) -> Prefix:
    first = min(beginnings[i] for i in members)
    last = max(beginnings[i] for i in members)
    common = shared(first, last) if len(members) > 1 else 0
    return Prefix(ids=first[: common // step * step], members=tuple(members))


def opened(prefixes: Sequence[Ids], size: int) -> list[list[Ids]]:
    """Prefixes that are computed together, the longest first: `size` tokens with what fills up."""
    cut = batches([len(ids) for ids in prefixes], size)
    return [[prefixes[i] for i in batch] for batch in cut]


class PrefixCache(Generic[State]):
    """What a model keeps of prefixes; those unused for longest go first, to keep within bytes.

    `compute` gives what is kept of a prefix, and its bytes, `together` the same of several at once.
    `most`: bytes at the fullest moment.
    """

    def __init__(
        self,
        compute: Callable[[Ids], tuple[State, int]],
        budget: int,
        together: Callable[[Sequence[Ids]], Sequence[tuple[State, int]]] | None = None,
    ) -> None:
        self.compute = compute
        self.together = together or (lambda several: [compute(ids) for ids in several])
        self.budget = budget
        self.held = 0
        self.most = 0
        self.kept: OrderedDict[Ids, tuple[State, int]] = OrderedDict()

    def get(self, ids: Ids) -> State:
        """What is kept of a prefix, computed unless it is there; nothing is kept of no tokens."""
        if not ids:
            return self.compute(ids)[0]
        if ids not in self.kept:
            self._keep(ids, *self.compute(ids))
        self.kept.move_to_end(ids)
        return self.kept[ids][0]

    def get_all(self, wanted: Sequence[Ids], size: int) -> list[State]:
        """The same of several; what is missing is computed together, `size` tokens at a time."""
        found = {ids: self.get(ids) for ids in wanted if ids in self.kept or not ids}
        for batch in opened([ids for ids in wanted if ids not in found], size):
            for ids, (state, held) in zip(batch, self.together(batch), strict=True):
                found[ids] = state
                self._keep(ids, state, held)
        return [found[ids] for ids in wanted]

    def _keep(self, ids: Ids, state: State, held: int) -> None:
        self.kept[ids] = state, held
        self.held += held
        self.most = max(self.most, self.held)
        while self.held > self.budget and len(self.kept) > 1:
            self.held -= self.kept.popitem(last=False)[1][1]

    def clear(self) -> None:
        """Forget every prefix, as when memory has run out."""
        self.kept.clear()
        self.held = 0


class SourceCache(Generic[State]):
    """What a model keeps of texts that it has read: as many as `room` bytes hold, `token` each.

    The first that fit are kept: they are asked for again in the same order, so what came last
    would always be gone by then.
    """

    def __init__(self, room: int, token: int) -> None:
        self.room = room
        self.token = token
        self.held = 0
        self.kept: dict[Ids, State] = {}

    def missing(self, sources: Sequence[Ids]) -> list[Ids]:
        """The distinct texts that have to be read."""
        return [ids for ids in dict.fromkeys(sources) if ids not in self.kept]

    def keep(self, ids: Ids, state: Callable[[], State]) -> None:
        """Keep what was read of a text, if there is room."""
        size = len(ids) * self.token
        if self.held + size <= self.room:
            self.kept[ids] = state()
            self.held += size

    def clear(self) -> None:
        """Drop all that was read."""
        self.kept.clear()
        self.held = 0
