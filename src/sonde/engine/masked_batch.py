"""Texts with masks: encoded, and as columns of numbers, thousands at a time.

A text is read at one of its masks. Knows a `tokenizers.Tokenizer`; nothing of models.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

import numpy as np
from tokenizers import Tokenizer

from sonde.core.errors import PromptError
from sonde.core.prompts import Fill, Hidden
from sonde.core.texts import OPENS, capitalised
from sonde.engine.encode import (
    Span,
    answer_place,
    literal,
    opening,
    refuse_markers,
    span_of,
    untruncated,
)

MaskedText = tuple[tuple[int, ...], int]
"""Token ids, and the position that is read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskedTexts:
    """Text i is ids[offsets[i]:offsets[i+1]]; it is read at places[i] of these."""

    ids: np.ndarray
    offsets: np.ndarray
    places: np.ndarray

    def __len__(self) -> int:
        return len(self.places)

    @property
    def lengths(self) -> np.ndarray:
        """How many tokens each text has."""
        return np.diff(self.offsets)

    def rows(self, chosen: Sequence[int] | np.ndarray) -> np.ndarray:
        """Some texts as rows of equal length, shorter ones filled up with 0."""
        lengths = self.lengths[chosen]
        columns = np.arange(lengths.max())
        index = self.offsets[:-1][chosen][:, None] + columns[None]
        inside = columns[None] < lengths[:, None]
        return np.where(inside, self.ids[np.where(inside, index, 0)], 0).astype(np.int64)

    def once(self) -> Distinct:
        """Each distinct text once, and who asks it."""
        first, inverse = self.distinct()
        owners = np.argsort(inverse, kind="stable")
        return Distinct(
            first=first,
            lengths=self.lengths[first].tolist(),
            owners=owners,
            bounds=np.searchsorted(inverse[owners], np.arange(len(first) + 1)),
        )

    def distinct(self) -> tuple[np.ndarray, np.ndarray]:
        """Where each distinct text first stands, and for every text which of these it is."""
        if len(self) == 0:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        keys = self._hashes()
        _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        if not self._equal(first[inverse]):  # two texts have one hash, as hardly ever happens
            return self._distinct_by_text()
        order = np.argsort(first)
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        return first[order], place[inverse]

    def _hashes(self) -> np.ndarray:
        """A number for each text, from its tokens, their order and the place of the mask."""
        position = np.arange(len(self.ids)) - np.repeat(self.offsets[:-1], self.lengths)
        weights = np.random.default_rng(0).integers(1, 2**63, self.lengths.max() + 2, np.uint64)
        terms = (self.ids.astype(np.uint64) + np.uint64(1)) * weights[position]
        places = self.places.astype(np.uint64) * weights[-1]
        return np.asarray(np.add.reduceat(terms, self.offsets[:-1]) + places)

    def _equal(self, other: np.ndarray) -> bool:
        """Whether every text is the same as the one at `other`."""
        same = (self.lengths == self.lengths[other]) & (self.places == self.places[other])
        if not same.all():
            return False
        shift = np.repeat(self.offsets[:-1][other] - self.offsets[:-1], self.lengths)
        return bool((self.ids == self.ids[np.arange(len(self.ids)) + shift]).all())

    def _distinct_by_text(self) -> tuple[np.ndarray, np.ndarray]:
        known: dict[tuple[bytes, int], int] = {}
        first, inverse = [], []
        for i, (start, stop) in enumerate(pairwise(self.offsets.tolist())):
            text = self.ids[start:stop].tobytes(), int(self.places[i])
            if text not in known:
                first.append(i)
            inverse.append(known.setdefault(text, len(known)))
        return np.array(first), np.array(inverse)


@dataclass(frozen=True, slots=True, kw_only=True)
class Distinct:
    """Distinct text i of some columns stands there at first[i] and has lengths[i] tokens.

    Those that ask it are owners[bounds[i]:bounds[i+1]].
    """

    first: np.ndarray
    lengths: list[int]
    owners: np.ndarray
    bounds: np.ndarray

    def asking(self, batch: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        """Who asks some distinct texts: which of the texts, and which owner."""
        counts = self.bounds[1:][batch] - self.bounds[:-1][batch]
        rows = np.repeat(np.arange(len(batch)), counts)
        starts = np.repeat(self.bounds[:-1][batch] - np.cumsum(counts) + counts, counts)
        return rows, self.owners[starts + np.arange(len(starts))]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hiding:
    """A text of which some tokens are predicted, each from a text of its own.

    The token at places[k] is predicted with ids[places[k]:stops[k]] masked. The first `inside` of
    them belong to the option, or stand before it.
    """

    ids: tuple[int, ...]
    places: Sequence[int]
    stops: Sequence[int]
    inside: int


def hidden_texts(hidings: Sequence[Hiding], mask: int) -> tuple[MaskedTexts, np.ndarray]:
    """The texts that the tokens of some hidings are predicted from, in order, and these tokens.

    >>> texts, tokens = hidden_texts([Hiding(ids=(5, 6), places=(0, 1), stops=(2, 2), inside=2)], 9)
    >>> texts.rows([0, 1]).tolist(), texts.places.tolist(), tokens.tolist()
    ([[9, 9], [5, 9]], [0, 1], [5, 6])
    """
    ids, starts = _flat([hiding.ids for hiding in hidings])
    counts = [len(hiding.places) for hiding in hidings]
    places, stops = (
        np.fromiter(chain.from_iterable(lists), np.int32, sum(counts))
        for lists in ((h.places for h in hidings), (h.stops for h in hidings))
    )
    own = np.repeat(np.arange(len(hidings)), counts)
    lengths = np.diff(starts)[own]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    at = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
    texts = ids[np.repeat(starts[own], lengths) + at]
    texts[(at >= np.repeat(places, lengths)) & (at < np.repeat(stops, lengths))] = mask
    return MaskedTexts(ids=texts, offsets=offsets, places=places), ids[starts[own] + places]


def columns(texts: Sequence[MaskedText]) -> MaskedTexts:
    """Texts given one by one, as columns.

    >>> columns([((5, 6), 1), ((7,), 0)]).rows([0, 1]).tolist()
    [[5, 6], [7, 0]]
    """
    ids, offsets = _flat([ids for ids, _ in texts])
    places = np.array([place for _, place in texts], dtype=np.int32)
    return MaskedTexts(ids=ids, offsets=offsets, places=places)


def masked_at(texts: Sequence[Sequence[int]], mask: int) -> MaskedTexts | None:
    """Texts as columns, read where the mask stands; None unless each has exactly one.

    >>> masked_at([[5, 9], [9, 7, 7]], 9).places.tolist()
    [1, 0]
    """
    ids, offsets = _flat(texts)
    masks = np.flatnonzero(ids == mask)
    if len(masks) != len(texts) or not ((masks >= offsets[:-1]) & (masks < offsets[1:])).all():
        return None
    return MaskedTexts(ids=ids, offsets=offsets, places=(masks - offsets[:-1]).astype(np.int32))


def _flat(texts: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
    offsets = np.cumsum([0, *map(len, texts)])
    return np.fromiter(chain.from_iterable(texts), np.int32, offsets[-1]), offsets


def joined(parts: Sequence[MaskedTexts]) -> MaskedTexts:
    """Several columns as one."""
    if len(parts) == 1:
        return parts[0]
    ends = np.cumsum([0, *(len(part.ids) for part in parts)])
    shifted = (part.offsets[1:] + end for part, end in zip(parts, ends, strict=False))
    return MaskedTexts(
        ids=np.concatenate([part.ids for part in parts]),
        offsets=np.concatenate([[0], *shifted]),
        places=np.concatenate([part.places for part in parts]),
    )


def word_ends(words: Sequence[int | None]) -> list[int]:
    """For each token, given the word that it is of, where that word ends; None is no word.

    >>> word_ends([None, 0, 1, 1, None])
    [1, 2, 4, 4, 5]
    """
    ends = list(range(1, len(words) + 1))
    for i in range(len(words) - 2, -1, -1):
        if words[i] is not None and words[i] == words[i + 1]:
            ends[i] = ends[i + 1]
    return ends


class MaskedEncoder:
    """Encodes texts with one mask for models that see both sides of it."""

    def __init__(self, tokenizer: Tokenizer, mask: str) -> None:
        self.tokenizer = untruncated(tokenizer.to_str())
        self.literal = literal(tokenizer)
        self.mask = mask
        mask_id = tokenizer.token_to_id(mask)
        if mask_id is None:
            raise PromptError(f"this tokenizer has no mask token {mask!r}")
        self.mask_id = mask_id
        added = tokenizer.get_added_tokens_decoder()
        self.special = tuple(token.content for token in added.values() if token.special)
        self.strips_left = added[mask_id].lstrip if mask_id in added else False
        self.strips_right = added[mask_id].rstrip if mask_id in added else False

    def columns(self, texts: Sequence[tuple[str, str]]) -> MaskedTexts:
        """What `masked` gives, as columns of numbers; texts without anything special at once."""
        together = "\n".join(chain.from_iterable(texts))
        if not any(token in together for token in (OPENS, *self.special)):
            encodings = self.tokenizer.encode_batch_fast([self.mask.join(pair) for pair in texts])
            ids = [encoding.ids for encoding in encodings]
            if (found := masked_at(ids, self.mask_id)) is not None:
                return found
        return columns([(span.ids, span.start) for span in self.masked(texts)])

    def masked(self, texts: Sequence[tuple[str, str]]) -> list[Span]:
        """For each (prefix, suffix), the ids with one mask between them."""
        for pair in texts:
            refuse_markers(self.tokenizer, *pair)
        joined = map("\n".join, texts)
        plain = [i for i, text in enumerate(joined) if not any(t in text for t in self.special)]
        encodings = self.tokenizer.encode_batch_fast([self.mask.join(texts[i]) for i in plain])
        spans = {
            i: self._span_of(e.ids)
            for i, e in zip(plain, encodings, strict=True)
            # a tokenizer that folds case may find the mask in a text that does not spell it so
            if e.ids.count(self.mask_id) == 1
        }
        return [
            spans[i] if i in spans else self._literal_span(*texts[i]) for i in range(len(texts))
        ]

    def options(self, prefix: str, options: Sequence[str], suffix: str) -> list[Span]:
        """For each option, the ids of the whole text and where the option stands in them."""
        refuse_markers(self.literal, prefix, suffix)
        texts = [prefix + option + suffix for option in options]
        encodings = self.literal.encode_batch(texts)
        return [span_of(e, prefix, o) for e, o in zip(encodings, options, strict=True)]

    def hidings(
        self, prefix: str, options: Sequence[str], suffix: str, *, whole: bool, hidden: Hidden
    ) -> list[Hiding]:
        """For each option, the tokens that are predicted and what is masked for each, as `Score`
        wants it."""
        refuse_markers(self.literal, prefix, suffix)
        encodings = self.literal.encode_batch([prefix + option + suffix for option in options])
        found = []
        for option, encoding in zip(options, encodings, strict=True):
            span = span_of(encoding, prefix, option)
            inner = [i for i, special in enumerate(encoding.special_tokens_mask) if not special]
            places = inner if whole else range(span.start, span.stop)
            ends = word_ends(encoding.word_ids)
            stops = [
                span.stop
                if hidden == "answer" and span.start <= i < span.stop
                else min(ends[i], places[-1] + 1)
                for i in places
            ]
            inside = sum(i < span.stop for i in places)
            found.append(Hiding(ids=span.ids, places=places, stops=stops, inside=inside))
        return found

    def single_tokens(
        self, words: Iterable[str], prefix: str, *, capitals: bool = False
    ) -> dict[str, int]:
        """The words that are one known token at a mask after `prefix`, with the token's id.

        With `capitals`, the token is that of the word with a capital where the mask opens the text.
        """
        words = list(dict.fromkeys(words))
        before = opening(prefix)
        written = list(map(capitalised, words)) if capitals and not before else words
        unknown = self.tokenizer.token_to_id("[UNK]")
        if unknown is None:
            unknown = self.tokenizer.token_to_id("<unk>")
        found = {}
        encodings = self.literal.encode_batch([before + text for text in written])
        for word, text, encoding in zip(words, written, encodings, strict=True):
            start, stop = answer_place(encoding.offsets, before, text)
            if stop != start + 1 or encoding.ids[start] == unknown:
                continue
            own = encoding.offsets[start][0]
            if not before[own:].strip(" "):  # what holds more than the space is another word
                found[word] = encoding.ids[start]
        return found

    def _literal_span(self, prefix: str, suffix: str) -> Span:
        """Tokenise both sides apart, as the tokenizer itself does around a special token."""
        if self.strips_left:
            prefix = prefix.rstrip()
        if self.strips_right:
            suffix = suffix.lstrip()
        before = self.literal.encode(prefix, add_special_tokens=False).ids
        after = self.literal.encode(suffix, add_special_tokens=False).ids
        around = self.tokenizer.encode(self.mask).ids
        middle = around.index(self.mask_id)
        ids = (*around[:middle], *before, self.mask_id, *after, *around[middle + 1 :])
        start = middle + len(before)
        return Span(ids=ids, start=start, stop=start + 1, end=len(ids))

    def _span_of(self, ids: Sequence[int]) -> Span:
        start = ids.index(self.mask_id)
        return Span(ids=tuple(ids), start=start, stop=start + 1, end=len(ids))


@dataclass(frozen=True, slots=True, kw_only=True)
class FillableWords:
    """The words that a masked model can fill in; `answerable` are the ids that may be answered."""

    encoder: MaskedEncoder
    answerable: frozenset[int]

    def of(self, want: Fill, prefix: str) -> frozenset[str]:
        """The watched names of a request that are one allowed token after a prefix."""

        def tokens(words: Iterable[str]) -> dict[str, int]:
            return self.encoder.single_tokens(words, prefix, capitals=want.capitals)

        may = self.answerable
        if want.vocabulary is not None:
            may &= frozenset(tokens(want.vocabulary).values())
        return frozenset(name for name, id in tokens(want.watched).items() if id in may)
