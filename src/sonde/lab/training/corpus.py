"""The text of a world as token ids on a device, cut into the batches of each reading.

Every draw is named by seed, reading and step, so that a training can go on anywhere. Knows tokens
and lengths; nothing of facts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer

from sonde.core.errors import UsageError
from sonde.core.fingerprints import draw_key
from sonde.lab.training.tokens import PAD
from sonde.lab.training.train import TrainSettings

AT_ONCE = 8192
"""Texts that are tokenised together."""

WINDOW = 64
"""Batches whose sentences are sorted by length together."""

IGNORED = -100


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Corpus:
    """Texts one after the other: `ids` of all tokens, where each text begins and how long it is."""

    ids: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray


def tokenised(texts: Iterable[str], tokenizer: Tokenizer) -> Corpus:
    """Every text with the special tokens around it."""
    small = tokenizer.get_vocab_size() <= np.iinfo(np.uint16).max
    parts, lengths = [np.empty(0, np.uint16 if small else np.uint32)], [np.empty(0, np.int64)]
    rest = iter(texts)
    while some := list(islice(rest, AT_ONCE)):
        encodings = tokenizer.encode_batch_fast(some)
        lengths.append(np.array([len(e.ids) for e in encodings], dtype=np.int64))
        flat = [id for encoding in encodings for id in encoding.ids]
        parts.append(np.array(flat, dtype=parts[0].dtype))
    sizes = np.concatenate(lengths)
    if not len(sizes):
        raise UsageError("the world has no text to learn from: every exposure of its ladder is 0")
    return Corpus(ids=np.concatenate(parts), starts=np.cumsum(sizes) - sizes, lengths=sizes)


class Blocks:
    """Texts in a row, cut into blocks: what a causal model reads. A step gives [blocks, tokens]."""

    def __init__(self, corpus: Corpus, settings: TrainSettings, device: str) -> None:
        self.corpus, self.device = corpus, device
        self.block, self.batch, self.seed = settings.block, settings.batch, settings.seed
        self.ids = _onto(corpus.ids, device)
        self.blocks = -(-len(corpus.ids) // self.block)
        self.each = -(-self.blocks // self.batch)
        self._read: tuple[int, Any] = (-1, None)

    def step(self, number: int) -> tuple[Any, Any]:
        """Token ids and what is to follow each, [blocks, tokens] both."""
        epoch, place = divmod(number, self.each)
        if self._read[0] != epoch:
            self._read = (epoch, None)  # the old one goes before the new one comes
            self._read = (epoch, self._reading(epoch))
        ids = self._read[1][place * self.batch : (place + 1) * self.batch]
        labels = torch.full_like(ids, IGNORED)
        labels[:, :-1] = ids[:, 1:].masked_fill(ids[:, 1:] == PAD, IGNORED)
        return ids, labels

    def _reading(self, epoch: int) -> Any:
        """The whole text in the order of one reading, [blocks, tokens]; its end is padding."""
        order = _order(self.seed, epoch, len(self.corpus.starts))
        lengths = _onto(self.corpus.lengths[order], self.device)
        starts = _onto(self.corpus.starts[order], self.device)
        shift = starts - (lengths.cumsum(0) - lengths)
        size = len(self.corpus.ids)
        places = torch.repeat_interleave(shift, lengths, output_size=size)
        places += torch.arange(size, device=self.device)
        reading = torch.full((self.blocks * self.block,), PAD, device=self.device)
        reading[:size] = self.ids[places]
        return reading.view(self.blocks, self.block)


class MaskedSentences:
    """Sentences side by side with some words masked: what a masked model reads."""

    def __init__(self, corpus: Corpus, settings: TrainSettings, device: str, mask: int) -> None:
        self.corpus, self.device, self.mask = corpus, device, mask
        self.share, self.batch, self.seed = settings.mask, settings.batch, settings.seed
        self.ids = _onto(corpus.ids, device)
        self.starts, self.lengths = _onto(corpus.starts, device), _onto(corpus.lengths, device)
        self.each = -(-len(corpus.starts) // self.batch)
        self._read: tuple[int, Any, list[tuple[slice, int]]] = (-1, None, [])
        self._draws = torch.Generator(device)

    def step(self, number: int) -> tuple[Any, Any]:
        """Token ids, some masked, and what belongs there, [sentences, tokens] both."""
        epoch, place = divmod(number, self.each)
        if self._read[0] != epoch:
            self._read = (epoch, *self._reading(epoch))
        _, order, batches = self._read
        part, width = batches[place]
        at = torch.arange(width, device=self.device)
        ends = self.lengths[order[part]][:, None]
        places = self.starts[order[part]][:, None] + at
        ids = self.ids[places.clamp(max=len(self.ids) - 1)].masked_fill(at >= ends, PAD)
        masked = self._masked(number, (at > 0) & (at < ends - 1))
        return ids.masked_fill(masked, self.mask), ids.masked_fill(~masked, IGNORED)

    def _masked(self, number: int, words: Any) -> Any:
        """Which words are masked: each with the same chance, and at least one of a sentence."""
        self._draws.manual_seed(draw_key(self.seed, f"holes:{number}") >> 1)
        drawn = torch.rand(words.shape, generator=self._draws, device=self.device)
        drawn = drawn.masked_fill(~words, 2.0)
        least = torch.minimum(drawn.min(1, keepdim=True).values, torch.tensor(1.0))
        return (drawn < self.share) | (drawn == least)

    def _reading(self, epoch: int) -> tuple[Any, list[tuple[slice, int]]]:
        """All rows on the device, and where each batch is and how wide; those of about the same
        length go together."""
        order = _order(self.seed, epoch, len(self.corpus.starts))
        window = np.arange(len(order)) // (self.batch * WINDOW)
        alike = order[np.lexsort((self.corpus.lengths[order], window))]
        lengths = self.corpus.lengths[alike]
        parts = [slice(i * self.batch, (i + 1) * self.batch) for i in range(self.each)]
        shuffled = _generator(self.seed, f"batches:{epoch}").permutation(self.each)
        batches = [(parts[i], int(lengths[parts[i]].max())) for i in shuffled]
        return _onto(alike, self.device), batches


def _order(seed: int, epoch: int, count: int) -> np.ndarray:
    return _generator(seed, f"order:{epoch}").permutation(count)


def _generator(seed: int, name: str) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(draw_key(seed, name)))


def _onto(values: np.ndarray, device: str) -> Any:
    wide = values if values.dtype == np.int64 else values.astype(np.int64)
    return torch.from_numpy(np.ascontiguousarray(wide)).to(device)
