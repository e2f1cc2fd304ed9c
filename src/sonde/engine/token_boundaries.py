"""Find where a text may be cut without changing its tokens. Knows tokenizers, nothing of models.

A hundred options behind the same long prefix would each cost a tokenisation of the whole text. At a
seam, a single space between two words, most tokenizers never join what stands before with what
stands after; there a text can be tokenised in parts, and parts that return need not be again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tokenizers import Tokenizer, models

SPACES = " Ġ▁"
"""How vocabularies write a space: as it is, or as byte-level and sentence pieces mark it."""

BREAKS = "ĉĊč"
"""How byte-level ones write tabs and ends of lines, which are no words."""

INNER_SPACE = re.compile(f"[^\\s{SPACES}{BREAKS}][{SPACES}]")
SEAM = re.compile(r"(?<=\S) (?=[^\W_])")


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


def ends_at_seam(prefix: str, options: Sequence[str]) -> bool:
    """Whether every option would begin a word behind a single space.

    >>> ends_at_seam("The capital is ", ["Oslo"]), ends_at_seam("It (", ["Oslo"])
    (True, False)
    """
    ends = len(prefix) > 1 and prefix[-1] == " " and not prefix[-2].isspace()
    return ends and all(option[:1].isalnum() for option in options)


class Beginnings:
    """Tokenises texts that begin as the one before did, from the last seam they share."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self.text = ""
        self.ids: list[int] = []
        self.starts: list[int] = []

    def encode(self, text: str) -> list[int]:
        """The token ids of a text that ends at a seam."""
        shared = _shared(self.text, text)
        places = [match.start() for match in SEAM.finditer(text, 0, shared)]
        if len(places) < 2:
            self._keep(text, [], [], 0, 0)
        else:
            guard, seam = places[-2] + 1, places[-1]  # a word before it, since openings differ
            kept = sum(1 for start in self.starts if start < seam)
            self._keep(text, self.ids[:kept], self.starts[:kept], guard, seam)
        return self.ids

    def _keep(self, text: str, ids: list[int], starts: list[int], guard: int, seam: int) -> None:
        """Go on from what is known up to the seam, tokenising from the guard."""
        encoding = self.tokenizer.encode(text[guard:], add_special_tokens=False)
        begins = [guard + start for start, _ in encoding.offsets]
        new = sum(1 for begin in begins if begin < seam)
        self.text, self.ids = text, ids + encoding.ids[new:]
        self.starts = starts + begins[new:]


def _shared(one: str, other: str) -> int:
    """How many characters two texts have in common at their beginning."""
    size = min(len(one), len(other))
    low = 0
    while low < size:  # by halves, because comparing slices is quicker than comparing characters
        middle = (low + size + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            size = middle - 1
    return low


def _splits(pieces: list[tuple[str, tuple[int, int]]], place: int) -> bool:
    """Whether no piece holds both sides of the space at `place`."""
    return not any(start < place < stop - 1 for _, (start, stop) in pieces)
