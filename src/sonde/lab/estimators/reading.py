"""From a probe's judged answers to what they say of each fact: score, decision, count, chance.

Knows judged prompts, nothing of how they were put or stored. Chance is exact: the same answers held
against the objects of every other fact of the relation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from sonde.lab.worlds.truth import Bools, Floats
from sonde.metrics.distance import Monitored, combined
from sonde.metrics.grid import Ints
from sonde.metrics.judged import Judged
from sonde.prompting.matching import cleaned

STAYS = 0.5
"""MONITOR's distance up to which an answer counts as known: its probability moves less than it
stays."""

Matches = Callable[[str, tuple[str, ...]], bool]
"""Whether an answer gives one of some names."""


def given(answer: str, names: tuple[str, ...]) -> bool:
    """Whether the answer is one of the names, as it is for options and filled holes."""
    return answer in names


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Prompts:
    """Judged prompts of one run, and the facts that they ask about.

    Facts: `facts`, with the number of each one's `relation` and the `names` that are right.
    Prompts, an entry each: `fact`, `template` and `name` by number, whether the answer is `right`,
    which of `answers` it is, and how `likely` the right one is, in 0..1 (nan: not measured).
    """

    facts: tuple[str, ...]
    relation: Ints
    names: tuple[tuple[str, ...], ...]
    fact: Ints
    template: Ints
    name: Ints
    right: Bools
    answer: Ints
    answers: tuple[str, ...]
    likely: Floats
    matches: Matches = given

    def where(self, kept: Bools) -> Prompts:
        """The prompts for which `kept` holds; every fact stays."""
        columns = ("fact", "template", "name", "right", "answer", "likely")
        return replace(self, **{name: getattr(self, name)[kept] for name in columns})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Columns:
    """What an estimator says, a fact each, as `Verdicts` has it."""

    facts: tuple[str, ...]
    score: Floats
    decision: Bools
    counts: Floats
    chance: Floats


Names = Callable[[str], tuple[str, ...]]
"""What is right for a fact, by its id."""


def prompts_of(judged: Judged, names: Names, matches: Matches = given) -> Prompts:
    """The judged prompts of a run with the facts that have any."""
    grid = judged.grid
    kept, fact = np.unique(grid.pair, return_inverse=True)
    facts = tuple(judged.pairs[pair] for pair in kept.tolist())
    gold = np.full(len(grid), np.nan) if judged.gold is None else np.exp(judged.gold)
    return Prompts(
        facts=facts,
        relation=grid.relations[kept],
        names=tuple(map(names, facts)),
        fact=fact.astype(np.int64),
        template=grid.template,
        name=grid.name,
        right=grid.right,
        answer=grid.answer,
        answers=judged.answers,
        likely=np.minimum(gold, 1.0),
        matches=matches,
    )


def read_one(prompts: Prompts) -> Columns:
    """One prompt a fact: how likely its object is, and whether the answer is right."""
    return replace(read_average(prompts), score=averaged(prompts, prompts.likely))


def read_average(prompts: Prompts) -> Columns:
    """The share of prompts answered right; known if it is more than half of them."""
    right = averaged(prompts, prompts.right.astype(np.float64))
    return Columns(
        facts=prompts.facts,
        score=right,
        decision=right > 0.5,
        counts=right,
        chance=by_chance(prompts, "mean"),
    )


def read_best(prompts: Prompts) -> Columns:
    """One prompt a fact, in the template that answers most of its relation's facts."""
    usual = prompts.where(prompts.name == 0)
    best = best_templates(usual)
    return read_one(usual.where(usual.template == best[usual.relation[usual.fact]]))


def read_any(prompts: Prompts) -> Columns:
    """Known if any prompt is answered right; the score is the highest probability of the object."""
    score, right = (np.zeros(len(prompts.facts)) for _ in range(2))
    np.maximum.at(score, prompts.fact, prompts.likely)
    np.maximum.at(right, prompts.fact, prompts.right.astype(np.float64))
    return Columns(
        facts=prompts.facts,
        score=score,
        decision=right > 0,
        counts=right,
        chance=by_chance(prompts, "any"),
    )


def best_templates(prompts: Prompts) -> Ints:
    """For each relation, the template with the highest accuracy; of equal ones the first."""
    size = int(prompts.template.max()) + 1
    asked = np.bincount(prompts.template, minlength=size)
    right = np.bincount(prompts.template, weights=prompts.right, minlength=size)
    rates = right / np.maximum(asked, 1)
    best = np.full(int(prompts.relation.max()) + 1, -1, dtype=np.int64)
    owners = np.zeros(size, dtype=np.int64)
    owners[prompts.template] = prompts.relation[prompts.fact]
    for template in np.flatnonzero(asked).tolist():
        held = best[owners[template]]
        if held < 0 or rates[template] > rates[held]:
            best[owners[template]] = template
    return best


def averaged(prompts: Prompts, values: Floats) -> Floats:
    """The mean of a column over each fact's prompts."""
    size = len(prompts.facts)
    asked = np.bincount(prompts.fact, minlength=size)
    return np.asarray(np.bincount(prompts.fact, weights=values, minlength=size) / asked)


def by_chance(prompts: Prompts, how: Literal["mean", "any"]) -> Floats:
    """For each fact, how often its answers would be right for another fact of its relation.

    The mean over the other facts of the share of its prompts whose answer gives an object of the
    other fact ("mean"), or of whether any does ("any"); 0 for a fact that stands alone. A tie for
    the first place, which probes count as wrong, is not looked for.
    """
    found = np.zeros(len(prompts.facts))
    for relation in np.unique(prompts.relation).tolist():
        own = np.flatnonzero(prompts.relation == relation)
        if len(own) > 1:
            found[own] = _of_relation(prompts, own, how)
    return found


def _of_relation(prompts: Prompts, own: Ints, how: Literal["mean", "any"]) -> Floats:
    """Facts with the same names, and prompts with the same answer, are looked at once."""
    places = np.full(len(prompts.facts), -1, dtype=np.int64)
    places[own] = np.arange(len(own))
    rows = np.flatnonzero(places[prompts.fact] >= 0)
    fact = places[prompts.fact[rows]]
    numbers: dict[tuple[str, ...], int] = {}
    which = np.array([numbers.setdefault(prompts.names[i], len(numbers)) for i in own.tolist()])
    facts = np.bincount(which).astype(np.float64)
    answers, said = np.unique(prompts.answer[rows], return_inverse=True)
    texts = [prompts.answers[a] for a in answers.tolist()]
    hit = np.array([[prompts.matches(text, names) for names in numbers] for text in texts])
    asked = np.zeros((len(own), len(texts)))
    np.add.at(asked, (fact, said), 1.0)
    covered = asked @ hit.astype(np.float64)  # [facts, sets of names]: prompts that give one
    most = asked.sum(axis=1, keepdims=True)
    covered = covered / most if how == "mean" else (covered > 0).astype(np.float64)
    others = covered @ facts - covered[np.arange(len(own)), which]
    return np.asarray(others / (len(own) - 1))


def read_anchor(monitored: Monitored) -> Columns:
    """MONITOR's anchor: how likely the object is after its own name, and whether it is answered.

    What stands for chance is how often a wrong name is answered after itself: the anchor holds the
    object's name, so that of another object must stand there to compare.
    """
    valid = monitored.valid[monitored.rule]
    return Columns(
        facts=tuple(fact.id for fact in monitored.facts),
        score=monitored.anchors(),
        decision=valid,
        counts=valid.astype(np.float64),
        chance=_means([_copied(monitored, c) for c in range(len(monitored.facts))]),
    )


def read_distance(monitored: Monitored) -> Columns:
    """How little the object's probability moves: 1 less MONITOR's distance; 0 without an anchor.

    What stands for chance is how often a wrong name is answered after itself and in more than half
    of the bare questions: the probabilities of wrong names are not asked for.
    """
    distance = combined(monitored.pfd(), monitored.ird(), monitored.alphas)
    kept = monitored.counted()
    known = kept & (np.nan_to_num(distance, nan=1.0) <= STAYS)
    return Columns(
        facts=tuple(fact.id for fact in monitored.facts),
        score=np.clip(np.where(kept, 1 - distance, 0.0), 0.0, 1.0),
        decision=known,
        counts=known.astype(np.float64),
        chance=_means([_kept_wrong(monitored, c) for c in range(len(monitored.facts))]),
    )


def _copied(monitored: Monitored, c: int) -> list[bool]:
    """Of each wrong name, whether it is answered when it stands in front."""
    said = monitored.said[c][1 + len(monitored.framed[c]) :]
    return [cleaned(w) == text for w, text in zip(monitored.wrong[c], said, strict=True)]


def _kept_wrong(monitored: Monitored, c: int) -> list[bool]:
    """Of each wrong name, whether it is answered after itself and mostly without it."""
    bare = monitored.said[c][1 : 1 + len(monitored.framed[c])]
    names = [cleaned(name) for name in monitored.wrong[c]]
    often = [sum(name == text for text in bare) > len(bare) / 2 for name in names]
    return [a and b for a, b in zip(_copied(monitored, c), often, strict=True)]


def _means(rows: Sequence[Sequence[bool]]) -> Floats:
    return np.array([float(np.mean(row)) if row else 0.0 for row in rows], dtype=np.float64)
