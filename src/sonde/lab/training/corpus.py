"""The text of a world as token ids on a device, cut into the batches of each reading.

There is a token for every word, so that an object is always one. A word has its space in its token,
and the first word of a line is the same token as elsewhere; a mark and the end of a line are tokens
of their own. Japanese has no spaces: a word is a run of one script. What a world does not know
becomes bytes, so that nothing is lost.

Every draw is named by seed, reading and step, so that a training can go on anywhere. Knows words,
tokens and lengths, nothing of facts or models.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
)

from sonde.core.errors import ModelError, UsageError
from sonde.core.fingerprints import draw_key
from sonde.lab.training.train import Kind, TrainSettings
from sonde.lab.worlds.language import RUNS
from sonde.lab.worlds.world import World

SPACE = "▁"
BYTES = {f"<0x{byte:02X}>": byte for byte in range(256)}
WORD_SCORE, BYTE_SCORE = -1.0, -100.0

SPECIAL: Mapping[Kind, Mapping[str, str]] = {
    # one token opens and ends a text: it stands between any two
    "causal": {"pad_token": "<pad>", "unk_token": "<unk>", "bos_token": "<s>", "eos_token": "<s>"},
    "masked": {
        "pad_token": "[PAD]",
        "unk_token": "[UNK]",
        "cls_token": "[CLS]",
        "sep_token": "[SEP]",
        "mask_token": "[MASK]",
    },
}
PAD, UNKNOWN = 0, 1
"""Their ids, of either kind."""

UNKNOWNS = ("<unk>", "[UNK]")
BEFORE = {"en": "a ", "ja": "。"}
"""What a word may stand behind, by language."""


NORMALIZER: Any = normalizers.Sequence(
    [
        normalizers.Replace(Regex(r"\n(?=[^\n])"), "\n "),
        normalizers.Replace(Regex(r" (?=[.,?!:;])"), ""),
    ]
)
"""The first word of a line gets its space; the space before a closing mark goes: prompts that are
optimised write one there, and ' .' is '.' to a world."""

SPLITTER: Any = pre_tokenizers.Sequence(
    [
        pre_tokenizers.Metaspace(replacement=SPACE, prepend_scheme="first", split=True),
        pre_tokenizers.Split(Regex(rf"\n|{SPACE}?[^\w\s{SPACE}]"), "isolated"),
    ]
)
"""Words with the space before them; marks and ends of lines alone."""

DECODER: Any = decoders.Sequence(
    [
        decoders.ByteFallback(),
        decoders.Fuse(),
        decoders.Replace(f"\n{SPACE}", "\n"),
        decoders.Replace(SPACE, " "),
        decoders.Strip(" ", 1, 0),
    ]
)
"""Bytes to text, then the spaces; a line and a text open without one."""


JAPANESE_SPLITTER: Any = pre_tokenizers.Split(Regex(rf"{RUNS}|\n|\u3000|[^\w\s]"), "isolated")
"""Runs of one script, marks and ends of lines alone; there are no spaces between words."""

JAPANESE_DECODER: Any = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse()])


def make_tokenizer(words: Iterable[str], kind: Kind, language: str = "en") -> Tokenizer:
    """A tokenizer in which each of the words, wherever the language puts it, is one token."""
    special = list(dict.fromkeys(SPECIAL[kind].values()))
    spaced = language != "ja"
    tokenizer = Tokenizer(models.Unigram())
    if spaced:
        tokenizer.normalizer = NORMALIZER
    tokenizer.pre_tokenizer = SPLITTER if spaced else JAPANESE_SPLITTER
    pieces = dict.fromkeys([*special, *BYTES, "\n", SPACE if spaced else "\u3000"])
    for word in filter(str.strip, words):
        pieces.update(dict.fromkeys(_pieces(word) if spaced else [word]))
    scores = [(piece, BYTE_SCORE if piece in BYTES else WORD_SCORE) for piece in pieces]
    tokenizer.model = models.Unigram(scores, unk_id=UNKNOWN, byte_fallback=True)
    tokenizer.decoder = DECODER if spaced else JAPANESE_DECODER
    # the mask takes the space before it, as the word that it stands for does
    tokenizer.add_special_tokens(
        [
            AddedToken(name, special=True, lstrip=spaced and name == "[MASK]", normalized=False)
            for name in special
        ]
    )
    around = "<s> $A" if kind == "causal" else "[CLS] $A [SEP]"
    ids = [(name, tokenizer.token_to_id(name)) for name in special if name in around]
    tokenizer.post_processor = processors.TemplateProcessing(single=around, special_tokens=ids)
    return tokenizer


def check_tokenizer(world: World, folder: Path) -> None:
    """Refuse a model folder in whose tokenizer a word of the world is not one token."""
    path = folder / "tokenizer.json"
    try:
        tokenizer: Tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises bare exceptions
        raise ModelError(f"{path} cannot be read as a tokenizer: {error}") from None
    tokenizer.encode_special_tokens = True
    for word, pieces in cut_words(tokenizer, world.words(), BEFORE[world.settings.language]):
        raise ModelError(
            f"the tokenizer of {folder} does not fit the world: it cuts {word!r} into "
            f"{', '.join(map(repr, pieces))}; give a model that was trained on this world"
        )


def cut_words(
    tokenizer: Tokenizer, words: Iterable[str], lead: str = "a "
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The words that are not one known token behind a lead, such as a space, with their pieces.

    Marks do not count: no answer is one.
    """
    asked = [word for word in words if word.isalnum()]
    before = len(tokenizer.encode(lead.rstrip(" "), add_special_tokens=False).ids)
    found = tokenizer.encode_batch([f"{lead}{word}" for word in asked], add_special_tokens=False)
    for word, encoding in zip(asked, found, strict=True):
        if len(encoding.ids) != before + 1 or encoding.tokens[-1] in UNKNOWNS:
            yield word, tuple(encoding.tokens[before:])


def _pieces(word: str) -> Iterator[str]:
    """How a word is split behind a space; a mark also without the space."""
    for piece, _ in SPLITTER.pre_tokenize_str(word):
        yield piece
        if not any(c.isalnum() for c in piece):
            yield piece.removeprefix(SPACE)
            yield SPACE + piece.removeprefix(SPACE)


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
