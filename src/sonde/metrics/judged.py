"""A run's judged prompts together with what their numbers are called, for analyses across runs.

Knows facts and numbers, nothing of how prompts were put, answered or stored.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, runtime_checkable

from sonde.core.columns import Given
from sonde.core.facts import Dataset, Relation, Template
from sonde.metrics.grid import Bools, Floats, Grid, Ints

Way = Literal["filled", "scored", "written"]

COLUMNS = ("sure", "gold", "helped", "compared", "words", "guessable")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Judged:
    """The grid of a run, and per row what else was measured; None where a probe measures none.

    `relations[r]`, `pairs[p]` (the id of the pair's first fact), `templates[t]` and `answers[a]`
    say what the numbers of the grid mean. `way`: how the model answered. `matches`: whether two
    different answers say the same; without it only equal ones do.

    Columns, one entry per row of the grid. sure: the probability of the answer where it is one
    token (of one option among all where options were scored), else nan. gold: the log-probability
    of all correct names together. helped of compared: added object names that were likelier than
    the usual one. words: how many words the answer has, nan where they cannot be counted.
    guessable: whether the answer can be guessed from the subject's name, by the filter of the run.
    """

    grid: Grid
    relations: tuple[Relation, ...]
    pairs: tuple[str, ...]
    templates: tuple[Template, ...]
    answers: tuple[str, ...]
    way: Way
    sure: Floats
    matches: Callable[[str, str], bool] | None = None
    gold: Floats | None = None
    helped: Ints | None = None
    compared: Ints | None = None
    words: Floats | None = None
    guessable: Bools | None = None

    def __post_init__(self) -> None:
        for name in COLUMNS:
            column = getattr(self, name)
            if column is not None and len(column) != len(self.grid):
                raise ValueError(f"{name} has {len(column)} entries for {len(self.grid)} prompts")

    def rows(self, chosen: Ints) -> Judged:
        """The same with some of its prompts, in the order chosen."""
        columns: dict[str, Any] = {name: getattr(self, name) for name in COLUMNS}
        kept: dict[str, Any] = {n: c if c is None else c[chosen] for n, c in columns.items()}
        return replace(self, grid=self.grid.rows(chosen), **kept)


@runtime_checkable
class Judges(Protocol):
    """A probe that can tell how every prompt did, so that its runs can be compared."""

    def judged(self, dataset: Dataset, answered: Given) -> Judged:
        """Every judged prompt, whatever order the answers come in."""
