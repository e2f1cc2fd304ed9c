"""`sonde models` and `sonde probes`: what can be probed, what can be asked, with every setting."""

from __future__ import annotations

import inspect

from sonde.cli.console import print_table, say
from sonde.core.settings import settings_of
from sonde.models.load import schemes
from sonde.runs.run import probes as all_probes


def models() -> None:
    """List the ways to name a model.

    Example: sonde run lama -m hf:./my-model
    """
    rows = [(scheme.usage, scheme.summary) for _, scheme in sorted(schemes().items())]
    print_table(("name", "what it is"), rows)


def probes() -> None:
    """List the probes and their settings.

    Example: sonde run lama -m smollm2 --template 2
    """
    for name, probe in sorted(all_probes().items()):
        say(f"{name}: {inspect.getdoc(probe)}")
        rows = [("  " + s.name, shown(s.default), s.help) for s in settings_of(probe)]
        print_table(("setting", "default", "meaning"), rows)


def shown(default: object) -> str:
    """A default as it is written, in quotes where it begins or ends with a space."""
    text = str(default)
    return repr(text) if isinstance(default, str) and text.strip() != text else text
