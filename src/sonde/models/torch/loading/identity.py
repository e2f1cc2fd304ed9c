"""Name a loaded model so that its answers cannot be mistaken for another's."""

from __future__ import annotations

from sonde.core.abilities import Identity
from sonde.core.fingerprints import fingerprint
from sonde.models.torch.loading.weights import UNLIMITED, Loaded


def identify(loaded: Loaded, *, bos: str, scoring: str) -> Identity:
    """The identity of a loaded model; how texts open and how options are scored are part of it."""
    parameters = sum(p.numel() for p in loaded.model.parameters())
    return Identity(
        name=loaded.name,
        architecture=type(loaded.model).__name__,
        weights=loaded.weights,
        tokenizer=fingerprint([loaded.backend.to_str()]),
        dtype=loaded.dtype,
        bos=bos,
        details={
            "device": loaded.device,
            "parameters": f"{parameters:,}",
            "context": f"{loaded.context} tokens" if loaded.context < UNLIMITED else "any length",
            "scoring": scoring,
            "revision": loaded.options.revision or "",
        },
    )
