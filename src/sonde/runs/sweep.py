"""Run a probe over a grid of its settings, and read the runs together.

Each cell of the grid is an ordinary run folder inside the sweep's: it can be reported, compared and
gone on with by itself. `sweep.json` says which cells there are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any, cast

from sonde.core.abilities import Model, Probe
from sonde.core.certificates import Certificate
from sonde.core.components import build, settings_of
from sonde.core.errors import StoreError, UsageError, nearest
from sonde.core.facts import Dataset
from sonde.core.files import parsed, whole
from sonde.core.notebook import html
from sonde.core.reports import Report
from sonde.runs.certificates import certified, find, refuse_broken
from sonde.runs.overviews import sweep_overview
from sonde.runs.run import Run, open_run, run
from sonde.runs.shards import Progress

Over = Mapping[str, Sequence[Any]]
"""Settings, each with the values it takes."""

Watch = Callable[[str], AbstractContextManager[Progress | None]]

GRID = "sweep.json"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Sweep:
    """The runs of a sweep, a cell each, with the settings that make it."""

    path: Path
    probe: str
    cells: tuple[tuple[Mapping[str, Any], Run], ...]

    def __repr__(self) -> str:
        return f"<Sweep {str(self.path)!r}: {self.probe}, {len(self.cells)} runs>"

    def _repr_html_(self) -> str:
        return html(sweep_overview(self))

    def report(self, **reading: Any) -> Report:
        """The headline numbers of every cell, side by side, and what certificates say of them."""
        from sonde.analysis.report import sweep_report

        reports = [(values, run.report(**reading)) for values, run in self.cells]
        first = self.cells[0][1].manifest
        title = f"{self.probe} on {first.dataset['name']}: {first.model['name']}, a sweep"
        report = sweep_report(title, reports)
        told = {str(cell.manifest.certificate): cell for _, cell in self.cells}  # mostly one
        for cell in told.values():
            report = certified(report, cell.path, cell.manifest)
        return report

    def provenance(self) -> dict[str, Any]:
        """Where the numbers come from: what every run says of itself."""
        return {"runs": {run.path.name: run.provenance() for _, run in self.cells}}


def sweep(
    probe: Probe,
    model: Model,
    dataset: Dataset,
    over: Over,
    out: str | Path,
    *,
    watch: Watch = lambda _: nullcontext(None),
    certificate: Certificate | str | Path | None = None,
) -> Sweep:
    """Run the probe with every combination of some settings; finished cells are not asked again.

    The model's `certificate` is that of every run (`sonde.run`).
    """
    from sonde.analysis.report import label

    grid = list(cells(probe, over))
    folder = Path(out)
    _refuse_foreign(folder, probe.name)
    found = find(model, certificate)
    refuse_broken(found)
    certificate = found if certificate is not None else None
    folder.mkdir(parents=True, exist_ok=True)
    entries = {folder_name(values): dict(values) for values, _ in grid}
    body = {"probe": probe.name, "cells": entries}
    with whole(folder / GRID) as file:
        file.write((json.dumps(body, indent=1, ensure_ascii=False) + "\n").encode())
    done = []
    for number, (values, each) in enumerate(grid, 1):
        with watch(f"{label(values)} ({number} of {len(grid)})") as tick:
            place = folder / folder_name(values)
            made = run(each, model, dataset, place, progress=tick, certificate=certificate)
            done.append((values, made))
    return Sweep(path=folder, probe=probe.name, cells=tuple(done))


def open_sweep(path: str | Path) -> Sweep:
    """Open a sweep whose runs are all finished."""
    probe, entries = _grid(Path(path))
    runs = tuple((values, open_run(Path(path) / name)) for name, values in entries.items())
    return Sweep(path=Path(path), probe=probe, cells=runs)


def is_sweep(path: Path) -> bool:
    """Whether a folder holds a sweep."""
    return (path / GRID).is_file()


def _grid(path: Path) -> tuple[str, dict[str, dict[str, Any]]]:
    """The probe of a sweep, and the settings of each cell by its folder."""
    try:
        body = parsed((path / GRID).read_text(encoding="utf-8"))
        entries = {str(name): dict(values) for name, values in body["cells"].items()}
        return str(body["probe"]), entries
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise StoreError(f"{path} holds no sweep: {path / GRID} cannot be read") from None


def _refuse_foreign(path: Path, probe: str) -> None:
    """Refuse a folder that holds anything but a sweep of this probe, before touching it."""
    if not path.exists():
        return
    if not path.is_dir():
        raise StoreError(f"{path} is a file; give a folder for the sweep")
    if not is_sweep(path):
        if any(path.iterdir()):
            raise StoreError(f"{path} is not empty and holds no sweep; give a new folder with -o")
        return
    there = _grid(path)[0]
    if there != probe:
        raise StoreError(f"{path} holds a sweep of {there}, not of {probe}; give another folder")


def cells(probe: Probe, over: Over) -> Iterator[tuple[Mapping[str, Any], Probe]]:
    """Every combination of values, and the probe with it."""
    kind = type(probe)
    known = {s.name: s for s in settings_of(kind)}
    for name, values in over.items():
        if name not in known:
            raise UsageError(f"{probe.name} has no setting {name!r}; {nearest(name, known)}")
        if not values:
            raise UsageError(f"setting {name} is given no value to sweep over")
    if over and all(known[name].analysis_only for name in over):
        raise UsageError(
            f"how answers are read needs no sweep ({', '.join(over)}): make one run, and read it "
            "again with 'sonde report RUN --set KEY=VALUE'"
        )
    own = asdict(cast(Any, probe))
    for combination in product(*over.values()):
        chosen = dict(zip(over, combination, strict=True))
        yield chosen, cast(Probe, build(kind, {**own, **chosen}))


def folder_name(values: Mapping[str, Any]) -> str:
    """The folder of a cell.

    >>> folder_name({"shots": 5, "between": " "})
    'shots=5,between=_20'
    """
    parts = (f"{name}={value}" for name, value in values.items())
    return re.sub(r"[^\w.=,+-]", lambda m: f"_{ord(m[0]):x}", ",".join(parts)) or "alone"
