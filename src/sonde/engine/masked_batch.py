"""Texts with one mask as columns of numbers, thousands at a time. Knows token ids alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

import numpy as np

MaskedText = tuple[tuple[int, ...], int]
"""Token ids, and the position that is read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskedTexts:
    """Text i is ids[offsets[i]:offsets[i+1]]; its mask is at places[i] of these."""

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
