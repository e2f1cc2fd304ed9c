"""What answering prompts costs, tokens and memory, and how much goes through a model at once.

Plain sums and numbers; knows nothing of how they arise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Tokens that some prompts take; costs add up.

    A token that several prompts share is counted with the first of them. `texts`: what would be
    computed one by one (each option's whole text, each masked input, each prompt that is written
    on from), `distinct` of them. `naive`: the tokens of all texts, each on its own. `computed`: the
    tokens the engine feeds; `stems` of them are beginnings shared by prompts, and `grown` are
    written by the model, so that they are an upper bound. `padding`: what is fed beside them only
    to make rows equally long. `requests`: what is sent to a server, where one computes.
    """

    prompts: int = 0
    options: int = 0
    texts: int = 0
    distinct: int = 0
    naive: int = 0
    computed: int = 0
    stems: int = 0
    grown: int = 0
    padding: int = 0
    requests: int = 0

    def __add__(self, other: Cost) -> Cost:
        """Both together.

        >>> Cost(prompts=1, naive=9, computed=5) + Cost(prompts=1, naive=3, computed=3)
        Cost(prompts=2, options=0, texts=0, distinct=0, naive=12, computed=8, stems=0, grown=0, \
padding=0, requests=0)
        """
        return Cost(**{f.name: getattr(self, f.name) + getattr(other, f.name) for f in FIELDS})

    def scaled(self, factor: float) -> Cost:
        """So many times as much, rounded."""
        return Cost(**{f.name: round(getattr(self, f.name) * factor) for f in FIELDS})

    @property
    def fed(self) -> int:
        """Every token that goes through the model, padding included."""
        return self.computed + self.padding

    @property
    def ratio(self) -> float:
        """How many times more tokens the naive way takes; 1.0 where nothing is computed."""
        return self.naive / self.computed if self.computed else 1.0


FIELDS = fields(Cost)


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Bytes at the fullest moment: the weights, the beginnings kept, the largest batch."""

    weights: int = 0
    stems: int = 0
    batch: int = 0

    def __or__(self, other: Memory) -> Memory:
        """Room enough for either."""
        return Memory(
            weights=max(self.weights, other.weights),
            stems=max(self.stems, other.stems),
            batch=max(self.batch, other.batch),
        )

    @property
    def total(self) -> int:
        """All of it."""
        return self.weights + self.stems + self.batch


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardCost:
    """What a shard costs: one cost for each of its prompts, and the memory it takes."""

    costs: tuple[Cost, ...]
    memory: Memory


Chosen = Literal["usual", "measured", "given"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Batches:
    """Tokens that go through a model at once, for each kind of work that it does on a `device`.

    `chosen`: as is usual for the model there, by a measurement, or given by the user. `shards`:
    how many times its weight a shard holds. `halved`: what is left of `tokens` where memory ran
    out. `threads`: those of a CPU that compute together, which round otherwise than fewer would; 0
    where a GPU computes, and in runs that were begun before it was kept.
    """

    tokens: dict[str, int] = field(default_factory=dict)
    chosen: Chosen = "usual"
    device: str = "cpu"
    shards: int = 1
    halved: dict[str, int] = field(default_factory=dict)
    threads: int = 0

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

    @property
    def threads(self) -> int:
        """Threads that compute on a CPU as it stands; 0 on a GPU."""

    def fix(self, tokens: Mapping[str, int], threads: int) -> None:
        """Go on with these, kinds that are not named as they are; 0 leaves the threads."""
