"""Find a probe by its name. Light: a wrong name is refused before anything else is imported."""

from __future__ import annotations

from collections.abc import Mapping

from sonde.core.components import Components
from sonde.core.errors import UsageError, nearest
from sonde.probes import MODULES, SUMMARIES


def probes() -> Mapping[str, type]:
    """Every probe class by name."""
    return Components(MODULES, "sonde.probes")


def summaries() -> Mapping[str, str]:
    """A line about each of sonde's own probes, none of which is imported for it."""
    return SUMMARIES


def find_probe(name: str) -> type:
    """The probe class of that name."""
    if name not in probes():
        raise UsageError(f"no probe called {name!r}; {nearest(name, probes())}")
    return probes()[name]
