"""Estimators held against the truth, over all models of one kind in worlds of one sort.

Worlds are of one sort if their names differ in the last number alone: plain-1, plain-2. Knows
trials, nothing of how they were made or of how the numbers are shown.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np

from sonde.core.reports import Estimate
from sonde.lab.evaluation.measures import BASE, Measured, differences, measures, over_worlds
from sonde.lab.evaluation.verdicts import ANY, Asked, Model, model
from sonde.lab.worlds.truth import Bools, Kind, Trial

MISSING = Estimate.not_measured()
MOSTLY_FALSE = 0.25
"""An estimator that holds more of the untaught facts that cannot be guessed to be known than this
finds too much for what it finds to mean anything."""
KINDS: tuple[Kind, ...] = ("causal", "masked")


@dataclass(frozen=True, slots=True, kw_only=True)
class Top:
    """The facts that the texts state most often, over all models of a group.

    unfound: how many none of the group's finders finds; of these, `stored` are stored and `learnt`
    are found by an estimator that learns.
    """

    exposure: int
    facts: int
    unfound: int
    stored: int
    learnt: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Group:
    """The models of one kind in worlds of one sort, and every number about every estimator.

    names: the estimators in their order, controls last. finders: those that neither learn nor are
    controls nor hold too many facts to be known that they cannot know; `ANY` is one of them.
    ladder: how often facts are stated, from 0. numbers: by measure and estimator; `each` has the
    value of every model, by its world and its own name.
    """

    kind: Kind
    worlds: str
    models: tuple[Model, ...] = field(repr=False)
    names: tuple[str, ...]
    learners: frozenset[str]
    controls: frozenset[str]
    finders: tuple[str, ...]
    ladder: tuple[int, ...]
    top: Top
    numbers: Mapping[tuple[str, str], Estimate] = field(repr=False)
    each: Mapping[tuple[str, str], Mapping[tuple[str, str], float]] = field(repr=False)

    def of(self, measure: str, name: str) -> Estimate:
        """A number of an estimator, or of `ANY` of them."""
        return self.numbers.get((measure, name), MISSING)

    def measured(self, measure: str) -> bool:
        """Whether any estimator has a number."""
        return any(self.of(measure, name).value is not None for name in self.names)

    @property
    def own(self) -> tuple[str, ...]:
        """The estimators that are no controls."""
        return tuple(name for name in self.names if name not in self.controls)

    @property
    def plain(self) -> tuple[str, ...]:
        """The estimators that neither learn nor are controls."""
        return tuple(name for name in self.own if name not in self.learners)

    @property
    def world_names(self) -> tuple[str, ...]:
        """The worlds, each once."""
        return tuple(dict.fromkeys(one.trial.world for one in self.models))

    def controls_of(self, name: str) -> tuple[str, ...]:
        """The controls that an estimator has."""
        return controls_of(name, self.names, self.controls)


def sort_of(world: str) -> str:
    """The name of a world without the number that tells it from others of its sort.

    >>> sort_of("plain-1"), sort_of("w12"), sort_of("skew-1.5"), sort_of("shipped")
    ('plain', 'w', 'skew-1.5', 'shipped')
    """
    found = re.fullmatch(r"(.*[^\d.])\d+", world)
    return (found[1].rstrip("-_ ") if found else "") or world


def judge(trials: Sequence[Trial]) -> tuple[Group, ...]:
    """Every group of trials with its numbers: causal models first, sorts of worlds as they come."""
    keys = dict.fromkeys((trial.kind, sort_of(trial.world)) for trial in trials)
    return tuple(
        _group(kind, worlds, [t for t in trials if (t.kind, sort_of(t.world)) == (kind, worlds)])
        for kind, worlds in sorted(keys, key=lambda key: KINDS.index(key[0]))
    )


def controls_of(name: str, names: Sequence[str], controls: Collection[str]) -> tuple[str, ...]:
    """The controls that are named after an estimator: `optiprompt-random` after `optiprompt`.

    >>> names = ["optiprompt", "optiprompt-manual", "optiprompt-manual-random"]
    >>> controls_of("optiprompt", names, names[2:]), controls_of(names[1], names, names[2:])
    ((), ('optiprompt-manual-random',))
    """
    return tuple(one for one in names if one in controls and _owner(one, names, controls) == name)


def _owner(control: str, names: Sequence[str], controls: Collection[str]) -> str:
    named = [one for one in names if one not in controls and control.startswith(one + "-")]
    return max(named, key=len, default="")


def _group(kind: Kind, worlds: str, trials: Sequence[Trial]) -> Group:
    verdicts = [v for trial in trials for v in trial.verdicts]
    controls = frozenset(v.estimator for v in verdicts if v.control)
    every = dict.fromkeys(v.estimator for v in verdicts)
    names = tuple(sorted(every, key=lambda name: name in controls))
    learners = frozenset(v.estimator for v in verdicts if v.learns) - controls
    finders = _finders(trials, [name for name in names if name not in learners | controls])
    models = tuple(model(trial, finders) for trial in trials)
    steps = {one.taught.exposure for t in trials for one in t.known if one.taught.shown}
    found = _found(models, names, learners, controls)
    return Group(
        kind=kind,
        worlds=worlds,
        models=models,
        names=names,
        learners=learners,
        controls=controls,
        finders=finders,
        ladder=tuple(sorted(steps)),
        top=_top(models, learners),
        numbers={key: over_worlds(_by_world(own)) for key, own in found.items()},
        each={
            key: {
                (one.trial.world, one.trial.model): m.value for one, m in own if m.value is not None
            }
            for key, own in found.items()
        },
    )


def _finders(trials: Sequence[Trial], plain: Sequence[str]) -> tuple[str, ...]:
    """The estimators whose findings mean something in every model, by facts that none can know."""
    lax: set[str] = set()
    for one in map(model, trials):
        for name in one.asked.keys() & set(plain):
            asked = one.asked[name]
            where = ~asked.taught & (asked.guess == "")
            if where.any() and asked.verdicts.decision[where].mean() > MOSTLY_FALSE:
                lax.add(name)
    return tuple(name for name in plain if name not in lax)


def _found(
    models: Sequence[Model],
    names: Sequence[str],
    learners: frozenset[str],
    controls: frozenset[str],
) -> dict[tuple[str, str], list[tuple[Model, Measured]]]:
    """Every measure of every estimator, model by model."""
    found: dict[tuple[str, str], list[tuple[Model, Measured]]] = {}
    owners = {c: name for name in names for c in controls_of(name, names, controls)}
    for one in models:
        for name, measure, value in _measured(one, learners | controls, owners):
            found.setdefault((measure, name), []).append((one, value))
    return found


def _by_world(own: Sequence[tuple[Model, Measured]]) -> list[list[Measured]]:
    worlds: dict[str, list[Measured]] = {}
    for one, value in own:
        worlds.setdefault(one.trial.world, []).append(value)
    return [*worlds.values()]


def _measured(
    one: Model, learnt: frozenset[str], owners: Mapping[str, str]
) -> Iterator[tuple[str, str, Measured]]:
    base = one.asked.get(BASE)
    for name, asked in one.asked.items():
        parts = [measures(asked)]
        if name in learnt and base is not None:
            parts.append(differences("gain", asked, base))
        if name in owners:
            parts.append(differences("matched", one.asked.get(owners[name]), asked))
        for measure, value in chain(*parts):
            yield name, measure, value


def _top(models: Sequence[Model], learners: frozenset[str]) -> Top:
    """Count what is found of the facts that each model's text states most often."""
    highest, counts = 0, np.zeros(4, dtype=np.int64)
    for one in models:
        asked = one.asked.get(ANY)
        if asked is None or not asked.taught.any():
            continue
        highest = max(highest, int(asked.exposure.max()))
        at = asked.exposure == asked.exposure.max()
        missed = at & ~asked.verdicts.decision
        learnt = missed & _found_by(one, asked, learners)
        counts += [int(part.sum()) for part in (at, missed, missed & asked.stored, learnt)]
    facts, unfound, stored, learnt_too = counts.tolist()
    return Top(exposure=highest, facts=facts, unfound=unfound, stored=stored, learnt=learnt_too)


def _found_by(one: Model, asked: Asked, names: frozenset[str]) -> Bools:
    """Which facts at least one of some estimators finds."""
    found: set[str] = set()
    for name in names & one.asked.keys():
        own = one.asked[name].verdicts
        found |= {fact for fact, known in zip(own.facts, own.decision, strict=True) if known}
    return np.array([fact in found for fact in asked.verdicts.facts], dtype=np.bool_)
