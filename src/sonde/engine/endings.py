"""Read the tokens written after a prompt: what they say, and whether they have come to an end.

What a chat model writes from <think> to </think> stands before its answer. Knows a tokenizer and
tokens; nothing of models.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from tokenizers import Tokenizer

from sonde.core.answers import CLOSED, OPENED, Generated
from sonde.core.prompts import Generate, Sample
from sonde.engine.token_texts import BROKEN, TokenTexts

Writing = Generate | Sample

Thoughts = Literal["never", "may be", "begun"]
"""Whether a text may begin with thoughts: no, where it opens them, or they were opened before it.
"""

LONGEST_TAIL = 8  # tokens; more than the bytes of any one character


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """What was written before the end; not `finished` where only the limit ended it.

    `thoughts`: what stands before the text, up to its first character.
    """

    text: str
    finished: bool
    thoughts: str = ""


@dataclass(frozen=True, slots=True)
class Endings:
    """Reads the tokens written after a prompt and tells whether they have come to an end."""

    tokenizer: Tokenizer
    ends: frozenset[int]
    pieces: TokenTexts | None = None
    thoughts: Thoughts = "never"

    def tail(self, ids: Sequence[int]) -> tuple[int, ...]:
        """The last tokens of a prompt, as many as make whole characters.

        What follows is decoded with them, since tokenizers drop the space of a text's first token.
        """
        sizes = range(1, min(len(ids), LONGEST_TAIL) + 1)
        tails = (tuple(ids[-size:]) for size in sizes)
        whole = (t for t in tails if (text := self._decode(t)) and not text.startswith(BROKEN))
        return next(whole, tuple(ids[-LONGEST_TAIL:]))

    def text(self, tail: tuple[int, ...], path: tuple[int, ...]) -> str:
        """What the tokens of a path say after the tail of their prompt."""
        if self.pieces is not None and (text := self.pieces.joined(tail, path)) is not None:
            return text
        return self._decode((*tail, *path))[len(self._decode(tail)) :]

    def end(self, tail: tuple[int, ...], path: tuple[int, ...], want: Writing) -> End | None:
        """How a path ends with its last token, or None if it goes on."""
        ended = bool(path) and path[-1] in self.ends
        end = self.up_to(self.text(tail, path[:-1] if ended else path), want.until)
        if ended or end.finished:
            return replace(end, finished=True)
        thought = self.thought(tail, path, end.thoughts) if want.thinking else 0
        return end if spent(end, thought, len(path), want) else None

    def up_to(self, text: str, until: str) -> End:
        """A text up to where it ends, if it does, without what was thought before."""
        start = thought_length(text, self.thoughts)
        thoughts, answer = text[:start], text[start:]
        if until and until in answer:
            return End(text=answer[: answer.index(until)], finished=True, thoughts=thoughts)
        return End(text=answer, finished=False, thoughts=thoughts)

    def generated(
        self, tail: tuple[int, ...], path: tuple[int, ...], logps: Sequence[float], end: End
    ) -> Generated:
        """A text as an answer, with the log-probabilities of what it says and of its end."""
        thoughts = end.thoughts
        first = self.thought(tail, path, thoughts)
        said = self.said(tail, path, thoughts + end.text) if end.finished else len(logps)
        # all tokens after the text, should its end be written with several
        closing = sum(logps[said:]) if said < len(logps) else None
        return Generated(
            text=end.text,
            logps=tuple(logps[first:said]),
            end_logp=closing,
            finished=end.finished,
            thoughts=thoughts.strip(),
        )

    def said(self, tail: tuple[int, ...], path: tuple[int, ...], text: str) -> int:
        """How many tokens of a path hold some of the text; the rest only end it."""
        if self.pieces is not None and (ends := self.pieces.ends(tail, path)) is not None:
            return bisect_left(ends, len(text))
        sizes = range(len(path) + 1)
        return next(n for n in sizes if self.text(tail, path[:n]).startswith(text))

    def thought(self, tail: tuple[int, ...], path: tuple[int, ...], thoughts: str) -> int:
        """How many tokens of a path hold thoughts alone; one that begins the answer does not."""
        if not thoughts:
            return 0
        if self.pieces is not None and (ends := self.pieces.ends(tail, path)) is not None:
            return bisect_right(ends, len(thoughts)) - 1
        sizes = range(len(path), -1, -1)
        return next(n for n in sizes if thoughts.startswith(self.text(tail, path[:n])))

    def _decode(self, ids: Sequence[int]) -> str:
        return self.tokenizer.decode(list(ids), skip_special_tokens=False)


def spent(end: End, thought: int, count: int, want: Writing) -> bool:
    """Whether a text that has not ended has all tokens that it may have: `count` is how many.

    `thought` of them hold thoughts. These may be `want.thinking`, and the answer has what is left
    of `want.most`, however few were thought.

    >>> want = Generate(most=12, thinking=9)
    >>> spent(End(text="Oslo it is", finished=False), 0, 3, want)
    True
    >>> spent(End(text="Oslo", finished=False, thoughts="Hm.</think>"), 5, 6, want)
    False
    """
    if not want.thinking or count >= want.most:
        return count >= want.most
    if end.thoughts and CLOSED not in end.thoughts:
        return count >= want.thinking
    begun = end.text.lstrip()
    if not end.thoughts and begun and OPENED.startswith(begun):
        return False  # these may yet be thoughts
    return count - thought >= want.most - want.thinking


def thought_length(text: str, thoughts: Thoughts) -> int:
    """How many characters of a text stand before its answer: all, while its thoughts go on.

    >>> text = "<think>\\nHm.\\n</think>\\n\\nOslo"
    >>> text[thought_length(text, "may be") :], thought_length(text, "never")
    ('Oslo', 0)
    >>> thought_length("Hm. </think> Oslo", "begun"), thought_length("<think> Hm", "may be")
    (13, 10)
    """
    if thoughts == "never" or not (thoughts == "begun" or text.lstrip().startswith(OPENED)):
        return 0
    _, closed, answer = text.partition(CLOSED)
    return len(text) - len(answer.lstrip()) if closed else len(text)
