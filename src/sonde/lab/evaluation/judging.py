"""Trials: what estimators say about the facts of a model, beside what is true of them; and groups
of trials, models of one kind in worlds of one sort, with every number about every estimator.

Worlds are of one sort if their names differ in the last number alone: plain-1, plain-2. Facts and
what is said of them are frames. Knows nothing of how trials were made, and of reports only how they
call groups and estimators.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import chain
from typing import NamedTuple

import numpy as np
import polars
from polars import DataFrame, col

from sonde.core.reports import Estimate
from sonde.lab.evaluation.measures import (
    AMOUNT,
    BASE,
    FOUND,
    GUESS,
    STORED,
    TAUGHT,
    Measured,
    differences,
    measures,
    over_worlds,
)
from sonde.lab.training.train import Kind

MISSING = Estimate.not_measured()
MOSTLY_FALSE = 0.25
"""An estimator that holds more of the untaught facts that cannot be guessed to be known than this
finds too much for what it finds to mean anything."""
KINDS: tuple[Kind, ...] = ("causal", "masked")

LEARNS, CONTROL = "\N{NO-BREAK SPACE}*", "\N{NO-BREAK SPACE}†"
"""What stands behind the names of estimators that learn, and of controls."""

Names = tuple[str, ...]

ANY = "at least one"
"""Stands for several estimators together: a fact is known if it is to one of them."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Verdicts:
    """What one estimator says about the facts of one model.

    frame: the ids of the facts it was asked about (fact), and of each: score, in 0..1, how far it
    holds the fact to be known; decision, whether it says that it is; counts, what the fact adds to
    its estimate of the share known (the decision, or the score of an estimator that averages);
    chance, what `counts` would be on average for the objects of other facts of the relation, with
    the same answers. learns: it was trained on other facts, or counts them. control: it is no
    estimator but what one is held against, such as the same method on random weights.
    """

    estimator: str
    frame: DataFrame = field(repr=False)
    seconds: float
    prompts: int
    learns: bool = False
    control: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trial:
    """One model of one world: both truths about its facts, and what every estimator says.

    step: training steps the model has behind it; `final` is the end of its training. facts: what
    `Taught` says of each, and whether it is `stored`: the model gives the object back in one of the
    texts that it was taught the fact in, which is never true of a fact that was not taught.
    """

    world: str
    model: str
    kind: Kind
    seed: int
    step: int
    final: bool
    facts: DataFrame = field(repr=False)
    verdicts: tuple[Verdicts, ...]

    def beside(self, verdicts: Verdicts) -> DataFrame:
        """What an estimator says, with the truth about its facts; relations are numbered."""
        numbers = polars.Enum(self.facts["relation"].unique(maintain_order=True))
        truth = self.facts.select(
            *("fact", "exposure", "guess", "shown", "stored"),
            col("relation").cast(numbers).to_physical().cast(polars.Int64),
            taught=col("exposure") > 0,
        )
        strange = verdicts.frame.join(truth, on="fact", how="anti")["fact"]
        if len(strange):
            raise ValueError(f"{verdicts.estimator} judges {strange[0]!r}, no fact of {self.model}")
        return verdicts.frame.join(truth, on="fact", how="left", maintain_order="left")

    def together(self, names: Sequence[str]) -> Trial:
        """The same with what `ANY` of some estimators says, where there is one."""
        some = [verdicts for verdicts in self.verdicts if verdicts.estimator in names]
        return replace(self, verdicts=(*self.verdicts, _any(some))) if some else self


def _any(some: Sequence[Verdicts]) -> Verdicts:
    """What is known to at least one: the highest of every fact's scores, decisions and counts."""
    every = polars.concat(verdicts.frame for verdicts in some)
    highest = every.group_by("fact", maintain_order=True).agg(
        col("score", "decision", "counts").max()
    )
    return Verdicts(
        estimator=ANY,
        frame=highest.with_columns(chance=polars.lit(None, polars.Float64)),
        seconds=sum(verdicts.seconds for verdicts in some),
        prompts=sum(verdicts.prompts for verdicts in some),
    )


def costs(verdicts: Verdicts) -> Iterator[tuple[str, Measured]]:
    """Prompts and seconds, in all and for each thousand facts; without intervals."""
    n, prompts, seconds = len(verdicts.frame), verdicts.prompts, verdicts.seconds
    for name, value in {
        "prompts": float(prompts),
        "seconds": seconds,
        "facts": float(n),
        "prompts_per_fact": prompts / n if n else None,
        "seconds_per_1000_facts": 1000 * seconds / n if n else None,
    }.items():
        bare = Estimate(value=value, low=None, high=None, n=n)
        yield f"cost.{name}", Measured(value, partial(replace, bare), AMOUNT)


class Top(NamedTuple):
    """The facts that the texts state most often: how many there are over all models of a group, and
    how many none of its finders finds; of these, how many are stored, and how many are found by an
    estimator that learns."""

    exposure: int
    facts: int
    unfound: int
    stored: int
    learnt: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Group:
    """The models of one kind in worlds of one sort, and every number about every estimator.

    `alone`: there is no other sort of worlds.
    """

    kind: Kind
    worlds: str
    alone: bool
    trials: tuple[Trial, ...] = field(repr=False)

    def of(self, measure: str, name: str) -> Estimate:
        """A number of an estimator, or of `ANY` of them."""
        return self.numbers.get((measure, name), MISSING)

    def measured(self, measure: str) -> bool:
        """Whether any estimator has a number."""
        return any(self.of(measure, name).value is not None for name in self.names)

    @cached_property
    def names(self) -> Names:
        """The estimators in their order, controls last."""
        every = dict.fromkeys(v.estimator for trial in self.trials for v in trial.verdicts)
        return tuple(sorted(every, key=lambda name: name in self.controls))

    @cached_property
    def controls(self) -> frozenset[str]:
        """What is no estimator, but held against one."""
        return frozenset(v.estimator for t in self.trials for v in t.verdicts if v.control)

    @cached_property
    def learners(self) -> frozenset[str]:
        """The estimators that learn from other facts."""
        every = (v for trial in self.trials for v in trial.verdicts)
        return frozenset(v.estimator for v in every if v.learns) - self.controls

    @cached_property
    def estimators(self) -> Names:
        """The estimators that are no controls."""
        return tuple(name for name in self.names if name not in self.controls)

    @cached_property
    def plain(self) -> Names:
        """The estimators that neither learn nor are controls."""
        return tuple(name for name in self.estimators if name not in self.learners)

    @cached_property
    def finders(self) -> Names:
        """The plain estimators whose findings mean something in every model: they do not hold too
        many facts to be known that none can know. `ANY` is one of them."""
        lax: set[str] = set()
        for trial in self.trials:
            for verdicts in trial.verdicts:
                unknowable = trial.beside(verdicts).filter(~TAUGHT & (GUESS == ""))["decision"]
                if len(unknowable) and unknowable.to_numpy().mean() > MOSTLY_FALSE:
                    lax.add(verdicts.estimator)
        return tuple(name for name in self.plain if name not in lax)

    @cached_property
    def ladder(self) -> tuple[int, ...]:
        """How often facts are stated, from 0."""
        shown = (trial.facts.filter(col("shown"))["exposure"] for trial in self.trials)
        return tuple(sorted(set(chain.from_iterable(shown))))

    @cached_property
    def world_names(self) -> Names:
        """The worlds, each once."""
        return tuple(dict.fromkeys(trial.world for trial in self.trials))

    def controls_of(self, name: str) -> Names:
        """The controls that are named after an estimator, as `optiprompt-random` is, and after none
        with a longer name."""

        def owner(control: str) -> str:
            named = [name for name in self.estimators if control.startswith(f"{name}-")]
            return max(named, key=len, default="")

        return tuple(c for c in self.names if c in self.controls and owner(c) == name)

    @cached_property
    def _asked(self) -> list[tuple[Trial, dict[str, DataFrame]]]:
        """Every model with what each estimator, and `ANY` of them, says beside the truth."""
        together = (trial.together(self.finders) for trial in self.trials)
        return [(t, {v.estimator: t.beside(v) for v in t.verdicts}) for t in together]

    @cached_property
    def _measured(self) -> Mapping[tuple[str, str], list[tuple[Trial, Measured]]]:
        """Every measure of every estimator, model by model."""
        measured: dict[tuple[str, str], list[tuple[Trial, Measured]]] = {}
        for trial, asked in self._asked:
            for verdicts in trial.verdicts:
                name = verdicts.estimator
                compared = self._compared(name, asked)
                for measure, value in chain(measures(asked[name]), compared, costs(verdicts)):
                    measured.setdefault((measure, name), []).append((trial, value))
        return measured

    def _compared(
        self, name: str, asked: Mapping[str, DataFrame]
    ) -> Iterator[tuple[str, Measured]]:
        """What learns beside LAMA, and a control beside the method that it belongs to."""
        if name in self.learners | self.controls and BASE in asked:
            yield from differences("gain", asked[name], asked[BASE])
        for method in asked:
            if name in self.controls_of(method):
                yield from differences("matched", asked[method], asked[name])

    @cached_property
    def numbers(self) -> Mapping[tuple[str, str], Estimate]:
        """By measure and estimator, over all worlds."""
        numbers = {}
        for key, values in self._measured.items():
            worlds: dict[str, list[Measured]] = {}
            for trial, value in values:
                worlds.setdefault(trial.world, []).append(value)
            numbers[key] = over_worlds([*worlds.values()])
        return numbers

    @cached_property
    def each(self) -> Mapping[tuple[str, str], Mapping[tuple[str, str], float]]:
        """The same of every model, by its world and its own name."""
        return {
            key: {(t.world, t.model): m.value for t, m in values if m.value is not None}
            for key, values in self._measured.items()
        }

    @cached_property
    def top(self) -> Top:
        """What is found of the facts that each model's text states most often."""
        highest, counts = 0, np.zeros(4, dtype=np.int64)
        for _, asked in self._asked:
            if ANY not in asked or not asked[ANY]["taught"].any():
                continue
            top = asked[ANY].filter(col("exposure") == col("exposure").max())
            missed = top.filter(~FOUND)
            learnt = [asked[name].filter(FOUND)["fact"] for name in self.learners & asked.keys()]
            by_learning = missed.filter(col("fact").is_in([*chain.from_iterable(learnt)]))
            counts += [len(top), len(missed), len(missed.filter(STORED)), len(by_learning)]
            highest = max(highest, top["exposure"][0])
        return Top(highest, *counts.tolist())

    @property
    def key(self) -> str:
        """What the ids of its tables and figures end with."""
        return f"{self.kind}-{self.worlds}"

    @property
    def title(self) -> str:
        """How it is called; the sort of its worlds is told where there are several."""
        return f"{self.kind.capitalize()} models{'' if self.alone else f', {self.worlds} worlds'}"

    def place(self, name: str) -> str:
        """What the names of an estimator's estimates end with: the models, the worlds, it."""
        return f"{self.kind}.{self.worlds}.{'any' if name == ANY else name}"

    def marked(self, name: str) -> str:
        """An estimator's name, with a mark where it learns or is a control."""
        if name in self.controls:
            return name + CONTROL
        return name + LEARNS if name in self.learners else name

    def places(self, names: Sequence[str] | None = None) -> dict[str, str]:
        """How tables and figures call estimators, and how the names of their estimates end."""
        return {self.marked(n): self.place(n) for n in (self.names if names is None else names)}


def sort_of(world: str) -> str:
    """The name of a world without the number that tells it from others of its sort.

    >>> sort_of("plain-1"), sort_of("w12"), sort_of("skew-1.5"), sort_of("shipped")
    ('plain', 'w', 'skew-1.5', 'shipped')
    """
    numbered = re.fullmatch(r"(.*[^\d.])\d+", world)
    return (numbered[1].rstrip("-_ ") if numbered else "") or world


def judge(trials: Sequence[Trial]) -> tuple[Group, ...]:
    """The trials in groups: causal models first, sorts of worlds as they come."""
    groups: dict[tuple[Kind, str], list[Trial]] = {}
    for trial in trials:
        groups.setdefault((trial.kind, sort_of(trial.world)), []).append(trial)
    alone = len({worlds for _, worlds in groups}) == 1
    return tuple(
        Group(kind=kind, worlds=worlds, alone=alone, trials=tuple(groups[kind, worlds]))
        for kind, worlds in sorted(groups, key=lambda key: KINDS.index(key[0]))
    )
