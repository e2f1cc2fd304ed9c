"""Judged prompts as columns, a row each: what every multi-prompt metric is computed from.

Knows numbers alone: pairs, templates and relations are counted from 0, whoever makes a grid keeps
what they are called.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
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
