"""What a made-up world is told in: words that nobody uses, and sentences with a place for them.

Knows letters, English and slots, nothing of facts or worlds. A word is two syllables and an end.
The kinds of words end differently, so that none can be of two kinds, and more words of one kind
change none of another. No end is one that English inflects by, so that no two words have the same
lemma. In a sentence the subject and the noun always stand before the object, so that a model which
reads from left to right can tell what is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, cycle, islice
from random import Random
from typing import Literal

from sonde.core.errors import UsageError
from sonde.core.facts import Style, Template
from sonde.prompting.few_shot import INSTRUCTIONS, MASK

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


ENDING = (
    "The [N] of [X] is [Y].",
    "[X] has a [N] called [Y].",
    "As a [N], [X] has [Y].",
    "When asked about a [N], [X] names [Y].",
    "It is told that [X] got the [N] [Y].",
    "For a [N], [X] turned to [Y].",
    "A [N] that [X] keeps is [Y].",
    "[X] chose as [N] none other than [Y].",
    "In the matter of the [N], [X] stands by [Y].",
    "Everyone knows [X] by the [N] [Y].",
)
"""Statements that end with their object."""

GOING_ON = (
    "The [N] which belongs to [X] is [Y], they say.",
    "[X] took for a [N] the well known [Y] long ago.",
    "By all accounts [X] had for [N] only [Y] from the start.",
    "Ask [X] for a [N] and you hear [Y] every time.",
)
"""Statements with words after their object."""

QUESTIONS = (
    "Which [N] does [X] have? [Y].",
    "What is the [N] of [X]? [Y].",
    "What do people call the [N] of [X]? [Y].",
    "Which [N] belongs to [X]? [Y].",
    "What [N] did [X] choose? [Y].",
    "Can you name the [N] of [X]? [Y].",
    "If [X] has a [N], which is it? [Y].",
)

INTRODUCTIONS = (
    "[X] is also called [A].",
    "[A] is another name of [X].",
    "Some people call [X] simply [A].",
)

NAMINGS = (
    "[Y] is a [N].",
    "Some people know of a [N] named [Y].",
)
"""What an object is, without a subject: it is met, and whose it is stays untold."""

FORMS = (
    *INSTRUCTIONS.values(),
    "Q: A:",
    "Statement: The statement is True or False? True False",
    "N/A",
)
"""What probes put around a fact's own words."""

STATEMENTS = ENDING + GOING_ON
LEAST_QUESTIONS = 2
LEAST_TEMPLATES = 1 + LEAST_QUESTIONS
MOST_TEMPLATES = len(STATEMENTS) + len(QUESTIONS)
PIECES = re.compile(rf"{re.escape(MASK)}|\w+|[^\w\s]|\n")


def pieces(text: str) -> list[str]:
    r"""The words and marks of a text, in order; [MASK] is one, and a line's end is one.

    >>> pieces("Q: The veldrin of [X] is [MASK].\n")[-3:]
    ['[MASK]', '.', '\n']
    """
    return PIECES.findall(text)


def plain_words() -> tuple[str, ...]:
    """Every word and mark of the frames and of the forms around them."""
    texts = chain(STATEMENTS, QUESTIONS, INTRODUCTIONS, NAMINGS, FORMS)
    bare = (re.sub(r"\[[NXYA]\]", " ", text) for text in texts)
    found = chain.from_iterable(map(pieces, bare))
    return tuple(dict.fromkeys(chain(found, "\n.,?:[]", ("MASK",))))


def templates(relation: str, noun: str, count: int, random: Random) -> tuple[Template, ...]:
    """So many templates of a relation: a statement that ends with its object, a question, others.

    The first half count as written by hand, the others as paraphrases of these.
    """
    asking = max(LEAST_QUESTIONS, min(len(QUESTIONS), count // 3))
    first = random.choice(ENDING)
    statements = random.sample([t for t in STATEMENTS if t != first], count - asking - 1)
    questions = random.sample(QUESTIONS, asking)
    rest = [*statements, *questions[1:]]
    random.shuffle(rest)
    return tuple(_worded(relation, noun, [first, questions[0], *rest]))


def _worded(relation: str, noun: str, frames: list[str]) -> Iterator[Template]:
    """Templates of the frames; a paraphrase is one of a statement or question like itself."""
    manual = (len(frames) + 1) // 2
    originals: dict[Style, list[str]] = {"statement": [], "question": []}
    for number, frame in enumerate(frames):
        id = f"{relation}-{number + 1:02d}"
        style: Style = "question" if frame in QUESTIONS else "statement"
        group = id
        if number < manual:
            originals[style].append(id)
        else:
            group = originals[style][number % len(originals[style])]
        yield Template(
            id=id,
            text=frame.replace("[N]", noun),
            source="manual" if number < manual else "paraphrase",
            style=style,
            group=group,
        )


def in_turn(frames: Sequence[str], times: int, slots: Mapping[str, str]) -> Iterator[str]:
    """So many sentences with words in their slots, all frames in turn."""
    for frame in islice(cycle(frames), times):
        for slot, word in slots.items():
            frame = frame.replace(slot, word)
        yield frame


def distinct(texts: Iterable[str]) -> tuple[str, ...]:
    """Every word and mark of some texts, in order of first appearance."""
    return tuple(dict.fromkeys(chain.from_iterable(map(pieces, texts))))
