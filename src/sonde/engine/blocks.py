"""Answers to many prompts as columns of numbers, each made into an object when it is looked at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np

from sonde.core.answers import Filled
from sonde.core.prompts import Fill


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FilledBlock(Sequence[Filled]):
    """Filled holes of prompts that want the same, a row each.

    `places` of the likeliest answers index `names`; `columns[j]` is where the watched name j stands
    in `watched_logps` and `watched_ranks`, None where it is not one allowed token.
    """

    want: Fill
    names: Sequence[str]
    places: np.ndarray
    top_logps: np.ndarray
    columns: Sequence[int | None]
    watched_logps: np.ndarray
    watched_ranks: np.ndarray
    mass: np.ndarray

    def __len__(self) -> int:
        return len(self.mass)

    @overload
    def __getitem__(self, index: int) -> Filled: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Filled]: ...
    def __getitem__(self, index: int | slice) -> Filled | Sequence[Filled]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        logps = self.watched_logps[index].tolist()
        ranks = self.watched_ranks[index].tolist()
        return Filled(
            top=tuple([self.names[place] for place in self.places[index].tolist()]),
            top_logps=tuple(self.top_logps[index].tolist()),
            watched=self.want.watched,
            watched_logps=tuple([None if c is None else logps[c] for c in self.columns]),
            watched_ranks=tuple([None if c is None else ranks[c] for c in self.columns]),
            mass=float(self.mass[index]),
        )
