"""Read the tokens written after a prompt: what they say, and whether they have come to an end.

Knows a tokenizer and tokens; nothing of models.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from tokenizers import Tokenizer

from sonde.core.prompts import Generate, Sample
from sonde.engine.token_texts import BROKEN, TokenTexts

Writing = Generate | Sample

LONGEST_TAIL = 8  # tokens; more than the bytes of any one character


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """What was written before the end; not `finished` where only the limit ended it."""

    text: str
    finished: bool


class Endings:
    """Reads the tokens written after a prompt and tells whether they have come to an end."""

    def __init__(
        self, tokenizer: Tokenizer, ends: frozenset[int], pieces: TokenTexts | None = None
    ) -> None:
        self.tokenizer = tokenizer
        self.ends = ends
        self.pieces = pieces

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
        if path and path[-1] in self.ends:
            return End(text=self.text(tail, path[:-1]), finished=True)
        text = self.text(tail, path)
        if want.until and want.until in text:
            return End(text=text[: text.index(want.until)], finished=True)
        return End(text=text, finished=False) if len(path) >= want.most else None

    def said(self, tail: tuple[int, ...], path: tuple[int, ...], text: str) -> int:
        """How many tokens of a path hold some of the text; the rest only end it."""
        if self.pieces is not None and (ends := self.pieces.ends(tail, path)) is not None:
            return bisect_left(ends, len(text))
        sizes = range(len(path) + 1)
        return next(n for n in sizes if self.text(tail, path[:n]).startswith(text))

    def _decode(self, ids: Sequence[int]) -> str:
        return self.tokenizer.decode(list(ids), skip_special_tokens=False)
