"""Find a model by the name a user gives."""

from __future__ import annotations

from typing import Protocol, cast

from sonde.core.abilities import Model
from sonde.core.components import find
from sonde.core.errors import UsageError, nearest
from sonde.core.facts import Dataset
from sonde.models.options import LoadOptions


class Scheme(Protocol):
    """A way of naming and loading models."""

    name: str
    usage: str
    summary: str

    def load(self, rest: str, options: LoadOptions, dataset: Dataset | None) -> Model:
        """Load the model that `rest`, what follows the colon, names."""


def schemes() -> dict[str, Scheme]:
    """Every scheme by name."""
    return cast(dict[str, Scheme], find("sonde.models", "sonde.models"))


def load(
    reference: str, options: LoadOptions | None = None, dataset: Dataset | None = None
) -> Model:
    """Load a model: SCHEME:REST, such as hf:gpt2, or a short name such as smollm2."""
    scheme, _, rest = reference.partition(":")
    if scheme not in schemes():
        hint = nearest(scheme, schemes())
        hint += "" if hint.endswith("?") else "."
        raise UsageError(
            f"no model scheme {scheme!r} (in {reference!r}); {hint} A transformers folder or hub "
            f"id is written hf:{rest or reference}"
        )
    return schemes()[scheme].load(rest, options or LoadOptions(), dataset)
