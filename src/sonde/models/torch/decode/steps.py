"""One step of writing: which tokens follow some texts, likeliest or drawn, and which texts end.

Knows logits, tokens and their text; nothing of how the logits were computed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer

from sonde.core.prompts import Generate, Sample
from sonde.engine.sampling import cumulative, split, tally, uniforms
from sonde.engine.schedule import Root
from sonde.models.torch.loading.weights import Loaded, token_id

BLOCK = 32  # rows of the vocabulary that are held in double precision at once

Shares = Mapping[int, int]
"""How many texts each prompt, by position, has at a place."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Leaf:
    """A text that may go on: where it began and the tail of that, and the path of tokens since.

    `logps` are those of the path, where they are kept. `option_logps` are those of the options
    that are scored where it began, laid end to end.
    """

    root: Root
    tail: tuple[int, ...]
    shares: Shares
    path: tuple[int, ...] = ()
    logps: tuple[float, ...] = ()
    option_logps: np.ndarray | None = None


class NoDistribution(Exception):
    """Logits from which nothing can be drawn: NaN or infinity; `row` says which."""

    def __init__(self, row: int) -> None:
        super().__init__(row)
        self.row = row


def likeliest(logits: Any, leaves: Sequence[Leaf]) -> list[list[Leaf]]:
    """Each leaf with its likeliest next token; `logits` is [leaves, vocabulary]."""
    tokens, logps = [], []
    for block in logits.split(BLOCK):
        best = block.float().max(-1)
        tokens += best.indices.tolist()
        logps += (best.values - torch.logsumexp(block.float(), -1)).tolist()
    return [
        [replace(leaf, path=(*leaf.path, token), logps=(*leaf.logps, logp))]
        for leaf, token, logp in zip(leaves, tokens, logps, strict=True)
    ]


def draws(names: Sequence[bytes], logits: Any, leaves: Sequence[Leaf]) -> list[list[Leaf]]:
    """Each leaf with the tokens drawn there; every prompt draws for itself, under its name."""
    drawn = [
        [uniforms(names[owner], leaf.path, count) for owner, count in leaf.shares.items()]
        for leaf in leaves
    ]
    counts = zip(leaves, split_rows(logits, drawn), strict=True)
    return [list(_children(leaf, splits)) for leaf, splits in counts]


def _children(leaf: Leaf, splits: Sequence[Mapping[int, int]]) -> Iterator[Leaf]:
    for token in sorted({token for counts in splits for token in counts}):
        shares = {
            owner: counts[token]
            for owner, counts in zip(leaf.shares, splits, strict=True)
            if token in counts
        }
        yield replace(leaf, path=(*leaf.path, token), shares=shares)


def split_rows(
    logits: Any, drawn: Sequence[Sequence[NDArray[np.float64]]]
) -> list[list[dict[int, int]]]:
    """For every row of logits, how each set of uniforms splits over the tokens.

    NoDistribution where a row has no finite probabilities.
    """
    split_block = _on_host if logits.device.type == "cpu" else on_device
    found = []
    for start in range(0, len(drawn), BLOCK):
        weights = torch.softmax(logits[start : start + BLOCK].float(), -1)
        sound = torch.isfinite(weights.sum(-1)).tolist()
        if not all(sound):
            raise NoDistribution(start + sound.index(False))
        found += split_block(weights, drawn[start : start + BLOCK])
    return found


def _on_host(
    weights: Any, drawn: Sequence[Sequence[NDArray[np.float64]]]
) -> list[list[dict[int, int]]]:
    rows = map(cumulative, weights.numpy())
    return [[split(row, one) for one in sets] for row, sets in zip(rows, drawn, strict=True)]


def on_device(
    weights: Any, drawn: Sequence[Sequence[NDArray[np.float64]]]
) -> list[list[dict[int, int]]]:
    """The same as `split` of `cumulative`, without moving the vocabulary off the device."""
    running = weights.double().cumsum(-1)
    widest = max(sum(map(len, sets)) for sets in drawn)
    table = np.zeros((len(drawn), widest))
    for row, sets in zip(table, drawn, strict=True):
        joined = np.concatenate(sets)
        row[: len(joined)] = joined
    total = running[:, -1:].contiguous()
    last = torch.searchsorted(running, total)
    sought = torch.from_numpy(table).to(running.device) * total
    tokens = torch.searchsorted(running, sought, right=True).minimum(last).cpu().numpy()
    borders = [np.cumsum([len(one) for one in sets])[:-1] for sets in drawn]
    return [
        [tally(one) for one in np.split(row[: sum(map(len, sets))], places)]
        for row, sets, places in zip(tokens, drawn, borders, strict=True)
    ]


Writing = Generate | Sample

BROKEN = "\N{REPLACEMENT CHARACTER}"
LONGEST_TAIL = 8  # tokens; more than the bytes of any one character


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """What was written before the end; not `finished` where only the limit ended it."""

    text: str
    finished: bool


class Endings:
    """Reads the tokens written after a prompt and tells whether they have come to an end."""

    def __init__(self, tokenizer: Tokenizer, ends: frozenset[int]) -> None:
        self.tokenizer = tokenizer
        self.ends = ends

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
        sizes = range(len(path) + 1)
        return next(n for n in sizes if self.text(tail, path[:n]).startswith(text))

    def _decode(self, ids: Sequence[int]) -> str:
        return self.tokenizer.decode(list(ids), skip_special_tokens=False)


def end_tokens(loaded: Loaded) -> frozenset[int]:
    """The tokens with which a model ends a text: as it generates, else by config or tokenizer."""
    model = loaded.model
    for source in (getattr(model, "generation_config", None), model.config, loaded.tokenizer):
        found = getattr(source, "eos_token_id", None)
        if found is not None:
            listed = found if isinstance(found, list | tuple) else [found]
            return frozenset(token_id(loaded, "eos_token_id", id) for id in listed)
    return frozenset()
