"""`sonde data stats`: what datasets hold, by relation and in the papers' tables of counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sonde.cli.console import print_table, say
from sonde.cli.options import argument, option, verb
from sonde.core.errors import MissingExtra
from sonde.core.facts import Dataset
from sonde.data import catalog
from sonde.data.diversity import Diversity, lexical, not_measured, parser, semantic, syntactic
from sonde.data.statistics import RelationStatistics, Totals, relation_statistics, totals
from sonde.models.sentences import encoder

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


@dataclass(frozen=True, slots=True, kw_only=True)
class StatsOptions:
    """Which datasets are counted."""

    names: list[str] = argument("Datasets; several are set side by side, totals only.")
    diversity: bool = option("Also how much templates differ (slow).", False, "--diversity")


@verb
def stats(wanted: StatsOptions) -> None:
    """Count relations, templates, facts, objects, names and prompts.

    Example: sonde data stats atlas --diversity
    """
    show([catalog.load(name) for name in wanted.names], diversity=wanted.diversity)


def show(datasets: Sequence[Dataset], *, diversity: bool) -> None:
    """Print one dataset relation by relation, then the totals of all, side by side."""
    rows = [[relation_statistics(d, r) for r in d.relations] for d in datasets]
    sums = [totals(each) for each in rows]
    if len(datasets) == 1:
        print_by_relation(rows[0])
        t = sums[0]
        say(f"{t.relations} relations, {t.templates:,} templates, {t.facts:,} facts\n")
    names = [dataset.name for dataset in datasets]
    counts = [(title, *(number(value(t)) for t in sums)) for title, value in ROWS.items()]
    print_table(("count", *names), counts, right=range(1, len(names) + 1))
    for dataset in datasets:
        show_notes(dataset)
    if diversity:
        measures = zip(*(measured(dataset) for dataset in datasets), strict=True)
        distances = [(row[0].measure, *map(_distance, row)) for row in measures]
        print_table(("diversity", *names), distances)


def show_notes(dataset: Dataset) -> None:
    """Print what was counted while the dataset was read, if anything was."""
    notes = [f"{key} {count:,}" for key, count in dataset.notes.items() if count]
    if notes:
        say(f"{dataset.name}: {', '.join(notes)}")


def print_by_relation(rows: Sequence[RelationStatistics]) -> None:
    """One row a relation."""
    splits = sorted({split for row in rows for split in row.splits})
    mined = any(t.source == "mined" for row in rows for t in row.relation.templates)
    sources = ("manual", "paraphrase", "mined") if mined else ("manual", "paraphrase")
    titles = ("relation", "label", "type", "manual", "paraphr.", "mined")[: 3 + len(sources)]
    titles = (*titles, "questions", "answer last", *splits)
    counted = ("hard", "objects", "per fact", "names/subject", "names/object", "prompts/pair")
    table = [(*_templates(row, sources), *_counts(row, splits)) for row in rows]
    print_table((*titles, *counted), table, padding=(0, 1, 0, 0))


def _templates(row: RelationStatistics, sources: Sequence[str]) -> tuple[object, ...]:
    relation, templates = row.relation, row.relation.templates
    return (
        *(relation.id, relation.label, relation.kind),
        *(sum(t.source == source for t in templates) for source in sources),
        sum(t.style == "question" for t in templates),
        sum(t.answer_last and t.style == "statement" for t in templates),
    )


def _counts(row: RelationStatistics, splits: Sequence[str]) -> tuple[object, ...]:
    means = (row.objects_per_fact, row.subject_names, row.object_names)
    sizes = (*(row.splits.get(split, 0) for split in splits), row.hard, row.objects)
    return (*sizes, *(f"{mean:.1f}" for mean in means), number(row.totals.quantity))


def measured(dataset: Dataset) -> list[Diversity]:
    """All three measures; one whose library is missing says so."""
    tries: dict[str, Callable[[], Diversity]] = {
        "syntactic": lambda: syntactic(dataset.relations, parser()),
        "semantic": lambda: semantic(dataset.relations, encoder()),
    }
    measures = [lexical(dataset.relations)]
    for name, measure in tries.items():
        try:
            measures.append(measure())
        except MissingExtra as missing:
            measures.append(not_measured(name, str(missing)))
    return measures


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
