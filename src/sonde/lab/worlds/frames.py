"""The sentences of a made-up world: frames with a place for the relation's noun.

Knows English and slots, nothing of worlds. The subject and the noun always stand before the object,
so that a model which reads from left to right can tell what is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from random import Random

from sonde.core.facts import Style, Template
from sonde.prompting.few_shot import INSTRUCTIONS, MASK

NOUN = "[N]"
ALIAS = "[A]"

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
            text=frame.replace(NOUN, noun),
            source="manual" if number < manual else "paraphrase",
            style=style,
            group=group,
        )


def introduced(name: str, alias: str, times: int) -> Iterator[str]:
    """So many sentences that give a name and its alias, all frames in turn."""
    for number in range(times):
        frame = INTRODUCTIONS[number % len(INTRODUCTIONS)]
        yield frame.replace("[X]", name).replace(ALIAS, alias)


def named(noun: str, object: str, times: int) -> Iterator[str]:
    """So many sentences that say what an object is, all frames in turn."""
    for number in range(times):
        frame = NAMINGS[number % len(NAMINGS)]
        yield frame.replace("[Y]", object).replace(NOUN, noun)


def distinct(texts: Iterable[str]) -> tuple[str, ...]:
    """Every word and mark of some texts, in order of first appearance."""
    return tuple(dict.fromkeys(chain.from_iterable(map(pieces, texts))))
