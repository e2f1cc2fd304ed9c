"""Put facts that are unknown or wrong in the place of some of a sequence.

Knows lines of facts, nothing of models. An unknown fact has a subject that is made up, and another
year where its object is one; any other object stays. A wrong one keeps its subject and is given the
object of another that is never right for it. Made-up names are built of syllables, the same from
the same seed; none stands among the real ones, and that none is real elsewhere is likely, not
certain.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from random import Random
from typing import Literal

from sonde.core.errors import DataError
from sonde.core.fingerprints import draw_key
from sonde.prompting.sequences import Line

Layout = Literal["spread", "block"]
Right = Callable[[Line], frozenset[str]]
"""Every name of every object that is right for a line's subject."""

BEGINNINGS = "b br d dr f fl g gr h k kl l m n p pr qu r s sk st t tr v vr w y z zh".split()
MIDDLES = "a e i o u ae ei io oa ou".split()
ENDS = "b d g k l lm m n nd nk p r rn rt s sk t th v x z".split()
TRIES = 8
MOST_WORDS = 3


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


def made_up(likes: Sequence[str], seed: int, real: Collection[str]) -> tuple[str, ...]:
    """One name for each of some names, of as many words (at most three); none twice, none real.

    The real names are given case-folded: no made-up one differs from them in its capitals alone.

    >>> made_up(["Marie Curie", "France"], 0, ["france"]) == made_up(["Ada Byron", "Peru"], 0, [])
    True
    """
    tries = [[_name(like, f"{seed}:{i}:{k}") for k in range(TRIES)] for i, like in enumerate(likes)]
    used = {folded for row in tries for name in row if (folded := name.casefold()) in real}
    chosen = []
    for row in tries:
        chosen.append(next(name for name in row if name.casefold() not in used))
        used.add(chosen[-1].casefold())
    return tuple(chosen)


def is_year(name: str) -> bool:
    """Whether a name is a year: three or four digits.

    >>> is_year("1867"), is_year("Curie"), is_year("42")
    (True, False, False)
    """
    return name.isascii() and name.isdecimal() and 3 <= len(name) <= 4


def other_year(year: int, first: int, last: int, key: str) -> int:
    """A year drawn from first to last that is not the one given.

    >>> other_year(1867, 1867, 1868, "seed")
    1868
    """
    drawn = Random(key).randrange(first, max(last, first + 1))
    return drawn + (drawn >= year)


def _name(like: str, key: str) -> str:
    random = Random(key)
    words = min(max(1, len(like.split())), MOST_WORDS)
    return " ".join(_word(random) for _ in range(words))


def _word(random: Random) -> str:
    """Two or three syllables, the last of them closed."""
    count = random.choice((2, 2, 3))
    open_ones = [random.choice(BEGINNINGS) + random.choice(MIDDLES) for _ in range(count)]
    return ("".join(open_ones) + random.choice(ENDS)).capitalize()
