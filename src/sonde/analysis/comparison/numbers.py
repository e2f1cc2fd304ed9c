"""Every number of runs side by side, by its stable name: of each run on the shared prompts, of each
relation, of every two runs. Knows aligned runs; tables, figures and sentences are made elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from sonde.analysis.comparison.couples import TemplateOrder, correlation, groups_of, sharing
from sonde.analysis.runs import (
    UNKNOWN,
    Aligned,
    Kin,
    Lineage,
    Reading,
    smallest_and_largest,
    subjects_of,
    tuned,
    with_subjects,
)
from sonde.core.reports import Estimate, Estimates, Metric
from sonde.metrics.accuracy import names_help, one_word_rate
from sonde.metrics.calibration import Bin, overconf_by_template
from sonde.metrics.consistency import consist_of_texts, matching_answers
from sonde.metrics.estimates import Lead, Resampled, lead
from sonde.metrics.judged import Floats, Judged, around, by_subject, stream
from sonde.reporting.build.multi_prompt.numbers import (
    ABOVE,
    MAJORITY,
    METRICS,
    ONE_WORD,
    manual_ranks,
    measure,
    moved,
)
from sonde.stats.intervals import DRAWS
from sonde.stats.paired import shuffled

USUAL_SIZE = 7_000_000_000
"""Families are ordered by their model of about this size, which most of them have."""

ONLY = Metric("known_alone", "no other run", "percent", "share that no other knows")
MEAN = Metric("accuracy.mean_over_relations", "accuracy", "percent", "mean over relations")
STDEV = Metric(
    "accuracy.stdev_over_relations", "stdev", "percent", "of the accuracy over relations"
)

Named = Iterator[tuple[str, Estimate]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Comparison:
    """What reports of several runs need: all estimates by name, of each run the bins of its
    calibration curve, and which runs are kin."""

    aligned: Aligned
    reading: Reading
    estimates: Estimates
    bins: Mapping[str, Sequence[Bin]]
    templates: TemplateOrder
    sizes: tuple[Kin, ...]
    tuned: tuple[Kin, ...]

    @property
    def names(self) -> list[str]:
        """What the runs are called."""
        return self.aligned.names

    def of_run(self, name: str, metric: Metric) -> Estimate:
        """A number of a run."""
        return self.estimates[metric.at(f"run.{name}")]

    @property
    def leaders(self) -> list[str]:
        """The runs, the most accurate first."""
        return sorted(self.names, key=lambda name: -(self.of_run(name, MEAN).value or 0.0))

    @property
    def by_family(self) -> list[str]:
        """The runs as heat maps show them."""
        accuracies = [self.of_run(name, MEAN).value or 0.0 for name in self.names]
        order = run_order([run.lineage for run in self.aligned.runs], accuracies)
        return [self.names[i] for i in order]

    @property
    def relations(self) -> list[str]:
        """The relations' ids, the best known first."""
        values = {r.id: self.of_relation(r.id).value or 0.0 for r in self.aligned.first.relations}
        return sorted(values, key=lambda id: (-values[id], id))

    def of_relation(self, id: str, run: str = "") -> Estimate:
        """The accuracy of a run in a relation, or the mean over runs."""
        return self.estimates[f"accuracy.relation.{id}{f'.run.{run}' if run else ''}"]


def compare(aligned: Aligned, reading: Reading) -> Comparison:
    """Compare all runs; every difference is paired, with its interval over pairs."""
    runs, seed = aligned.asked, reading.seed
    sizes, fine_tuned, templates = smallest_and_largest(runs), tuned(runs), TemplateOrder(aligned)
    estimates = dict(accuracies(aligned, seed))
    bins: dict[str, Sequence[Bin]] = {}
    subjects = subjects_of(aligned.runs[0])
    for run in aligned.runs:
        numbers, bins[run.name] = numbers_of(with_subjects(run.judged, subjects), reading)
        estimates |= {f"{id}.run.{run.name}": estimate for id, estimate in numbers.items()}
    for run in runs if any(aligned.left_out.values()) else ():
        numbers, _ = numbers_of(with_subjects(run.judged, subjects_of(run) or subjects), reading)
        estimates |= {f"own.{id}.run.{run.name}": estimate for id, estimate in numbers.items()}
    return Comparison(
        aligned=aligned,
        reading=reading,
        estimates={
            **estimates,
            **dict(sharing(aligned, seed)),
            **dict(correlation(_by_relation(aligned), groups_of(aligned), seed)),
            **dict(templates.agreement(seed)),
            **dict(differences(aligned, [*sizes, *fine_tuned], seed)),
        },
        bins=bins,
        templates=templates,
        sizes=tuple(sizes),
        tuned=tuple(fine_tuned),
    )


def _by_relation(aligned: Aligned) -> Floats:
    """The accuracy of each run in each relation; [runs, relations]."""
    owners = aligned.first.grid.relations
    pairs = np.bincount(owners)
    return np.stack([np.bincount(owners, of_pairs) / pairs for of_pairs in aligned.shares()])


def accuracies(aligned: Aligned, seed: int = 0) -> Named:
    """Of a pair the share of its prompts that are right, averaged over pairs, by run and relation.

    A run's mean is over relations, each counting the same, with the standard deviation between
    them; that of a relation is over runs. Intervals are over subjects within relations.
    """
    by_pair, shares = aligned.by_pair(seed), aligned.shares()
    for name, of_pairs in zip(aligned.names, shares, strict=True):
        resampled = by_pair.resampled(of_pairs)
        yield MEAN.at(f"run.{name}"), resampled.mean_over_relations()
        yield STDEV.at(f"run.{name}"), _stdev(resampled)
        for id in by_pair.ids:
            yield f"accuracy.relation.{id}.run.{name}", resampled.relation(id)
    together = by_pair.resampled(np.mean(shares, axis=0))
    for id in by_pair.ids:
        yield f"accuracy.relation.{id}", together.relation(id)


def _stdev(of: Resampled) -> Estimate:
    """The standard deviation over relations (n - 1); resampling makes them differ more, which is
    moved back. Not measured for one relation."""
    means = np.array([sample.values.mean() for sample in of.samples.values()])
    if len(means) < 2:
        return Estimate.not_measured()
    value = float(means.std(ddof=1))
    draws = np.stack([of.draws(name) for name in of.samples]).std(axis=0, ddof=1)
    return around(value, np.maximum(draws - draws.mean() + value, 0.0), n=len(means))


def differences(aligned: Aligned, kin: Sequence[Kin], seed: int = 0) -> Named:
    """How much more often a run is right than another on the same pairs: every run minus the first,
    over pairs; of two kin the largest minus the smallest, the fine-tuned minus its base, over
    relations."""
    first, *others = aligned.names
    for name in others:
        less = paired(aligned, name, first, seed).mean_over_facts()
        yield f"acc_at_1.runs.{name}.minus.{first}", less
    for _, one, two in kin:
        less = paired(aligned, two, one, seed).mean_over_relations()
        yield f"accuracy.runs.{two}.minus.{one}", less


def paired(aligned: Aligned, run: str, other: str, seed: int = 0) -> Resampled:
    """How much more often a run is right than another on the same pairs, relation by relation."""
    shares = dict(zip(aligned.names, aligned.shares(), strict=True))
    return aligned.by_pair(seed).resampled(shares[run], shares[other])


def numbers_of(judged: Judged, reading: Reading) -> tuple[dict[str, Estimate], Sequence[Bin]]:
    """Every number that the run's own report has too, of these prompts, and the bins of its
    calibration curve."""
    grid, seed, matches = judged.grid, reading.seed, judged.matches
    agreeing, consist = None, None
    if matches is not None:
        agreeing = matching_answers(judged.answers, matches)
        consist = partial(consist_of_texts, texts=judged.answers, matches=matches, seed=seed)
    further = moved(grid, judged.templates, agreeing)
    measured = measure(grid, None, draws=reading.draws, seed=seed, consist=consist, further=further)
    missing = Estimate.not_measured()
    ids = (*(metric.id for metric in UNCONTROLLED), *further)
    return {
        **{id: measured.overall.get(id, missing) for id in ids},
        ONE_WORD.id: one_word_rate(judged.words, seed, grid.clusters),
        **names_help(judged, seed),
        **manual_ranks(grid, judged.templates, seed),
        **overconf_by_template(grid, judged.sure, reading.floor, seed),
    }, measured.bins


UNCONTROLLED = tuple(metric for metric in METRICS if metric not in (MAJORITY, ABOVE))


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


def leading_relation(of: Comparison, *, lowest: bool = False) -> Lead | None:
    """The relation known best over all runs, or least; each has facts of its own, so that nothing
    is paired."""
    together, by = np.mean(of.aligned.shares(), axis=0), of.aligned.by_pair(of.reading.seed)
    values = {id: together[by.relation == i] for i, id in enumerate(by.ids)}
    sums = {
        id: by_subject(np.column_stack([own, np.ones(len(own))]), by.subject[by.relation == i])
        for i, (id, own) in enumerate(values.items())
    }

    def test(one: str, other: str) -> float:
        rng = stream(of.reading.seed, f"relations:{one}:{other}")
        return shuffled(sums[one], sums[other], rng, DRAWS)

    means = {id: float(of_relation.mean()) for id, of_relation in values.items()}
    return lead(means, test, lowest=lowest)
