"""A relation about to be trained or searched, with its texts; shared by the methods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from sonde.core.facts import Template
from sonde.core.prompts import spoken
from sonde.models.torch.causal.model import CausalModel
from sonde.models.torch.masked.model import MaskedModel
from sonde.optimise.facts import Task
from sonde.optimise.making import Made
from sonde.optimise.shared.forms import Form
from sonde.optimise.shared.texts import Texts

TOGETHER = 4  # relations on a CPU, where larger batches gain nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A relation about to be trained: its prompt, its texts, and the ids of its vectors."""

    task: Task
    form: Form
    template: Template
    train: Texts
    dev: Texts
    ids: range
    otherwise: int

    @property
    def counts(self) -> dict[str, int]:
        """What is used and what is left out."""
        return {
            **self.task.counts,
            "train": len(self.train.texts),
            "dev": len(self.dev.texts),
            "outside_vocabulary": self.train.outside + self.dev.outside,
            "too_long": self.train.long + self.dev.long,
            "tokenised_otherwise": self.otherwise,
        }


def prompt_ids(
    model: CausalModel | MaskedModel, template: Template, subject: str
) -> tuple[int, ...]:
    """The tokens of a template with a subject, as the model reads them."""
    prefix, suffix = template.fill(subject)
    if isinstance(model, MaskedModel):
        return model.encoder.masked([(prefix, suffix)])[0].ids
    return model.encoder.encode(prefix, ["Paris"], spoken(suffix))[0].ids


def bias_of(sets: Sequence[frozenset[int] | None], rows: int, device: Any) -> Any:
    """What is added to logits so that only allowed tokens count, [sets, vocabulary]; or None."""
    if all(allowed is None for allowed in sets):
        return None
    bias = torch.zeros(len(sets), rows)
    for row, allowed in zip(bias, sets, strict=True):
        if allowed is not None:
            row.fill_(-torch.inf)
            row[sorted(allowed)] = 0.0
    return bias.to(device)


def nothing_left(draft: Draft) -> Made:
    """A relation none of whose training facts can be used."""
    counts = draft.counts
    return Made(
        relation=draft.task.relation.id,
        counts=counts,
        problem=f"none of its {len(draft.task.train)} training facts can be used: "
        f"{counts['outside_vocabulary']} have no object that may be answered, "
        f"{counts['too_long']} are too long (train and dev)",
    )
