"""Names that nobody bears, made of syllables, and years: facts no model can have read about.

Knows names and a seed, nothing of facts or models. The same seed makes the same names. A name that
stands among the real ones is never used; that none is real elsewhere is likely, not certain.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from random import Random

BEGINNINGS = "b br d dr f fl g gr h k kl l m n p pr qu r s sk st t tr v vr w y z zh".split()
MIDDLES = "a e i o u ae ei io oa ou".split()
ENDS = "b d g k l lm m n nd nk p r rn rt s sk t th v x z".split()
TRIES = 8
MOST_WORDS = 3


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
