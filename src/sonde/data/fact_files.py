"""The facts of a dataset folder, a file a relation: lines for people, columns for programs.

    facts/ID.jsonl    {"id", "subject": {"id", "names"}, "objects": [{"id", "names"}, …],
                       "split", "tags", "wrong": [{"id", "names"}, …], "details"}
    facts/ID.parquet  instead: the columns of core/fact_frames; read much faster

Knows nothing of the other files of a dataset.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec

from sonde.core.errors import DataError
from sonde.core.fact_frames import completed, entities, frame_of, has_blank
from sonde.core.facts import Entity, Fact, facts_of
from sonde.core.files import whole
from sonde.data.lines import UNSOUND, Complain, Row, decoded, read_each, refuse

if TYPE_CHECKING:
    from polars import DataFrame, Expr, LazyFrame, Series

LINES, COLUMNS = ".jsonl", ".parquet"
"""How the file of a relation's facts ends."""

ESCAPES = {text: json.dumps(text)[1:-1] for text in (*map(chr, range(32)), '"', "\\")}


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
        with path.open("rb") as file:  # a path would be read as a pattern, and must be UTF-8
            facts = read_parquet(file)
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


def write_facts(facts: DataFrame, folder: Path, relation: str, *, columns: bool = False) -> None:
    """Write the facts of a relation; those that stood there in the other form go."""
    written, other = (COLUMNS, LINES) if columns else (LINES, COLUMNS)
    with whole(folder / "facts" / f"{relation}{written}") as file:
        if columns:
            data = BytesIO()  # polars would tell a full disk as a fault of its own
            completed(facts.lazy()).collect().write_parquet(data)
            file.write(data.getbuffer())
        else:
            file.writelines(line.encode() for line in fact_lines(facts))
    (folder / "facts" / f"{relation}{other}").unlink(missing_ok=True)


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
