"""Tables that every multi-prompt probe has. Knows estimates by name, nothing of prompts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sonde.core.facts import Relation
from sonde.core.reports import Cell, Column, ColumnKind, Estimate, Table
from sonde.metrics.calibration import Bin

Estimates = Mapping[str, Estimate]

SUMMARY = (
    ("Acc@1", "acc_at_1", "mean over pairs of the share of their prompts answered right"),
    ("worst templates", "template_accuracy.min", "accuracy with each relation's worst template"),
    ("best templates", "template_accuracy.max", "accuracy with each relation's best template"),
    ("mean of templates", "template_accuracy.mean", "mean accuracy of the templates"),
    ("fluctuation, range", "fluctuation.{draw}.range", "best minus worst accuracy of the draws"),
    ("fluctuation, stdev", "fluctuation.{draw}.stdev", "standard deviation over the draws"),
    ("Consist", "consist", "share of prompt pairs of a pair that have the same answer"),
    ("Overconf", "overconf", "mean confidence minus accuracy; above 0: too sure"),
    ("ECE", "ece", "mean distance of confidence and accuracy over ten bins"),
)

COVERAGE = (
    ("average", "share of prompts that are right, per pair"),
    ("average_best_name", "right under some name of the subject, averaged over templates"),
    ("maximum", "right under some name with each relation's best template"),
    ("oracle", "right under some prompt"),
)


def summary_table(estimates: Estimates, draw: str) -> Table:
    """The headline numbers, one a row."""
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (label, estimates[name.format(draw=draw)], meaning) for label, name, meaning in SUMMARY
    )
    return Table(
        id="summary",
        title="In short",
        columns=(
            Column(title="number"),
            Column(title="value", kind="percent"),
            Column(title="meaning"),
        ),
        rows=rows,
        note="A dash means not measured: there was nothing to compare or to average.",
    )


def relation_table(
    relations: Sequence[Relation],
    sizes: Mapping[int, tuple[int, int, int]],
    estimates: Estimates,
    draw: str,
) -> Table:
    """One row per relation; those without a judged prompt have dashes."""
    names = (
        "acc_at_1",
        "template_accuracy.min",
        "template_accuracy.max",
        "template_accuracy.mean",
        f"fluctuation.{draw}.range",
        f"fluctuation.{draw}.stdev",
        "consist",
        "overconf",
    )
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            relation.id,
            relation.label,
            *sizes.get(number, (0, 0, 0)),
            *(estimates[f"{name}.relation.{relation.id}"] for name in names),
        )
        for number, relation in enumerate(relations)
    )
    return Table(id="by-relation", title="By relation", columns=_relation_columns(), rows=rows)


def _relation_columns() -> tuple[Column, ...]:
    def percent(title: str, help: str, detail: bool = False) -> Column:
        return Column(title=title, kind="percent", help=help, detail=detail)

    def count(title: str, help: str, detail: bool = False) -> Column:
        return Column(title=title, kind="count", help=help, detail=detail)

    return (
        Column(title="relation"),
        Column(title="label"),
        count("pairs", "subjects asked about"),
        count("templates", "wordings asked with", detail=True),
        count("prompts", "names of the subjects times templates", detail=True),
        percent("Acc@1", "mean over pairs of the share of right prompts"),
        percent("worst", "accuracy of the worst template", detail=True),
        percent("best", "accuracy of the best template", detail=True),
        percent("mean", "mean accuracy of the templates", detail=True),
        percent("range", "fluctuation: best minus worst accuracy of the draws", detail=True),
        percent("stdev", "fluctuation: standard deviation over the draws", detail=True),
        percent("Consist", "share of prompt pairs that have the same answer"),
        percent("Overconf", "mean confidence minus accuracy; above 0: too sure"),
    )


def bin_table(bins: Sequence[Bin]) -> Table:
    """The bins behind Overconf and ECE, from the least to the most confident prompts."""
    kinds: tuple[tuple[str, ColumnKind, str], ...] = (
        ("bin", "count", "1 holds the least confident prompts"),
        ("from", "percent", "lowest confidence in the bin"),
        ("to", "percent", "highest confidence in the bin"),
        ("confidence", "percent", "mean confidence"),
        ("accuracy", "percent", "share of right answers"),
        ("difference", "percent", "confidence minus accuracy"),
        ("prompts", "count", "bins differ by at most one prompt"),
    )
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (i + 1, b.low, b.high, b.confidence, b.accuracy, b.confidence - b.accuracy, b.n)
        for i, b in enumerate(bins)
    )
    return Table(
        id="calibration",
        title="Confidence and accuracy in ten equal bins",
        columns=tuple(Column(title=t, kind=kind, help=help) for t, kind, help in kinds),
        rows=rows,
        note="" if bins else "Not measured: no answer has a confidence.",
    )


def coverage_table(estimates: Estimates) -> Table:
    """How many pairs are reached by one prompt, by the best ones, by any."""
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (name.replace("_", " "), estimates[f"coverage.{name}"], meaning)
        for name, meaning in COVERAGE
    )
    return Table(
        id="coverage",
        title="Coverage: pairs answered right",
        columns=(
            Column(title="coverage"),
            Column(title="pairs", kind="percent"),
            Column(title="meaning"),
        ),
        rows=rows,
    )
