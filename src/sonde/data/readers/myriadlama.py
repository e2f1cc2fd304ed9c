"""Read MyriadLAMA: a table with one prompt a row, collected into facts, names and templates.

Columns: `uuid, rel_uri, sub_ent, obj_uris, obj_ents, obj_aliases, template, is_manual`, and where
there are any, `sub_uri`, `sub_label` (the subject's original name, LAMA's label), `is_original`
(whether `sub_ent` is that name) and `group` (what a paraphrase has in common with the template it
came from, such as that one's text); as JSON lines, CSV or Parquet, in any number of files.

Rows are gathered into pairs (subject and relation) by `sub_uri`, else by `uuid`. Where every row
has a `uuid` of its own it cannot tell pairs apart, and rows are gathered by `sub_ent`; then the
names of one subject count as several. Where rows do not say it, the original name is the first, and
a paraphrase belongs to the hand-written template it shares most words with: guesses, and counted.
What is gathered is small (names plus templates, not their product) and held in memory; `sonde data
convert` writes it once for all.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice, repeat
from pathlib import Path
from typing import Any

from sonde.core.errors import DataError, SondeError
from sonde.core.fact_frames import frame_of
from sonde.core.facts import Card, Dataset, Entity, Fact, Template
from sonde.data.format import hash_files
from sonde.data.lines import Row, complete_rows
from sonde.data.readers import Published
from sonde.data.tables.columns import structure
from sonde.data.tables.files import read_table, tables
from sonde.data.wordings import Wording, gather, kind_of, known_relation

COLUMNS = ("uuid", "rel_uri", "sub_ent", "obj_uris", "obj_ents", "template", "is_manual")
LOOKED_AT = 10_000
FLAGS = {"true": True, "1": True, "false": False, "0": False}


def _recognises(folder: Path) -> bool:
    """Whether the first row of the folder's first table has the columns."""
    for path in tables(folder)[:1]:
        try:
            return all(set(COLUMNS) <= set(row.values) for row in islice(read_table(path), 1))
        except SondeError:  # it may need a library, too
            return False
    return False


def _read(folder: Path) -> Dataset:
    """Collect the rows."""
    paths = tables(folder)
    if not paths:
        raise DataError(f"{folder} holds no table, such as a .jsonl, .csv or .parquet file")
    column = _key(paths)
    collected: dict[str, _Relation] = {}
    incomplete: Counter[str] = Counter()
    needed = ("rel_uri", "sub_ent", "template", "obj_uris", "obj_ents", column)
    for row in complete_rows(_rows(paths), needed, incomplete):
        collected.setdefault(row.text("rel_uri"), _Relation()).add(row, row.text(column))
    if not collected:
        raise DataError(f"{folder}: the tables have no row")
    facts = {id: frame_of(relation.facts(id)) for id, relation in collected.items()}
    relations, notes = [], Counter[str]()
    for id, relation in collected.items():
        templates, counts = relation.worded(id)
        kind = kind_of([pair.objects for pair in relation.pairs.values()])
        relations.append(replace(known_relation(id, id, kind=kind), templates=templates))
        notes.update(counts)
    told = sum(frame.height for frame in facts.values()) if column == "sub_ent" else 0
    return Dataset(
        card=Card(name="myriadlama", licence="see its publisher", sources=("MyriadLAMA",)),
        relations=tuple(relations),
        read=facts.__getitem__,
        fingerprint=hash_files(folder, paths),
        notes={**notes, "pairs_told_by_name": told, **incomplete},
    )


@dataclass(slots=True)
class _Pair:
    """What the rows of one pair say: names with a bit for each template seen, and objects.

    `marked` and `label` are the original name, as far as rows say which it is.
    """

    marked: str = ""
    label: str = ""
    names: dict[str, int] = field(default_factory=dict)
    objects: dict[str, dict[str, None]] = field(default_factory=dict)
    seen: Any = None

    @property
    def original(self) -> str:
        """The original name: the one marked, else the label; empty where rows do not say."""
        return self.marked or (self.label if self.label in self.names else "")

    def subject(self, id: str) -> Entity:
        """The subject, its original name first."""
        first = (self.original,) if self.original else ()
        return Entity(id=id, names=tuple(dict.fromkeys((*first, *self.names))))


@dataclass(slots=True)
class _Relation:
    """The pairs and templates of one relation, as far as they have been read.

    `templates`: of each text its number, and whether it was written by hand; `groups`: what its
    group is called, where rows say that.
    """

    pairs: dict[str, _Pair] = field(default_factory=dict)
    templates: dict[str, tuple[int, bool]] = field(default_factory=dict)
    groups: dict[str, str] = field(default_factory=dict)
    rows: int = 0
    repeated: int = 0
    unassigned: int = 0

    def add(self, row: Row, key: str) -> None:
        """Take one row in."""
        pair = self.pairs.setdefault(key, _Pair())
        name, text = row.text("sub_ent"), row.text("template")
        if text not in self.templates:
            self.templates[text] = (len(self.templates), _flag(row, "is_manual"))
            if group := _said(row, "group"):
                self.groups[" ".join(text.split())] = group
        bit = 1 << self.templates[text][0]
        asked = pair.names.get(name, 0)
        self.rows += 1
        self.repeated += bool(asked & bit)
        pair.names[name] = asked | bit
        pair.label = pair.label or _said(row, "sub_label")
        if not pair.marked and _said(row, "is_original") and _flag(row, "is_original"):
            pair.marked = name
        cells = [row.values.get(column) for column in ("obj_uris", "obj_ents", "obj_aliases")]
        if pair.seen != cells:  # most rows of a pair say the same
            pair.seen = cells
            self.unassigned += _take_objects(row, pair.objects)

    def facts(self, relation: str) -> Iterator[Fact]:
        """The pairs as facts, in order of appearance."""
        for key, pair in self.pairs.items():
            yield Fact(
                id=f"{relation}:{key}",
                relation=relation,
                subject=pair.subject(key),
                objects=tuple(Entity(id=id, names=tuple(n)) for id, n in pair.objects.items()),
            )

    def worded(self, id: str) -> tuple[tuple[Template, ...], dict[str, int]]:
        """The templates, grouped, and what was counted."""
        wordings = (
            Wording(id, text, "manual" if manual else "paraphrase")
            for text, (_, manual) in self.templates.items()
        )
        templates, counts = gather("myriadlama", wordings)
        grouped, guessed = _grouped(templates.get(id, ()), self.groups)
        pairs = self.pairs.values()
        prompts = len(self.templates) * sum(len(pair.names) for pair in pairs)
        notes = {
            "rows_read": self.rows,
            "duplicate_rows": self.repeated,
            "prompts_not_among_rows": prompts - (self.rows - self.repeated),
            "aliases_of_no_one_object": self.unassigned,
            "original_names_guessed": sum(len(p.names) > 1 and not p.original for p in pairs),
            "paraphrases_grouped_by_likeness": guessed,
        }
        return grouped, notes | counts


def _grouped(
    templates: Sequence[Template], named: Mapping[str, str]
) -> tuple[tuple[Template, ...], int]:
    """Paraphrases in the group of the template they came from, and how many groups were guessed.

    `named` says by text what a template's group is called.
    """
    manual = [template for template in templates if template.source == "manual"]
    parents = {template.text: template.id for template in manual}
    for template in (*manual, *templates):
        if template.text in named:
            parents.setdefault(named[template.text], template.id)
    grouped, guessed = [], 0
    for template in templates:
        group = template.id
        if template.source == "paraphrase" and template.text in named:
            group = parents[named[template.text]]
        elif template.source == "paraphrase" and manual:
            guessed += 1
            group = max(manual, key=lambda other: _likeness(template, other)).id
        grouped.append(replace(template, group=group))
    return tuple(grouped), guessed


def _likeness(one: Template, other: Template) -> tuple[bool, float]:
    """How much two templates are alike: both questions or both not, then the share of words."""
    words, others = (set(re.findall(r"\w+", t.text.casefold())) for t in (one, other))
    return one.style == other.style, len(words & others) / len(words | others)


def _rows(paths: list[Path]) -> Iterator[Row]:
    return (row for path in paths for row in read_table(path))


def _key(paths: list[Path]) -> str:
    """The column that tells pairs apart, judged by the first rows."""
    rows = list(islice(_rows(paths), LOOKED_AT))
    for row in rows[:1]:
        missing = [column for column in COLUMNS if column not in row.values]
        if missing:
            raise row.fault(f"a row must have the columns {', '.join(COLUMNS)}", missing[0])
    if rows and all(row.values.get("sub_uri") for row in rows):
        return "sub_uri"
    rows = list(complete_rows(rows, ("rel_uri", "sub_ent", "uuid"), Counter()))
    prompts = {(row.text("rel_uri"), row.text("sub_ent")) for row in rows}
    uuids = {row.text("uuid") for row in rows}
    return "sub_ent" if len(uuids) == len(rows) and len(prompts) < len(rows) else "uuid"


def _said(row: Row, key: str) -> str:
    """What stands in a column that may be missing, or empty."""
    value = row.values.get(key)
    return "" if value is None else str(value).strip()


def _flag(row: Row, key: str) -> bool:
    flag = _said(row, key).lower()
    if flag not in FLAGS:
        raise row.fault(f"{key!r} must be true or false", row.values.get(key))
    return FLAGS[flag]


def _take_objects(row: Row, objects: dict[str, dict[str, None]]) -> int:
    """Add a row's objects with their names; gives back how many aliases belong to no one object.

    Aliases are a list for each object, or an object from identifiers or names to lists. A plain
    list belongs to the only object; where there are several, to the first, as any is correct.
    """
    uris, names = _texts(row, "obj_uris"), _texts(row, "obj_ents")
    if len(uris) != len(names):
        raise row.fault("'obj_uris' and 'obj_ents' must be equally long, with one at least", uris)
    given, unassigned = structure(row, "obj_aliases") or [], 0
    aliases: Sequence[Iterable[Any] | None]
    if isinstance(given, dict):
        pairs = map(dict.fromkeys, zip(uris, names, strict=True))
        aliases = [[name for key in pair for name in given.get(key) or ()] for pair in pairs]
    elif not isinstance(given, list | tuple):
        raise row.fault("'obj_aliases' must be a list or an object", given)
    elif all(isinstance(entry, str) for entry in given):
        aliases, unassigned = [given], len(given) if len(uris) > 1 else 0
    else:
        aliases = given
    for uri, name, more in zip(uris, names, chain(aliases, repeat(None)), strict=False):
        sound = (each for each in more or () if isinstance(each, str) and each.strip())
        objects.setdefault(uri, {}).update(dict.fromkeys((name, *sound)))
    return unassigned


def _texts(row: Row, key: str) -> tuple[str, ...]:
    return Row({key: structure(row, key)}, row.where).texts(key)


COMPONENT = Published(
    name="myriadlama",
    summary="MyriadLAMA: a prompt a row, as .jsonl, .csv or .parquet",
    recognises=_recognises,
    read=_read,
)
