"""A model whose weights are changed for each relation, as it is asked. Knows no training.

The change of every weight is read from the relation's file and added to what the model had.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from sonde.core.abilities import Identity
from sonde.core.answers import Filled, Generated, Sampled, Scored, Traced
from sonde.core.costs import ShardCost
from sonde.core.errors import ModelError, PromptError, nearest
from sonde.core.fingerprints import fingerprint
from sonde.core.prompts import Prompt
from sonde.models.torch.causal.model import CausalModel
from sonde.models.torch.loading.weights import remembered_hash
from sonde.models.torch.masked.model import MaskedModel


class Changing:
    """A model and, by relation, the files that say how its weights change."""

    def __init__(
        self, name: str, base: CausalModel | MaskedModel, files: Mapping[str, Path]
    ) -> None:
        self.base = base
        self.files = files
        self.own = {n: p.detach().clone() for n, p in base.model.named_parameters()}
        self.opened = ""
        hashes = (
            part for relation in files for part in (relation, remembered_hash(files[relation]))
        )
        weights = fingerprint([base.identity.weights, *hashes])
        details = {**base.identity.details, "base": base.identity.name}
        self.identity = replace(base.identity, name=name, weights=weights, details=details)

    def answers(self, ability: str, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Any]]:
        """What the model answers by an ability, each relation's prompts under its weights."""
        groups: dict[str, list[int]] = {}
        for i, prompt in enumerate(prompts):
            groups.setdefault(prompt.key.relation, []).append(i)
        for relation, own in groups.items():
            self.open(relation)
            for k, answer in getattr(self.base, ability)([prompts[i] for i in own]):
                yield own[k], answer

    @torch.no_grad()
    def open(self, relation: str) -> None:
        """Give the model the weights of a relation."""
        if relation == self.opened:
            return
        if relation not in self.files:
            raise PromptError(
                f"{self.identity.name} has no weights for relation {relation!r}; "
                f"{nearest(relation, self.files)}. Ask about those it was trained for, with "
                "--relations"
            )
        change = read_change(self.files[relation], self.own)
        self.opened = ""
        for name, parameter in self.base.model.named_parameters():
            moved = self.own[name].float() + change[name].to(parameter.device).float()
            parameter.copy_(moved)
        if isinstance(self.base, CausalModel):
            self.base.prefixes.clear()
        self.opened = relation


def read_change(path: Path, own: Mapping[str, Any]) -> dict[str, Any]:
    """The change of every weight, refused if it is of another model."""
    try:
        found = load_file(path)
    except Exception as error:  # safetensors raises its own
        raise ModelError(f"{path} does not read back: {error}") from error
    if {n: t.shape for n, t in found.items()} != {n: t.shape for n, t in own.items()}:
        raise ModelError(f"{path} holds the weights of another model")
    return found


class Finetuned:
    """A model with other weights for each relation; it scores options."""

    def __init__(self, changing: Changing) -> None:
        self.changing = changing

    @property
    def identity(self) -> Identity:
        """What makes this model's answers its own."""
        return self.changing.identity

    def score(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Scored]]:
        """Yield (position, answer) in any order."""
        return self.changing.answers("score", prompts)

    def estimate_costs(self, shards: Iterable[Sequence[Prompt]]) -> Iterator[ShardCost]:
        """What each shard would cost, in turn; opening weights is not counted."""
        return self.changing.base.estimate_costs(shards)


class FinetunedMasked(Finetuned):
    """A masked model with other weights for each relation."""

    def fill(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Filled]]:
        """Yield (position, answer) in any order."""
        return self.changing.answers("fill", prompts)


class FinetunedCausal(Finetuned):
    """A causal model with other weights for each relation."""

    def generate(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Generated]]:
        """Yield (position, answer) in any order."""
        return self.changing.answers("generate", prompts)

    def sample(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Sampled]]:
        """Yield (position, answer) in any order."""
        return self.changing.answers("sample", prompts)

    def trace(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Traced]]:
        """Yield (position, answer) in any order."""
        return self.changing.answers("trace", prompts)


def finetuned(name: str, base: Any, files: Mapping[str, Path]) -> FinetunedMasked | FinetunedCausal:
    """The model with the weights of each relation."""
    if isinstance(base, CausalModel):
        return FinetunedCausal(Changing(name, base, files))
    return FinetunedMasked(Changing(name, base, files))
