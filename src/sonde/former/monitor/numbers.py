"""Every number of MONITOR: what they are called, and their estimates. Knows outcomes, no tables.

Accuracies are over prompts: the frames with nothing told, and the base frame after each wrong name
(PART `accuracy`), or every frame after each wrong name (`full`); GROUP is all facts, or those with
a valid anchor.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from sonde.core.fingerprints import draw_key
from sonde.core.reports import Estimate, Metric
from sonde.metrics.abstention import ABSTENTION
from sonde.metrics.distance import (
    ANCHOR,
    IRD,
    MONITOR,
    PFD,
    PULLED,
    ROUNDING,
    RULES,
    SOLID,
    SOLID_ANCHORS,
    Ratios,
    combined,
    over_prompts,
)
from sonde.metrics.estimates import RELATIONS, ByFact
from sonde.metrics.judged import Bools, Floats
from sonde.former.monitor.judge import Outcomes
from sonde.reporting.catalogue import shares
from sonde.stats.intervals import percentile_interval, resampled_rates, unvaried_difference, wilson

DIFFERENCE = Metric(
    "ird_minus_pfd", "IRD minus PFD", "number", "their difference, fact by fact", better=""
)
ANCHOR_RATE, COPIED = shares(
    ("anchor_rate.{rule}", "anchors, {rule}", "share of facts with an anchor valid so", "higher"),
    ("copied_wrong_name", "copied", "share of answers after a wrong name that repeat it", "lower"),
)
OVER_PROMPTS = AVG, MAX, MIN, STDEV, BASE, MAJORITY, ABOVE = shares(
    ("{part}.{group}.avg", "avg", "mean accuracy over prompts", "higher"),
    ("{part}.{group}.max", "max", "of the best prompt", "higher"),
    ("{part}.{group}.min", "min", "of the worst prompt", "higher"),
    ("{part}.{group}.stdev", "stdev", "over prompts", "lower"),
    ("{part}.{group}.base", "base", "of the base frame", "higher"),
    ("{part}.{group}.majority", "majority", "always the commonest object", ""),
    ("{part}.{group}.above", "above", "avg minus majority; from −1 to 1", "higher"),
    differences=("{part}.{group}.above",),
)
GROUPS = ("all", "valid")

BY_FACT = (
    *(MONITOR, PFD, IRD, DIFFERENCE, ANCHOR, SOLID_ANCHORS),
    *(ANCHOR_RATE.of(rule=rule) for rule in RULES),
    COPIED,
)
METRICS = (*BY_FACT, *OVER_PROMPTS, *ABSTENTION)


def of_all(metric: Metric) -> Metric:
    """An accuracy over prompts, of all facts."""
    return metric.of(part="accuracy", group="all")


def measure(outcomes: Outcomes) -> dict[str, Estimate]:
    """Everything that is estimated."""
    known = outcomes.monitored
    by_fact = ByFact.of(known.relations, known.relation, outcomes.subjects, known.seed)
    estimates = _ratios(outcomes, by_fact)
    for metric, values, minus in _values(outcomes):
        estimates |= by_fact.estimates(metric.id, values, minus)
    groups = {"all": np.ones(len(known.facts), np.bool_), "valid": known.valid[known.rule]}
    for (part, table), group in product(accuracy_tables(outcomes).items(), GROUPS):
        spreads = _spreads(outcomes, by_fact, table, groups[group])
        for metric, place in product(OVER_PROMPTS, spreads):
            name = metric.of(part=part, group=group).at(place)
            estimates[name] = spreads[place].estimate(metric.label)
    return estimates


def _ratios(outcomes: Outcomes, by_fact: ByFact) -> dict[str, Estimate]:
    known, counted = outcomes.monitored, outcomes.monitored.counted()

    def by_relation(values: np.ndarray) -> dict[str, np.ndarray]:
        return {id: values[(known.relation == r) & counted] for r, id in enumerate(by_fact.ids)}

    whole = combined(known.pfd(), known.ird(), known.alphas)
    values, anchors, subjects = map(by_relation, (whole, known.anchors(), outcomes.subjects))
    ratios = Ratios(values, anchors, subjects, known.seed)
    return {
        MONITOR.at(RELATIONS): ratios.mean_over_relations(),
        **{MONITOR.at(f"relation.{id}"): ratios.relation(id) for id in by_fact.ids},
    }


def _values(outcomes: Outcomes) -> Iterator[tuple[Metric, Floats, Floats | None]]:
    """One value for each fact, of every mean, and what is taken from it."""
    known = outcomes.monitored
    counted, valid = known.counted(), known.valid[known.rule]
    pfd, ird = (np.where(counted, values, np.nan) for values in (known.pfd(), known.ird()))
    yield PFD, pfd, None
    yield IRD, ird, None
    yield DIFFERENCE, ird, pfd
    yield ANCHOR, np.where(valid, known.anchors(), np.nan), None
    yield SOLID_ANCHORS, np.where(valid, known.anchors() > SOLID, np.nan), None
    for rule in RULES:
        yield ANCHOR_RATE.of(rule=rule), known.valid[rule].astype(np.float64), None
    yield COPIED, outcomes.copied, None


def accuracy_tables(outcomes: Outcomes) -> dict[str, Floats]:
    """Whether each fact was answered with each prompt, the base frame first; nan where not asked.

    By part: [facts, prompts].
    """
    asked = np.array([len(right) for right in outcomes.monitored.right], dtype=np.int64)
    right = outcomes.right[:, 1:]
    few = np.where(np.arange(right.shape[1]) < asked[:, None] - 1, right, np.nan)
    return {"accuracy": few, "full": right} if outcomes.full and len(asked) else {"accuracy": few}


class Spread(NamedTuple):
    """What accuracies over prompts come to: in truth, then under resampling of `subjects`."""

    rows: Mapping[str, Floats]
    subjects: float
    facts: int

    def estimate(self, what: str) -> Estimate:
        """One of them; where no draw differs, with the interval of a share of so many trials."""
        if not self.rows or np.isnan(self.rows[what][0]):
            return Estimate.not_measured()
        value, draws = float(self.rows[what][0]), self.rows[what][1:]
        if what in PULLED:
            draws = draws - draws.mean() + value
        low, high = percentile_interval(draws)
        if low == high and what == "above":
            low, high = unvaried_difference(value, self.subjects)
        elif low == high and what != "stdev":
            low, high = wilson(value * self.subjects, self.subjects)
        low, high = max(low, -1.0 if what == "above" else 0.0), min(high, 1.0)
        return Estimate(value=value, low=min(low, value), high=max(high, value), n=self.facts)


def _spreads(outcomes: Outcomes, by_fact: ByFact, table: Floats, kept: Bools) -> dict[str, Spread]:
    """The accuracies over prompts of every relation, and their mean."""
    spreads = {}
    for number, relation in enumerate(by_fact.ids):
        rows = np.flatnonzero((by_fact.relation == number) & kept)
        right = table[rows][:, ~np.isnan(table[rows]).all(axis=0)]
        subjects = outcomes.subjects[rows]
        values = {}
        if len(rows):
            columns = np.column_stack([right, outcomes.by_majority[rows]])
            stream = np.random.default_rng(draw_key(by_fact.seed, relation))
            values = _over(resampled_rates(columns, subjects, stream))
        spreads[f"relation.{relation}"] = Spread(values, len(np.unique(subjects)), len(rows))
    return {RELATIONS: _mean([spread for spread in spreads.values() if spread.facts]), **spreads}


def _over(rates: Floats) -> dict[str, Floats]:
    """What is made of the accuracies of all prompts, the last column being the control's."""
    rows = over_prompts(rates[:, :-1])
    above = rows["avg"] - rates[:, -1]
    small = abs(above) < ROUNDING
    return {**rows, "majority": rates[:, -1], "above": np.where(small, 0.0, above)}


def _mean(spreads: Sequence[Spread]) -> Spread:
    """The mean over relations; as many trials as equal weights leave."""
    if not spreads:
        return Spread({}, 0.0, 0)
    rows = {what: np.array([spread.rows[what] for spread in spreads]) for what in spreads[0].rows}
    there = {what: each[~np.isnan(each[:, 0])] for what, each in rows.items()}
    return Spread(
        {
            what: each.mean(axis=0) if len(each) else np.full(1, np.nan)
            for what, each in there.items()
        },
        len(spreads) ** 2 / sum(1 / spread.subjects for spread in spreads),
        sum(spread.facts for spread in spreads),
    )
