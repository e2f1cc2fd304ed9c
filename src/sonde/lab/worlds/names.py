"""Words that nobody uses, for subjects, objects and nouns. Knows letters, nothing of facts.

A word is two syllables and an end. The kinds of words end differently, so that none can be of two
kinds, and more words of one kind change none of another. No end is one that English inflects by, so
that no two words have the same lemma.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from random import Random
from typing import Literal

from sonde.core.errors import UsageError

Kind = Literal["given", "family", "alias", "object", "noun"]

ONSETS = "b bl br d dr f fl g gr h j k kl kr l m n p pl pr r s sk sl sn st t tr v w z".split()
VOWELS = "aeiou"
ENDS: Mapping[Kind, tuple[str, ...]] = {
    "given": ("", "n", "sh"),
    "family": ("ld", "rd", "lt", "rn"),
    "alias": ("k", "b", "p", "g", "t"),
    "object": ("l", "m", "x", "lm", "rk", "nk"),
    "noun": ("mp", "nt", "nd", "rt"),
}
SPARE = 2
"""Words that exist for each that may be made: drawing the last of them would take too long."""


ROOM: Mapping[Kind, tuple[str, str]] = {
    "given": ("given words", "lower words"),
    "family": ("family words", "lower families"),
    "alias": ("subjects with an alias each", "lower subjects"),
    "object": ("objects of all relations", "lower facts, objects or the number of relations"),
    "noun": ("relations", "lower one_one, many_one or many_many"),
}
"""What words of each kind name, and what to do where they do not suffice."""


def made_words(
    kind: Kind, count: int, random: Random, taken: Collection[str] = ()
) -> tuple[str, ...]:
    """So many words of a kind; more of them begin with the same ones.

    None of them is taken, whatever its capitals; those that are taken are given case-folded.

    >>> made_words("noun", 2, Random(0)) == made_words("noun", 3, Random(0))[:2]
    True
    """
    found: dict[str, None] = {}
    while len(found) < count:
        word = _word(kind, random)
        if word.casefold() not in taken:
            found[word] = None
    return tuple(found)


def most_words(kind: Kind) -> int:
    """How many words of a kind can be made."""
    return (len(ONSETS) * len(VOWELS)) ** 2 * len(ENDS[kind]) // SPARE


def check_room(kind: Kind, count: int) -> None:
    """Refuse to make more words of a kind than there are."""
    what, change = ROOM[kind]
    if count > most_words(kind):
        raise UsageError(
            f"{count:,} {what} are more than the {most_words(kind):,} that can be named; {change}"
        )


def full_names(
    given: tuple[str, ...], family: tuple[str, ...], count: int, random: Random
) -> Iterator[tuple[str, str]]:
    """So many pairs of a given and a family word, no two alike; family words in even numbers."""
    if count > len(given) * len(family):
        raise UsageError(
            f"{count:,} subjects are more than {len(given)} given words with {len(family)} family "
            f"words can name: {len(given) * len(family):,}; raise words, or lower subjects"
        )
    decks = {word: random.sample(given, len(given)) for word in family}
    order = random.sample(family, len(family))
    for number in range(count):
        word = order[number % len(order)]
        yield decks[word][number // len(order)], word


def _word(kind: Kind, random: Random) -> str:
    open_ones = (random.choice(ONSETS) + random.choice(VOWELS) for _ in range(2))
    word = "".join(open_ones) + random.choice(ENDS[kind])
    return word if kind == "noun" else word.capitalize()
