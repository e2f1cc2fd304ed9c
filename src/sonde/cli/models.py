"""`sonde models`: what can be probed, and how it is named."""

from __future__ import annotations

from rich.table import Table

from sonde.cli.console import cells, output
from sonde.models.load import schemes


def models() -> None:
    """List the ways to name a model.

    Example: sonde run lama -m hf:./my-model
    """
    table = Table("name", "what it is", box=None, pad_edge=False)
    for _, scheme in sorted(schemes().items()):
        table.add_row(*cells(scheme.usage, scheme.summary))
    output().print(table)
