"""`sonde probes`: what can be asked of a model, with every setting."""

from __future__ import annotations

import inspect

from rich.table import Table

from sonde.cli.console import cells, output, say
from sonde.core.settings import settings_of
from sonde.runs.run import probes as all_probes


def probes() -> None:
    """List the probes and their settings.

    Example: sonde run lama -m smollm2 --template 2
    """
    for name, probe in sorted(all_probes().items()):
        say(f"{name}: {inspect.getdoc(probe)}")
        table = Table("setting", "default", "meaning", box=None, padding=(0, 2, 0, 0))
        for setting in settings_of(probe):
            table.add_row(*cells("  " + setting.name, shown(setting.default), setting.help))
        output().print(table)


def shown(default: object) -> str:
    """A default as it is written, in quotes where it begins or ends with a space."""
    text = str(default)
    return repr(text) if isinstance(default, str) and text.strip() != text else text
