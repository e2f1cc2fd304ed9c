"""What runs and sweeps have to show of themselves, without reading any answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sonde.store.manifest import Manifest
from sonde.store.runs import RunFolder

if TYPE_CHECKING:
    from sonde.evaluation.layout import Exhibit

GO_ON = (
    "report() has every number with its interval, facts() a row for each fact, rows() one for each "
    "prompt, to_polars() the stored answers."
)


def described(manifest: Manifest) -> str:
    """What was asked of whom, on a line."""
    return f"{manifest.probe['name']} on {manifest.dataset['name']}, {manifest.model['name']}"


def overview(path: Path, manifest: Manifest) -> Exhibit:
    """The settings of a run, its size and its folder, as a table."""
    from polars import DataFrame

    from sonde.evaluation.layout import Exhibit

    frame = DataFrame(list(_entries(path, manifest)), schema=["what", "value"], orient="row")
    return Exhibit("run", f"Run of {described(manifest)}", frame, note=GO_ON)


def _entries(path: Path, manifest: Manifest) -> Iterator[tuple[str, str]]:
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
