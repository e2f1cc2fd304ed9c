"""Texts that grow as rows: what each has written, which prompts it is for, and which tokens follow.

All of it is arrays, so that a step costs the same Python for thousands of texts as for one. Knows
tensors and tokens; nothing of prompts' text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch

from sonde.engine.sampling import many_uniforms
from sonde.models.torch.causal.rows import RowCache
from sonde.models.torch.causal.shared_prefix import SharedPrefixes
from sonde.models.torch.decode.steps import Leaf, NoDistribution, plain_tokens, steady_tokens
from sonde.models.torch.loading.device import onto

BLOCK_BYTES = 2**30  # of a vocabulary in double precision that are held at once


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shares:
    """How texts go on: counts[k] of prompt owners[k] take tokens[k] in row rows[k], in that order.

    `logps` are the tokens' log-probabilities, where they are kept.
    """

    rows: np.ndarray
    owners: np.ndarray
    counts: np.ndarray
    tokens: np.ndarray
    logps: np.ndarray

    def pick(self, chosen: np.ndarray) -> Shares:
        """Some of them."""
        return Shares(**{each.name: getattr(self, each.name)[chosen] for each in fields(self)})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Growing:
    """Texts that go on, a row each, with the last token of each yet to be fed.

    Row r grows from leaf leaves[r] and has since got the first lengths[r] tokens of paths[r]. Of
    prompt owners[k] counts[k] texts are in row rows[k]; a row of none has ended.
    """

    leaves: np.ndarray
    paths: np.ndarray
    logps: np.ndarray
    lengths: np.ndarray
    rows: np.ndarray
    owners: np.ndarray
    counts: np.ndarray
    cache: RowCache
    prefixes: SharedPrefixes

    @classmethod
    def begun(
        cls,
        leaves: Sequence[Leaf],
        numbers: Sequence[int],
        cache: RowCache,
        prefixes: SharedPrefixes,
    ) -> Growing:
        """Some leaves, by their numbers, after which nothing is written yet."""
        shares = [
            (row, owner, count)
            for row, number in enumerate(numbers)
            for owner, count in leaves[number].shares.items()
        ]
        rows, owners, counts = np.array(shares, dtype=np.int64).reshape(-1, 3).T
        most = max(leaves[number].root.most for number in numbers)
        return cls(
            leaves=np.array(numbers),
            paths=np.zeros((len(numbers), most), dtype=np.int64),
            logps=np.zeros((len(numbers), most), dtype=np.float32),
            lengths=np.zeros(len(numbers), dtype=np.int64),
            rows=rows,
            owners=owners,
            counts=counts,
            cache=cache,
            prefixes=prefixes,
        )

    @property
    def alive(self) -> np.ndarray:
        """Which rows have not ended."""
        return np.bincount(self.rows, minlength=len(self.leaves)) > 0

    @property
    def last(self) -> np.ndarray:
        """The last token of each row."""
        return np.asarray(self.paths[np.arange(len(self.paths)), self.lengths - 1])

    def onward(self, shares: Shares, waste: float) -> Growing:
        """The texts that go on, a token longer; rows that have ended go above that share."""
        step = shares.rows * (int(shares.tokens.max(initial=0)) + 1) + shares.tokens
        _, first, inverse = np.unique(step, return_index=True, return_inverse=True)
        parents, tokens, logps = (x[first] for x in (shares.rows, shares.tokens, shares.logps))
        single = bool((np.diff(parents) > 0).all())  # no row parts; they come in order
        if single and len(parents) >= (1 - waste) * len(self.leaves):
            return self._longer(parents, tokens, logps, shares, shares.rows)
        return self._taken(parents)._longer(
            np.arange(len(parents)), tokens, logps, shares, np.asarray(inverse)
        )

    def _longer(
        self,
        rows: np.ndarray,
        tokens: np.ndarray,
        logps: np.ndarray,
        shares: Shares,
        places: np.ndarray,
    ) -> Growing:
        """With a token more in some rows, and the shares in their places."""
        paths, kept, lengths = self.paths.copy(), self.logps.copy(), self.lengths.copy()
        paths[rows, lengths[rows]] = tokens
        kept[rows, lengths[rows]] = logps
        lengths[rows] += 1
        order = np.argsort(places, kind="stable")
        return replace(
            self,
            paths=paths,
            logps=kept,
            lengths=lengths,
            rows=places[order],
            owners=shares.owners[order],
            counts=shares.counts[order],
        )

    def _taken(self, rows: np.ndarray, cache: RowCache | None = None) -> Growing:
        """Some rows, in that order, a row perhaps several times; shares stay as they are.

        `cache` is theirs, where it has been made.
        """
        return replace(
            self,
            leaves=self.leaves[rows],
            paths=self.paths[rows],
            logps=self.logps[rows],
            lengths=self.lengths[rows],
            cache=self.cache.take(rows) if cache is None else cache,
            prefixes=self.prefixes.take(rows),
        )

    def part(self, start: int, stop: int, cache: RowCache | None = None) -> Growing:
        """Some rows with their shares; `cache` is theirs, where it has been made."""
        own = (self.rows >= start) & (self.rows < stop)
        return replace(
            self._taken(np.arange(start, stop), cache),
            rows=self.rows[own] - start,
            owners=self.owners[own],
            counts=self.counts[own],
        )

    def halves(self) -> list[Growing]:
        """Two parts, the second first; the cache is given up, since memory may have run out."""
        count = len(self.leaves)
        first, second = self.cache.split(count // 2)
        return [self.part(count // 2, count, second), self.part(0, count // 2, first)]

    def join(self, other: Growing) -> Growing:
        """These rows and then the other's."""
        most = max(self.paths.shape[1], other.paths.shape[1])
        joined = {
            name: np.concatenate([getattr(self, name), getattr(other, name)])
            for name in ("leaves", "lengths", "owners", "counts")
        }
        return Growing(
            paths=np.concatenate([_widened(self.paths, most), _widened(other.paths, most)]),
            logps=np.concatenate([_widened(self.logps, most), _widened(other.logps, most)]),
            rows=np.concatenate([self.rows, other.rows + len(self.leaves)]),
            cache=self.cache.join(other.cache),
            prefixes=self.prefixes.join(other.prefixes),
            **joined,
        )


def _widened(table: np.ndarray, width: int) -> np.ndarray:
    return np.pad(table, ((0, 0), (0, width - table.shape[1])))


def blocks(logits: Any) -> list[Any]:
    """Rows of logits, some at a time, so that copies of them fit into memory."""
    return list(logits.split(max(BLOCK_BYTES // (8 * logits.shape[-1]), 1)))


def likeliest_shares(logits: Any, growing: Growing) -> Shares:
    """Every row goes on with its likeliest token; `logits` is [rows, vocabulary]."""
    found = []
    for block in blocks(logits):
        best = block.float().max(-1)
        logps = best.values - torch.logsumexp(block.float(), -1)
        found.append(torch.stack([best.indices.double(), logps.double()]))
    tokens, logps = torch.cat(found, 1).cpu().numpy()
    return Shares(
        rows=growing.rows,
        owners=growing.owners,
        counts=growing.counts,
        tokens=tokens[growing.rows].astype(np.int64),
        logps=logps[growing.rows],
    )


def drawn_shares(
    logits: Any, growing: Growing, names: Sequence[bytes], *, steady: bool = False
) -> Shares:
    """Every row goes on with the tokens drawn there; prompts draw each under its name."""
    size, vocabulary = growing.paths.shape[1] * 8, logits.shape[-1]
    written = growing.paths.astype("<i8").tobytes()
    starts = growing.rows * size
    stops = starts + 8 * growing.lengths[growing.rows]
    paths = [written[a:b] for a, b in zip(starts.tolist(), stops.tolist(), strict=True)]
    own = [names[owner] for owner in growing.owners.tolist()]
    draws = many_uniforms(own, paths, growing.counts)
    tokens = drawn_tokens(logits, draws, np.repeat(growing.rows, growing.counts), steady)
    share = np.repeat(np.arange(len(own)), growing.counts)
    steps, counts = np.unique(share * vocabulary + tokens, return_counts=True)
    share = steps // vocabulary
    return Shares(
        rows=growing.rows[share],
        owners=growing.owners[share],
        counts=counts,
        tokens=steps % vocabulary,
        logps=np.zeros(len(steps)),
    )


def drawn_tokens(
    logits: Any, draws: np.ndarray, rows: np.ndarray, steady: bool = False
) -> np.ndarray:
    """The token that each draw in [0, 1) takes in its row; rows come in order.

    The same as `split` of `cumulative`, without moving the vocabulary off the device. `steady`: so
    that rounding changes few. NoDistribution where a row has no finite probabilities.
    """
    sizes = np.bincount(rows, minlength=len(logits))
    column = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    taken = steady_tokens if steady else plain_tokens
    found, totals, start = [], [], 0
    for block in blocks(logits):
        stop = start + len(block)
        here = slice(*np.searchsorted(rows, [start, stop]))
        table = np.zeros((len(block), max(int(sizes[start:stop].max()), 1)))
        table[rows[here] - start, column[here]] = draws[here]
        running = torch.softmax(block.float(), -1).double().cumsum(-1)
        tokens = taken(running, onto(running.device, table))
        places = onto(tokens.device, (rows[here] - start) * table.shape[1] + column[here])
        found.append(tokens.view(-1)[places])
        totals.append(torch.isfinite(running[:, -1]))
        start = stop
    sound = torch.cat(totals).cpu().numpy() | (sizes == 0)
    if not sound.all():
        raise NoDistribution(int(np.argmin(sound)))
    return np.asarray(torch.cat(found).cpu().numpy())
