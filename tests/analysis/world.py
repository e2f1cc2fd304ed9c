"""Small runs by hand: who is right where, without a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from sonde.analysis.runs import Compared
from sonde.core.facts import Relation, Template
from sonde.core.reports import Report, Table
from sonde.metrics.grid import Grid
from sonde.metrics.judged import Judged
from tests.grids import grids, one_relation


def judged(grid: Grid, **more: Any) -> Judged:
    """A grid with ids made of its numbers: relation R0, pair f0, template t0; answers a0, a1, …"""
    templates = tuple(Template(id=f"t{i}", text=f"[X] {i} [Y]") for i in range(99))
    values: dict[str, Any] = {
        "grid": grid,
        "relations": tuple(Relation(id=f"R{i}", label="", kind="N-1") for i in range(9)),
        "pairs": tuple(f"f{i}" for i in range(len(grid.relations))),
        "templates": templates[: len(grid.template_relations)],
        "answers": tuple(f"a{i}" for i in range(9)),
        "way": "filled",
        "sure": grid.confidence,
    }
    return Judged(**(values | more))


def run(name: str, right: Grid | Sequence[Sequence[Sequence[int]]], group: str = "") -> Compared:
    """A run, from a grid or from the answers [pair][template][name] of one relation; 0 is right."""
    grid = right if isinstance(right, Grid) else one_relation(right)
    return Compared(name=name, judged=judged(grid), dataset="d", group=group)


def changed(given: Compared, **more: Any) -> Compared:
    """The run with other things in its judged prompts."""
    return replace(given, judged=replace(given.judged, **more))


@st.composite
def several(draw: st.DrawFn, runs: int = 3) -> list[Compared]:
    """Runs of the same prompts with answers of their own."""
    first = draw(grids().filter(len))
    made = [run("r0", first, group="g0")]
    for i in range(1, runs):
        answers = np.array([draw(st.integers(0, 2)) for _ in range(len(first))], dtype=np.int64)
        grid = replace(first, answer=answers, right=answers == 0)
        made.append(run(f"r{i}", grid, group=draw(st.sampled_from(["g0", "g1"]))))
    return made


def table(report: Report, id: str) -> Table:
    """A table of a report."""
    return next(t for t in report.tables if t.id == id)
