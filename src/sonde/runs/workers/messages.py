"""What a driver and its workers say to each other: bytes, of few objects whatever a shard holds.

A worker is given an order, says that it is ready, and answers what it is told in turn. The frames
of a shard's prompts are Arrow columns, and so is its answer: the shard as it is written. Knows
nothing of how bytes travel.
"""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sonde.core.abilities import Ability, Converses, Identity
from sonde.core.certificates import Recheck
from sonde.core.costs import Batches
from sonde.core.errors import SondeError
from sonde.core.facts import Dataset
from sonde.core.prompts import Block, Fill
from sonde.models.options import LoadOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """To a worker, first: the model to load."""

    reference: str
    options: LoadOptions
    dataset: Dataset | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Choose:
    """To a worker: choose how much goes through the model at once."""

    measure: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """To a worker: answer a shard, with so many tokens at once for each kind of work.

    `threads`: of a CPU that compute, 0 for those that it has. `again`: what a model behind a server
    is to be known again by, if anything.
    """

    number: int
    blocks: tuple[Block, ...]
    tokens: Mapping[str, int]
    threads: int = 0
    again: Recheck | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A worker's token budgets, as `core.costs.TokenBudgets` has them."""

    tokens: Mapping[str, int]
    device: str
    former: Mapping[str, int]
    given: bool
    threads: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """From a worker: its model is loaded, and what it is. `batching`: None where it has none.

    `chat`: what puts prompts in turns, where the model is asked so; the driver does. `lacks`: why
    the model cannot do what others of its kind can. `fillable`: as of `FillsWords`.
    """

    identity: Identity
    abilities: frozenset[Ability]
    batching: Standing | None
    versions: Mapping[str, str]
    chat: Converses | None = None
    lacks: Mapping[Ability, str] | None = None
    fillable: Callable[[Fill, str], frozenset[str]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """From a worker: what it chose."""

    batches: Batches


@dataclass(frozen=True, slots=True, kw_only=True)
class Going:
    """From a worker: it is at a shard, of which such a share is done."""

    number: int
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """From a worker: a shard as it is written, and how many tokens went through at once by then."""

    number: int
    data: bytes
    tokens: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """From a worker: a line for the log."""

    level: int
    name: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """From a worker: an error, which another would have met too. `trace`: where it was."""

    kind: type[Exception]
    text: str
    state: Mapping[str, Any] = field(default_factory=dict)
    trace: str = ""

    @classmethod
    def of(cls, error: BaseException) -> Failed:
        """The error as it travels; one that is not sonde's own keeps its name."""
        trace = "".join(traceback.format_exception(error))
        if isinstance(error, SondeError):
            return cls(kind=type(error), text=str(error), state=_carried(error), trace=trace)
        return cls(kind=RuntimeError, text=f"{type(error).__name__}: {error}", trace=trace)

    def error(self) -> Exception:
        """The error, to be raised by whoever was told."""
        found = self.kind.__new__(self.kind, self.text)  # some are made from other words
        found.__dict__.update(self.state)
        found.add_note(f"in a worker:\n{self.trace}")
        return found


def _carried(error: SondeError) -> Mapping[str, Any]:
    """What else an error holds; nothing where that cannot travel."""
    try:
        pickle.dumps(vars(error), protocol=5)
    except Exception:
        return {}
    return vars(error)


ToWorker = Order | Choose | Task
FromWorker = Ready | Chosen | Going | Answered | Said | Failed


def pack(message: ToWorker | FromWorker) -> bytes:
    """A message as bytes."""
    return pickle.dumps(message, protocol=5)


def unpack(data: bytes) -> Any:
    """The message that bytes are; they must come from a driver or a worker of one's own."""
    return pickle.loads(data)
