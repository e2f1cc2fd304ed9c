"""Judged prompts as numbers, a row each, and the same by relation.

Pairs, templates and relations are counted from 0. A relation is also a block of cells: a cell is a
(pair, template), whose prompts differ in the subject's name alone. Knows nothing of what numbers
are called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.signedinteger[Any]]
"""Of any width: millions of prompts are kept in few bytes each."""
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True, eq=False)
class Grid:
    """One row per prompt of a run.

    pair: which (subject, relation) the prompt asks about. template: which template; each belongs to
    one relation. name: which of the subject's names stands in it, 0 is the original. right: whether
    the answer is correct. answer: equal answers have equal numbers. confidence: of the answer, in
    0..1, nan where it was not measured. relations and template_relations: the relation of each
    pair and of each template. subjects: the subject of each pair, by number; pairs with the same
    number are resampled together. Without it each pair is resampled alone. ids: the ids of the
    relations, which name their random streams; without them the numbers do.
    """

    pair: Ints
    template: Ints
    name: Ints
    right: Bools
    answer: Ints
    confidence: Floats
    relations: Ints
    template_relations: Ints
    subjects: Ints | None = None
    ids: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        sizes = {len(getattr(self, f.name)) for f in fields(self)[:6]}
        if len(sizes) > 1:
            raise ValueError(f"the columns of a grid have {sorted(sizes)} rows")

    def __len__(self) -> int:
        return len(self.pair)

    def rows(self, chosen: Bools | Ints | slice) -> Grid:
        """The same grid with some of its rows."""
        columns = {f.name: getattr(self, f.name)[chosen] for f in fields(self)[:6]}
        return replace(self, **columns)

    def stream(self, relation: int) -> str:
        """The name of a relation's random stream."""
        return self.ids[relation] if self.ids else str(relation)

    @property
    def clusters(self) -> Ints:
        """What each prompt is resampled with: its subject, or its pair if that is not known."""
        return self.pair if self.subjects is None else self.subjects[self.pair]

    @cached_property
    def blocks(self) -> list[Block]:
        """The relations that were asked about, in order."""
        made = [_block(part) for part in self.parts()]
        return [block for block in made if block.asked.size]

    def parts(self) -> Iterator[Part]:
        """The prompts of each relation, in order."""
        pair_places, template_places = _places(self.relations), _places(self.template_relations)
        for relation in np.unique(self.relations).tolist() or [0]:
            pairs = np.flatnonzero(self.relations == relation)
            templates = np.flatnonzero(self.template_relations == relation)
            rows = self._rows_of(relation, pairs)
            own = self.rows(rows)
            if (self.template_relations[own.template] != relation).any():
                raise ValueError(
                    "a prompt of the grid has a pair of one relation, a template of another"
                )
            grid = replace(
                own,
                pair=pair_places[own.pair],
                template=template_places[own.template],
                relations=np.zeros(len(pairs), dtype=np.int64),
                template_relations=np.zeros(len(templates), dtype=np.int64),
                subjects=None if self.subjects is None else self.subjects[pairs],
                ids=(self.stream(relation),),
            )
            yield Part(relation=relation, pairs=pairs, templates=templates, rows=rows, grid=grid)

    @cached_property
    def _in_order(self) -> bool:
        """Whether prompts stand in the order of their relations."""
        return all(bool((of[1:] >= of[:-1]).all()) for of in (self.pair, self.relations))

    def _rows_of(self, relation: int, pairs: Ints) -> slice | Ints:
        """The rows of a relation, which has these pairs."""
        if not self._in_order:
            return np.flatnonzero(self.relations[self.pair] == relation)
        ends = [pairs[0], pairs[-1] + 1] if len(pairs) else [0, 0]
        # as wide as pairs are, or all of these would be widened
        return slice(*np.searchsorted(self.pair, np.array(ends, dtype=self.pair.dtype)).tolist())

    def of_pairs(self, measure: Callable[[Part], Floats]) -> Floats:
        """What is measured of each pair, a relation at a time so that little is in memory.

        `measure` gives [..., pairs of the part], and this [..., pairs].
        """
        found = [(part.pairs, measure(part)) for part in self.parts()]
        together = np.concatenate([values for _, values in found], axis=-1)
        ordered = np.empty_like(together)
        ordered[..., np.concatenate([pairs for pairs, _ in found])] = together
        return ordered


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Part:
    """The prompts of one relation: `rows` of a grid, and a grid by themselves.

    That one counts its pairs and templates from 0; `pairs` and `templates` are their numbers in the
    whole.
    """

    relation: int
    pairs: Ints
    templates: Ints
    rows: slice | Ints
    grid: Grid

    @property
    def cells(self) -> Ints:
        """The cell of each prompt: those of the first pair, in order of templates, then others."""
        return np.asarray(self.grid.pair * len(self.templates) + self.grid.template)


@dataclass(frozen=True, kw_only=True, eq=False)
class Block:
    """One relation: `asked` and `right` count prompts, [pairs, templates].

    Every pair and every template in it was asked at least once; `pairs` and `templates` are their
    numbers in the grid. `subjects` of the pairs, as the grid has them; `stream` is the name of the
    relation's random stream.
    """

    relation: int
    pairs: Ints
    templates: Ints
    asked: Ints
    right: Ints
    subjects: Ints | None
    stream: str

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


def _block(part: Part) -> Block:
    shape, cells = (len(part.pairs), len(part.templates)), part.cells
    asked, right = (
        np.bincount(counted, minlength=shape[0] * shape[1]).astype(np.int32).reshape(shape)
        for counted in (cells, cells[part.grid.right])
    )
    rows, columns = asked.any(axis=1), asked.any(axis=0)
    return Block(
        relation=part.relation,
        pairs=part.pairs[rows],
        templates=part.templates[columns],
        asked=asked[np.ix_(rows, columns)],
        right=right[np.ix_(rows, columns)],
        subjects=None if part.grid.subjects is None else part.grid.subjects[rows],
        stream=part.grid.stream(0),
    )


def _places(owners: Ints) -> Ints:
    """The place of each among those of the same owner."""
    order = np.argsort(owners, kind="stable")
    sizes = np.bincount(owners)
    places = np.empty(len(order), dtype=np.int64)
    places[order] = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return places
