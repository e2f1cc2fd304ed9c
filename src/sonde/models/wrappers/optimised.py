"""Open the model that a folder of `sonde optimise` was made for, and no other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sonde.core.abilities import Model
from sonde.core.errors import ModelError, UsageError
from sonde.core.facts import Dataset
from sonde.models.load import load, schemes
from sonde.models.options import LoadOptions
from sonde.models.read_json import read_json

MODEL = ("reference", "weights", "tokenizer")
"""What a manifest says of the model that a folder was made for."""


def base_model(
    scheme: str,
    rest: str,
    methods: tuple[str, ...],
    options: LoadOptions,
    dataset: Dataset | None,
) -> tuple[Path, Model]:
    """The folder that `rest` names, FOLDER or FOLDER@MODEL, and its model as it was.

    `methods` are those whose folders the scheme takes.
    """
    folder, elsewhere = parted(scheme, rest)
    made_for = manifest(scheme, folder, methods)["model"]
    reference = elsewhere or str(made_for["reference"])
    try:
        base = load(reference, options, dataset)
    except (ModelError, UsageError) as error:
        raise ModelError(
            f"{scheme}:{folder} was made for {made_for['reference']}, which does not load: {error}."
            f" If it is elsewhere now, write {scheme}:{folder}@hf:FOLDER"
        ) from error
    for what in ("weights", "tokenizer"):
        if getattr(base.identity, what) != made_for[what]:
            raise ModelError(
                f"{folder} was made for {made_for['reference']} with {what} {made_for[what]}, and "
                f"{reference} has {what} {getattr(base.identity, what) or '(none)'}; make it anew "
                "with 'sonde optimise'"
            )
    return folder, base


def parted(scheme: str, rest: str) -> tuple[Path, str]:
    """The folder and, behind an @, the model, if one is named."""
    folder, at, model = rest.rpartition("@")
    if at and not Path(rest).expanduser().is_dir() and model.partition(":")[0] in schemes():
        return Path(folder).expanduser(), model
    if not rest:
        raise UsageError(
            f"{scheme}: needs a folder that 'sonde optimise' made, as in {scheme}:prompts"
        )
    return Path(rest).expanduser(), ""


def manifest(scheme: str, folder: Path, methods: tuple[str, ...]) -> dict[str, Any]:
    """The manifest of a folder, which must be of one of the methods."""
    able = " or ".join(f"'sonde optimise {method}'" for method in methods)
    advice = f"give a folder that {able} made"
    found = read_json(folder / "manifest.json", advice)
    own, model = found.get("method"), found.get("model")
    named = [model.get(key) for key in MODEL] if isinstance(model, dict) else [None]
    if not all(isinstance(value, str) for value in (own, *named)):
        raise ModelError(
            f"{folder / 'manifest.json'} does not say by what and for which model it was made; "
            f"{advice}"
        )
    if own not in methods:
        raise ModelError(
            f"{folder} was made by 'sonde optimise {own}', and {scheme}: takes what {able} makes"
        )
    return found
