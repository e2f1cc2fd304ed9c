"""How often each of some rows comes when as many are drawn with replacement, many times over.

Metrics of one relation are resampled alike, from equal random streams, so what was drawn is kept
and found again by the state of the stream. Knows numbers of rows, nothing of what they hold.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.unsignedinteger]
Floats = NDArray[np.float64]

DRAWS = 2000

PICKS = 4_000_000
"""Picks that are made at once."""

KEPT = 2**27
"""Bytes of counts that are kept; those that were asked for last stay."""

_kept: OrderedDict[tuple[str, int, int], tuple[list[Counts], Any]] = OrderedDict()


def resampled_sums(values: Floats, rng: np.random.Generator, draws: int = DRAWS) -> Floats:
    """Sums over rows when as many rows are drawn with replacement; [rows, k] to [draws, k]."""
    blocks = times_drawn(len(values), rng, draws)
    return np.concatenate([times.astype(np.float64) @ values for times in blocks])


def resampled_rates(table: Floats, owners: NDArray[np.int64], rng: np.random.Generator) -> Floats:
    """The mean of every column: over all rows, then when the rows' owners are drawn anew.

    table [rows, k], nan where there is no value; to [1 + draws, k], nan where no row has one.
    """
    there = ~np.isnan(table)
    _, index = np.unique(owners, return_inverse=True)
    sums = np.zeros((int(index.max()) + 1, 2 * table.shape[1]))
    np.add.at(sums, index, np.hstack([np.where(there, table, 0.0), there]))
    drawn = np.vstack([sums.sum(axis=0), resampled_sums(sums, rng)])
    totals, counts = np.split(drawn, 2, axis=1)
    rates = np.divide(totals, counts, out=np.full_like(totals, np.nan), where=counts > 0)
    return np.asarray(rates)


def times_drawn(rows: int, rng: np.random.Generator, draws: int) -> Iterator[Counts]:
    """Counts of every row, [some draws, rows], until there were `draws`; moves the stream on."""
    if rows * draws > KEPT // 2:
        yield from _drawn(rows, rng, draws)
        return
    key = (str(rng.bit_generator.state), rows, draws)
    if key in _kept:
        _kept.move_to_end(key)
        blocks, rng.bit_generator.state = _kept[key]
        yield from blocks
        return
    blocks = list(_drawn(rows, rng, draws))
    _kept[key] = blocks, rng.bit_generator.state
    while sum(block.nbytes for each, _ in _kept.values() for block in each) > KEPT:
        _kept.popitem(last=False)
    yield from blocks


def _drawn(rows: int, rng: np.random.Generator, draws: int) -> Iterator[Counts]:
    step = max(1, PICKS // rows)
    kind = np.uint16 if rows < 2**16 else np.uint32  # half the time of wider numbers
    for start in range(0, draws, step):
        size = min(step, draws - start)
        picked = np.arange(size)[:, None] * rows + rng.integers(0, rows, (size, rows), dtype=kind)
        times = np.bincount(picked.ravel(), minlength=size * rows).reshape(size, rows)
        yield times.astype(np.uint8 if times.max(initial=0) < 256 else np.uint32)
