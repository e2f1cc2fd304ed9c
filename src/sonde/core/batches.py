"""How much goes through a model at once in a run, and what a model offers to choose that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Protocol

Chosen = Literal["usual", "measured", "given"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Batches:
    """Tokens that go through a model at once, for each kind of work that it does on a `device`.

    `chosen`: as is usual for the model there, by a measurement, or given by the user. `shards`:
    how many times its weight a shard holds. `halved`: what is left of `tokens` where memory ran
    out.
    """

    tokens: dict[str, int] = field(default_factory=dict)
    chosen: Chosen = "usual"
    device: str = "cpu"
    shards: int = 1
    halved: dict[str, int] = field(default_factory=dict)

    @property
    def now(self) -> dict[str, int]:
        """Tokens that go through at once from here on."""
        return {**self.tokens, **self.halved}

    def entry(self) -> dict[str, Any]:
        """As a manifest has it; nothing where there is nothing to choose."""
        return asdict(self) if self.tokens else {}


class TokenBudgets(Protocol):
    """The token budgets of a model, by kind of work."""

    @property
    def tokens(self) -> Mapping[str, int]:
        """How many tokens go through at once as it stands."""

    @property
    def device(self) -> str:
        """The kind of device that the model is on."""

    @property
    def former(self) -> Mapping[str, int]:
        """What was taken before runs said what they take."""

    @property
    def given(self) -> bool:
        """Whether the user has named a number, which wins over any other."""

    def choose(self, *, measure: bool) -> Batches:
        """What fits the chip and the model; `measure`: whether that may cost a second."""

    def fix(self, tokens: Mapping[str, int]) -> None:
        """Go on with these."""
