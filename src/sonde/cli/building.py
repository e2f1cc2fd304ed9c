"""What the commands of `sonde data build` share: options, reading datasets, printing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from sonde.core.facts import Dataset

Out = Annotated[Path, typer.Option("--out", "-o", help="The folder to write.")]
Seed = Annotated[int, typer.Option(help="Decides every draw.")]
Force = Annotated[bool, typer.Option("--force", help="Replace a dataset that is there.")]


def loaded(names: Sequence[str] | None) -> list[Dataset]:
    """The datasets of these names."""
    from sonde.data import catalog

    return [catalog.load(name) for name in names or ()]
