"""`soft:`, `ensemble:` and `finetuned:FOLDER`: models with what `sonde optimise` made for them.

Soft prompts are read as further tokens, templates are averaged with their weights, and fine-tuned
weights are those of each relation. Only the model that a folder was made for is opened.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sonde.core.abilities import Model
from sonde.core.errors import ModelError, TemplateError, UsageError
from sonde.core.facts import Dataset, Template
from sonde.core.fingerprints import file_hash, fingerprint
from sonde.models.load import load, scheme_of, schemes
from sonde.models.options import LoadOptions, needs, read_json

MODEL = ("reference", "weights", "tokenizer")
"""What a manifest says of the model that a folder was made for."""

VECTORS = "vectors.safetensors"


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimised:
    """A model with what `methods` of 'sonde optimise' left in a folder for it.

    `open` gives the model of that name from the folder and the model that it was made for.
    """

    name: str
    usage: str
    summary: str
    methods: tuple[str, ...]
    open: Callable[[str, Path, Model], Model]

    def check(self, rest: str) -> None:
        """The folder must be one that such a method made."""
        folder, _ = parted(self.name, rest)
        manifest(self.name, folder, self.methods)

    def load(self, rest: str, options: LoadOptions, dataset: Dataset | None) -> Model:
        """Load the model that the folder names and give it what the folder holds."""
        needs(f"{self.name}:{rest}", "torch", "transformers", "safetensors")
        folder, base = base_model(self.name, rest, self.methods, options, dataset)
        return self.open(f"{self.name}:{folder}", folder, base)


def open_soft(name: str, folder: Path, base: Model) -> Model:
    """The base model with the vectors of a folder."""
    from safetensors.numpy import load_file

    from sonde.models.torch.soft import soft_model

    if not (folder / VECTORS).is_file():
        raise ModelError(
            f"{folder} holds no {VECTORS}: its templates are plain text, or no relation is "
            "finished; ask the model itself, or go on with 'sonde optimise'"
        )
    try:
        vectors = load_file(folder / VECTORS)
    except Exception as error:  # safetensors raises its own
        raise ModelError(f"{folder / VECTORS} does not read back: {error}") from error
    weights = fingerprint([base.identity.weights, file_hash(folder / VECTORS)])
    return soft_model(name, base, vectors, weights)


def open_ensemble(name: str, folder: Path, base: Model) -> Model:
    """The base model and the weighted templates of each relation."""
    from sonde.models.torch.by_relation import ensemble

    return ensemble(name, base, members(folder))


def members(folder: Path) -> dict[str, tuple[tuple[Template, float], ...]]:
    """The templates of each relation of a folder, with weights that sum to one."""
    path = folder / "templates.jsonl"
    found: dict[str, list[tuple[Template, float]]] = {}
    try:
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            template = Template(id=row["id"], text=row["text"])
            found.setdefault(row["relation"], []).append((template, float(row.get("weight", 1))))
    except FileNotFoundError:
        raise ModelError(
            f"{folder} is not finished; run 'sonde optimise lpaqa' again, and it goes on"
        ) from None
    except (ValueError, KeyError, TypeError, TemplateError, RecursionError) as error:
        raise ModelError(f"{path} does not read back: {error}") from None
    if not found or any(sum(w for _, w in own) <= 0 for own in found.values()):
        raise ModelError(f"{path} holds no templates with weights above 0")
    return {
        relation: tuple((t, weight / sum(w for _, w in own)) for t, weight in own)
        for relation, own in found.items()
    }


def open_finetuned(name: str, folder: Path, base: Model) -> Model:
    """The base model with other weights for each relation."""
    files = {path.stem: path for path in sorted((folder / "weights").glob("*.safetensors"))}
    if not files:
        raise ModelError(
            f"{folder} holds no weights: no relation is finished, or they were not kept "
            "(--keep nothing); go on with 'sonde optimise finetune'"
        )
    from sonde.models.torch.by_relation import finetuned

    return finetuned(name, base, files)


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
    if at and not Path(rest).expanduser().is_dir() and scheme_of(model)[0] in schemes():
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


SOFT = Optimised(
    name="soft",
    usage="soft:FOLDER[@MODEL]",
    summary=(
        "soft prompts made by 'sonde optimise', in the model they were made for (MODEL: where it "
        "is now)"
    ),
    methods=("optiprompt", "autoprompt"),
    open=open_soft,
)
ENSEMBLE = Optimised(
    name="ensemble",
    usage="ensemble:FOLDER[@MODEL]",
    summary=(
        "templates chosen by 'sonde optimise lpaqa', averaged (MODEL: where their model is now)"
    ),
    methods=("lpaqa",),
    open=open_ensemble,
)
FINETUNED = Optimised(
    name="finetuned",
    usage="finetuned:FOLDER[@MODEL]",
    summary=(
        "a model fine-tuned for each relation by 'sonde optimise finetune' (MODEL: where it is now)"
    ),
    methods=("finetune",),
    open=open_finetuned,
)
