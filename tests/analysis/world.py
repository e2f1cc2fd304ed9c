"""Small runs by hand: who is right where, without a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from sonde.analysis.report import compare
from sonde.analysis.runs import Compared, Lineage, Reading
from sonde.core.facts import Template
from sonde.core.reports import Estimate, Report, Table
from sonde.metrics.judged import Grid, Judged
from tests.grids import grid, grids, one_relation
from tests.worlds import relation


def judged(grid: Grid, **more: Any) -> Judged:
    """A grid with ids made of its numbers: relation R0, pair f0, template t0; answers a0, a1, …"""
    templates = tuple(Template(id=f"t{i}", text=f"[X] {i} [Y]") for i in range(99))
    values: dict[str, Any] = {
        "grid": grid,
        "relations": tuple(relation(f"R{i}", label="") for i in range(9)),
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


def asked(
    name: str, right: Sequence[Sequence[int]], group: str = "", setting: str = "", **lineage: Any
) -> Compared:
    """A run of one template per relation, from what is right [relation][pair]; 1 is right."""
    owners = [r for r, of_relation in enumerate(right) for _ in of_relation]
    values = [ok for of_relation in right for ok in of_relation]
    rows = [
        (pair, owner, 0, bool(ok), int(not ok))
        for pair, (owner, ok) in enumerate(zip(owners, values, strict=True))
    ]
    made = run(name, grid(rows, owners, list(range(len(right)))), group=group)
    return replace(made, lineage=Lineage(**({"model": name} | lineage)), setting=setting)


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


def matrix(estimates: Mapping[str, Estimate], pattern: str, *names: str) -> list[list[Estimate]]:
    """The numbers of every two runs, named as a pattern such as sharing.runs.{}.in.{} says."""
    return [[estimates[pattern.format(row, column)] for column in names] for row in names]


def table(report: Report, id: str) -> Table:
    """A table of a report."""
    return next(t for t in report.tables if t.id == id)


def report_of(runs: Sequence[Compared], reading: Reading | None = None) -> Report:
    """The report of runs that are compared."""
    return compare(runs, reading).report
