"""`ensemble:FOLDER`: a model that answers each question under all templates of its relation.

The templates and their weights are those that `sonde optimise lpaqa` chose.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from sonde.core.abilities import Model
from sonde.core.errors import ModelError, TemplateError
from sonde.core.facts import Dataset, Template
from sonde.models.extras import needs
from sonde.models.options import LoadOptions
from sonde.models.wrappers.optimised import base_model


@dataclass(frozen=True, slots=True)
class Ensemble:
    """A model and the weighted templates of each relation."""

    name: ClassVar[str] = "ensemble"
    usage: ClassVar[str] = "ensemble:FOLDER[@MODEL]"
    summary: ClassVar[str] = (
        "templates chosen by 'sonde optimise lpaqa', averaged (MODEL: where their model is now)"
    )

    def load(self, rest: str, options: LoadOptions, dataset: Dataset | None) -> Model:
        """Load the model that the folder names and give it the folder's templates."""
        needs(f"ensemble:{rest}", "torch", "transformers")
        folder, base = base_model(self.name, rest, ("lpaqa",), options, dataset)
        from sonde.models.torch.wrappers.ensemble import ensemble

        return ensemble(f"ensemble:{folder}", base, members(folder))


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


COMPONENT = Ensemble()
