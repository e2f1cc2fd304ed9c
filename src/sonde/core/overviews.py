"""What a dataset has to show of itself, as a small report. Knows nothing of files or pages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from sonde.core.reports import Cell, Column, Report, Table
from sonde.core.words import counted

if TYPE_CHECKING:
    from sonde.core.facts import Dataset, Relation


def asks(dataset: Dataset) -> str:
    """What a dataset holds and what of it is asked, on a line; no fact is read for it."""
    selection, asked, every = dataset.selection, dataset.asked_relations(), dataset.relations
    some = "" if len(asked) == len(every) else f"{len(asked)} of "
    most = "" if selection.limit is None else f", at most {selection.limit:,} facts of each"
    return f"{some}{counted(len(every), 'relation', 'relations')}, split {selection.split!r}{most}"


def listing(id: str, title: str, entries: Iterable[tuple[str, Cell]]) -> Table:
    """Things and what they are, a row each."""
    columns = (Column(title="what"), Column(title="value"))
    return Table(id=id, title=title, columns=columns, rows=tuple(entries))


def overview(dataset: Dataset) -> Report:
    """Its relations with how many facts each asks about, an example of each, and its licence."""
    card, rows = dataset.card, tuple(_row(dataset, r) for r in dataset.asked_relations())
    asked, every = sum(row[3] for row in rows), sum(row[4] for row in rows)
    columns = (
        Column(title="relation"),
        Column(title="label"),
        Column(title="type"),
        Column(title="asked", kind="count", help="facts that are asked about"),
        Column(title="facts", kind="count", help="of all splits"),
        Column(title="templates", kind="count"),
        Column(title="a fact"),
    )
    return Report(
        title=f"{card.name} {card.version}",
        estimates={},
        summary=f"{asks(dataset)}: {asked:,} of {every:,} facts are asked about.",
        tables=(Table(id="relations", title="Relations", columns=columns, rows=rows),),
        notes=tuple(part for part in (card.description, f"Licence: {card.licence}") if part),
    )


def _row(dataset: Dataset, relation: Relation) -> tuple[str, str, str, int, int, int, str]:
    first = next(dataset.asked(relation.id), None)
    told = "" if first is None else f"{first.subject.name}: {first.objects[0].name}"
    asked, every = (f(relation.id).height for f in (dataset.asked_frame, dataset.frame))
    kinds = (relation.id, relation.label, relation.kind or "")
    return *kinds, asked, every, len(relation.templates), told
