"""What runs and sweeps have to show of themselves, without reading any answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sonde.core.overviews import listing
from sonde.core.reports import Cell, Column, Report, Table
from sonde.store.manifest import Manifest
from sonde.store.runs import RunFolder

if TYPE_CHECKING:
    from sonde.runs.sweep import Sweep

GO_ON = (
    "report() has every number with its interval, facts() a row for every fact, judged() one for "
    "every prompt, to_polars() the raw answers."
)


def described(manifest: Manifest) -> str:
    """What was asked of whom, on a line."""
    return f"{manifest.probe['name']} on {manifest.dataset['name']}, {manifest.model['name']}"


def overview(path: Path, manifest: Manifest) -> Report:
    """What was asked, of which model, how long it took and where it lies."""
    return Report(
        title=f"Run of {described(manifest)}",
        estimates={},
        tables=(listing("run", "Run", _entries(path, manifest)),),
        notes=(GO_ON,),
    )


def _entries(path: Path, manifest: Manifest) -> Iterator[tuple[str, Cell]]:
    folder, selection = RunFolder(path), manifest.selection
    limit = selection["limit"]
    yield "folder", str(path)
    yield "prompts", f"{folder.finished().prompts:,}"
    yield "seconds", f"{folder.seconds():,.1f}"
    yield "split", str(selection["split"])
    yield "relations", ", ".join(selection["relations"]) or "all"
    yield "facts of a relation", "all" if limit is None else f"at most {limit:,}"
    if found := manifest.certificate:
        yield "certificate", f"{found['verdict']}, beside {found['reference']}"
    yield "settings", _settings({**manifest.probe["settings"], **manifest.probe["reading"]})


def _settings(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in values.items())


def sweep_overview(sweep: Sweep) -> Report:
    """The settings of every cell, and where its run lies."""
    columns = (Column(title="settings"), Column(title="run"))
    rows = tuple((_settings(values), str(run.path)) for values, run in sweep.cells)
    return Report(
        title=f"Sweep of {sweep.probe}",
        estimates={},
        tables=(Table(id="cells", title="Cells", columns=columns, rows=rows),),
        notes=("report() lays the headline numbers of its runs side by side.",),
    )
