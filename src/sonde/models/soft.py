"""`soft:FOLDER`: a model that reads the soft prompts of a folder, as `sonde optimise` made them.

It is the model they were trained on, with the vectors as further tokens; another one is refused.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from sonde.core.abilities import Model
from sonde.core.errors import ModelError, UsageError
from sonde.core.facts import Dataset
from sonde.core.fingerprints import file_hash, fingerprint
from sonde.models.extras import needs
from sonde.models.load import load, schemes
from sonde.models.options import LoadOptions

VECTORS = "vectors.safetensors"


@dataclass(frozen=True, slots=True)
class Soft:
    """A model with the vectors of its soft prompts."""

    name: ClassVar[str] = "soft"
    usage: ClassVar[str] = "soft:FOLDER[@MODEL]"
    summary: ClassVar[str] = (
        "soft prompts made by 'sonde optimise', in the model they were made for (MODEL: where it "
        "is now)"
    )

    def load(self, rest: str, options: LoadOptions, dataset: Dataset | None) -> Model:
        """Load the model that the folder names and give it the folder's vectors."""
        needs(f"soft:{rest}", "torch", "transformers", "safetensors")
        folder, elsewhere = parted(rest)
        made_for = trained_on(folder)
        reference = elsewhere or made_for["reference"]
        try:
            base = load(reference, options, dataset)
        except (ModelError, UsageError) as error:
            raise ModelError(
                f"soft:{folder} was made for {made_for['reference']}, which does not load: {error}."
                f" If it is elsewhere now, write soft:{folder}@hf:FOLDER"
            ) from error
        refuse_another(folder, made_for, reference, base)
        return opened(f"soft:{folder}", folder, base)


def parted(rest: str) -> tuple[Path, str]:
    """The folder and, behind an @, the model, if one is named."""
    folder, at, model = rest.rpartition("@")
    if at and not Path(rest).expanduser().is_dir() and model.partition(":")[0] in schemes():
        return Path(folder).expanduser(), model
    if not rest:
        raise UsageError("soft: needs a folder that 'sonde optimise' made, as in soft:prompts/opti")
    return Path(rest).expanduser(), ""


def trained_on(folder: Path) -> dict[str, str]:
    """The model that a folder's prompts were trained on."""
    try:
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        found = {key: str(manifest["model"][key]) for key in ("reference", "weights", "tokenizer")}
    except (OSError, ValueError, KeyError, TypeError):
        raise ModelError(
            f"{folder} holds no soft prompts: it has no manifest.json of 'sonde optimise'"
        ) from None
    if not (folder / VECTORS).is_file():
        raise ModelError(
            f"{folder} holds no {VECTORS}: its templates are plain text, or no relation is "
            f"finished; ask {found['reference']} itself, or go on with 'sonde optimise'"
        )
    return found


def refuse_another(folder: Path, made_for: dict[str, str], reference: str, base: Model) -> None:
    """Refuse a model that is not the one the vectors were trained on."""
    found = base.identity
    for what in ("weights", "tokenizer"):
        if getattr(found, what) != made_for[what]:
            raise ModelError(
                f"the soft prompts of {folder} were made for {made_for['reference']} with {what} "
                f"{made_for[what] or '(none)'}, and {reference} has {what} "
                f"{getattr(found, what) or '(none)'}; vectors mean nothing to another model: train "
                "them anew with 'sonde optimise'"
            )


def opened(name: str, folder: Path, base: Model) -> Model:
    """The base model with the vectors of a folder."""
    from safetensors.numpy import load_file

    from sonde.models.torch.soft import soft_model

    try:
        vectors = load_file(folder / VECTORS)
    except Exception as error:  # safetensors raises its own
        raise ModelError(f"{folder / VECTORS} does not read back: {error}") from error
    weights = fingerprint([base.identity.weights, file_hash(folder / VECTORS)])
    return soft_model(name, base, vectors, weights)


COMPONENT = Soft()
