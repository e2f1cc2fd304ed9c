"""What MONITOR says of several runs on the facts that all of them were asked about.

Knows probabilities and right answers, nothing of tables. Whatever is estimated is worked out at
once for the facts as they are and for many draws of their subjects, the same draws in all runs, so
that any two numbers can be compared by what they do in every draw.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sonde.analysis.runs import Compared
from sonde.core.errors import UsageError
from sonde.core.facts import Relation
from sonde.core.reports import Estimate
from sonde.metrics.distance import PULLED, SOLID, Monitored, combined, over_prompts
from sonde.metrics.grid import Bools, Floats, Ints, around, stream
from sonde.stats.draws import resampled_sums
from sonde.stats.intervals import DRAWS, percentile_interval, unvaried_difference, wilson
from sonde.stats.paired import swapped

SPREAD = "prompt_accuracy.stdev"
SHARES = ("solid_anchors", "anchor_rate",
          *(f"prompt_accuracy.{one}" for one in ("avg", "max", "min", "base")))  # fmt: skip

CENTRED = tuple(f"prompt_accuracy.{one}" for one in PULLED)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Parts:
    """What MONITOR of one run is made of, fact by fact; `whole` is the root that it sums.

    `counted` is 1 for the facts that it is made of and 0 for others, whose parts mean nothing.
    """

    anchors: Floats
    pfd: Floats
    ird: Floats
    whole: Floats
    counted: Floats

    @classmethod
    def of(cls, known: Monitored) -> Parts:
        """The parts of a run."""
        pfd, ird = known.pfd(), np.nan_to_num(known.ird())
        return cls(
            anchors=known.anchors(),
            pfd=pfd,
            ird=ird,
            whole=combined(pfd, ird, known.alphas),
            counted=known.counted().astype(np.float64),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Common:
    """Runs of MONITOR with the same facts in the same order, and how many each had beside them.

    `monitored[i]` is what run i measured of these facts, `parts[i]` what its MONITOR is made of;
    `subjects` are numbers, equal for facts of one relation about one subject.
    """

    runs: tuple[Compared, ...]
    monitored: tuple[Monitored, ...]
    parts: tuple[Parts, ...]
    left_out: tuple[int, ...]
    subjects: Ints

    @property
    def names(self) -> list[str]:
        """What the runs are called."""
        return [run.name for run in self.runs]

    @property
    def relations(self) -> tuple[Relation, ...]:
        """The relations that have facts in all runs."""
        return self.monitored[0].relations

    @property
    def owners(self) -> Ints:
        """The relation of each fact, by its number."""
        return self.monitored[0].relation


def in_common(runs: Sequence[Compared]) -> Common:
    """The runs on the facts that all of them measured, in an order that is that of no run."""
    known = [run.monitored for run in runs if run.monitored is not None]
    places = [{key: c for c, key in enumerate(_keys(one))} for one in known]
    shared = sorted(set(places[0]).intersection(*places[1:]))
    if not shared:
        raise UsageError("the runs share no fact; compare runs of the same facts and relations")
    order = [r for r in known[0].relations if any(key[0] == r.id for key in shared)]
    both = list(zip(known, places, strict=True))
    chosen = [_chosen(one, [at[key] for key in shared], order) for one, at in both]
    subjects = [f"{fact.relation}:{fact.subject.id}" for fact in chosen[0].facts]
    return Common(
        runs=tuple(runs),
        monitored=tuple(chosen),
        parts=tuple(Parts.of(one) for one in chosen),
        left_out=tuple(len(one.facts) - len(shared) for one in known),
        subjects=np.unique(np.array(subjects), return_inverse=True)[1].astype(np.int64),
    )


def _keys(known: Monitored) -> list[tuple[str, str]]:
    owners = known.relation.tolist()
    return [(known.relations[r].id, f.id) for r, f in zip(owners, known.facts, strict=True)]


def _chosen(known: Monitored, places: Sequence[int], order: Sequence[Relation]) -> Monitored:
    """Some facts in the order given, under the numbers of these relations."""
    ids = [relation.id for relation in known.relations]
    numbers = {relation.id: i for i, relation in enumerate(order)}
    at = np.array(places, dtype=np.int64)
    kept: dict[str, Any] = {
        name: tuple(getattr(known, name)[c] for c in places)
        for name in ("facts", "anchor", "framed", "misled", "wrong", "said", "right")
    }
    return replace(
        known,
        relations=tuple(order),
        frames=tuple(known.frames[ids.index(relation.id)] for relation in order),
        relation=np.array([numbers[ids[known.relation[c]]] for c in places], dtype=np.int64),
        valid={rule: which[at] for rule, which in known.valid.items()},
        **kept,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Measure:
    """One number of every run in every relation; nan where it was not measured.

    rows [1 + draws, runs, relations]: the first is of the facts as they are, the others of draws of
    their subjects. n [runs, relations]: the facts behind it; independent: their subjects.
    """

    rows: Floats
    n: Ints
    independent: Ints
    share: bool = False
    pulled: bool = False

    @property
    def values(self) -> Floats:
        """The number as it is; [runs, relations]."""
        return np.asarray(self.rows[0])

    def cell(self, run: int, relation: int) -> Estimate:
        """One run in one relation."""
        return self._estimate(run, np.array([relation]))

    def mean(self, run: int) -> Estimate:
        """The mean over the relations that were measured; n is the number of facts behind it."""
        return self._estimate(run, self.measured(run))

    def measured(self, *runs: int) -> Ints:
        """The relations in which all of these runs have a number."""
        return np.flatnonzero(~np.isnan(self.values[list(runs)]).any(axis=0))

    def means(self) -> Floats:
        """The mean over relations of every run in every draw; [1 + draws, runs]."""
        runs = range(self.rows.shape[1])
        made = [self.rows[:, i, self.measured(i)] for i in runs]
        empty = np.full(len(self.rows), np.nan)
        return np.stack([m.mean(axis=1) if m.size else empty for m in made], axis=1)

    def difference(self, one: int, other: int) -> Estimate:
        """How much higher one run's mean is, over the relations that both have; paired by draws.

        n is the smaller of the two numbers of facts.
        """
        own = self.measured(one, other)
        if not len(own):
            return Estimate.not_measured()
        first, second = (self.rows[:, i][:, own].mean(axis=1) for i in (one, other))
        n = int(self.n[[one, other]][:, own].min(axis=0).sum())
        rows = first - second
        subjects = self.independent[[one, other]][:, own].min(axis=0)
        if self.share and not np.ptp(rows):
            ends = unvaried_difference(float(rows[0]), _trials(subjects))
            return Estimate(value=float(rows[0]), low=ends[0], high=ends[1], n=n)
        return sure(around(float(rows[0]), self._drawn(rows), n), subjects)

    def _estimate(self, run: int, relations: Ints) -> Estimate:
        own = self.rows[:, run][:, relations]
        if not own.size or np.isnan(own[0]).any():
            return Estimate.not_measured()
        rows, n = own.mean(axis=1), int(self.n[run, relations].sum())
        value = float(rows[0])
        subjects = self.independent[run, relations]
        low, high = self._ends(rows, subjects)
        low, high = max(0.0, min(low, value)), max(high, value)
        high = min(1.0, high) if self.share else high
        return sure(Estimate(value=value, low=low, high=high, n=n), subjects, self.share)

    def _ends(self, rows: Floats, subjects: Ints) -> tuple[float, float]:
        """The ends of the interval; of a share that no draw moves, Wilson's."""
        if self.share and not np.ptp(rows):
            trials = _trials(subjects)
            return wilson(float(rows[0]) * trials, trials)
        return percentile_interval(self._drawn(rows))

    def _drawn(self, rows: Floats) -> Floats:
        moved = rows[1:] - rows[1:].mean() + rows[0] if self.pulled else rows[1:]
        return np.asarray(moved)


def sure(estimate: Estimate, independent: Ints, share: bool = False) -> Estimate:
    """The estimate, without an interval where one subject stands behind it and it is no share."""
    return estimate if share or independent.sum() > 1 else replace(estimate, low=None, high=None)


def _trials(independent: Ints) -> float:
    """So many independent facts say as much as a mean over relations of so many each."""
    return float(len(independent) ** 2 / (1 / independent).sum())


def resampled(common: Common, columns: Floats, seed: int) -> Iterator[Floats]:
    """Sums of columns [facts, k] over each relation, [1 + draws, k]: as they are, then drawn anew.

    A relation has a stream of its own, the same whatever the columns are.
    """
    for number, relation in enumerate(common.relations):
        sums = _by_subject(common, columns, number)
        drawn = resampled_sums(sums, stream(seed, f"reliability:{relation.id}"))
        yield np.concatenate([sums.sum(axis=0)[None], drawn])


def ratios(common: Common, columns: Sequence[Floats], seed: int) -> Floats:
    """Of every two columns [facts] the first's sum over the second's; [1 + draws, k, relations]."""
    of_relations = resampled(common, np.column_stack(columns), seed)
    return np.stack([ratio(sums[:, ::2], sums[:, 1::2]) for sums in of_relations], axis=2)


def p_value(common: Common, monitor: Measure, one: int, other: int, seed: int) -> float:
    """Of the difference between two runs' MONITORs over the relations that both have: subjects may
    as well have had each other's distances and anchors."""

    def by_subject(run: int, relation: int) -> Floats:
        parts = common.parts[run]
        columns = np.column_stack([parts.whole, parts.anchors]) * parts.counted[:, None]
        return _by_subject(common, columns, relation)

    relations = monitor.measured(one, other).tolist()
    first, second = ([by_subject(run, r) for r in relations] for run in (one, other))
    return swapped(first, second, stream(seed, f"monitor:{one}:{other}")) if first else 1.0


def _by_subject(common: Common, columns: Floats, relation: int) -> Floats:
    """What each subject of a relation adds to the sums of columns [facts, k]; [subjects, k]."""
    own = common.owners == relation
    _, index = np.unique(common.subjects[own], return_inverse=True)
    sums = np.zeros((int(index.max()) + 1, columns.shape[1]))
    np.add.at(sums, index, columns[own])
    return sums


def measures(common: Common, seed: int = 0) -> dict[str, Measure]:
    """Every number of the runs by its name."""
    both = zip(common.monitored, common.parts, strict=True)
    blocks = [np.column_stack([distances(k, parts), answers(k)]) for k, parts in both]
    ends = np.cumsum([0, *(block.shape[1] for block in blocks)])
    shape = (1 + DRAWS, len(common.runs), len(common.relations))
    rows: dict[str, Floats] = {}
    for r, sums in enumerate(resampled(common, np.column_stack(blocks), seed)):
        for i in range(len(common.runs)):
            for name, of in _numbers(sums[:, ends[i] : ends[i + 1]]).items():
                rows.setdefault(name, np.full(shape, np.nan))[:, i, r] = of
    return {name: measure(common, name, made) for name, made in rows.items()}


def measure(common: Common, name: str, rows: Floats) -> Measure:
    """The rows of a number with how many facts it is of."""
    kept = [_counting(run, name) for run in common.monitored]
    of_relations = [common.owners == r for r in range(len(common.relations))]
    subjects = common.subjects
    n = [[int((own & here).sum()) for here in of_relations] for own in kept]
    alone = [[len(np.unique(subjects[own & here])) for here in of_relations] for own in kept]
    return Measure(
        rows=settled(rows),
        n=np.array(n, dtype=np.int64),
        independent=np.array(alone, dtype=np.int64),
        share=name in SHARES,
        pulled=name in CENTRED,
    )


def _counting(run: Monitored, name: str) -> Bools:
    """The facts that a number is of: those that MONITOR counts, valid ones, or all."""
    if name in ("monitor", "pfd", "ird"):
        return run.counted()
    if name in ("anchor_probability", "solid_anchors"):
        return run.valid[run.rule]
    return np.ones(len(run.facts), dtype=np.bool_)


def settled(rows: Floats) -> Floats:
    """Rows in which a draw that tells nothing is as if it had given the number itself."""
    return np.where(np.isnan(rows), rows[:1], rows)


def distances(known: Monitored, parts: Parts) -> Floats:
    """What MONITOR and the anchors are sums of; [facts, 9]."""
    valid = known.valid[known.rule].astype(np.float64)
    ones, anchors = np.ones(len(valid)), parts.anchors
    counted = [parts.whole, anchors, parts.pfd, parts.ird, ones]
    per_counted = np.column_stack(counted) * parts.counted[:, None]
    per_valid = np.column_stack([anchors, anchors > SOLID, ones]) * valid[:, None]
    return np.column_stack([per_counted, per_valid, ones])


def answers(known: Monitored) -> Floats:
    """Right answers of each prompt (frames, then wrong names), then which were asked; [facts, 2p].

    The anchor is no such prompt.
    """
    width = max(len(right) - 1 for right in known.right)
    table = np.full((len(known.facts), width), np.nan)
    for c, right in enumerate(known.right):
        table[c, : len(right) - 1] = right[1:]
    return np.column_stack([np.nan_to_num(table), ~np.isnan(table)])


def _numbers(sums: Floats) -> Mapping[str, Floats]:
    """The numbers of a run in a relation from its sums; [rows, k] to [rows] each."""
    whole, weight, pfd, ird, counted, anchors, solid, valid, facts = sums[:, :9].T
    return {
        "monitor": ratio(whole, weight),
        "pfd": ratio(pfd, counted),
        "ird": ratio(ird, counted),
        "anchor_probability": ratio(anchors, valid),
        "solid_anchors": ratio(solid, valid),
        "anchor_rate": ratio(valid, facts),
        **_over_prompts(prompt_rates(sums[:, 9:])),
    }


def prompt_rates(sums: Floats) -> Floats:
    """The accuracy of each prompt; [rows, prompts]."""
    prompts = sums.shape[1] // 2
    return ratio(sums[:, :prompts], sums[:, prompts:])


def _over_prompts(rates: Floats) -> dict[str, Floats]:
    """What is made of the accuracies of the prompts that a relation has."""
    with np.errstate(invalid="ignore"):
        made = over_prompts(rates[:, ~np.isnan(rates[0])])
    return {f"prompt_accuracy.{name}": rows for name, rows in made.items()}


def ratio(part: Floats, whole: Floats) -> Floats:
    """One over the other; nan where there is nothing to divide by."""
    missing = np.full(np.shape(whole), np.nan)
    return np.asarray(np.divide(part, whole, out=missing, where=whole > 0))
