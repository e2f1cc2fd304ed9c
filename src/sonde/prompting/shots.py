"""Examples before a question: one text, and where in it their answers begin and end.

A model that is asked in turns of a conversation may be shown them as turns. Knows texts alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Shot(NamedTuple):
    """An example: all up to where its answer begins, and the answer with what closes it."""

    question: str
    answer: str


class Worded(NamedTuple):
    """A text that is put to a model; `turns`: where answers in it begin and end, one by one."""

    text: str = ""
    turns: tuple[int, ...] = ()

    def then(self, text: str) -> Worded:
        """It with a text behind it."""
        return Worded(self.text + text, self.turns)


def shown(shots: Iterable[Shot], head: str = "") -> Worded:
    r"""Examples one after the other, behind what stands before all of them.

    >>> shown([Shot("Q: A?\nA: ", "B\n")], "Answer.\n")
    Worded(text='Answer.\nQ: A?\nA: B\n', turns=(17, 19))
    """
    text, turns = head, list[int]()
    for question, answer in shots:
        begin = len(text) + len(question)
        text += question + answer
        turns += begin, len(text)
    return Worded(text, tuple(turns))
