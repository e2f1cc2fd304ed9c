"""How much more often one run is right than another, on the same facts: of all, in each relation,
in each group, and of every two of many runs, with tests and intervals that hold together.

Groups are types of relations, tags and columns of the dataset, templates by their source. Every
fact counts the same; its value is the share of its prompts that are right. Facts of one subject are
drawn, and swapped, together. Knows aligned runs, nothing of tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, permutations
from typing import NamedTuple

import numpy as np

from sonde.analysis.runs import Aligned, drawn_sums
from sonde.core.fact_frames import APART
from sonde.core.reports import Estimate, Estimates, Metric
from sonde.core.words import by_test, told_apart
from sonde.metrics.accuracy import right_shares
from sonde.metrics.calibration import in_size
from sonde.metrics.consistency import agreement, matching_answers
from sonde.metrics.estimates import ByFact, Resampled, hold_together, p_value
from sonde.metrics.judged import Bools, Floats, Grid, Judged, around
from sonde.stats.intervals import largest_distance
from sonde.stats.paired import DRAWS, holm

MOST = 12
"""A column with more different values than this makes no groups."""


class Group(NamedTuple):
    """Prompts that have something in common, out of those of all runs."""

    kind: str
    name: str
    prompts: Bools


def groups(aligned: Aligned) -> list[Group]:
    """Every group that is neither empty nor everything, a kind after the other."""
    found = (*_of_relations(aligned), *_of_facts(aligned), *_of_templates(aligned))
    return [group for group in found if 0 < int(group.prompts.sum()) < len(group.prompts)]


def _of_relations(aligned: Aligned) -> Iterator[Group]:
    grid = aligned.first.grid
    kinds = np.array([relation.kind or "" for relation in aligned.first.relations])
    of_prompts = kinds[grid.relations[grid.pair]]
    for kind in sorted(set(kinds.tolist()) - {""}):
        yield Group("type", kind, of_prompts == kind)


def _of_facts(aligned: Aligned) -> Iterator[Group]:
    """By what the dataset says of facts, and by whether the name of the subject gives it away."""
    first = aligned.first
    if first.guessable is not None:
        guessable = first.guessable.astype(bool)
        yield Group("answer", "can be guessed from the subject's name", guessable)
        yield Group("answer", "cannot be guessed from it", ~guessable)
    facts = aligned.runs[0].facts
    if facts is None:
        return
    columns = ("fact", "gold", "commonest", "tags", "details")
    rows = {row["fact"]: row for row in facts.select(columns).iter_rows(named=True)}
    empty = {"gold": [], "commonest": False, "tags": [], "details": []}
    told = [rows.get(id, empty) for id in first.pairs]

    def group(kind: str, name: str, members: list[bool]) -> Group:
        return Group(kind, name, np.array(members, dtype=np.bool_)[first.grid.pair])

    yield group("answer", "the commonest of its relation", [row["commonest"] for row in told])
    yield group("answer", "another", [not row["commonest"] for row in told])
    yield group("answers", "one is right", [len(row["gold"]) < 2 for row in told])
    yield group("answers", "several are right", [len(row["gold"]) > 1 for row in told])
    tags = dict.fromkeys(tag for row in told for tag in row["tags"] if tag != APART)
    for tag in tags if len(tags) <= MOST else ():
        yield group("tag", tag, [tag in row["tags"] for row in told])
    columns_of = [{d["name"]: d["value"] for d in row["details"]} for row in told]
    for name in dict.fromkeys(name for row in columns_of for name in row):
        values = dict.fromkeys(row[name] for row in columns_of if name in row)
        for value in values if 1 < len(values) <= MOST else ():
            yield group(name, value, [row.get(name) == value for row in columns_of])


def _of_templates(aligned: Aligned) -> Iterator[Group]:
    first = aligned.first
    for kind in ("source", "style") if aligned.same_prompts else ():
        values = np.array([getattr(template, kind) for template in first.templates])
        for value in dict.fromkeys(values.tolist()):
            yield Group(f"templates by {kind}", value, (values == value)[first.grid.template])


RIGHT = Metric(
    "accuracy.mean_over_facts", "right", "percent", "share of a fact's prompts right, over facts"
)
LESS = Metric("difference", "difference", "points", "paired by fact", better="")
LOOKS = 100
"""Draws of a permutation test for each that is looked at, so that a corrected p can be small."""

COUPLES = 40
"""The same for every two of many runs, of which there may be hundreds: just enough."""

Couple = tuple[str, str]
"""Two runs, of which the second is subtracted from the first."""

Place = tuple[str, str]
"""A group: its kind and its name."""

Named = Iterator[tuple[str, Estimate]]


def minus(couple: Couple) -> str:
    """How the names of estimates of two runs end."""
    return f"runs.{couple[0]}.minus.{couple[1]}"


@dataclass(frozen=True, kw_only=True, eq=False)
class Differences:
    """Runs on the facts that all of them were asked, and what tells them apart.

    `pooled`: every two runs, the second named first; with three or more, intervals and p hold for
    all of these together. `others`: every run with the first one, in whose place it is looked at.
    """

    aligned: Aligned
    seed: int = 0

    @property
    def names(self) -> list[str]:
        """What the runs are called."""
        return self.aligned.names

    @property
    def others(self) -> list[Couple]:
        """Every other run, minus the first."""
        first, *others = self.names
        return [(other, first) for other in others]

    @cached_property
    def by_fact(self) -> ByFact:
        """The facts by relation; those of one subject belong together."""
        return self.aligned.by_pair(self.seed)

    @cached_property
    def shares(self) -> dict[str, Floats]:
        """Of each run the share of each fact's prompts that are right."""
        return dict(zip(self.names, self.aligned.shares(), strict=True))

    @cached_property
    def pooled(self) -> dict[Couple, Estimate]:
        """Of every two runs the difference over all facts."""
        couples = [(b, a) for a, b in combinations(self.names, 2)]
        found = {couple: self._overall(*couple) for couple in couples}
        return found if len(self.names) < 3 else self._together(found)

    def _overall(self, run: str, other: str) -> Estimate:
        resampled = self.by_fact.resampled(self.shares[run], self.shares[other])
        looks = len(self.names) * (len(self.names) - 1) // 2
        draws = max(DRAWS, COUPLES * looks)
        # the name of the stream says nothing of the order in which the runs were given
        p = p_value(resampled.samples, self.seed, LESS.id, over="facts", draws=draws)
        return by_test(resampled.mean_over_facts(), p)

    def _together(self, found: Mapping[Couple, Estimate]) -> dict[Couple, Estimate]:
        """The same with intervals that hold for all couples (max-|t|), and p corrected (Holm)."""
        columns: dict[str, tuple[Floats, Floats | None]] = {
            n: (s, None) for n, s in self.shares.items()
        }
        drawn = {n: _draws_over_facts(of) for n, of in self.by_fact.together(columns).items()}
        reach = largest_distance(np.column_stack([drawn[a] - drawn[b] for a, b in found]))
        ps = holm([estimate.p or 0.0 for estimate in found.values()])
        made = {}
        for (couple, estimate), far, p in zip(found.items(), reach.tolist(), ps, strict=True):
            value = estimate.value or 0.0
            low, high = max(value - far, -1.0), min(value + far, 1.0)
            if not far:  # nothing varies: its own interval says how far that may be chance
                low, high = estimate.ends
            made[couple] = by_test(replace(estimate, low=low, high=high), p)
        return made

    def of(self, run: str, other: str) -> Estimate:
        """How much more often a run is right than another."""
        if (run, other) in self.pooled:
            return self.pooled[run, other]
        e = self.pooled[other, run]
        low, high = (None if end is None else -end for end in (e.high, e.low))
        return replace(e, value=None if e.value is None else -e.value, low=low, high=high)

    @cached_property
    def accuracies(self) -> dict[str, Estimate]:
        """How often each run is right."""
        return {n: self.by_fact.resampled(s).mean_over_facts() for n, s in self.shares.items()}

    @cached_property
    def leaders(self) -> list[str]:
        """The runs, the one that is right most often first; equal ones as they were given."""
        return sorted(self.names, key=lambda name: -(self.accuracies[name].value or 0.0))

    @cached_property
    def ranks(self) -> dict[str, tuple[int, int]]:
        """Between which ranks each run lies: behind those that are clearly better, before those
        that are clearly worse."""
        made = {}
        for name in self.leaders:
            apart = [self.of(name, other) for other in self.names if other != name]
            clear = [difference.value or 0.0 for difference in apart if told_apart(difference)]
            worse, better = (sum(sign * value > 0 for value in clear) for sign in (1, -1))
            made[name] = (1 + better, len(self.names) - worse)
        return made

    @cached_property
    def relations(self) -> dict[tuple[str, Couple], Estimate]:
        """By relation and couple; all of them hold together."""
        found = {}
        ids = self.by_fact.ids
        for couple in self.others:
            resampled = self.by_fact.resampled(*(self.shares[name] for name in couple))
            for id in ids:
                found[id, couple] = self._tested(resampled, [id], len(ids) * len(self.others))
        return dict(zip(found, hold_together(list(found.values())), strict=True))

    @cached_property
    def groups(self) -> dict[tuple[Place, Couple], Estimate]:
        """By group and couple, what was asked of the group alone; all of them hold together."""
        kept = groups(self.aligned)
        looks = len(kept) * len(self.others)
        found = {}
        for group in kept:
            shares = self._shares_in(group)
            for couple in self.others:
                resampled = self.by_fact.resampled(*(shares[name] for name in couple))
                made = self._tested(resampled, list(resampled.samples), looks)
                found[(group.kind, group.name), couple] = made
        return dict(zip(found, hold_together(list(found.values())), strict=True))

    def _shares_in(self, group: Group) -> dict[str, Floats]:
        """Of each run the share right of each fact in a group, nan of others."""
        grids = {run.name: run.judged.grid for run in self.aligned.runs}
        if self.aligned.same_prompts:
            return {n: right_shares(grid.rows(group.prompts)) for n, grid in grids.items()}
        facts = self.aligned.first.grid.pair[group.prompts]
        return {n: right_shares(g.rows(np.isin(g.pair, facts))) for n, g in grids.items()}

    def _tested(self, of: Resampled, relations: Sequence[str], looks: int) -> Estimate:
        """A difference over the facts of some relations with the p of its test."""
        samples = {id: of.samples[id] for id in relations}
        made = of.weighted_mean({id: float(len(s.values)) for id, s in samples.items()})
        draws = max(DRAWS, LOOKS * looks)
        return replace(made, p=p_value(samples, self.seed, LESS.id, over="facts", draws=draws))

    @cached_property
    def consist(self) -> dict[Couple, Estimate]:
        """How much more often two prompts of a fact get the same answer."""
        agree = {run.name: _agreement(run.judged) for run in self.aligned.runs}
        return {
            couple: self.by_fact.resampled(*(agree[name] for name in couple)).mean_over_facts()
            for couple in self.others
        }

    @cached_property
    def overconf(self) -> dict[Couple, Estimate]:
        """How much further confidence is above accuracy, over the prompts that have one."""
        runs = {run.name: run.judged.grid for run in self.aligned.runs}
        return {couple: self._overconf(*(runs[name] for name in couple)) for couple in self.others}

    def _overconf(self, run: Grid, other: Grid) -> Estimate:
        columns = np.column_stack([column for grid in (run, other) for column in _gaps(grid)])
        if not columns[:, [1, 3]].sum(axis=0).all():
            return Estimate.not_measured()
        of = self.by_fact
        drawn = [*drawn_sums(columns, of.relation, of.ids, self.seed, of.subject)]
        rows = _mean_gap([sums[:, :2] for sums in drawn]) - _mean_gap([s[:, 2:] for s in drawn])
        kept = rows[1:][np.isfinite(rows[1:])]
        return around(float(rows[0]), kept, n=int(columns[:, 1].sum()))

    def estimates(self) -> Estimates:
        """Every number by its stable name."""
        return dict(self._named())

    def _named(self) -> Named:
        for name, estimate in self.accuracies.items():
            yield RIGHT.at(f"run.{name}"), estimate
        for couple in permutations(self.names, 2):
            yield LESS.at(minus(couple)), self.of(*couple)
        for (id, couple), estimate in self.relations.items():
            yield LESS.at(f"relation.{id}.{minus(couple)}"), estimate
        for ((kind, name), couple), estimate in self.groups.items():
            group = re.sub(r"[^\w.-]+", "-", f"{kind}.{name}")
            yield LESS.at(f"group.{group}.{minus(couple)}"), estimate
        for metric, found in (("consist", self.consist), ("overconf", self.overconf)):
            for couple, estimate in found.items():
                yield f"{metric}.{minus(couple)}", estimate


def _draws_over_facts(of: Resampled) -> Floats:
    """The mean over facts, drawn anew many times."""
    sizes = {name: len(sample.values) for name, sample in of.samples.items()}
    total = sum(sizes.values())
    parts = [of.draws(name) * (size / total) for name, size in sizes.items()]
    return np.asarray(np.sum(parts, axis=0))


def _agreement(judged: Judged) -> Floats:
    """How often two prompts of each pair get the same answer."""
    matches = judged.matches
    return agreement(judged.grid, matches and matching_answers(judged.answers, matches))


def _mean_gap(relations: Sequence[Floats]) -> Floats:
    """The mean gap over all prompts, as it is and in every draw; from each relation's sum of gaps
    and number of prompts, [1 + draws, 2]. Relations keep their sizes, as they do for accuracy."""
    having = [sums for sums in relations if sums[0, 1]]
    with np.errstate(invalid="ignore", divide="ignore"):
        scaled = [in_size(sums, sums[0, 1])[:, 0] for sums in having]
    return np.asarray(np.sum(scaled, axis=0) / sum(sums[0, 1] for sums in having))


def _gaps(grid: Grid) -> tuple[Floats, Floats]:
    """Of each pair the sum of confidence minus right, and over how many prompts."""
    sure, pairs = ~np.isnan(grid.confidence), len(grid.relations)
    gaps = (grid.confidence - grid.right)[sure]
    sums: Floats = np.bincount(grid.pair[sure], gaps, minlength=pairs).astype(np.float64)
    counts: Floats = np.bincount(grid.pair[sure], minlength=pairs).astype(np.float64)
    return sums, counts
