"""Every number of MONITOR, by its name. Knows outcomes, no tables.

Names end in `.mean_over_relations` or `.relation.P36`. Accuracies are over prompts: the frames with
nothing told, and the base frame after each wrong name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sonde.core.fingerprints import draw_key
from sonde.core.reports import Estimate
from sonde.metrics.distance import (
    PULLED,
    ROUNDING,
    RULES,
    SOLID,
    Ratios,
    combined,
    over_prompts,
)
from sonde.metrics.estimates import ByFact
from sonde.metrics.grid import Bools, Floats, Ints
from sonde.probes.monitor.judge import Outcomes
from sonde.prompting.frames import cleaned
from sonde.stats.draws import resampled_sums
from sonde.stats.intervals import percentile_interval, unvaried_difference, wilson

GROUPS = ("all", "valid")
"""Whose accuracies are taken: of all facts, or of those with a valid anchor."""

OVER_PROMPTS = ("avg", "max", "min", "stdev", "base", "majority", "above")

Estimates = dict[str, Estimate]
Row = Callable[[Outcomes, int], Floats]
"""Whether a fact was answered in each of some prompts."""


def measure(outcomes: Outcomes) -> Estimates:
    """Everything that is estimated."""
    known = outcomes.monitored
    by_fact = ByFact(
        ids=tuple(relation.id for relation in known.relations),
        relation=known.relation,
        subject=outcomes.subjects,
        seed=known.seed,
    )
    estimates = _distances(outcomes, by_fact) | _shares(outcomes, by_fact)
    for group in GROUPS:
        kept = known.valid[known.rule] if group == "valid" else np.ones(len(known.facts), np.bool_)
        estimates.update(_accuracies(outcomes, kept, f"accuracy.{group}", prompts_of))
        if any(len(grid) for grid in outcomes.grid):
            estimates.update(_accuracies(outcomes, kept, f"full.{group}", grid_of))
    return estimates


def prompts_of(outcomes: Outcomes, c: int) -> Floats:
    """Whether a fact was answered in each prompt: frames, then wrong names."""
    return outcomes.monitored.right[c][1:].astype(np.float64)


def grid_of(outcomes: Outcomes, c: int) -> Floats:
    """Whether a fact was answered in each prompt of the full grid, the base frame first."""
    frames = len(outcomes.monitored.framed[c])
    bare = outcomes.monitored.right[c][1 : 1 + frames]
    return np.concatenate([bare, outcomes.grid[c].ravel()]).astype(np.float64)


def table_of(outcomes: Outcomes, relation: int, kept: Bools, row: Row = prompts_of) -> Floats:
    """Right or wrong for each kept fact of a relation and each prompt; nan where it has none."""
    places = np.flatnonzero((outcomes.monitored.relation == relation) & kept)
    found = [row(outcomes, c) for c in places.tolist()]
    width = max((len(row) for row in found), default=0)
    table = np.full((len(found), width), np.nan)
    for place, own in enumerate(found):
        table[place, : len(own)] = own
    return table


def _distances(outcomes: Outcomes, by_fact: ByFact) -> Estimates:
    known = outcomes.monitored
    counted, pfd, ird = known.counted(), known.pfd(), known.ird()

    def by_relation(values: Floats | Ints) -> dict[str, np.ndarray]:
        return {id: values[(known.relation == r) & counted] for r, id in enumerate(by_fact.ids)}

    ratios = Ratios(
        by_relation(combined(pfd, ird, known.alphas)),
        by_relation(known.anchors()),
        by_relation(outcomes.subjects),
        known.seed,
    )
    moved, misled = (np.where(counted, values, np.nan) for values in (pfd, ird))
    return {
        "monitor.mean_over_relations": ratios.mean_over_relations(),
        **{f"monitor.relation.{id}": ratios.relation(id) for id in by_fact.ids},
        **by_fact.estimates("pfd", moved),
        **by_fact.estimates("ird", misled),
        **by_fact.estimates("ird_minus_pfd", misled, moved),
    }


def _shares(outcomes: Outcomes, by_fact: ByFact) -> Estimates:
    """Means over facts that are plain shares or probabilities."""
    known = outcomes.monitored
    anchors = np.where(known.valid[known.rule], known.anchors(), np.nan)
    solid = np.where(np.isnan(anchors), np.nan, anchors > SOLID)
    rates = {f"anchor_rate.{rule}": known.valid[rule].astype(np.float64) for rule in RULES}
    shares = {"anchor_probability": anchors, "solid_anchors": solid, **rates}
    shares["copied_wrong_name"] = _copied(outcomes)
    return {k: e for name, own in shares.items() for k, e in by_fact.estimates(name, own).items()}


def _copied(outcomes: Outcomes) -> Floats:
    """The share of a fact's wrong names that the model says when they stand in front."""
    known = outcomes.monitored
    shares = np.full(len(known.facts), np.nan)
    for c, wrong in enumerate(known.wrong):
        said = known.said[c][1 + len(known.framed[c]) :]
        same = [cleaned(name) == text for name, text in zip(wrong, said, strict=True)]
        if same:
            shares[c] = np.mean(same)
    return shares


@dataclass(frozen=True, slots=True, kw_only=True)
class _Spread:
    """What accuracies over prompts come to: in truth, then under resampling of `subjects`."""

    rows: dict[str, Floats]
    subjects: float
    facts: int

    def estimate(self, what: str) -> Estimate:
        """One of them; where no draw differs, with the interval of a share of so many trials."""
        value, draws = float(self.rows[what][0]), self.rows[what][1:]
        if np.isnan(value):
            return Estimate.not_measured()
        if what in PULLED:
            draws = draws - draws.mean() + value
        low, high = percentile_interval(draws)
        if low == high and what == "above":
            low, high = unvaried_difference(value, self.subjects)
        elif low == high and what != "stdev":
            low, high = wilson(value * self.subjects, self.subjects)
        low, high = max(low, -1.0 if what == "above" else 0.0), min(high, 1.0)
        return Estimate(value=value, low=min(low, value), high=max(high, value), n=self.facts)


def _accuracies(outcomes: Outcomes, kept: Bools, name: str, row: Row) -> Estimates:
    """Over prompts: average, largest, smallest, standard deviation, and that of the base frame."""
    known = outcomes.monitored
    spreads: dict[str, _Spread] = {}
    for number, relation in enumerate(known.relations):
        own = np.flatnonzero((known.relation == number) & kept)
        if len(own):
            table = table_of(outcomes, number, kept, row)
            sums = _summed(table, outcomes.by_majority[own], outcomes.subjects[own])
            drawn = resampled_sums(sums, np.random.default_rng(draw_key(known.seed, relation.id)))
            rows = _over(np.vstack([sums.sum(axis=0), drawn]))
            spreads[f"relation.{relation.id}"] = _Spread(
                rows=rows, subjects=len(sums), facts=len(own)
            )
    if spreads:
        spreads["mean_over_relations"] = _mean(list(spreads.values()))
    places = ("mean_over_relations", *(f"relation.{relation.id}" for relation in known.relations))
    missing = Estimate.not_measured()
    return {
        f"{name}.{what}.{place}": spreads[place].estimate(what) if place in spreads else missing
        for place in places
        for what in OVER_PROMPTS
    }


def _mean(spreads: list[_Spread]) -> _Spread:
    """The mean over relations; as many trials as equal weights leave."""
    rows = {what: [s.rows[what] for s in spreads] for what in OVER_PROMPTS}
    there = {what: [row for row in own if not np.isnan(row[0])] for what, own in rows.items()}
    return _Spread(
        rows={w: np.mean(own, axis=0) if own else np.full(1, np.nan) for w, own in there.items()},
        subjects=len(spreads) ** 2 / sum(1 / s.subjects for s in spreads),
        facts=sum(s.facts for s in spreads),
    )


def _summed(table: Floats, by_majority: Bools, subjects: Ints) -> Floats:
    """Sums of each subject: right answers of every prompt, prompts there are, control, facts."""
    columns = np.concatenate(
        [
            np.nan_to_num(table),
            ~np.isnan(table),
            by_majority[:, None],
            np.ones((len(table), 1)),
        ],
        axis=1,
    )
    _, index = np.unique(subjects, return_inverse=True)
    sums = np.zeros((int(index.max()) + 1, columns.shape[1]))
    np.add.at(sums, index, columns)
    return sums


def _over(sums: Floats) -> dict[str, Floats]:
    """What is made of the accuracies of all prompts; [draws, columns] to [draws] each."""
    prompts = (sums.shape[1] - 2) // 2
    asked = sums[:, prompts : 2 * prompts]
    rates = np.divide(sums[:, :prompts], asked, out=np.full_like(asked, np.nan), where=asked > 0)
    control = sums[:, -2] / sums[:, -1]
    found = over_prompts(rates)
    above = found["avg"] - control
    return {**found, "majority": control, "above": np.where(abs(above) < ROUNDING, 0.0, above)}
