"""Put facts that are unknown or wrong in the place of some of a sequence.

Knows lines of facts, nothing of models. An unknown fact has a subject that is made up, and another
year where its object is one; any other object stays. A wrong one keeps its subject and is given the
object of another that is never right for it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Literal

from sonde.core.errors import DataError
from sonde.core.fingerprints import draw_key
from sonde.prompting.fictions import is_year, made_up, other_year
from sonde.prompting.sequences import Line

Layout = Literal["spread", "block"]
Right = Callable[[Line], frozenset[str]]
"""Every name of every object that is right for a line's subject."""


def places(count: int, length: int, layout: Layout, seed: int) -> tuple[int, ...]:
    """Which places of a sequence are replaced, counted from 0: drawn one by one, or one block.

    The block stands in the middle, so that as many facts follow it as come before.

    >>> places(2, 7, "block", 0)
    (2, 3)
    """
    if layout == "block":
        start = (length - count) // 2
        return tuple(range(start, start + count))
    drawn = sorted(range(length), key=lambda place: draw_key(seed, f"place:{place}"))
    return tuple(sorted(drawn[:count]))


def with_unknown(
    lines: Sequence[Line], at: Sequence[int], seed: int, real: Collection[str]
) -> tuple[Line, ...]:
    """The lines with made-up subjects at some places; `real` names, case-folded, are never used.

    A year there becomes another one, drawn between the first and the last of all lines.
    """
    names = made_up([lines[place].subject for place in at], seed, real)
    years = [int(line.object) for line in lines if is_year(line.object)]
    new = {}
    for place, name in zip(at, names, strict=True):
        made = lines[place].object
        if is_year(made):
            key = f"{seed}:year:{lines[place].fact}"
            made = str(other_year(int(made), min(years), max(years), key))
        new[place] = replace(lines[place], subject=name, object=made)
    return tuple(new.get(place, line) for place, line in enumerate(lines))


def with_wrong(
    lines: Sequence[Line], at: Sequence[int], right: Right, pool: Sequence[str], seed: int
) -> tuple[Line, ...]:
    """The lines with wrong objects at some places: their own, deranged.

    Where these do not suffice (most of them are the same, say) objects of `pool` stand in.
    """
    order = sorted(at, key=lambda place: draw_key(seed, f"object:{lines[place].fact}"))
    given = [lines[place].object for place in (*order[1:], *order[:1])]
    barred = [right(lines[place]) for place in order]
    for i, barred_here in enumerate(barred):
        if given[i] in barred_here:
            swap = (j for j in range(len(given)) if _both(given, barred, i, j))
            j = next(swap, i)
            given[i], given[j] = given[j], given[i]
        if given[i] in barred_here:
            given[i] = _other(lines[order[i]], barred_here, pool, seed)
    new = {p: replace(lines[p], object=name) for p, name in zip(order, given, strict=True)}
    return tuple(new.get(place, line) for place, line in enumerate(lines))


def _both(given: Sequence[str], barred: Sequence[frozenset[str]], i: int, j: int) -> bool:
    """Whether neither of two objects would be right where the other stands."""
    return given[j] not in barred[i] and given[i] not in barred[j]


def _other(line: Line, barred: frozenset[str], pool: Sequence[str], seed: int) -> str:
    def drawn(name: str) -> tuple[int, str]:
        return draw_key(seed, f"wrong:{line.fact}:{name}"), name

    found = min((name for name in pool if name not in barred), key=drawn, default=None)
    if found is None:
        raise DataError(
            f"fact {line.fact!r} cannot be made wrong: every object of its relation is right for "
            f"{line.subject!r}; ask about another relation"
        )
    return found
