"""Find a probe by its name. Light: a wrong name is refused before anything else is imported."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sonde.core.components import Components
from sonde.core.errors import AbilityError, UsageError, nearest
from sonde.probes import MODULES, SUMMARIES

if TYPE_CHECKING:
    from sonde.core.abilities import Ability, Model, Probe


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


def suited(probe: Probe, model: Model) -> Probe:
    """A probe settled for a model; refused, saying what else can be asked, if the model cannot."""
    from sonde.core.abilities import Lacks, abilities

    can = abilities(model)
    try:
        return probe.suited(can)
    except AbilityError as error:
        if not isinstance(model, Lacks):
            raise
        why = "; ".join(f"to {name}: {reason}" for name, reason in model.lacks().items())
        able = ", ".join(name for name, kind in probes().items() if _takes(kind, can))
        raise AbilityError(
            f"{error}. Why it is not able {why}. Probes that it can serve: {able or 'none'}"
        ) from None


def _takes(kind: type, can: frozenset[Ability]) -> bool:
    """Whether a probe, as it is without settings, takes a model of such abilities."""
    try:
        kind().suited(can)
    except (AbilityError, UsageError):
        return False
    return True
