"""Turn texts into token ids and find the answer among them by character offsets.

Text and answer are tokenised as one text, never apart, and special tokens written inside a text
are taken literally. Knows a `tokenizers.Tokenizer`; nothing of models.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tokenizers import Encoding, Tokenizer

from sonde.core.errors import PromptError


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Token ids of one text; the answer is ids[start:stop], what follows it ids[stop:end]."""

    ids: tuple[int, ...]
    start: int
    stop: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """The token a causal text opens with.

    `always` puts it before every text. Otherwise it stands only before a text whose answer comes
    first, since that answer's first token would have nothing to be predicted from.
    """

    id: int | None
    always: bool


class CausalEncoder:
    """Encodes prefix + option + suffix for models that read from left to right."""

    def __init__(self, tokenizer: Tokenizer, start: Start) -> None:
        self.tokenizer = literal(tokenizer)
        self.start = start

    def encode(self, prefix: str, options: Sequence[str], suffix: str) -> list[Span]:
        """One span per option; a suffix of punctuation only is dropped."""
        tail = suffix if re.search(r"\w", suffix) else ""
        texts = [prefix + option + tail for option in options]
        encodings = self.tokenizer.encode_batch(texts, add_special_tokens=False)
        return [
            self._span(encoding, len(prefix), len(prefix) + len(option), option)
            for encoding, option in zip(encodings, options, strict=True)
        ]

    def _span(self, encoding: Encoding, begin: int, end: int, option: str) -> Span:
        start, stop = answer_tokens(encoding.offsets, begin, end)
        if start == stop:
            raise PromptError(f"the answer {option!r} has no token in this model's tokenizer")
        ids = tuple(encoding.ids)
        if self.start.always or start == 0:
            if self.start.id is None:
                raise PromptError(
                    f"the answer {option!r} opens the text and this tokenizer has no token to "
                    "start from; use a template with text before the answer"
                )
            ids, start, stop = (self.start.id, *ids), start + 1, stop + 1
        return Span(ids=ids, start=start, stop=stop, end=len(ids))


class MaskedEncoder:
    """Encodes texts with a hole for models that see both sides of it."""

    def __init__(self, tokenizer: Tokenizer, mask: str) -> None:
        self.tokenizer = Tokenizer.from_str(tokenizer.to_str())
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()
        self.literal = literal(tokenizer)
        self.mask = mask
        mask_id = tokenizer.token_to_id(mask)
        if mask_id is None:
            raise PromptError(f"this tokenizer has no mask token {mask!r}")
        self.mask_id = mask_id
        added = tokenizer.get_added_tokens_decoder()
        self.special = tuple(token.content for token in added.values() if token.special)
        self.strips_left = added[self.mask_id].lstrip if self.mask_id in added else False

    def holes(self, texts: Sequence[tuple[str, str]]) -> list[Span]:
        """For each (prefix, suffix), the ids with one mask between them."""
        plain = [i for i, pair in enumerate(texts) if not self._mentions_special(pair)]
        encodings = self.tokenizer.encode_batch([self.mask.join(texts[i]) for i in plain])
        spans = {i: self._hole(e.ids) for i, e in zip(plain, encodings, strict=True)}
        return [
            spans[i] if i in spans else self._literal_hole(*texts[i]) for i in range(len(texts))
        ]

    def options(self, prefix: str, options: Sequence[str], suffix: str) -> list[Span]:
        """For each option, the ids of the whole text and where the option stands in them."""
        texts = [prefix + option + suffix for option in options]
        spans = []
        for encoding, option in zip(self.literal.encode_batch(texts), options, strict=True):
            begin, end = len(prefix), len(prefix) + len(option)
            start, stop = answer_tokens(encoding.offsets, begin, end)
            if start == stop:
                raise PromptError(f"the answer {option!r} has no token in this model's tokenizer")
            ids = tuple(encoding.ids)
            spans.append(Span(ids=ids, start=start, stop=stop, end=len(ids)))
        return spans

    def single_tokens(self, words: Iterable[str]) -> dict[str, int]:
        """The words that are one known token at the hole, with the token's id."""
        words = list(dict.fromkeys(words))
        unknown = self.tokenizer.token_to_id("[UNK]")
        if unknown is None:
            unknown = self.tokenizer.token_to_id("<unk>")
        # the opening character keeps tokenizers that mark a leading space in the middle of a text
        texts = [f". {word}" for word in words]
        found = {}
        for word, encoding in zip(words, self.literal.encode_batch(texts), strict=True):
            start, stop = answer_tokens(encoding.offsets, 2, 2 + len(word))
            if stop == start + 1 and encoding.ids[start] != unknown:
                found[word] = encoding.ids[start]
        return found

    def _mentions_special(self, pair: tuple[str, str]) -> bool:
        return any(token in text for text in pair for token in self.special)

    def _literal_hole(self, prefix: str, suffix: str) -> Span:
        """Tokenise both sides apart, as the tokenizer itself does around a special token."""
        if self.strips_left:
            prefix = prefix.rstrip()
        before = self.literal.encode(prefix, add_special_tokens=False).ids
        after = self.literal.encode(suffix, add_special_tokens=False).ids
        around = self.tokenizer.encode(self.mask).ids
        middle = around.index(self.mask_id)
        ids = (*around[:middle], *before, self.mask_id, *after, *around[middle + 1 :])
        start = middle + len(before)
        return Span(ids=ids, start=start, stop=start + 1, end=len(ids))

    def _hole(self, ids: Sequence[int]) -> Span:
        start = ids.index(self.mask_id)
        return Span(ids=tuple(ids), start=start, stop=start + 1, end=len(ids))


def literal(tokenizer: Tokenizer) -> Tokenizer:
    """A copy that reads special tokens in a text as ordinary characters, and never truncates."""
    copy: Tokenizer = Tokenizer.from_str(tokenizer.to_str())
    copy.encode_special_tokens = True
    copy.no_truncation()
    copy.no_padding()
    return copy


def answer_tokens(offsets: Sequence[tuple[int, int]], begin: int, end: int) -> tuple[int, int]:
    """Token range that covers characters begin..end; a token that straddles a boundary is in.

    >>> answer_tokens([(0, 3), (3, 6), (6, 12)], 7, 12)
    (2, 3)
    """
    inside = [i for i, (a, b) in enumerate(offsets) if b > begin and a < end and b > a]
    return (inside[0], inside[-1] + 1) if inside else (0, 0)
