"""Everything that is found about runs side by side, and the stable names of its numbers.

Knows aligned runs; tables, figures and sentences are made elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from sonde.analysis.comparison.couples import (
    Agreement,
    Couple,
    Couples,
    Sharing,
    correlation,
    rank_agreement,
    sharing,
    subsumption,
)
from sonde.analysis.comparison.numbers import (
    ByRelation,
    Numbers,
    all_numbers,
    by_relation,
    differences,
    main_numbers,
)
from sonde.analysis.runs import Aligned, Compared, Kin, Reading, align, smallest_and_largest, tuned
from sonde.core.reports import Estimate, Metric


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Comparison:
    """What reports of several runs need.

    numbers: of each run on the shared prompts; alone: on all prompts of its own, where some were
    left out. over_pairs: Acc@1 of each run less that of the first, on the same pairs.
    over_relations: the accuracy (mean over relations) of one run less that of another, for two kin.
    estimates: all of it by name.
    """

    asked: tuple[Compared, ...]
    aligned: Aligned
    reading: Reading
    numbers: tuple[Numbers, ...]
    alone: tuple[Numbers, ...]
    relations: ByRelation
    sharing: Sharing
    subsumption: Couples
    correlation: Couples
    agreement: Agreement
    sizes: tuple[Kin, ...]
    tuned: tuple[Kin, ...]
    over_pairs: Mapping[Couple, Estimate]
    over_relations: Mapping[Couple, Estimate]

    @property
    def names(self) -> list[str]:
        """What the runs are called."""
        return self.aligned.names

    @property
    def estimates(self) -> dict[str, Estimate]:
        """Every number under its stable name."""
        return {**_of_couples(self), **_of_runs(self), **_of_relations(self)}


def compare(runs: Sequence[Compared], reading: Reading) -> Comparison:
    """Compare all runs; every difference is paired, with its interval over pairs."""
    aligned, seed = align(runs), reading.seed
    relations = by_relation(aligned, seed)
    sizes, fine_tuned = smallest_and_largest(runs), tuned(runs)
    # the largest less the smallest, the fine-tuned less its base
    kin = [(k.other, k.lesser) for k in sizes] + [(k.lesser, k.other) for k in fine_tuned]
    return Comparison(
        asked=tuple(runs),
        aligned=aligned,
        reading=reading,
        numbers=tuple(all_numbers(run.judged, reading) for run in aligned.runs),
        alone=tuple(main_numbers(run.judged, reading) for run in runs if any(aligned.left_out)),
        relations=relations,
        sharing=sharing(aligned, seed),
        subsumption=subsumption(aligned, seed),
        correlation=correlation(relations.values, [run.group for run in runs], seed),
        agreement=rank_agreement(aligned, seed),
        sizes=tuple(sizes),
        tuned=tuple(fine_tuned),
        over_pairs={
            (run, 0): differences(aligned, run, 0, seed).mean_over_facts()
            for run in range(1, len(runs))
        },
        over_relations={
            (a, b): differences(aligned, a, b, seed).mean_over_relations() for a, b in kin
        },
    )


def _of_couples(of: Comparison) -> dict[str, Estimate]:
    names = of.names
    every = list(product(enumerate(names), enumerate(names)))
    means = {("sharing", "in"): of.sharing.rates, ("correlation", "and"): of.correlation}
    estimates = {"rank_agreement.mean": of.agreement.tau.mean}
    for (name, word), number in means.items():
        estimates |= {
            f"{name}.mean": number.mean,
            f"{name}.within": number.within,
            f"{name}.between": number.between,
            **{f"{name}.groups.{a}.{word}.{b}": e for (a, b), e in number.groups.items()},
        }
    all_runs = {
        **means,
        ("rank_agreement", "and"): of.agreement.tau,
        ("subsumption", "in"): of.subsumption,
    }
    for (name, word), number in all_runs.items():
        for (a, row), (b, column) in every:
            estimates[f"{name}.runs.{row}.{word}.{column}"] = number.runs[a][b]
    differences = {"acc_at_1": of.over_pairs, "accuracy": of.over_relations}
    for name, less in differences.items():
        for (a, b), estimate in less.items():
            estimates[f"{name}.runs.{names[a]}.minus.{names[b]}"] = estimate
    return estimates


ONLY = Metric("known_alone", "no other run", "percent", "share that no other knows")
MEAN = Metric("accuracy.mean_over_relations", "accuracy", "percent", "mean over relations")
STDEV = Metric(
    "accuracy.stdev_over_relations", "stdev", "percent", "of the accuracy over relations"
)


def _of_runs(of: Comparison) -> dict[str, Estimate]:
    estimates = {"known_in_one_run": of.sharing.one}
    for i, name in enumerate(of.names):
        run = {
            **of.numbers[i].estimates,
            **{f"own.{id}": e for id, e in (of.alone[i].estimates if of.alone else {}).items()},
            ONLY.id: of.sharing.only[i],
            MEAN.id: of.relations.mean[i],
            STDEV.id: of.relations.stdev[i],
        }
        estimates |= {f"{id}.run.{name}": estimate for id, estimate in run.items()}
    return estimates


def _of_relations(of: Comparison) -> dict[str, Estimate]:
    estimates = {}
    for r, relation in enumerate(of.aligned.first.relations):
        estimates[f"accuracy.relation.{relation.id}"] = of.relations.relations[r]
        for i, name in enumerate(of.names):
            cell = of.relations.accuracies[i][r]
            estimates[f"accuracy.relation.{relation.id}.run.{name}"] = cell
    return estimates
