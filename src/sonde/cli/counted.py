"""Print what datasets hold: by relation, and the papers' tables of counts and diversity."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rich.table import Table

from sonde.cli.console import cells, output, say
from sonde.core.errors import MissingExtra
from sonde.core.facts import Dataset
from sonde.data.statistics import RelationStatistics, Totals, relation_statistics, totals
from sonde.reporting.render.terminal import line

if TYPE_CHECKING:
    from sonde.data.diversity import Diversity

ROWS: dict[str, Callable[[Totals], float | None]] = {
    "relations": lambda t: t.relations,
    "templates": lambda t: t.templates,
    "facts": lambda t: t.facts,
    "unique triples": lambda t: t.unique_triples,
    "derived triples": lambda t: t.derived_triples,
    "subject-relation pairs": lambda t: t.pairs,
    "prompts": lambda t: t.prompts,
    "prompts per pair": lambda t: t.quantity,
}


def show(datasets: Sequence[Dataset], *, diversity: bool) -> None:
    """Print one dataset relation by relation, then the totals of all, side by side."""
    rows = [[relation_statistics(d, r) for r in d.relations] for d in datasets]
    if len(datasets) == 1:
        output().print(by_relation(rows[0]))
    sums = [totals(each) for each in rows]
    if len(datasets) == 1:
        t = sums[0]
        say(f"{t.relations} relations, {t.templates:,} templates, {t.facts:,} facts\n")
    names = [dataset.name for dataset in datasets]
    table = _side_by_side("count", names)
    for title, value in ROWS.items():
        table.add_row(title, *(number(value(t)) for t in sums))
    output().print(table)
    for dataset in datasets:
        show_notes(dataset)
    if diversity:
        output().print(diversities(datasets, names))


def show_notes(dataset: Dataset) -> None:
    """Print what was counted while the dataset was read, if anything was."""
    notes = [f"{key} {count:,}" for key, count in dataset.notes.items() if count]
    if notes:
        say(f"{dataset.name}: {', '.join(notes)}")


def by_relation(rows: Sequence[RelationStatistics]) -> Table:
    """One row a relation."""
    splits = sorted({split for row in rows for split in row.splits})
    mined = any(t.source == "mined" for row in rows for t in row.relation.templates)
    sources = ("manual", "paraphrase", "mined") if mined else ("manual", "paraphrase")
    titles = ("relation", "label", "type", "manual", "paraphr.", "mined")[: 3 + len(sources)]
    titles = (*titles, "questions", "answer last")
    counted = ("hard", "objects", "per fact", "names/subject", "names/object", "prompts/pair")
    table = Table(box=None, padding=(0, 1, 0, 0))
    for title in cells(*titles, *splits, *counted):
        table.add_column(title)
    for row in rows:
        templates = row.relation.templates
        table.add_row(
            *cells(row.relation.id, row.relation.label, row.relation.kind),
            *(str(sum(t.source == source for t in templates)) for source in sources),
            str(sum(t.style == "question" for t in templates)),
            str(sum(t.answer_last and t.style == "statement" for t in templates)),
            *(str(row.splits.get(split, 0)) for split in splits),
            str(row.hard),
            str(row.objects),
            f"{row.objects_per_fact:.1f}",
            f"{row.subject_names:.1f}",
            f"{row.object_names:.1f}",
            number(row.quantity),
        )
    return table


def diversities(datasets: Sequence[Dataset], names: Sequence[str]) -> Table:
    """The mean pairwise distance of a relation's templates, averaged over relations."""
    table = _side_by_side("diversity", names)
    found = [measured(dataset) for dataset in datasets]
    for row in zip(*found, strict=True):
        table.add_row(row[0].measure, *cells(*map(_distance, row)))
    return table


def measured(dataset: Dataset) -> list[Diversity]:
    """All three measures; one whose library is missing says so."""
    from sonde.data.diversity import lexical, not_measured, semantic, syntactic
    from sonde.data.syntax import parser
    from sonde.models.sentences import encoder

    found = [lexical(dataset.relations)]
    try:
        found.append(syntactic(dataset.relations, parser()))
    except MissingExtra as missing:
        found.append(not_measured("syntactic", str(missing)))
    try:
        found.append(semantic(dataset.relations, encoder()))
    except MissingExtra as missing:
        found.append(not_measured("semantic", str(missing)))
    return found


def _distance(entry: Diversity) -> str:
    e = entry.estimate
    if e.value is None:
        return f"not measured: {entry.reason or 'no relation has two templates'}"
    ends = "" if e.low is None or e.high is None else f" [{e.low:.4f}, {e.high:.4f}]"
    return f"{e.value:.4f}{ends} n = {e.n}"


def number(value: float | None) -> str:
    """A count with its thousands, or a mean with two places."""
    if value is None:
        return "not measured"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"


def _side_by_side(title: str, names: Sequence[str]) -> Table:
    table = Table(title, box=None, padding=(0, 2, 0, 0))
    for name in names:
        table.add_column(line(name), justify="right" if title == "count" else "left")
    return table
