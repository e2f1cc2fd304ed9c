"""How many tokens go through a model at once, for each kind of work that it does.

Whoever schedules passes asks `model.budgets[kind]`, a `Budget` that halves where memory runs out.
"""

from __future__ import annotations

from collections.abc import Mapping

from sonde.core.abilities import Ability
from sonde.engine.batching import Budget
from sonde.models.torch.loading.weights import Loaded, out_of_memory


class Budgets:
    """A token budget for each kind of work: what one learns about memory says little of another."""

    def __init__(self, tokens: Mapping[Ability, int]) -> None:
        self._each = {kind: Budget(count, out_of_memory) for kind, count in tokens.items()}

    def __getitem__(self, kind: Ability) -> Budget:
        return self._each[kind]

    @property
    def tokens(self) -> dict[Ability, int]:
        """How many tokens go through at once as it stands."""
        return {kind: budget.tokens for kind, budget in self._each.items()}


def budgets_of(loaded: Loaded, usual: Mapping[str, Mapping[Ability, int]]) -> Budgets:
    """The budgets that were asked for, or else the usual ones of its device."""
    tokens = usual[loaded.device.split(":")[0]]
    given = loaded.options.batch_tokens
    return Budgets(tokens if given is None else dict.fromkeys(tokens, given))
