"""Read mLAMA and mParaRel: triples in several languages, one file a relation and language.

    mlama:FOLDER      LANG/templates.jsonl  {"relation", "template"}
                      LANG/P19.jsonl        {"sub_uri", "obj_uri", "sub_label", "obj_label"}
    mpararel:FOLDER   patterns/LANG/P19.jsonl  {"pattern", "checked-by-human"}
                      tuples/LANG/P19.jsonl    as mLAMA's

There is one relation for each language, `P19.ja`, and `P19` is what it is in all. Subjects and
objects have the same identifiers in every language, by which facts are joined: not every fact is
there in every language. A row without identifiers or with an empty label and one that repeats a
pair are left out and counted, as is a relation that a language has no template for.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from sonde.core.errors import DataError
from sonde.core.fact_frames import completed
from sonde.core.facts import Card, Dataset, Relation, Source, Template
from sonde.data.format import hash_files
from sonde.data.lines import INCOMPLETE, Row, read_rows, read_texts
from sonde.data.wordings import Wording, gather, kind_of, known_relation

if TYPE_CHECKING:
    from polars import DataFrame

TEMPLATES, PATTERNS, TUPLES = "templates.jsonl", "patterns", "tuples"
LANGUAGE = re.compile(r"[a-z]{2,3}(-\w+)*")
ENGLISH = "en"

Place = tuple[str, str]
"""A relation in a language, by their names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Translated:
    """A set of triples in several languages, as published.

    `find` gives the file of triples of each place, `wordings` the sentences of all, with the files
    that they stand in.
    """

    name: str
    summary: str
    published: str
    licence: str
    find: Callable[[Path], dict[Place, Path]]
    wordings: Callable[[Path], Iterator[tuple[Path, Wording]]]
    missing: str

    def recognises(self, folder: Path) -> bool:
        """Whether a folder has files of triples and of sentences where this set has them."""
        return bool(self.find(folder)) and next(self.wordings(folder), None) is not None

    def read(self, folder: Path) -> Dataset:
        """Open the folder; all facts are read now, since they are counted."""
        paths = self.find(folder)
        if not paths:
            raise DataError(f"{folder} holds no {self.missing}")
        worded = list(self.wordings(folder))
        templates, notes = gather(self.name, (wording for _, wording in worded))
        counts, relations = Counter(notes), []
        facts: dict[str, DataFrame] = {}
        for (same, language), path in paths.items():
            id = f"{same}.{language}"
            if id not in templates:
                counts["relations_without_templates"] += 1
                continue
            facts[id] = _facts(path, id, counts)
            relations.append(_relation(same, language, templates[id], facts[id]))
        if not relations:
            raise DataError(f"{folder}: no relation has triples and a template in one language")
        files = [*paths.values(), *dict.fromkeys(path for path, _ in worded)]
        return Dataset(
            card=Card(name=self.name, licence=self.licence, sources=(self.published,)),
            relations=tuple(relations),
            read=facts.__getitem__,
            fingerprint=hash_files(folder, files),
            notes=dict(counts),
        )


def _facts(path: Path, id: str, counts: Counter[str]) -> DataFrame:
    """The facts of a file: one for each pair of a subject and an object."""
    from polars import col, format, lit

    before = counts.get(INCOMPLETE, 0)
    rows = read_texts(path, ("sub_label", "obj_label"), ("sub_uri", "obj_uri"), counts)
    named = rows.drop_nulls()
    once = named.unique(("sub_uri", "obj_uri"), keep="first", maintain_order=True)
    counts["rows_read"] += rows.height + counts.get(INCOMPLETE, 0) - before
    counts["rows_without_identifiers"] += rows.height - named.height
    counts["duplicate_rows"] += named.height - once.height
    facts = once.lazy().select(
        fact=format("{}:{}:{}", lit(id), "sub_uri", "obj_uri"),
        relation=lit(id),
        subject="sub_label",
        subject_id="sub_uri",
        object="obj_label",
        object_id=col("obj_uri"),
    )
    return completed(facts).collect()


def _relation(
    same: str, language: str, templates: tuple[Template, ...], facts: DataFrame
) -> Relation:
    objects: dict[str, set[str]] = {}
    for subject, ids in facts.select("subject_id", "object_ids").iter_rows():
        objects.setdefault(subject, set()).update(ids)
    known = known_relation(same, same, kind=kind_of(objects.values()))
    id = f"{same}.{language}"
    return replace(known, id=id, templates=templates, language=language, same=same)


def _in_order(files: Iterator[Path]) -> dict[Place, Path]:
    """Files LANG/RELATION.jsonl by relation (P17 before P101) and language, English first."""
    named = (path for path in files if LANGUAGE.fullmatch(path.parent.name))
    found = {(path.stem, path.parent.name): path for path in named}
    keys = sorted(found, key=lambda p: (len(p[0]), p[0], p[1] != ENGLISH, p[1]))
    return {key: found[key] for key in keys}


def _mlama_files(folder: Path) -> dict[Place, Path]:
    known = {path.parent for path in _in_order(folder.glob(f"*/{TEMPLATES}")).values()}
    files = (path for path in folder.glob("*/*.jsonl") if path.name != TEMPLATES)
    return _in_order(path for path in files if path.parent in known)


def _sentence(row: Row, key: str) -> str:
    """A template; an empty one is counted among those without slots."""
    return row.text(key) if key in row.values and not row.is_blank(key) else ""


def _mlama_wordings(folder: Path) -> Iterator[tuple[Path, Wording]]:
    for path in _in_order(folder.glob(f"*/{TEMPLATES}")).values():
        for row in read_rows(path):
            id = f"{row.text('relation')}.{path.parent.name}"
            yield path, Wording(id, _sentence(row, "template"), "manual")


def _mpararel_wordings(folder: Path) -> Iterator[tuple[Path, Wording]]:
    """English patterns are ParaRel's, written by hand; others were translated by machine."""
    for path in _in_order((folder / PATTERNS).glob("*/*.jsonl")).values():
        language = path.parent.name
        for row in read_rows(path):
            by_hand = language == ENGLISH or row.values.get("checked-by-human") is True
            source: Source = "manual" if by_hand else "paraphrase"
            yield path, Wording(f"{path.stem}.{language}", _sentence(row, "pattern"), source)


MLAMA = Translated(
    name="mlama",
    summary="mLAMA in several languages: LANG/templates.jsonl, LANG/P*.jsonl",
    published="mLAMA",
    licence="CC-BY-NC-SA 4.0",
    find=_mlama_files,
    wordings=_mlama_wordings,
    missing=f"file of mLAMA, such as en/P19.jsonl beside en/{TEMPLATES}",
)

MPARAREL = Translated(
    name="mpararel",
    summary="mParaRel in several languages: patterns/LANG/P*.jsonl, tuples/LANG/P*.jsonl",
    published="mParaRel",
    licence="none stated",
    find=lambda folder: _in_order((folder / TUPLES).glob("*/*.jsonl")),
    wordings=_mpararel_wordings,
    missing=f"file of mParaRel, such as {TUPLES}/en/P19.jsonl",
)
