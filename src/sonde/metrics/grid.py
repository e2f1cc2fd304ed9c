"""Judged prompts as columns, a row each: what every multi-prompt metric is computed from.

Knows numbers alone: pairs, templates and relations are counted from 0, whoever makes a grid keeps
what they are called. By relation, a grid is blocks of cells: a cell is a (pair, template), whose
prompts differ in the subject's name alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sonde.core.fingerprints import draw_key
from sonde.core.reports import Estimate
from sonde.metrics.estimates import Resampled, samples_of
from sonde.stats.intervals import percentile_interval

Ints = NDArray[np.signedinteger[Any]]
"""Of any width: millions of prompts are kept in few bytes each."""
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Grid:
    """One row per prompt of a run.

    pair: which (subject, relation) the prompt asks about. template: which template; each belongs to
    one relation. name: which of the subject's names stands in it, 0 is the original. right: whether
    the answer is correct. answer: equal answers have equal numbers. confidence: of the answer, in
    0..1, nan where it was not measured. relations and template_relations: the relation of each
    pair and of each template.
    """

    pair: Ints
    template: Ints
    name: Ints
    right: Bools
    answer: Ints
    confidence: Floats
    relations: Ints
    template_relations: Ints

    def __post_init__(self) -> None:
        sizes = {len(getattr(self, f.name)) for f in fields(self)[:6]}
        if len(sizes) > 1:
            raise ValueError(f"the columns of a grid have {sorted(sizes)} rows")

    def __len__(self) -> int:
        return len(self.pair)

    def rows(self, chosen: Bools | Ints) -> Grid:
        """The same grid with some of its rows."""
        columns = {f.name: getattr(self, f.name)[chosen] for f in fields(self)[:6]}
        return Grid(**columns, relations=self.relations, template_relations=self.template_relations)


@dataclass(frozen=True, kw_only=True, eq=False)
class Block:
    """One relation: `asked` and `right` count prompts, [pairs, templates].

    Every pair and every template in it was asked at least once; `pairs` and `templates` are their
    numbers in the grid.
    """

    relation: int
    pairs: Ints
    templates: Ints
    asked: Ints
    right: Ints

    @cached_property
    def rates(self) -> Floats:
        """Share of names right in each cell; nan where it was not asked."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.right / self.asked)

    @cached_property
    def known(self) -> Bools:
        """Right under at least one name."""
        return np.asarray(self.right > 0)

    @cached_property
    def of_pairs(self) -> Floats:
        """Share of each pair's prompts that are right; [pairs]."""
        return np.asarray(self.right.sum(axis=1) / self.asked.sum(axis=1))

    @cached_property
    def of_templates(self) -> Floats:
        """Accuracy of each template: mean over the pairs asked of their share of names right."""
        return np.asarray(np.nanmean(self.rates, axis=0))

    def counting(self) -> Floats:
        """What each pair adds to a template's accuracy: the mean over pairs is it, asked or not."""
        asked = self.asked > 0
        return np.where(asked, np.nan_to_num(self.rates) / asked.mean(axis=0), 0.0)


def blocks(grid: Grid) -> list[Block]:
    """The relations that were asked about, in order."""
    keys, start, width = cell_keys(grid)
    total = int(width.sum())
    asked = np.bincount(keys, minlength=total).astype(np.int64)
    right = np.bincount(keys[grid.right], minlength=total).astype(np.int64)
    per_relation = []
    for relation in np.unique(grid.relations):
        pairs = np.flatnonzero(grid.relations == relation)
        templates = np.flatnonzero(grid.template_relations == relation)
        cells = start[pairs][:, None] + np.arange(len(templates))
        per_relation.append(_block(int(relation), pairs, templates, asked[cells], right[cells]))
    return [block for block in per_relation if block.asked.size]


def cell_keys(grid: Grid) -> tuple[Ints, Ints, Ints]:
    """Each row's cell as a number, and each pair's first cell and number of cells.

    A pair has a cell for every template of its relation and none for others.
    """
    if not np.array_equal(grid.relations[grid.pair], grid.template_relations[grid.template]):
        raise ValueError("a prompt of the grid has a pair of one relation, a template of another")
    order = np.argsort(grid.template_relations, kind="stable")
    count = max(grid.relations.max(initial=-1), grid.template_relations.max(initial=-1)) + 1
    sizes = np.bincount(grid.template_relations, minlength=count)
    place = np.empty(len(order), dtype=np.int64)
    before = np.cumsum(sizes) - sizes
    place[order] = np.arange(len(order)) - before[grid.template_relations[order]]
    width = sizes[grid.relations].astype(np.int64)
    start = np.cumsum(width) - width
    return start[grid.pair] + place[grid.template], start, width


def mean_over_pairs(
    values: Floats, relations: Ints, seed: int, weights: Mapping[str, float] | None = None
) -> Estimate:
    """Mean of one value per pair; nan is left out and not counted.

    The interval is the bootstrap over pairs within their relation; the relations stay. With
    weights, by the number of the relation, it is the weighted mean of the relations' means.
    """
    kept = ~np.isnan(values)
    resampled = Resampled(samples_of(values[kept], relations[kept]), seed)
    return resampled.weighted_mean(weights) if weights else resampled.mean_over_facts()


def around(value: float, draws: Floats, n: int) -> Estimate:
    """An estimate with the middle 95 % of its bootstrap, which always holds the value itself."""
    low, high = percentile_interval(draws)
    return Estimate(value=value, low=min(low, value), high=max(high, value), n=n)


def stream(seed: int, name: str) -> np.random.Generator:
    """Random numbers that depend on a seed and a name alone."""
    return np.random.default_rng(draw_key(seed, name))


def _block(relation: int, pairs: Ints, templates: Ints, asked: Ints, right: Ints) -> Block:
    rows, columns = asked.any(axis=1), asked.any(axis=0)
    return Block(
        relation=relation,
        pairs=pairs[rows],
        templates=templates[columns],
        asked=asked[np.ix_(rows, columns)],
        right=right[np.ix_(rows, columns)],
    )
