"""Everything that is said about models side by side: accuracy by relation, who is best, how alike
they are, what size and fine-tuning do. Knows aligned runs; tables and figures are made elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

from sonde.analysis.comparison import kin
from sonde.analysis.comparison.correlation import Correlation, correlation
from sonde.analysis.comparison.kin import Kin
from sonde.analysis.comparison.relations import ByRelation, by_relation, differences
from sonde.analysis.comparison.subsumption import Subsumption, subsumption
from sonde.analysis.runs import UNKNOWN, Aligned
from sonde.core.reports import Estimate
from sonde.core.words import in_points, named, sided

Couple = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Between:
    """What comparisons of models need.

    over_pairs: Acc@1 of each run less that of the first, on the same pairs. over_relations: the
    accuracy (mean over relations) of the first run less that of the second, for two kin.
    """

    relations: ByRelation
    correlation: Correlation
    subsumption: Subsumption
    sizes: tuple[Kin, ...]
    tuned: tuple[Kin, ...]
    over_pairs: Mapping[Couple, Estimate]
    over_relations: Mapping[Couple, Estimate]


def between(aligned: Aligned, seed: int = 0) -> Between:
    """Compare all runs; every difference is paired, with its interval over pairs."""
    runs = aligned.runs
    relations = by_relation(aligned, seed)
    small, made = kin.sizes(runs), kin.tuned(runs)
    # the largest less the smallest, the fine-tuned less its base
    couples = [(k.other, k.lesser) for k in small] + [(k.lesser, k.other) for k in made]
    return Between(
        relations=relations,
        correlation=correlation(relations.values, [run.group for run in runs], seed),
        subsumption=subsumption(aligned, seed),
        sizes=tuple(small),
        tuned=tuple(made),
        over_pairs={
            (run, 0): differences(aligned, run, 0, seed).mean_over_facts()
            for run in range(1, len(runs))
        },
        over_relations={
            (a, b): differences(aligned, a, b, seed).mean_over_relations() for a, b in couples
        },
    )


def estimates(aligned: Aligned, found: Between) -> dict[str, Estimate]:
    """Every number under its stable name."""
    names = [run.name for run in aligned.runs]
    ids = [relation.id for relation in aligned.first.relations]
    made = {
        "correlation.mean": found.correlation.mean,
        "correlation.within": found.correlation.within,
        "correlation.between": found.correlation.between,
    }
    for (one, other), estimate in found.correlation.groups.items():
        made[f"correlation.groups.{one}.and.{other}"] = estimate
    for (a, row), (b, column) in product(enumerate(names), enumerate(names)):
        made[f"correlation.runs.{row}.and.{column}"] = found.correlation.runs[a][b]
        made[f"subsumption.runs.{row}.in.{column}"] = found.subsumption.rates[a][b]
    for (a, b), estimate in found.over_pairs.items():
        made[f"acc_at_1.runs.{names[a]}.minus.{names[b]}"] = estimate
    for (a, b), estimate in found.over_relations.items():
        made[f"accuracy.runs.{names[a]}.minus.{names[b]}"] = estimate
    for i, name in enumerate(names):
        made[f"accuracy.mean_over_relations.run.{name}"] = found.relations.mean[i]
        made[f"accuracy.stdev_over_relations.run.{name}"] = found.relations.stdev[i]
    for r, id in enumerate(ids):
        made[f"accuracy.relation.{id}"] = found.relations.relations[r]
        for i, name in enumerate(names):
            made[f"accuracy.relation.{id}.run.{name}"] = found.relations.accuracies[i][r]
    return made


def findings(aligned: Aligned, found: Between) -> list[str]:
    """Which relations are known best and least, how alike models are, what fine-tuning did."""
    names = [run.name for run in aligned.runs]
    said = [*_relations_finding(aligned, found.relations)]
    alike = found.correlation.mean
    if alike.value is not None and alike.n > 1:  # of a single pair of runs it is no finding
        said.append(f"The runs find the same relations easy with r = {alike.value:.2f} on average.")
    for pair in found.sizes:
        eta = found.subsumption.rates[pair.lesser][pair.other].value
        if eta is not None:
            said.append(
                f"Of what {names[pair.lesser]}, the smallest of family {pair.family}, knows, "
                f"{names[pair.other]}, the largest, knows {eta:.1%}."
            )
    for pair in found.tuned:
        difference = found.over_relations[pair.lesser, pair.other]
        word = sided(difference, "better", "worse", "neither clearly better nor worse")
        said.append(
            f"{names[pair.lesser]} is {word} than {names[pair.other]}, its base: "
            f"{in_points(difference)}."
        )
    return said


def unknown(aligned: Aligned) -> list[str]:
    """The models whose family is not known, each once."""
    lineages = [run.lineage for run in aligned.runs]
    return list(dict.fromkeys(x.model for x in lineages if x.family == UNKNOWN and x.model))


def _relations_finding(aligned: Aligned, found: ByRelation) -> list[str]:
    """The relations that are known best and least, as far as they are told from the others."""
    labels = {r.id: r.label or r.id for r in aligned.first.relations}
    if found.best is None or found.least is None or found.best.value == found.least.value:
        return []
    said = []
    for word, first in (("best", found.best), ("least", found.least)):
        name, share = labels[first.best], f"{first.value:.1%}"
        claim = f"Over all runs {name} is known {word} ({share})."
        question = f"Which relation is known {word} over all runs"
        said.append(named(claim, question, f"{name} ({share})", [labels[t] for t in first.tied]))
    return said if len(labels) > 2 else said[:1]
