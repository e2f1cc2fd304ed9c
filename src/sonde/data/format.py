"""The one on-disk form of a dataset: a folder of lines, in which facts may also be columns.

    dataset.json      name, version, licence, sources, description, notes (counts of what was left
                      out), hash (of the other files)
    relations.jsonl   {"id", "label", "kind"}
    templates.jsonl   {"id", "relation", "text", "source", "style", "group",
                       "weight", "origin"}
    facts/ID.jsonl    {"id", "subject": {"id", "names"}, "objects": [{"id", "names"}, …],
                       "split", "tags", "wrong": [{"id", "names"}, …], "details"}
    facts/ID.parquet  instead: the same as columns, those of core/fact_frames; read much faster
    vocabulary.txt    optional: one allowed answer a line

docs/dataset-format.md describes each field. Knows nothing of probes or models.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast, get_args

import msgspec

from sonde.core.errors import DataError, TemplateError
from sonde.core.fact_frames import completed, entities, frame_of, has_blank
from sonde.core.facts import (
    Card,
    Dataset,
    Entity,
    Fact,
    Kind,
    Relation,
    Source,
    Style,
    Template,
    facts_of,
)
from sonde.core.files import whole
from sonde.data.lines import (
    UNSOUND,
    Complain,
    Row,
    decoded,
    read_each,
    read_lines,
    read_object,
    refuse,
    write_rows,
)

if TYPE_CHECKING:
    from polars import DataFrame, Expr, LazyFrame, Series

FORMAT = 1
HASH_SIZE = 16
LINES, COLUMNS = ".jsonl", ".parquet"
"""How the file of a relation's facts ends."""
ESCAPES = {text: json.dumps(text)[1:-1] for text in (*map(chr, range(32)), '"', "\\")}


def is_dataset(folder: Path) -> bool:
    """Whether a folder holds a dataset in this form."""
    return (folder / "dataset.json").is_file()


def open_dataset(folder: Path) -> Dataset:
    """Open a dataset folder; templates are read now, facts when they are asked for."""
    head = read_object(folder / "dataset.json")
    card = card_of(head)
    relations = tuple(worded_relations(folder))
    for relation in relations:
        if not facts_path(folder, relation.id).is_file():
            raise DataError(
                f"{facts_path(folder, relation.id)} is missing: relation {relation.id!r} stands "
                f"in {folder / 'relations.jsonl'} and needs its facts"
            )
    content, written = content_hash(folder), head.values.get("hash")
    if written not in (None, content):
        raise DataError(
            f"{folder}: the content has hash {content} but dataset.json says {written}; if you "
            f"changed it on purpose, run: sonde data check {folder} --seal"
        )
    return Dataset(
        card=card,
        relations=relations,
        read=Facts(folder),
        fingerprint=content,
        vocabulary=read_vocabulary(folder / "vocabulary.txt"),
        notes=notes_of(head),
    )


class _Entity(msgspec.Struct, gc=False):
    id: str
    names: Annotated[list[str], msgspec.Meta(min_length=1)]


_Entities = Annotated[list[_Entity], msgspec.Meta(min_length=1)]


class _Fact(msgspec.Struct, gc=False):
    """A line of a facts file."""

    id: str
    subject: _Entity
    objects: _Entities
    split: str = "test"
    tags: list[str] = []
    wrong: _Entities = []
    details: dict[str, str] = {}


class Facts:
    """Reads the facts of one relation of a folder; can also say on which line each stands."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, relation: str) -> DataFrame:
        """The facts of a relation."""
        path = facts_path(self.folder, relation)
        if path.suffix == COLUMNS:
            return _read_columns(path)
        try:
            facts = frame_of(decoded(path, _Fact), relation)
            if not has_blank(facts):
                return facts
        except UNSOUND:
            pass  # read line by line, it is said what is wrong and where
        return frame_of(fact for _, fact in placed_facts(self.folder, relation))

    def places(self, relation: str) -> Iterator[str]:
        """The file and the line where each fact of a relation stands."""
        return (where for where, _ in placed_facts(self.folder, relation))


def placed_facts(
    folder: Path, relation: str, complain: Complain = refuse
) -> Iterator[tuple[str, Fact]]:
    """The facts of one relation, read one by one, each behind its file and line."""
    path = facts_path(folder, relation)
    if path.suffix == COLUMNS:
        return _placed_rows(path, complain)
    return read_each(path, lambda row: _fact(row, relation), complain)


def _placed_rows(path: Path, complain: Complain) -> Iterator[tuple[str, Fact]]:
    try:
        facts = _read_columns(path)
    except DataError as fault:
        complain(fault)
    else:
        yield from ((f"{path}, row {n}", fact) for n, fact in enumerate(facts_of(facts), 1))


def _read_columns(path: Path) -> DataFrame:
    from polars import read_parquet
    from polars.exceptions import PolarsError

    try:
        facts = read_parquet(path)
    except (PolarsError, OSError) as error:
        reason = str(error).partition("\n")[0]
        raise DataError(f"{path} is no Parquet file that can be read ({reason})") from None
    if facts.schema != frame_of([]).schema or has_blank(facts):
        raise DataError(f"{path} has other columns than facts have, or an empty text in one")
    return facts


def facts_path(folder: Path, relation: str) -> Path:
    """Where the facts of a relation stand: their lines, or the columns that are there instead."""
    lines, columns = (folder / "facts" / f"{relation}{ending}" for ending in (LINES, COLUMNS))
    return columns if columns.is_file() and not lines.is_file() else lines


def fact_files(folder: Path) -> list[Path]:
    """The files of facts that are there, in order."""
    return sorted(path for path in folder.glob("facts/*") if path.suffix in (LINES, COLUMNS))


def content_hash(folder: Path) -> str:
    """Name the content of a dataset folder: everything but dataset.json, byte for byte."""
    paths = [folder / "relations.jsonl", folder / "templates.jsonl", folder / "vocabulary.txt"]
    return hash_files(folder, [*paths, *fact_files(folder)])


def hash_files(folder: Path, paths: Iterable[Path]) -> str:
    """Name the content of some files of a folder, those that are there, and their places in it."""
    digest = hashlib.sha256()
    for path in filter(Path.is_file, paths):
        digest.update(f"{path.relative_to(folder).as_posix()}\0{path.stat().st_size}\0".encode())
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:HASH_SIZE]


def write_dataset(dataset: Dataset, folder: Path, *, columns: bool = False) -> None:
    """Write a dataset in this form, sealed with its hash; facts a relation at a time, as lines
    for people or as columns for programs."""
    (folder / "facts").mkdir(parents=True, exist_ok=True)
    write_rows(
        folder / "relations.jsonl",
        ({"id": r.id, "label": r.label, "kind": r.kind} for r in dataset.relations),
    )
    write_rows(folder / "templates.jsonl", _template_rows(dataset))
    for relation in dataset.relations:
        facts, stem = dataset.frame(relation.id), folder / "facts" / relation.id
        with whole(Path(f"{stem}{COLUMNS if columns else LINES}")) as file:
            if columns:
                completed(facts.lazy()).collect().write_parquet(file)
            else:
                file.writelines(line.encode() for line in fact_lines(facts))
        Path(f"{stem}{LINES if columns else COLUMNS}").unlink(missing_ok=True)
    _write_vocabulary(folder / "vocabulary.txt", dataset.vocabulary)
    _write_head(folder, dataset.card, dataset.notes)


def seal(folder: Path) -> str:
    """Write the content's hash into dataset.json, and give it back."""
    head = read_object(folder / "dataset.json")
    return _write_head(folder, card_of(head), notes_of(head))


def _write_head(folder: Path, card: Card, notes: Mapping[str, int]) -> str:
    content = content_hash(folder)
    head = {
        "format": FORMAT,
        "name": card.name,
        "version": card.version,
        "licence": card.licence,
        "sources": list(card.sources),
        "description": card.description,
        **({"notes": dict(notes)} if notes else {}),
        "hash": content,
    }
    with whole(folder / "dataset.json") as file:  # so that no kill leaves half a head
        file.write((json.dumps(head, indent=2, ensure_ascii=False) + "\n").encode())
    return content


def fact_lines(facts: DataFrame) -> Series:
    """Facts as the lines of a facts file, in JSON as json.dumps writes it."""
    from polars import col, concat_str, element, lit

    rows = facts.lazy().with_row_index("row")
    for of in ("object", "wrong"):
        rows = rows.join(_entity_texts(rows, of), on="row", how="left", maintain_order="left")
    name, value = (_quoted(element().struct.field(field)) for field in ("name", "value"))
    details = col("details").list.eval(concat_str(name, lit(": "), value)).list.join(", ")
    line = concat_str(
        lit('{"id": '),
        _quoted(col("fact")),
        lit(', "subject": '),
        _entity_text("subject_id", "subject_names"),
        concat_str(lit(', "objects": ['), col("object").fill_null(""), lit("]")),
        lit(', "split": '),
        _quoted(col("split")),
        _unless_empty(', "tags": [', _listed("tags"), "]"),
        _unless_empty(', "wrong": [', col("wrong").fill_null(""), "]"),
        _unless_empty(', "details": {', details, "}"),
        lit("}\n"),
    )
    return rows.select(line.alias("line")).collect()["line"]


def _entity_texts(facts: LazyFrame, of: str) -> LazyFrame:
    from polars import col

    texts = entities(facts, "row", of=of).select("row", _entity_text(f"{of}_ids", f"{of}_names"))
    return texts.group_by("row").agg(col(f"{of}_ids").str.join(", ").alias(of))


def _entity_text(id: str, names: str) -> Expr:
    from polars import col, concat_str, lit

    ends = lit('{"id": '), lit(', "names": ['), lit("]}")
    return concat_str(ends[0], _quoted(col(id)), ends[1], _listed(names), ends[2]).alias(id)


def _listed(names: str) -> Expr:
    from polars import col, element

    return col(names).list.eval(_quoted(element())).list.join(", ")


def _quoted(text: Expr) -> Expr:
    from polars import concat_str, lit

    return concat_str(lit('"'), text.str.replace_many(ESCAPES), lit('"'))


def _unless_empty(before: str, text: Expr, after: str) -> Expr:
    from polars import concat_str, lit, when

    return when(text != "").then(concat_str(lit(before), text, lit(after))).otherwise(lit(""))


def _template_rows(dataset: Dataset) -> Iterator[dict[str, Any]]:
    for relation in dataset.relations:
        for t in relation.templates:
            row = {
                "id": t.id,
                "relation": relation.id,
                "text": t.text,
                "source": t.source,
                "style": t.style,
                "group": t.group or t.id,
            }
            further = {"weight": t.weight, "origin": t.origin or None}
            yield row | {key: value for key, value in further.items() if value is not None}


def card_of(head: Row) -> Card:
    """Where dataset.json says that the dataset comes from."""
    version = head.values.get("format")
    if version != FORMAT:
        raise head.fault(
            f"'format' must be {FORMAT}, the form this version of sonde reads", version
        )
    return Card(
        name=head.text("name"),
        version=head.text("version", "1"),
        licence=head.text("licence", "unknown"),
        sources=head.texts("sources", empty=True),
        description=head.text("description", ""),
    )


def notes_of(head: Row) -> dict[str, int]:
    """What dataset.json says was counted when the dataset was made."""
    return head.mapping("notes", int, "whole numbers")


def worded_relations(folder: Path) -> Iterator[Relation]:
    """The relations of a folder with their templates."""
    relations = read_relations(folder)
    if not relations:
        raise DataError(f"{folder / 'relations.jsonl'}: no relation in it")
    templates = read_templates(folder, relations)
    for id, (_, relation) in relations.items():
        yield replace(relation, templates=tuple(template for _, template in templates[id]))


def read_relations(folder: Path, complain: Complain = refuse) -> dict[str, tuple[str, Relation]]:
    """Relations by id, without templates, each with the place of its line."""
    relations: dict[str, tuple[str, Relation]] = {}

    def relation_of(row: Row) -> Relation:
        id = row.text("id")
        if not re.fullmatch(r"[\w.-]+", id):
            raise row.fault("'id' must be made of letters, digits, '.', '_' and '-'", id)
        if id in relations:
            raise row.fault("each relation stands once", id)
        kind = cast(Kind, row.choice("kind", get_args(Kind)))
        return Relation(id=id, label=row.text("label"), kind=kind)

    for where, relation in read_each(folder / "relations.jsonl", relation_of, complain):
        relations[relation.id] = (where, relation)
    return relations


def read_templates(
    folder: Path, relations: Collection[str], complain: Complain = refuse
) -> dict[str, list[tuple[str, Template]]]:
    """The templates of relations by their ids, each with the place of its line."""

    def worded(row: Row) -> tuple[str, Template]:
        id = row.text("relation")
        if id not in relations:
            raise row.fault("'relation' must stand in relations.jsonl", id)
        return id, template_of(row)

    templates: dict[str, list[tuple[str, Template]]] = {id: [] for id in relations}
    for where, (id, template) in read_each(folder / "templates.jsonl", worded, complain):
        templates[id].append((where, template))
    return templates


def template_of(row: Row) -> Template:
    """A template from its row, with the row's place in every complaint."""
    id = row.text("id")
    try:
        return Template(
            id=id,
            text=row.text("text"),
            source=cast(Source, row.choice("source", get_args(Source), "manual")),
            style=cast(Style, row.choice("style", get_args(Style), "statement")),
            group=row.text("group", id),
            weight=row.number("weight"),
            origin=row.text("origin", ""),
        )
    except TemplateError as error:
        raise TemplateError(f"{row.where}: {error}") from None


def _fact(row: Row, relation: str) -> Fact:
    return Fact(
        id=row.text("id"),
        relation=relation,
        subject=_entity(row.row("subject")),
        objects=tuple(_entity(inner) for inner in row.rows("objects")),
        split=row.text("split", "test"),
        tags=row.texts("tags", empty=True),
        wrong=tuple(_entity(inner) for inner in row.rows("wrong")) if "wrong" in row.values else (),
        details=row.mapping("details", str, "texts"),
    )


def _entity(row: Row) -> Entity:
    return Entity(id=row.text("id"), names=row.texts("names"))


def _write_vocabulary(path: Path, words: tuple[str, ...] | None) -> None:
    if words is None:
        path.unlink(missing_ok=True)
    else:
        path.write_text("".join(f"{word}\n" for word in words), encoding="utf-8")


def read_vocabulary(path: Path) -> tuple[str, ...] | None:
    """The allowed answers of a file, one a line; None where it is not there."""
    return tuple(line for _, line in read_lines(path) if line) if path.is_file() else None
