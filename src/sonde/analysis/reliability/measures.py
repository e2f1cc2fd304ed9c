"""What MONITOR says of several runs on the facts that all of them were asked about.

Knows probabilities and right answers, nothing of tables. Whatever is estimated is worked out at
once for the facts as they are and for many draws of their subjects, the same draws in all runs, so
that any two numbers can be compared by what they do in every draw.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any

import numpy as np

from sonde.analysis.runs import Compared, drawn_sums
from sonde.core.errors import UsageError
from sonde.core.facts import Relation
from sonde.core.reports import FLAT, Estimate
from sonde.metrics.distance import PULLED, SOLID, Monitored, combined, over_prompts
from sonde.metrics.judged import Floats, Ints, by_subject, stream
from sonde.stats.intervals import percentile_interval, unvaried_difference, wilson
from sonde.stats.paired import swapped

RATIOS = {
    "monitor": ("whole", "anchor", "counted"),
    "pfd": ("pfd", "counted", "counted"),
    "ird": ("ird", "counted", "counted"),
    "anchor_probability": ("valid_anchor", "valid", "valid"),
    "solid_anchors": ("solid", "valid", "valid"),
    "anchor_rate": ("valid", "facts", "facts"),
}
"""Numbers by name: which of `Parts` is summed over facts, by which the sum is divided, and which
says of how many facts the number is."""

SHARES = ("solid_anchors", "anchor_rate",
          *(f"prompt_accuracy.{name}" for name in ("avg", "max", "min", "base")))  # fmt: skip

CENTRED = tuple(f"prompt_accuracy.{name}" for name in PULLED)

Parts = Mapping[str, Floats]
"""What the numbers of a run are sums of, by name: a value for each fact."""


def parts_of(run: Monitored) -> Parts:
    """`whole` is the root that MONITOR sums. 0 for facts that it is not computed from: of `counted`
    those without a valid anchor or a wrong name, of `valid` the former."""
    anchors, pfd, ird = run.anchors(), run.pfd(), np.nan_to_num(run.ird())
    counted, valid = (of.astype(np.float64) for of in (run.counted(), run.valid[run.rule]))
    return {
        "whole": combined(pfd, ird, run.alphas) * counted,
        "anchor": anchors * counted,
        "pfd": pfd * counted,
        "ird": ird * counted,
        "counted": counted,
        "valid_anchor": anchors * valid,
        "solid": (anchors > SOLID) * valid,
        "valid": valid,
        "facts": np.ones(len(valid)),
    }


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Common:
    """Runs of MONITOR with the same facts in the same order, and how many each had beside them.

    `monitored[i]` is what run i measured of these facts, `parts[i]` what its numbers are made of;
    `subjects` are numbers, equal for facts of one relation about one subject.
    """

    runs: tuple[Compared, ...]
    monitored: tuple[Monitored, ...]
    parts: tuple[Parts, ...]
    left_out: Mapping[str, int]
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

    def sums(self, columns: Floats, seed: int) -> Iterator[Floats]:
        """Sums of columns [facts, k] over each relation, [1 + draws, k]: as they are, then drawn
        anew by subjects, the same whatever the columns are."""
        streams = [f"reliability:{relation.id}" for relation in self.relations]
        return drawn_sums(columns, self.owners, streams, seed, self.subjects)

    def ratios(
        self,
        name: str,
        parts: Sequence[Floats],
        wholes: Sequence[Floats],
        of: Sequence[Floats],
        seed: int,
    ) -> Measure:
        """Of each run, or whatever there are columns of, the sum of one over that of another."""
        columns, k = np.column_stack([*parts, *wholes]), len(parts)
        by_relation = [ratio(sums[:, :k], sums[:, k:]) for sums in self.sums(columns, seed)]
        return self.measure(name, np.stack(by_relation, axis=2), of)

    def measure(self, name: str, rows: Floats, of: Sequence[Floats]) -> Measure:
        """The rows of a number; `of`: which facts it is of, 1 or 0, in each run. A draw that tells
        nothing is as if it had given the number itself."""
        count = len(self.relations)
        alone = [np.unique(self.subjects[mask > 0], return_index=True)[1] for mask in of]
        owners = [self.owners[mask > 0][first] for mask, first in zip(of, alone, strict=True)]
        return Measure(
            rows=np.where(np.isnan(rows), rows[:1], rows),
            n=np.stack([np.bincount(self.owners, mask, count) for mask in of]).astype(np.int64),
            independent=np.stack([np.bincount(relations, minlength=count) for relations in owners]),
            share=name in SHARES,
            pulled=name in CENTRED,
        )


def in_common(runs: Sequence[Compared]) -> Common:
    """The runs on the facts that all of them measured, in an order that is that of no run."""
    monitored = {run.name: run.monitored for run in runs if run.monitored is not None}
    first = next(iter(monitored.values()))
    places = [{(f.relation, f.id): c for c, f in enumerate(of.facts)} for of in monitored.values()]
    shared = sorted(set(places[0]).intersection(*places[1:]))
    if not shared:
        raise UsageError("the runs share no fact; compare runs of the same facts and relations")
    order = [r for r in first.relations if any(key[0] == r.id for key in shared)]
    both = zip(monitored.values(), places, strict=True)
    chosen = [_chosen(run, [at[key] for key in shared], order) for run, at in both]
    subjects = [f"{fact.relation}:{fact.subject.id}" for fact in chosen[0].facts]
    return Common(
        runs=tuple(runs),
        monitored=tuple(chosen),
        parts=tuple(map(parts_of, chosen)),
        left_out={name: len(of.facts) - len(shared) for name, of in monitored.items()},
        subjects=np.unique(np.array(subjects), return_inverse=True)[1].astype(np.int64),
    )


OF_FACTS = ("facts", "anchor", "framed", "misled", "wrong", "said", "right")


def _chosen(run: Monitored, places: Sequence[int], order: Sequence[Relation]) -> Monitored:
    """Some facts in the order given, under the numbers of these relations."""
    ids = [relation.id for relation in run.relations]
    numbers = {relation.id: i for i, relation in enumerate(order)}
    kept: dict[str, Any] = {
        name: tuple(getattr(run, name)[c] for c in places)
        for name in (*OF_FACTS, *(["abstained"] if run.abstained else []))
    }
    return replace(
        run,
        relations=tuple(order),
        frames=tuple(run.frames[ids.index(relation.id)] for relation in order),
        relation=np.array([numbers[ids[run.relation[c]]] for c in places], dtype=np.int64),
        valid={rule: which[list(places)] for rule, which in run.valid.items()},
        **kept,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Measure:
    """One number of every run in every relation; nan where it was not measured.

    rows [1 + draws, runs, relations]: the first is of the facts as they are, the others of draws of
    their subjects. n [runs, relations]: the facts behind it; independent: their subjects. Drawing
    anew moves what is `pulled` to one side, which is moved back.
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
        return self._mean(run, np.array([relation]))

    def mean(self, run: int) -> Estimate:
        """The mean over the relations that were measured; n is the number of facts behind it."""
        return self._mean(run, self.measured(run))

    def measured(self, *runs: int) -> Ints:
        """The relations in which all of these runs have a number."""
        return np.flatnonzero(~np.isnan(self.values[list(runs)]).any(axis=0))

    def means(self) -> Floats:
        """The mean over relations of every run in every draw; [1 + draws, runs]."""
        of_runs = [self.rows[:, i, self.measured(i)] for i in range(self.rows.shape[1])]
        empty = np.full(len(self.rows), np.nan)
        return np.stack([m.mean(axis=1) if m.size else empty for m in of_runs], axis=1)

    def difference(self, run: int, other: int) -> Estimate:
        """How much higher one run's mean is, over the relations that both have; paired by draws.

        n is the smaller of the two numbers of facts.
        """
        both, relations = [run, other], self.measured(run, other)
        if not len(relations):
            return Estimate.not_measured()
        first, second = (self.rows[:, i][:, relations].mean(axis=1) for i in both)
        n, subjects = (of[both][:, relations].min(axis=0) for of in (self.n, self.independent))
        return self.estimate(first - second, n, subjects, paired=True)

    def _mean(self, run: int, relations: Ints) -> Estimate:
        rows = self.rows[:, run][:, relations]
        if not rows.size or np.isnan(rows[0]).any():
            return Estimate.not_measured()
        return self.estimate(
            rows.mean(axis=1), self.n[run, relations], self.independent[run, relations]
        )

    def estimate(self, rows: Floats, n: Ints, subjects: Ints, *, paired: bool = False) -> Estimate:
        """The first of the rows with the middle 95 % of the others.

        Of a share that no draw moves it is the interval of as many independent facts; of another
        number there is none where one subject stands behind it.
        """
        value, facts = float(rows[0]), int(n.sum())
        if not self.share and subjects.sum() <= 1:
            return Estimate(value=value, low=None, high=None, n=facts)
        if self.share and np.ptp(rows) <= FLAT:
            # so many independent facts say as much as a mean over relations of so many each
            trials = float(len(subjects) ** 2 / (1 / subjects).sum())
            flat = unvaried_difference if paired else _share_interval
            low, high = flat(value, trials)
        else:
            drawn = rows[1:] - rows[1:].mean() + value if self.pulled else rows[1:]
            low, high = percentile_interval(drawn)
        least, most = (-inf, inf) if paired else (0.0, 1.0 if self.share else inf)
        return Estimate(
            value=value, low=max(least, min(low, value)), high=min(most, max(high, value)), n=facts
        )


def _share_interval(share: float, trials: float) -> tuple[float, float]:
    return wilson(share * trials, trials)


def p_value(common: Common, monitor: Measure, run: int, other: int, seed: int) -> float:
    """Of the difference between two runs' MONITORs over the relations that both have: subjects may
    as well have had each other's distances and anchors."""
    relations = monitor.measured(run, other).tolist()

    def sums(run: int) -> list[Floats]:
        columns = np.column_stack([common.parts[run][part] for part in ("whole", "anchor")])
        facts = [common.owners == relation for relation in relations]
        return [by_subject(columns[rows], common.subjects[rows]) for rows in facts]

    rng = stream(seed, f"monitor:{run}:{other}")
    return swapped(sums(run), sums(other), rng) if relations else 1.0


def measures(common: Common, seed: int = 0) -> dict[str, Measure]:
    """Every number of the runs by its name."""
    numbers: dict[str, Measure] = {}
    for name, keys in RATIOS.items():
        parts, wholes, of = ([of_run[key] for of_run in common.parts] for key in keys)
        numbers[name] = common.ratios(name, parts, wholes, of, seed)
    asked = [parts["facts"] for parts in common.parts]
    tables = [_accuracy_rows(common, run, seed) for run in common.monitored]
    for name in tables[0]:
        rows = np.stack([table[name] for table in tables], axis=1)
        numbers[name] = common.measure(name, rows, asked)
    return numbers


def _accuracy_rows(common: Common, run: Monitored, seed: int) -> dict[str, Floats]:
    """What is made of the accuracies of the prompts that a relation has, by name; [1 + draws,
    relations] each."""
    by_relation = []
    for sums in common.sums(answers(run), seed):
        rates = prompt_rates(sums)
        with np.errstate(invalid="ignore"):
            by_relation.append(over_prompts(rates[:, ~np.isnan(rates[0])]))
    return {
        f"prompt_accuracy.{name}": np.stack([rows[name] for rows in by_relation], axis=1)
        for name in by_relation[0]
    }


def answers(run: Monitored) -> Floats:
    """Right answers of each prompt (frames, then wrong names), then which were asked; [facts, 2p].

    The anchor is no such prompt.
    """
    width = max(len(right) - 1 for right in run.right)
    table = np.full((len(run.facts), width), np.nan)
    for c, right in enumerate(run.right):
        table[c, : len(right) - 1] = right[1:]
    return np.column_stack([np.nan_to_num(table), ~np.isnan(table)])


def prompt_rates(sums: Floats) -> Floats:
    """The accuracy of each prompt; [rows, prompts]."""
    prompts = sums.shape[1] // 2
    return ratio(sums[:, :prompts], sums[:, prompts:])


def ratio(part: Floats, whole: Floats) -> Floats:
    """One over the other; nan where there is nothing to divide by."""
    missing = np.full(np.shape(whole), np.nan)
    return np.asarray(np.divide(part, whole, out=missing, where=whole > 0))
