"""What every token of a vocabulary adds to a text, so that written texts need not be decoded.

Most decoders turn each token into the same characters wherever it stands behind others. Where that
is so, a text is its tokens' pieces put together, and only a few tokens can bring it to its end. For
other decoders, and tokens that hold parts of characters, texts are decoded. Knows a tokenizer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

BROKEN = "\N{REPLACEMENT CHARACTER}"

ALONE = ("ByteLevel", "Metaspace", "WordPiece", "ByteFallback", "Fuse")
"""Decoders that look at each token, or each byte, by itself."""


class TokenTexts:
    """The characters of each token as they stand behind others; None where that depends on them.

    `size`: how many tokens the model has.
    """

    def __init__(self, tokenizer: Tokenizer, size: int) -> None:
        self.tokenizer = tokenizer
        self.size = size
        self._whole: dict[tuple[int, ...], bool] = {}
        self._closing: dict[str, NDArray[np.bool_]] = {}

    @cached_property
    def texts(self) -> list[str | None]:
        """The piece of each token."""
        steps = json.loads(self.tokenizer.to_str())["decoder"]
        anchor = next(filter(self._opens, range(self.size)), None)
        if anchor is None or not by_itself(steps):
            return [None] * self.size
        before = self._decoded([[anchor]])[0]
        texts = self._decoded([[anchor, id] for id in range(self.size)])
        return [text[len(before) :] if text.startswith(before) else None for text in texts]

    @cached_property
    def plain(self) -> list[str | None]:
        """The same, without the tokens that hold parts of characters."""
        return [None if text is None or BROKEN in text else text for text in self.texts]

    def joined(self, tail: tuple[int, ...], path: Sequence[int]) -> str | None:
        """What a path says after the tail of its prompt; None if it has to be decoded."""
        if not self.opens_whole(tail):
            return None
        plain = self.plain
        try:
            return "".join([plain[token] for token in path])  # type: ignore[misc]
        except TypeError:  # a token among them is not plain
            return None

    def ends(self, tail: tuple[int, ...], path: Sequence[int]) -> list[int] | None:
        """How many characters a path says after none, one, two of its tokens; None as above."""
        if not self.opens_whole(tail):
            return None
        plain, ends = self.plain, [0]
        for token in path:
            if (text := plain[token]) is None:
                return None
            ends.append(ends[-1] + len(text))
        return ends

    def opens_whole(self, tail: tuple[int, ...]) -> bool:
        """Whether a prompt's tail is whole characters, so that what follows stands by itself."""
        if tail not in self._whole:
            text = self._decoded([tail])[0]
            self._whole[tail] = bool(text) and BROKEN not in text
        return self._whole[tail]

    def closing(self, until: str) -> NDArray[np.bool_]:
        """The tokens with which a text may come to hold `until`, by token."""
        if until not in self._closing:
            self._closing[until] = self._closers(until)
        return self._closing[until]

    def _closers(self, until: str) -> NDArray[np.bool_]:
        if not until:
            return np.zeros(self.size, dtype=bool)
        if BROKEN in until:
            return np.ones(self.size, dtype=bool)
        ends = tuple(until[n:] for n in range(1, len(until)))
        # what is left of a character may also be completed, but no character of one byte
        within = (until,) if until.isascii() else (until, BROKEN)
        return np.array(
            [t is None or t.startswith(ends) or any(c in t for c in within) for t in self.texts]
        )

    def _opens(self, id: int) -> bool:
        text = self._decoded([[id]])[0]
        return text.isascii() and text.strip() == text != ""

    def _decoded(self, texts: Sequence[Sequence[int]]) -> list[str]:
        return self.tokenizer.decode_batch([list(ids) for ids in texts], skip_special_tokens=False)


def by_itself(decoder: Mapping[str, Any] | None) -> bool:
    """Whether a decoder, given as JSON, makes the same of a token behind whatever others.

    >>> by_itself({"type": "ByteLevel"}), by_itself({"type": "BPEDecoder"}), by_itself(None)
    (True, False, False)
    """
    if decoder is None:
        return False
    kind = decoder["type"]
    if kind == "Sequence":
        return all(map(by_itself, decoder["decoders"]))
    if kind == "Replace":
        return len(decoder["pattern"].get("String", "")) == 1
    return kind in ALONE or (kind == "Strip" and decoder["stop"] == 0)
