"""The numbers of single runs that are set beside those of others, and what each gets right in each
relation. Knows judged prompts and aligned runs, nothing of tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sonde.analysis.runs import UNKNOWN, Aligned, Lineage, Reading, pair_shares, samples
from sonde.core.reports import Estimate
from sonde.metrics.accuracy import (
    acc_at_1,
    fluctuation,
    manual_rank,
    manual_rank_by_chance,
    one_word_rate,
)
from sonde.metrics.calibration import Bin, calibration, overconf_by_template
from sonde.metrics.consistency import (
    Agreeing,
    consist,
    consist_of_texts,
    equal_answers,
    matching_answers,
    names_only,
    paraphrase_groups,
    templates_only,
    within_groups,
)
from sonde.metrics.coverage import coverage, names_help
from sonde.metrics.estimates import Lead, Resampled, Sample, lead
from sonde.metrics.grid import Floats, Ints, around, stream
from sonde.metrics.judged import Judged
from sonde.stats.intervals import DRAWS
from sonde.stats.paired import shuffled

Estimates = dict[str, Estimate]


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """The estimates of a run by name, and the bins of its calibration curve."""

    estimates: Estimates
    bins: tuple[Bin, ...]


def main_numbers(judged: Judged, reading: Reading) -> Numbers:
    """Accuracy, fluctuation, Consist, Overconf and one-word rate: the papers' table."""
    grid, seed = judged.grid, reading.seed
    moved = fluctuation(grid, reading.draw, reading.draws, seed)
    sure = calibration(grid.confidence, grid.right, grid.pair, seed=seed)
    missing = Estimate.not_measured()
    estimates = {
        "acc_at_1": acc_at_1(grid, seed),
        f"fluctuation.{reading.draw}.range": moved.range if moved else missing,
        f"fluctuation.{reading.draw}.stdev": moved.stdev if moved else missing,
        "consist": _consist(judged, seed),
        "overconf": sure.overconf if sure else missing,
        "ece": sure.ece if sure else missing,
        "one_word_rate": one_word_rate(judged.words, seed, grid.pair),
    }
    return Numbers(estimates=estimates, bins=sure.bins if sure else ())


def all_numbers(judged: Judged, reading: Reading) -> Numbers:
    """The main numbers, and coverage, drivers, names, manual templates, Overconf by template."""
    main, seed = main_numbers(judged, reading), reading.seed
    reach = coverage(judged.grid, seed)
    names = ("average", "average_best_name", "maximum", "oracle")
    return replace(
        main,
        estimates={
            **main.estimates,
            **{f"coverage.{name}": getattr(reach, name) for name in names},
            **_drivers(judged, seed),
            **names_help(judged, seed),
            **_manual(judged, seed),
            **overconf_by_template(judged.grid, judged.sure, reading.floor, seed),
        },
    )


def _consist(judged: Judged, seed: int) -> Estimate:
    if judged.matches is None:
        return consist(judged.grid, seed)
    return consist_of_texts(judged.grid, judged.answers, judged.matches, seed)


def _agreeing(judged: Judged) -> Agreeing:
    if judged.matches is None:
        return equal_answers
    return matching_answers(judged.answers, judged.matches)


def _drivers(judged: Judged, seed: int) -> Estimates:
    vary = {"names_only": names_only, "templates_only": templates_only}
    agreeing = _agreeing(judged)
    drivers = {name: measure(judged.grid, seed, agreeing) for name, measure in vary.items()}
    return {
        f"{name}.{kind}": getattr(driver, kind)
        for name, driver in drivers.items()
        for kind in ("consist", "min", "max")
    }


def _manual(judged: Judged, seed: int) -> Estimates:
    grid = judged.grid
    manual = np.array([t.source == "manual" for t in judged.templates], dtype=np.bool_)
    groups = within_groups(
        grid, paraphrase_groups(judged.templates, grid.template_relations), seed, _agreeing(judged)
    )
    return {
        "manual.rank": manual_rank(grid, manual, seed),
        "manual.rank_by_chance": manual_rank_by_chance(grid, manual),
        "groups.inner_consist": groups.inner,
        "groups.inter_consist": groups.inter,
    }


USUAL_SIZE = 7_000_000_000
"""Families are ordered by their model of about this size, which most of them have."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ByRelation:
    """Accuracies: of a pair the share of its prompts that are right, averaged over pairs.

    accuracies[run][relation]; mean[run] is over relations, each counting the same, and stdev[run]
    their standard deviation (n - 1), not measured for one relation. relations[relation]: the mean
    over runs. best_first: the relations by that mean; best and least: the first and the last of
    them, with those that are not told from it. runs: the order in which runs are shown.
    """

    accuracies: tuple[tuple[Estimate, ...], ...]
    mean: tuple[Estimate, ...]
    stdev: tuple[Estimate, ...]
    relations: tuple[Estimate, ...]
    best_first: tuple[int, ...]
    best: Lead | None
    least: Lead | None
    runs: tuple[int, ...]

    @property
    def values(self) -> Floats:
        """The accuracies as numbers; [runs, relations]."""
        return np.array([[e.value for e in row] for row in self.accuracies], dtype=np.float64)

    @property
    def leaders(self) -> list[int]:
        """The runs, the most accurate first."""
        return sorted(range(len(self.mean)), key=lambda run: -(self.mean[run].value or 0.0))


def by_relation(aligned: Aligned, seed: int = 0) -> ByRelation:
    """The accuracy of every run in every relation; intervals are over pairs within relations."""
    first, ids = aligned.first, [relation.id for relation in aligned.first.relations]
    shares = [pair_shares(run.judged) for run in aligned.runs]
    of_runs = [Resampled(samples(first, row), seed) for row in shares]
    mean = tuple(run.mean_over_relations() for run in of_runs)
    together = Resampled(samples(first, np.mean(shares, axis=0)), seed)
    relations = tuple(together.relation(id) for id in ids)
    order = sorted(range(len(ids)), key=lambda r: (-(relations[r].value or 0.0), ids[r]))
    return ByRelation(
        accuracies=tuple(tuple(run.relation(id) for id in ids) for run in of_runs),
        mean=mean,
        stdev=tuple(_stdev(run) for run in of_runs),
        relations=relations,
        best_first=tuple(order),
        best=_lead(together, seed),
        least=_lead(together, seed, lowest=True),
        runs=run_order([run.lineage for run in aligned.runs], [e.value or 0.0 for e in mean]),
    )


def paired(aligned: Aligned, one: int, other: int) -> dict[str, Sample]:
    """What each of two runs gets right of every pair, by relation."""
    first, second = (pair_shares(aligned.runs[run].judged) for run in (one, other))
    return samples(aligned.first, first, minus=second)


def differences(aligned: Aligned, one: int, other: int, seed: int = 0) -> Resampled:
    """How much more often one run is right than another on the same pairs, relation by relation."""
    return Resampled(paired(aligned, one, other), seed)


def run_order(lineages: Sequence[Lineage], accuracies: Sequence[float]) -> tuple[int, ...]:
    """Runs with their families together: the family whose model of about 7 billion parameters is
    best first, and within a family the best run first.

    A family of which no size is known goes by its best run; a model without a family is alone.
    """
    families: dict[str, list[int]] = {}
    for i, lineage in enumerate(lineages):
        alone = lineage.family == UNKNOWN
        families.setdefault(f"alone:{i}" if alone else lineage.family, []).append(i)

    def standing(members: Sequence[int]) -> tuple[float, str]:
        off = {i: abs(size - USUAL_SIZE) for i in members if (size := lineages[i].size) is not None}
        near = [i for i in off if off[i] == min(off.values())] or members
        return -max(accuracies[i] for i in near), min(lineages[i].model for i in members)

    return tuple(
        i
        for members in sorted(families.values(), key=standing)
        for i in sorted(members, key=lambda i: (-accuracies[i], lineages[i].model))
    )


def extremes(values: Floats, ids: Sequence[str], most: int = 3) -> tuple[Ints, Ints]:
    """The best and the worst relations of a run, the best first; no relation is in both.

    >>> extremes(np.array([0.2, 0.9, 0.5]), "abc")
    (array([1]), array([0]))
    """
    order = np.array(sorted(range(len(ids)), key=lambda r: (-values[r], ids[r])), dtype=np.int64)
    shown = min(most, len(order) // 2)
    return order[:shown], order[len(order) - shown :]


def _lead(of: Resampled, seed: int, *, lowest: bool = False) -> Lead | None:
    """The relation known best, or least; each has facts of its own, so that nothing is paired."""
    values = {id: float(sample.values.mean()) for id, sample in of.samples.items()}

    def test(one: str, other: str) -> float:
        first, second = (of.samples[id].values for id in (one, other))
        return shuffled(first, second, stream(seed, f"relations:{one}:{other}"), DRAWS)

    return lead(values, test, lowest=lowest)


def _stdev(of: Resampled) -> Estimate:
    """The standard deviation over relations; resampling makes them differ more, which is moved
    back."""
    means = np.array([sample.values.mean() for sample in of.samples.values()])
    if len(means) < 2:
        return Estimate.not_measured()
    value = float(means.std(ddof=1))
    draws = np.stack([of.draws(name) for name in of.samples]).std(axis=0, ddof=1)
    return around(value, np.maximum(draws - draws.mean() + value, 0.0), n=len(means))
