"""What is known about a model beside its weights: family, size, training; looked up by its name.

The bundled `families.toml` holds models of the papers and those that come with sonde. Your own
entries stand in a file of the same form: one named where it is needed, else `$SONDE_MODELS`, else
`models.toml` in sonde's folder of the user's configuration. They win over the bundled ones. Loads
no model.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal, get_args

from sonde.core.errors import DataError

BUNDLED = Path(__file__).parent / "families.toml"

Stage = Literal["base", "fine-tuned"]
Architecture = Literal["encoder", "decoder", "encoder-decoder"]
Source = Literal["paper", "public", "memory"]
CHOICES = {"stage": Stage, "architecture": Architecture, "source": Source}


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """A model as comparisons need it; `size` counts parameters, None or "" is not known.

    `corpus`: what it was pre-trained on. `source`: where all this was read.
    """

    name: str
    family: str
    size: int | None = None
    stage: Stage = "base"
    architecture: Architecture = "decoder"
    corpus: str = ""
    base: str = ""
    source: Source | None = None


def describe(name: str, table: Mapping[str, Described] | None = None) -> Described | None:
    """What the table says of a model, by its name as runs give it; None where it says nothing.

    The scheme, folders and capital letters do not count: `hf:google/BERT-base-cased` is
    `bert-base-cased`.
    """
    return (model_table() if table is None else table).get(plain(name))


def plain(name: str) -> str:
    """A model's name without scheme, folder, file ending, mark of transformers' form and capitals.

    A model with random weights keeps the word for it: it is not the model that it was made from.

    >>> plain("hf:google-bert/BERT-base-cased"), plain("gguf:./m/SmolLM2.gguf"), plain("smollm2")
    ('bert-base-cased', 'smollm2', 'smollm2')
    >>> plain("hf:meta-llama/Llama-2-7b-hf")
    'llama-2-7b'
    >>> plain("random:1:hf:google-bert/BERT-base-cased")
    'random:1:bert-base-cased'
    """
    if found := re.match(r"random(-embeddings)?:(\d+:)?", name):
        return found[0] + plain(name[found.end() :])
    last = re.split(r"[/:]", name.rstrip("/"))[-1]
    return last.lower().removesuffix(".gguf").removesuffix("-hf")


def model_table(own: Path | None = None) -> dict[str, Described]:
    """Every model that is described: the bundled ones, then the user's, in the file given or in
    the usual one. One that was fine-tuned has its base's corpus, unless it names its own."""
    table = read_table(BUNDLED)
    own = own or user_file()
    table |= read_table(own) if own else {}
    return {name: _inheriting(model, table) for name, model in table.items()}


def _inheriting(model: Described, table: Mapping[str, Described]) -> Described:
    base = table.get(plain(model.base)) if model.base and not model.corpus else None
    return replace(model, corpus=base.corpus) if base else model


def user_file() -> Path | None:
    """The user's own table: $SONDE_MODELS, which must be there, or the configured one if it is."""
    if chosen := os.environ.get("SONDE_MODELS"):
        return Path(chosen).expanduser()
    home = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    path = home / "sonde" / "models.toml"
    return path if path.is_file() else None


def read_table(path: Path) -> dict[str, Described]:
    """Read a table: one `[[model]]` with `name`, `family` and what else is known for each."""
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataError(f"{path} is missing; name a file with a table of models") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise DataError(f"{path} cannot be read as TOML: {error}") from None
    entries = values.get("model", [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise DataError(f"{path}: write each model as a table that begins with [[model]]")
    described = [_described(entry, f"{path}, model {i}") for i, entry in enumerate(entries, 1)]
    return {plain(model.name): model for model in described}


def _described(entry: dict[str, Any], where: str) -> Described:
    known = {f.name for f in fields(Described)}
    for key in entry:
        if key not in known:
            raise DataError(f"{where}: unknown field {key!r}; known: {', '.join(sorted(known))}")
    for key in ("name", "family"):
        if not isinstance(entry.get(key), str) or not entry[key]:
            raise DataError(f"{where}: {key!r} must be a text that is not empty")
    for key in ("corpus", "base"):
        if not isinstance(entry.get(key, ""), str):
            raise DataError(f"{where}: {key!r} must be a text, found {entry[key]!r}")
    for key, choices in CHOICES.items():
        if key in entry and entry[key] not in get_args(choices):
            allowed = ", ".join(get_args(choices))
            raise DataError(f"{where}: {key!r} must be one of {allowed}, found {entry[key]!r}")
    size = entry.get("size")
    if size is not None and (type(size) is not int or size <= 0):
        raise DataError(f"{where}: 'size' must be a whole number of parameters, found {size!r}")
    return Described(**entry)
