"""Find where a text may be cut without changing its tokens. Knows tokenizers, nothing of models.

A hundred options behind the same long prefix would each cost a tokenisation of the whole text. At a
seam, a single space between two words, most tokenizers never join what stands before with what
stands after; there the beginning is tokenised once, and each option only with the last few words.
"""

from __future__ import annotations

import re

from tokenizers import Tokenizer

SPACES = " Ġ▁"
"""How vocabularies write a space: as it is, or as byte-level and sentence pieces mark it."""

BREAKS = "ĉĊč"
"""How byte-level ones write tabs and ends of lines, which are no words."""

INNER_SPACE = re.compile(f"[^\\s{SPACES}{BREAKS}][{SPACES}]")
SEAM = re.compile(r"(?<=\S) (?=[^\W_])")
WORTH = 200  # characters of prefix from which cutting saves more than it costs


def has_seams(tokenizer: Tokenizer) -> bool:
    """Whether no token reaches from one word over a space into the next.

    Both are looked at: the pieces of the vocabulary, and how texts are split before pieces are
    looked for.
    """
    if any(INNER_SPACE.search(token) for token in tokenizer.get_vocab(with_added_tokens=True)):
        return False
    splitter = tokenizer.pre_tokenizer
    if splitter is None:
        return True
    texts = (f"in{left} {right}on it" for left in "a9.,)'\"é京" for right in "bZ7ñ京")
    return all(_splits(splitter.pre_tokenize_str(text), text.index(" ")) for text in texts)


def seam(prefix: str) -> tuple[int, int] | None:
    """Where the last few words begin and where the last begins, or None if it saves nothing.

    >>> seam("x" * 200 + " the capital of France ")
    (212, 215)
    """
    places = [match.start() for match in SEAM.finditer(prefix)][-2:]
    if len(places) < 2 or places[0] < WORTH:
        return None
    return places[0], places[1]


def _splits(pieces: list[tuple[str, tuple[int, int]]], place: int) -> bool:
    """Whether no piece holds both sides of the space at `place`, or the whole is one piece."""
    return len(pieces) == 1 or not any(start < place < stop - 1 for _, (start, stop) in pieces)
