"""What a model may be able to do, and what a probe is. Small protocols; nothing to inherit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Literal, Protocol, Self, TypeVar, cast, runtime_checkable

from sonde.core.answers import Filled, Generated, Sampled, Scored, Traced
from sonde.core.columns import FilledColumns
from sonde.core.costs import ShardCost, TokenBudgets
from sonde.core.errors import AbilityError
from sonde.core.examinations import Attribution, Examination
from sonde.core.facts import Dataset
from sonde.core.fingerprints import canonical, fingerprint
from sonde.core.prompts import (
    Block,
    Fill,
    Generate,
    Prompt,
    Prompts,
    Sample,
    Score,
    Trace,
    prompts_of,
    put,
)
from sonde.core.rated import Ints, RatedColumns

Ability = Literal["score", "fill", "generate", "sample", "trace"]

Choice = TypeVar("Choice", bound=Ability)

One = TypeVar("One")
Many = TypeVar("Many")

Results = Iterator[tuple[int, One]] | Iterator[tuple[Ints, Many]]
"""Answers one by one, each with the position of its prompt, or many at once as columns."""

WANTED: Mapping[type, Ability] = {
    Score: "score",
    Fill: "fill",
    Generate: "generate",
    Sample: "sample",
    Trace: "trace",
}


TEMPLATE = "chat template"
"""The detail of a model's identity that names its chat template, whether it is used or not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What makes a model's answers its own; two runs mix only if these are equal.

    `chat`: by which template it is asked in turns, and how; empty where it is given texts as they
    are. `details` may differ.
    """

    name: str
    architecture: str
    weights: str = ""
    tokenizer: str = ""
    dtype: str = ""
    bos: str = ""
    chat: Mapping[str, str] = field(default_factory=dict)
    details: Mapping[str, str] = field(default_factory=dict)

    def described(self) -> dict[str, Any]:
        """It as plain data, as a manifest has it; of conversations only where there are any."""
        every = asdict(self)
        return every if self.chat else {k: v for k, v in every.items() if k != "chat"}


def deciding(identity: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an identity that decide answers.

    Details do not, nor does the name of weights that have a hash: wherever they lie, and whatever
    they are called there.
    """
    spare = {"details", "name"} if identity["weights"] else {"details"}
    return {field: value for field, value in identity.items() if field not in spare}


def identity_key(identity: Mapping[str, Any]) -> str:
    """Sixteen hex digits for what decides a model's answers."""
    return fingerprint([canonical(deciding(identity))])


class Model(Protocol):
    """Anything that answers prompts; it also has one or more of the abilities below."""

    @property
    def identity(self) -> Identity:
        """What makes its answers its own."""


class Named:
    """A model that is told from others by its name when it is looked at."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {cast(Model, self).identity.name!r}>"


@runtime_checkable
class Scores(Protocol):
    """A model that can score options."""

    def score(self, prompts: Sequence[Prompt]) -> Results[Scored, RatedColumns]:
        """Yield (position in `prompts`, answer), or (positions, columns), in any order."""


@runtime_checkable
class Fills(Protocol):
    """A model that can name the likeliest tokens at a masked position."""

    def fill(self, prompts: Sequence[Prompt]) -> Results[Filled, FilledColumns]:
        """Yield (position in `prompts`, answer), or (positions, columns), in any order."""


@runtime_checkable
class FillsWords(Protocol):
    """A masked model that knows which names it can fill in: those that are one token of it."""

    @property
    def fillable(self) -> Callable[[Fill, str], frozenset[str]]:
        """Gives the watched names of a request that can be filled in after a prefix."""


@runtime_checkable
class Generates(Protocol):
    """A model that can write on from a prompt."""

    def generate(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Generated]]:
        """Yield (position in `prompts`, answer) in any order."""


@runtime_checkable
class Samples(Protocol):
    """A model from which continuations can be drawn."""

    def sample(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Sampled]]:
        """Yield (position in `prompts`, answer) in any order."""


@runtime_checkable
class Traces(Protocol):
    """A model that can say how probable it finds parts of a text it is given."""

    def trace(self, prompts: Sequence[Prompt]) -> Results[Traced, RatedColumns]:
        """Yield (position in `prompts`, answer), or (positions, columns), in any order."""


@runtime_checkable
class Examines(Protocol):
    """A model that can show its tokens and a naive answer, so that it can be examined."""

    def examine(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Examination]]:
        """Yield (position in `prompts`, what the model shows about it)."""


@runtime_checkable
class ScoresAndGenerates(Protocol):
    """A model that reads a text once where options are scored after it and more is written."""

    def score_and_generate(
        self, prompts: Sequence[Prompt]
    ) -> Iterator[tuple[int, Generated] | tuple[Ints, RatedColumns]]:
        """Yield what `score` and `generate` do; each prompt wants `Score` or `Generate`."""


@runtime_checkable
class Attributes(Protocol):
    """A model that can say what in a prompt its answer comes from."""

    def attribute(
        self,
        prefix: str,
        answer: str,
        *,
        turns: Sequence[int] = (),
        steps: int,
        most: int,
        tolerance: float,
    ) -> Attribution:
        """Share out the log-probability of the answer among the tokens of the text before it.

        `turns`: where answers of examples in it begin and end, for a model that is asked in turns.
        It takes `steps` gradients, then more, up to about `most`, until the error is at most
        `tolerance` of what is shared out.
        """


@runtime_checkable
class Plans(Protocol):
    """A model that can say what prompts would cost, without answering them."""

    def estimate_costs(self, shards: Iterable[Sequence[Prompt]]) -> Iterator[ShardCost]:
        """What each shard costs, in turn, if they are put to the model one after the other."""


@runtime_checkable
class Batching(Protocol):
    """A model through which so many tokens go at once, which can be fitted to the chip it is on."""

    @property
    def budgets(self) -> TokenBudgets:
        """Its token budgets, by kind of work."""


@runtime_checkable
class Admits(Protocol):
    """A model that takes some prompts only, and says so before any work."""

    def admit(self, prompt: Prompt) -> None:
        """Raise PromptError if it does not take the prompt."""


@runtime_checkable
class Lacks(Protocol):
    """A model that cannot do all that others of its kind can, and says why."""

    def lacks(self) -> Mapping[Ability, str]:
        """Why it cannot, for each ability that it has not."""


@runtime_checkable
class Converses(Protocol):
    """A model that can be asked in turns of a conversation, as its chat template writes them."""

    def in_turns(self, block: Block) -> Iterator[Block]:
        """The prompts of a block, in their order, as the model is to be given them."""


@runtime_checkable
class KeepsCache(Protocol):
    """A model that keeps what it read, for what else may be asked of the same text."""

    def reset_cache(self) -> None:
        """Drop it, so that answers depend on what is asked with them alone."""


@runtime_checkable
class Prefetches(Protocol):
    """A model that can prepare a shard while it answers the one before."""

    def prefetch(self, prompts: Prompts) -> None:
        """Begin to, unless that was begun; these prompts are asked soon."""


ABILITIES: Mapping[Ability, type] = {
    "score": Scores,
    "fill": Fills,
    "generate": Generates,
    "sample": Samples,
    "trace": Traces,
}


def abilities(model: Model) -> frozenset[Ability]:
    """What a model can do."""
    return frozenset(name for name, protocol in ABILITIES.items() if isinstance(model, protocol))


def as_given(model: Model, blocks: Iterable[Block]) -> Iterator[Block]:
    """Blocks as the model is to be given them: in turns, where it is asked so."""
    for block in blocks:
        if isinstance(model, Converses) and not block.raw:
            yield from model.in_turns(block)
        else:
            yield block


def prompts_as_given(model: Model, prompts: Sequence[Prompt]) -> list[Prompt]:
    """The same for prompts that were made one by one."""
    return list(prompts_of(as_given(model, put(prompts).blocks)))


def group_by_ability(prompts: Prompts, *, joins: bool) -> dict[str, list[int]]:
    """The blocks of the prompts that go to a model in one call, by the name of its method.

    `joins`: whether the model is one that `ScoresAndGenerates`.
    """
    groups: dict[str, list[int]] = {}
    for number, block in enumerate(prompts.blocks):
        groups.setdefault(WANTED[type(block.want)], []).append(number)
    if joins and "score" in groups and "generate" in groups:
        groups["score_and_generate"] = sorted(groups.pop("score") + groups.pop("generate"))
    return groups


class Probe(Protocol):
    """What to ask of a model; `sonde.probes.base.Probe` has the rest of the contract.

    A probe is a frozen dataclass; its fields are its settings (see `sonde.core.components`).
    """

    name: ClassVar[str]

    def suited(self, can: frozenset[Ability]) -> Self:
        """This probe with open choices settled for a model that can do `can`, or AbilityError."""

    def ask(self, dataset: Dataset) -> Iterator[Block] | Iterator[Prompt]:
        """The prompts, in an order that depends on the dataset and the settings alone."""


@runtime_checkable
class HasNotices(Protocol):
    """A probe that states at the start of a run what it changes in the dataset's templates."""

    def notices(self, dataset: Dataset) -> tuple[str, ...]:
        """One sentence for each change."""


Asks = TypeVar("Asks", bound=Probe)


def need(probe: str, can: frozenset[Ability], *choices: Choice) -> Choice:
    """The first of the choices that the model can do; refuses, saying why, if there is none."""
    for choice in choices:
        if choice in can:
            return choice
    wanted = " or ".join(repr(choice) for choice in choices)
    raise AbilityError(
        f"probe {probe!r} needs a model that can {wanted}; this one can "
        f"{', '.join(sorted(can)) or 'do neither'}. See 'sonde models' for what each kind can do"
    )


def needs(*abilities: Ability) -> Callable[[Asks, frozenset[Ability]], Asks]:
    """The `suited` of probes that ask as they are, of models that can do all of these."""

    def suited(self: Asks, can: frozenset[Ability]) -> Asks:
        """As it is; refuses a model that cannot do what is needed."""
        for ability in abilities:
            need(self.name, can, ability)
        return self

    return suited
