"""Tell a user which extra to install before a heavy import fails on them."""

from __future__ import annotations

from importlib.util import find_spec

from sonde.core.errors import MissingExtra


def needs_torch(model: str) -> None:
    """Refuse clearly where torch or transformers is not installed."""
    missing = [name for name in ("torch", "transformers") if find_spec(name) is None]
    if missing:
        raise MissingExtra(
            f"model {model!r} needs {' and '.join(missing)}; run: pip install 'sonde[hf]'"
        )
