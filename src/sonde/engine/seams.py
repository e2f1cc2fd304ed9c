"""Seams: a single space between two words, where most tokenizers never join what is on either side.

There a text is tokenised in parts, and parts that return are not again. Knows a tokenizer, nothing
of answers or models.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise

from tokenizers import Encoding, Tokenizer, models

from sonde.engine.prefixes import shared

SPACES = " Ġ▁"
"""How vocabularies write a space: as it is, or as byte-level and sentence pieces mark it."""

BREAKS = "ĉĊč"
"""How byte-level ones write tabs and ends of lines, which are no words."""

INNER_SPACE = re.compile(f"[^\\s{SPACES}{BREAKS}][{SPACES}]")
SEAM = re.compile(r"(?<=\S) (?=[^\W_])")
WORDS = 64  # characters that mostly hold two words


def has_seams(tokenizer: Tokenizer) -> bool:
    """Whether no token reaches from one word over a space into the next.

    Both are looked at: the pieces of the vocabulary, and how texts are split before pieces are
    looked for.
    """
    if any(INNER_SPACE.search(token) for token in tokenizer.get_vocab(with_added_tokens=True)):
        return False
    # these build words from pieces, so that a text which is not split falls apart all the same
    whole = isinstance(tokenizer.model, models.BPE | models.Unigram)
    splitter = tokenizer.pre_tokenizer
    if splitter is None:
        return whole
    texts = (f"in{left} {right}on it" for left in "a9.,)'\"é京" for right in "bZ7ñ京")
    pieces = ((splitter.pre_tokenize_str(text), text.index(" ")) for text in texts)
    return all(_splits(found, place) or (whole and len(found) == 1) for found, place in pieces)


def ends_word(prefix: str) -> bool:
    """Whether a text ends with a word and a single space, behind which another may begin.

    >>> ends_word("The capital is "), ends_word("It (")
    (True, False)
    """
    return len(prefix) > 1 and prefix[-1] == " " and not prefix[-2].isspace()


class Beginnings:
    """Tokenises texts that begin as the one before did, from the last seam they share."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self.text = ""
        self.ids: list[int] = []
        self.starts: list[int] = []
        self.ahead: dict[str, Encoding] = {}

    def prepare(self, texts: Sequence[str]) -> None:
        """Tokenise at once what is new in texts that will come in this order."""
        guards = [_cut(before, text)[0] for before, text in pairwise([self.text, *texts])]
        ends = [text[guard:] for text, guard in zip(texts, guards, strict=True)]
        found = self.tokenizer.encode_batch(ends, add_special_tokens=False)
        self.ahead = dict(zip(ends, found, strict=True))

    def encode(self, text: str) -> list[int]:
        """The token ids of a text that ends at a seam."""
        guard, seam = _cut(self.text, text)
        end = text[guard:]
        encoding = self.ahead.get(end) or self.tokenizer.encode(end, add_special_tokens=False)
        begins = [guard + start for start, _ in encoding.offsets]
        kept, new = bisect_left(self.starts, seam), bisect_left(begins, seam)
        self.text, self.ids = text, self.ids[:kept] + encoding.ids[new:]
        self.starts = self.starts[:kept] + begins[new:]
        return self.ids


def _cut(before: str, text: str) -> tuple[int, int]:
    """From where a text is tokenised, and the seam up to which it is as the one before."""
    places = last_seams(text, shared(before, text))
    if len(places) < 2:
        return 0, 0
    return places[-2] + 1, places[-1]  # a word before it, since openings differ


def last_seams(text: str, stop: int) -> list[int]:
    """The last places before `stop` where there is a seam, two at least where there are two."""
    start = stop
    while start > 0:
        start = max(start - WORDS, 0)
        places = [match.start() for match in SEAM.finditer(text, start, stop)]
        if len(places) > 1:
            return places
    return []


def _splits(pieces: list[tuple[str, tuple[int, int]]], place: int) -> bool:
    """Whether no piece holds both sides of the space at `place`."""
    return not any(start < place < stop - 1 for _, (start, stop) in pieces)
