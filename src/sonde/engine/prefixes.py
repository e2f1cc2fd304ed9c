"""Find long beginnings that several prompts share, to be computed once. Knows token ids alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

STEP = 16
"""Stems end at a multiple of this, so that other prompts of the same kind have the same stem."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stem:
    """Token ids that open every text of some prompts; none where sharing saves nothing."""

    ids: tuple[int, ...]
    members: tuple[int, ...]


def stems(beginnings: Sequence[tuple[int, ...]], step: int = STEP) -> list[Stem]:
    """Group prompts whose texts begin alike; those that share with none make a group of their own.

    `beginnings[i]` is what all texts of prompt i open with. In sorted order, a prompt joins the
    group before it as long as that saves tokens. What comes out depends on the prompts alone.

    >>> stems([(1, 2, 3), (9,), (1, 2, 4)], step=2)
    [Stem(ids=(1, 2), members=(0, 2)), Stem(ids=(), members=(1,))]
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
    found = [_stem(beginnings, sorted(group), step) for group in groups]
    alone = sorted(i for stem in found if not stem.ids for i in stem.members)
    rest = [Stem(ids=(), members=tuple(alone))] if alone else []
    return [stem for stem in found if stem.ids] + rest


def shared(one: Sequence[int], other: Sequence[int]) -> int:
    """How many tokens two sequences have in common at their beginning."""
    for i, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return i
    return min(len(one), len(other))


def _stem(beginnings: Sequence[tuple[int, ...]], members: list[int], step: int) -> Stem:
    first = min(beginnings[i] for i in members)
    last = max(beginnings[i] for i in members)
    common = shared(first, last) if len(members) > 1 else 0
    return Stem(ids=first[: common // step * step], members=tuple(members))
