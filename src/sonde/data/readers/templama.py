"""Read TempLAMA and Dynamic-TempLAMA: what was right when, a row for each subject and date.

    train.jsonl, val.jsonl, test.jsonl   {"query": "Ann plays for _X_.", "id": "Q1_P54_2010",
                                          "date": "2010", "relation": "P54",
                                          "answer": [{"wikidata_id", "name"}, …]}

Dynamic-TempLAMA has quarters (2019-Q2), which become their first month, 2019-04. A row is a fact.
Its objects are valid from the first to the last of the subject's consecutive dates that have the
same answers; a year or quarter without a row ends a validity. Rows do not say what a subject is
called: the words that all queries of a relation begin and end with are its template, and what is
left of a query is the name.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from sonde.core.dates import FORM, adjacent, is_date
from sonde.core.errors import DataError
from sonde.core.facts import (
    ANSWER_SLOT,
    SUBJECT_SLOT,
    Card,
    Dataset,
    Entity,
    Fact,
    Relation,
    Template,
)
from sonde.data.format import hash_files
from sonde.data.lines import Row, complete_rows, read_rows
from sonde.data.readers import Published
from sonde.data.wordings import known_relation

GAP = "_X_"
SPLITS = {"train": "train", "val": "dev", "test": "test"}
QUARTER = re.compile(r"(\d{4})-?Q([1-4])")
PLACE = re.compile(r"(.+)_(P\d+)_([^_]+)")


class Asked(NamedTuple):
    """A row: `first` and `last` are where its date begins and ends, which differ for a quarter."""

    id: str
    split: str
    relation: str
    subject: str
    query: str
    objects: tuple[Entity, ...]
    first: str
    last: str


def _recognises(folder: Path) -> bool:
    """Whether a file of one of the splits begins as TempLAMA's do."""
    for path in _paths(folder):
        try:
            return {"query", "answer", "date"} <= set(next(read_rows(path)).values)
        except (DataError, StopIteration):
            return False
    return False


def _read(folder: Path) -> Dataset:
    """Open a file, or all splits of a folder."""
    paths = [folder] if folder.is_file() else _paths(folder)
    counts: Counter[str] = Counter()
    rows = [
        _asked(row, SPLITS.get(path.stem, "test"))
        for path in paths
        for row in complete_rows(read_rows(path), ("query", "answer"), counts)
    ]
    if not rows:
        raise DataError(f"{folder} holds no row of TempLAMA, such as those of test.jsonl")
    by_relation: dict[str, list[Asked]] = {}
    for row in rows:
        by_relation.setdefault(row.relation, []).append(row)
    worded = {id: _worded(id, own) for id, own in by_relation.items()}
    return Dataset(
        card=Card(
            name="templama", licence="Apache-2.0", sources=("TempLAMA (Dhingra et al., 2022)",)
        ),
        relations=tuple(relation for relation, _ in worded.values()),
        read=lambda id: _facts(by_relation[id], worded[id][1]),
        fingerprint=hash_files(paths[0].parent, paths),
        notes={"rows_read": len(rows) + counts.total(), **counts},
    )


def _paths(folder: Path) -> list[Path]:
    return [path for split in SPLITS if (path := folder / f"{split}.jsonl").is_file()]


def _asked(row: Row, split: str) -> Asked:
    id, query = row.text("id"), row.text("query")
    found = PLACE.fullmatch(id)
    if found is None:
        raise row.fault("'id' must be SUBJECT_RELATION_DATE, such as Q169814_P54_2010", id)
    if query.count(GAP) != 1:
        raise row.fault(f"'query' must hold {GAP} once", query)
    given = row.values.get("answer")
    answers = (row.row("answer"),) if isinstance(given, dict) else row.rows("answer")
    first, last = _dates(row)
    return Asked(
        id=id,
        split=split,
        relation=row.text("relation", found[2]),
        subject=found[1],
        query=query,
        objects=tuple(_entity(answer) for answer in answers),
        first=first,
        last=last,
    )


def _entity(answer: Row) -> Entity:
    name = answer.text("name")
    return Entity(id=answer.text("wikidata_id", name), names=(name,))


def _dates(row: Row) -> tuple[str, str]:
    """Where the date of a row begins and ends."""
    date = row.text("date")
    if quarter := QUARTER.fullmatch(date):
        year, month = quarter[1], 3 * int(quarter[2])
        return f"{year}-{month - 2:02}", f"{year}-{month:02}"
    if not is_date(date):
        raise row.fault(f"'date' must be {FORM}, or a quarter such as 2019-Q2", date)
    return date, date


def _worded(id: str, rows: Sequence[Asked]) -> tuple[Relation, dict[str, str]]:
    """A relation with its templates, and the name of the subject in each query."""
    queries = list(dict.fromkeys(row.query for row in rows))
    stop = "." if all(query.endswith(".") for query in queries) else ""
    words = {query: query.removesuffix(stop).split(" ") for query in queries}
    before, after = _common(list(words.values()))
    names = {query: " ".join(own[before : len(own) - after]) for query, own in words.items()}
    if odd := next((query for query in queries if GAP in names[query]), None):
        raise DataError(
            f"relation {id}: its queries are no one sentence about several subjects, as "
            f"{queries[0]!r} and {odd!r} show; give each sentence a relation of its own"
        )
    first = words[queries[0]]
    slotted = [*first[:before], SUBJECT_SLOT, *first[len(first) - after :]]
    text = " ".join(slotted).replace(GAP, ANSWER_SLOT) + stop
    templates = (
        Template(id=f"{id}-asked", text=text, group=f"{id}-asked"),
        Template(id=f"{id}-dated", text=f"In [T], {text}", group=f"{id}-dated"),
    )
    return Relation(id=id, label=known_relation(id, id).label, templates=templates), names


def _common(queries: Sequence[Sequence[str]]) -> tuple[int, int]:
    """How many words all queries begin with, and end with; at least one is left of each.

    Of a single query everything on the longer side of the gap is left.
    """
    if len(queries) == 1:
        gap = next(place for place, word in enumerate(queries[0]) if GAP in word)
        after = len(queries[0]) - gap
        return (0, after) if gap >= after else (gap + 1, 0)
    shortest = min(map(len, queries))
    before, after = _alike(queries), _alike([query[::-1] for query in queries])
    if any(GAP in word for word in queries[0][:before]):
        before = min(before, shortest - 1)
        return before, min(after, shortest - 1 - before)
    after = min(after, shortest - 1)
    return min(before, shortest - 1 - after), after


def _alike(queries: Iterable[Sequence[str]]) -> int:
    columns = zip(*queries, strict=False)
    return len(list(takewhile(lambda words: len(set(words)) == 1, columns)))


def _facts(rows: Sequence[Asked], names: dict[str, str]) -> list[Fact]:
    """The facts of a relation, in the order of its rows, with how long their objects are right."""
    valid: dict[str, tuple[str, str]] = {}
    ordered = sorted(rows, key=lambda row: (row.subject, row.first))
    run: list[Asked] = []
    for row in ordered:
        run = [*run, row] if run and _continues(run[-1], row) else [row]
        valid |= dict.fromkeys((each.id for each in run), (run[0].first, run[-1].last))
    return [_fact(row, names[row.query], *valid[row.id]) for row in rows]


def _continues(earlier: Asked, later: Asked) -> bool:
    """Whether two rows of one subject have the same answers, and no time lies between them."""
    same = {e.id for e in earlier.objects} == {e.id for e in later.objects}
    return earlier.subject == later.subject and same and adjacent(earlier.last, later.first)


def _fact(row: Asked, name: str, start: str, stop: str) -> Fact:
    return Fact(
        id=row.id,
        relation=row.relation,
        subject=Entity(id=row.subject, names=(name,)),
        objects=row.objects,
        split=row.split,
        date=row.first,
        valid_from=start,
        valid_to=stop,
    )


COMPONENT = Published(
    name="templama",
    summary="TempLAMA and Dynamic-TempLAMA: train.jsonl, val.jsonl, test.jsonl",
    recognises=_recognises,
    read=_read,
    takes_file=True,
)
