"""Tell a user which extra to install before a heavy import fails on them."""

from __future__ import annotations

from importlib.util import find_spec

from sonde.core.errors import MissingExtra


def needs(model: str, *packages: str) -> None:
    """Refuse clearly where a package that a model needs is not installed."""
    needs_extra("hf", f"model {model!r}", *packages)


def needs_extra(extra: str, what: str, *packages: str) -> None:
    """Refuse clearly where a package of an extra, which something needs, is not installed."""
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        raise MissingExtra(
            f"{what} needs {' and '.join(missing)}; run: pip install 'sonde[{extra}]'"
        )
