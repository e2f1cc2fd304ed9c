"""Choose the tokens that follow some texts: the likeliest one, or drawn ones with their counts.

Knows logits and leaves; nothing of how the logits were computed or where a text ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from sonde.engine.sampling import cumulative, split, tally, uniforms
from sonde.engine.schedule import Root

BLOCK = 32  # rows of the vocabulary that are held in double precision at once

Shares = Mapping[int, int]
"""How many texts each prompt, by position, has at a place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """A text that may go on: where it began and the tail of that, and the path of tokens since.

    `logps` are those of the path, where they are kept. `option_logps` is what came of the options
    that are scored where it began, a row for each.
    """

    root: Root
    tail: tuple[int, ...]
    shares: Shares
    path: tuple[int, ...] = ()
    logps: tuple[float, ...] = ()
    option_logps: tuple[tuple[float, ...], ...] = ()


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
