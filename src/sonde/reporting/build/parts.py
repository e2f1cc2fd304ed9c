"""Headlines, findings, and which parts of a report have something to show. Knows no probe.

A finding is a small rule: a function of estimates that gives a sentence, or an empty one. A report
lists its rules, `findings=shown(against_control("P@1", …), above_on_relations(…))`.

Written answers that abstain are counted apart from wrong ones, and shown where there are any. Where
most are empty, the first finding says so and what to try, and nothing is concluded from them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from sonde.core.facts import Relation
from sonde.core.reports import (
    Boxes,
    Cell,
    Curves,
    Estimate,
    Estimates,
    Figure,
    Headline,
    HeatMap,
    HeatStrip,
    Histogram,
    Labelled,
    Metric,
    Report,
    Strip,
    Table,
)
from sonde.core.words import above_zero, counted, listed, told_apart
from sonde.metrics.abstention import ABSTAINED, ABSTENTION, RIGHT_WHEN_ANSWERED, abstention
from sonde.metrics.estimates import RELATIONS
from sonde.metrics.judged import Bools, Judged
from sonde.reporting.build.tables import by_place, titled
from sonde.reporting.catalogue import OVER

COMMONEST = "always the commonest object"
NUMBERS = ("percent", "points", "number")
"""What columns of numbers hold; counts stand beside them."""

FEW = 5
"""Relations that a finding names."""

ALIKE = 5e-4
"""Shares, and scores, that read alike."""


def headline(
    metric: Metric,
    over: str = "",
    *,
    label: str = "",
    control: Metric | None = None,
    above: Metric | None = None,
    control_label: str = COMMONEST,
) -> Headline:
    """A number that belongs at the top, with its control and how far it is above it."""
    words = OVER.get(over, over)
    return Headline(
        label=label or (f"{metric.label}, {words}" if words else metric.label),
        estimate=metric.at(over),
        control=control.at(over) if control else "",
        control_label=control_label if control else "",
        difference=above.at(over) if above else "",
        kind=metric.unit,
        best=0.0 if metric.better in ("lower", "nearer 0") else 1.0,
    )


def above_on_relations(estimates: Estimates, above: Metric, relations: Iterable[Relation]) -> str:
    """On how many relations the model beats the majority baseline, on which there is no significant
    difference, and on which it is below the baseline."""
    rows = [(titled(r), estimates[above.at(f"relation.{r.id}")]) for r in relations]
    measured = {name: estimate for name, estimate in rows if estimate.value is not None}
    unclear = [name for name, estimate in measured.items() if not told_apart(estimate)]
    below = [n for n, e in measured.items() if n not in unclear and not above_zero(e)]
    if not measured:
        return ""
    beaten = len(measured) - len(unclear) - len(below)
    every = (
        "every relation" if beaten == len(measured) else f"{beaten} of {len(measured)} relations"
    )
    parts = [f"The model beats the majority baseline on {every}."]
    parts += [f"No significant difference: {listed(unclear, FEW)}."] if unclear else []
    parts += [f"Below the baseline: {listed(below, FEW)}."] if below else []
    return " ".join(parts)


Part = TypeVar("Part", bound=Table | Figure | str)


def shown(*parts: Part | None) -> tuple[Part, ...]:
    """The parts with content: no empty table, no figure of nothing measured, no empty words."""
    return tuple(part for part in parts if part is not None and has_content(part))


def trimmed(report: Report) -> Report:
    """The report without tables, figures and headlines that show nothing, or nothing new."""
    figures = [figure for figure in report.figures if not _too_few(figure)]
    return replace(
        report,
        tables=shown(*report.tables),
        figures=shown(*figures),
        headlines=tuple(
            line
            for i, line in enumerate(report.headlines)
            if not any(_repeats(line, before, report) for before in report.headlines[:i])
        ),
    )


def _repeats(line: Headline, before: Headline, report: Report) -> bool:
    """Whether a headline shows the numbers of another one, averaged in another way."""
    metric, _, over = line.estimate.rpartition(".mean_over_")
    if not metric or "." in over or not before.estimate.startswith(f"{metric}.mean_over_"):
        return False
    pairs = zip(_numbers(line, report), _numbers(before, report), strict=True)
    return all(a == b or (a and b and abs(a - b) < ALIKE) for a, b in pairs)


def _numbers(line: Headline, report: Report) -> Iterator[float | None]:
    for name in (line.estimate, line.control, line.difference):
        estimate = report.estimates.get(name)
        yield from (estimate.value, estimate.low, estimate.high) if estimate else (None,) * 3


def left_out(tables: Iterable[Table]) -> tuple[str, ...]:
    """A note that names the tables without content, with what `Not measured: …` says in theirs."""
    reason = "Not measured: "
    missing = [
        f"{t.title} ({t.note.removeprefix(reason).rstrip('.')})"
        if t.note.startswith(reason)
        else t.title
        for t in tables
        if not has_content(t)
    ]
    return (f"Left out, with nothing to show: {'; '.join(missing)}.",) if missing else ()


def has_content(part: Table | Figure | str) -> bool:
    """Whether there is anything to see."""
    match part:
        case Table():
            return _has_numbers(part)
        case Labelled():
            return any(_measured(value) for series in part.series for value in series.values)
        case Curves():
            return any(curve.x for curve in part.curves)
        case Histogram():
            return any(part.counts)
        case Strip() | Boxes():
            return any(part.values)
        case HeatMap():
            return any(_measured(value) for row in part.values for value in row)
        case HeatStrip():
            return bool(part.rows)
        case str():
            return bool(part)


def _too_few(figure: Figure) -> bool:
    """Whether every point of curves stands for fewer than are worth drawing."""
    if not isinstance(figure, Curves) or not figure.least:
        return False
    return all(n < figure.least for curve in figure.curves for n in curve.sizes)


def _has_numbers(table: Table) -> bool:
    """Whether a row has a number, where columns are for such; any row will do where none is."""
    numbers = [i for i, column in enumerate(table.columns) if column.kind in NUMBERS]
    if not numbers or table.browsable:
        return bool(table.rows)
    return any(_measured(row[i]) for row in table.rows for i in numbers)


def _measured(cell: Cell) -> bool:
    value = cell.value if isinstance(cell, Estimate) else cell
    return value is not None and not (isinstance(value, float) and math.isnan(value))


SILENT = "Mostly empty, so that nothing is concluded from them"


@dataclass(frozen=True, slots=True, kw_only=True)
class Abstentions:
    """What a probe adds to its report: estimates and a count always, the rest where any abstain."""

    estimates: dict[str, Estimate]
    counts: dict[str, int]
    headlines: tuple[Headline, ...] = ()
    tables: tuple[Table, ...] = ()
    findings: tuple[str, ...] = ()


def abstentions(
    judged: Judged, seed: int, *, over: str = RELATIONS, written: Bools | None = None
) -> Abstentions:
    """Of all prompts, or of those that were `written`; `over`: which means stand at the top."""
    estimates = abstention(judged, seed, over, written)
    silent = 0 if judged.abstained is None else int(judged.abstained.sum())
    total = len(judged.grid) if written is None else int(written.sum())
    counts = {"abstained_answers": silent}
    if not silent:
        return Abstentions(estimates=estimates, counts=counts)
    label = "Right among answers that do not abstain"
    places = {"all": over} | {titled(r): f"relation.{r.id}" for r in judged.relations}
    return Abstentions(
        estimates=estimates,
        counts=counts,
        headlines=(
            headline(ABSTAINED.named("Answers that say the model does not know"), over),
            headline(RIGHT_WHEN_ANSWERED.named(label), over),
        ),
        tables=(
            by_place(
                estimates, places, ABSTENTION, head="relation", id="abstained",
                title="Answers that abstain", note="An answer that is right does not abstain.",
            ),
        ),
        findings=(_told(silent, total, estimates[RIGHT_WHEN_ANSWERED.at(over)]),),
    )  # fmt: skip


def _told(silent: int, total: int, right: Estimate) -> str:
    say = counted(silent, "answer says", "answers say")
    rest = "" if right.value is None else f"; of the others {right.value:.1%} are right on average"
    return f"{say} that the model does not know, of {total:,}{rest}."


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """Some written answers: what they are called, how many there are and how many are empty."""

    what: str
    empty: int
    total: int

    @property
    def mostly_empty(self) -> bool:
        """Whether nothing can be concluded from them."""
        return 2 * self.empty > self.total


def nothing_said(answers: Iterable[Written], attempts: Sequence[str]) -> str:
    """The finding about answers that are mostly empty; nothing where none are.

    `attempts`: settings that may help.

    >>> nothing_said([Written(what="answers", empty=9, total=9)], ["--set frame=qa"])
    'Mostly empty, so that nothing is concluded from them: answers (9 of 9). Try --set frame=qa.'
    """
    silent = [each for each in answers if each.mostly_empty]
    if not silent:
        return ""
    sizes = listed([f"{each.what} ({each.empty:,} of {each.total:,})" for each in silent])
    hint = f" Try {' and '.join(attempts)}." if attempts else ""
    return f"{SILENT}: {sizes}.{hint}"


def unconcluded(line: Headline) -> Headline:
    """A headline without its control, for answers that say nothing."""
    return replace(line, control="", control_label="", difference="")
