"""Tables that set models side by side. Knows what was found, nothing of how it is computed."""

from __future__ import annotations

from collections.abc import Sequence

from sonde.analysis.comparison.between import Between
from sonde.analysis.comparison.correlation import Correlation
from sonde.analysis.comparison.kin import Kin
from sonde.analysis.comparison.relations import extremes
from sonde.analysis.runs import Aligned
from sonde.core.facts import Relation
from sonde.core.reports import Cell, Column, Table

ETA = "η"


def leaderboard(aligned: Aligned, found: Between) -> Table:
    """The runs, the most accurate first."""
    mean, stdev = found.relations.mean, found.relations.stdev
    rows: list[tuple[Cell, ...]] = []
    for place, i in enumerate(found.relations.leaders, 1):
        run = aligned.runs[i]
        lineage = run.lineage
        rows.append(
            (place, run.name, lineage.family, lineage.size, lineage.stage or None, mean[i],
             stdev[i].value, mean[i].n)
        )  # fmt: skip
    return Table(
        id="leaderboard",
        title="Leaderboard",
        columns=(
            Column(title="", kind="count", help="place"),
            Column(title="run"),
            Column(title="family", help="as the table of models says"),
            Column(title="parameters", kind="count", detail=True),
            Column(title="stage", help="base or fine-tuned", detail=True),
            Column(title="accuracy", kind="percent", help="mean over relations"),
            Column(title="stdev", kind="percent", help="of the accuracy over relations"),
            Column(title="pairs", kind="count", detail=True),
        ),
        rows=tuple(rows),
        note="Accuracy: of a pair the share of right prompts, averaged over the pairs of a "
        "relation, then over relations.",
    )


def extremes_table(aligned: Aligned, found: Between) -> Table:
    """The relations that each run knows best and least."""
    relations, values = aligned.first.relations, found.relations.values
    ids = [relation.id for relation in relations]
    rows: list[tuple[Cell, ...]] = []
    for i in found.relations.leaders:
        best, worst = (
            ", ".join(f"{relation_name(relations[r])} {values[i, r]:.1%}" for r in chosen.tolist())
            for chosen in extremes(values[i], ids)
        )
        rows.append((aligned.runs[i].name, best or None, worst or None))
    return Table(
        id="extremes",
        title="What each run knows best and least",
        columns=(
            Column(title="run"),
            Column(title="best relations", help="the best first"),
            Column(title="worst relations", help="the worst last"),
        ),
        rows=tuple(rows),
        note="" if len(ids) > 1 else "Not measured: there is one relation.",
    )


def relations_table(aligned: Aligned, found: Between) -> Table:
    """All relations, those that the runs know best first."""
    relations, values = aligned.first.relations, found.relations.values
    rows: list[tuple[Cell, ...]] = []
    for place, r in enumerate(found.relations.best_first, 1):
        best, worst = int(values[:, r].argmax()), int(values[:, r].argmin())
        rows.append(
            (place, relations[r].id, relations[r].label, found.relations.relations[r],
             found.relations.relations[r].n, aligned.runs[best].name, float(values[best, r]),
             aligned.runs[worst].name, float(values[worst, r]))
        )  # fmt: skip
    return Table(
        id="relations",
        title="Relations, the best known first",
        columns=(
            Column(title="", kind="count", help="place"),
            Column(title="relation"),
            Column(title="label"),
            Column(title="accuracy", kind="percent", help="mean over runs"),
            Column(title="pairs", kind="count"),
            Column(title="best run"),
            Column(title="its accuracy", kind="percent"),
            Column(title="worst run"),
            Column(title="its own", kind="percent"),
        ),
        rows=tuple(rows),
        browsable=True,
    )


def sizes_table(aligned: Aligned, found: Between) -> Table:
    """The smallest and the largest model of each family."""
    return _kin_table(
        aligned,
        found,
        found.sizes,
        id="sizes",
        titles=("smallest", "largest"),
        title="Smallest and largest model of a family",
        none="Not measured: no family has runs of two sizes, asked in the same way.",
        swapped=False,
    )


def tuned_table(aligned: Aligned, found: Between) -> Table:
    """Base models and what was fine-tuned from them."""
    return _kin_table(
        aligned,
        found,
        found.tuned,
        id="tuned",
        titles=("base", "fine-tuned"),
        title="Base and fine-tuned models",
        none="Not measured: no fine-tuned model stands here with its base, asked in the same way.",
        swapped=True,
    )


def correlation_table(found: Correlation) -> Table:
    """The mean correlation within and between groups of runs."""
    rows: list[tuple[Cell, ...]] = [
        (one, other, estimate, estimate.n) for (one, other), estimate in found.groups.items()
    ]
    rows += [
        ("all", "the same group", found.within, found.within.n),
        ("all", "another group", found.between, found.between.n),
    ]
    return Table(
        id="correlations",
        title="Correlation over relations, within and between groups of runs",
        columns=(
            Column(title="group"),
            Column(title="with"),
            Column(title="Pearson's r", kind="number", help="mean over pairs of different runs"),
            Column(title="pairs", kind="count", help="how many correlations are averaged"),
        ),
        rows=tuple(rows),
        note="Of the accuracies in each relation. A dash: not measured, because there are fewer "
        "than three relations, or a run is equally good at all.",
    )


def relation_name(relation: Relation) -> str:
    """What a relation is called, its id where it has no label."""
    return relation.label or relation.id


def _kin_table(
    aligned: Aligned,
    found: Between,
    pairs: Sequence[Kin],
    *,
    id: str,
    titles: tuple[str, str],
    title: str,
    none: str,
    swapped: bool,
) -> Table:
    """A row per two kin: the first's name, size and accuracy, the second's, difference and η.

    The difference is the second less the first; η is always that of the lesser of the two.
    """
    rows: list[tuple[Cell, ...]] = []
    for kin in pairs:
        first, second = (kin.other, kin.lesser) if swapped else (kin.lesser, kin.other)
        eta = found.subsumption.rates[kin.lesser][kin.other]
        cells: list[Cell] = [kin.family]
        for i in (first, second):
            run = aligned.runs[i]
            cells += [run.name, run.lineage.size, found.relations.mean[i]]
        rows.append((*cells, found.over_relations[second, first], eta))
    one, two = titles
    knows = f"share of what the {two if swapped else one} knows that the other knows too"
    return Table(
        id=id,
        title=title,
        columns=(
            Column(title="family"),
            Column(title=one),
            Column(title="parameters", kind="count", detail=True),
            Column(title="accuracy", kind="percent", help="mean over relations"),
            Column(title=two),
            Column(title="parameters", kind="count", detail=True),
            Column(title="accuracy", kind="percent", help="mean over relations"),
            Column(title="difference", kind="percent", help=f"{two} less {one}, paired by pairs"),
            Column(title=ETA, kind="percent", help=f"{knows}; mean over relations"),
        ),
        rows=tuple(rows),
        note=f"η: {knows}, per relation, then averaged." if rows else none,
    )
