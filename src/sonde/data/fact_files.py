"""The facts of a dataset folder, a file a relation: lines for people, columns for programs.

    facts/ID.jsonl    {"id", "subject": {"id", "names"}, "objects": [{"id", "names"}, …],
                       "split", "tags", "wrong": [{"id", "names"}, …], "details", "numbers",
                       "date", "valid": {"from", "to"}}
    facts/ID.parquet  instead: the columns of core/fact_frames; read much faster

Knows nothing of the other files of a dataset.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec

from sonde.core.dates import FORM, in_order, is_date
from sonde.core.errors import DataError
from sonde.core.fact_frames import DATES, completed, entities, frame_of, has_blank, no_facts
from sonde.core.facts import Entity, Fact, facts_of
from sonde.core.files import whole
from sonde.data.lines import UNSOUND, Complain, Row, decoded, read_each, refuse, regular

if TYPE_CHECKING:
    from polars import DataFrame, Expr, LazyFrame, Series

LINES, COLUMNS = ".jsonl", ".parquet"
"""How the file of a relation's facts ends."""

LATER = {"numbers", *DATES}
"""Columns that facts did not always have."""

ESCAPES = {text: json.dumps(text)[1:-1] for text in (*map(chr, range(32)), '"', "\\")}


class _Entity(msgspec.Struct, gc=False):
    id: str
    names: Annotated[list[str], msgspec.Meta(min_length=1)]


_Entities = Annotated[list[_Entity], msgspec.Meta(min_length=1)]


class _Valid(msgspec.Struct, gc=False, frozen=True, forbid_unknown_fields=True):
    since: str = msgspec.field(default="", name="from")
    until: str = msgspec.field(default="", name="to")


class _Fact(msgspec.Struct, gc=False):
    """A line of a facts file."""

    id: str
    subject: _Entity
    objects: _Entities
    split: str = "test"
    tags: list[str] = []
    wrong: _Entities = []
    details: dict[str, str] = {}
    numbers: dict[str, float] = {}
    date: str = ""
    valid: _Valid = _Valid()

    @property
    def valid_from(self) -> str:
        return self.valid.since

    @property
    def valid_to(self) -> str:
        return self.valid.until


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
            if not has_blank(facts) and not _bad_dates(facts):
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


def placed_frame(
    folder: Path, relation: str, complain: Complain = refuse
) -> tuple[DataFrame, list[str]]:
    """The facts of one relation as a frame, and the file and the line or row of each."""
    path = facts_path(folder, relation)
    if path.suffix == COLUMNS:
        try:
            facts = _read_columns(path)
        except DataError as fault:
            complain(fault)
            return no_facts(), []
        return facts, [f"{path}, row {number}" for number in range(1, facts.height + 1)]
    placed = list(placed_facts(folder, relation, complain))
    return frame_of(fact for _, fact in placed), [where for where, _ in placed]


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
        with regular(path).open(
            "rb"
        ) as file:  # a path would be read as a pattern, and must be UTF-8
            facts = read_parquet(file)
    except (PolarsError, OSError) as error:
        reason = str(error).partition("\n")[0]
        raise DataError(f"{path} is no Parquet file that can be read ({reason})") from None
    schema = no_facts().schema
    early = set(schema) - set(facts.columns) <= LATER  # written before there were these
    known = all(schema.get(name) == kind for name, kind in facts.schema.items())
    if not (early and known) or has_blank(facts) or _bad_dates(facts):
        raise DataError(f"{path} has other columns than facts have, or an empty text in one")
    return completed(facts.lazy()).collect() if len(facts.columns) < len(schema) else facts


def _bad_dates(facts: DataFrame) -> bool:
    """Whether a date is none, or a fact ends before it begins."""
    from polars import col

    dates = facts.select(name for name in DATES if name in facts.columns)
    if not dates.width or dates.select((col("*") == "").all()).row(0) == (True,) * dates.width:
        return False
    given = {text for column in dates for text in column.unique() if text}
    if not all(map(is_date, given)):
        return True
    return not all(in_order(*ends) for ends in dates.select(DATES[1:]).unique().iter_rows())


def facts_path(folder: Path, relation: str) -> Path:
    """Where the facts of a relation stand: their lines, or the columns that are there instead."""
    lines, columns = (folder / "facts" / f"{relation}{ending}" for ending in (LINES, COLUMNS))
    return columns if columns.exists() and not lines.exists() else lines


def fact_files(folder: Path) -> list[Path]:
    """The files of facts that are there, in order."""
    return sorted(path for path in folder.glob("facts/*") if path.suffix in (LINES, COLUMNS))


def write_facts(facts: DataFrame, folder: Path, relation: str, *, columns: bool = False) -> None:
    """Write the facts of a relation; those that stood there in the other form go.

    A number that JSON cannot hold is refused.
    """
    for fact, name, value in _endless(facts).iter_rows():
        raise DataError(f"fact {fact!r} has {name!r} {value}, which is no number; mend its source")
    written, other = (COLUMNS, LINES) if columns else (LINES, COLUMNS)
    with whole(folder / "facts" / f"{relation}{written}") as file:
        if columns:
            data = BytesIO()  # polars would tell a full disk as a fault of its own
            whole_facts = facts.schema == no_facts().schema
            (facts if whole_facts else completed(facts.lazy()).collect()).write_parquet(data)
            file.write(data.getbuffer())
        else:
            file.writelines(line.encode() for line in fact_lines(facts))
    (folder / "facts" / f"{relation}{other}").unlink(missing_ok=True)


def _endless(facts: DataFrame) -> DataFrame:
    """Numbers of facts that are infinite, or none: the fact, their names, the values."""
    from polars import col

    numbers = (
        facts.lazy().select("fact", "numbers").explode("numbers").drop_nulls().unnest("numbers")
    )
    return numbers.filter(~col("value").is_finite()).collect()


def fact_lines(facts: DataFrame) -> Series:
    """Facts as the lines of a facts file, in JSON as json.dumps writes it."""
    from polars import col, concat_str, lit

    rows = facts.lazy().with_row_index("row")
    for of in ("object", "wrong"):
        rows = rows.join(_entity_texts(rows, of), on="row", how="left", maintain_order="left")
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
        _unless_empty(', "details": {', _named("details", _quoted), "}"),
        _unless_empty(', "numbers": {', _named("numbers", _number), "}"),
        _unless_empty(', "date": ', _dated("date"), ""),
        _unless_empty(', "valid": {', _valid(), "}"),
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


def _named(column: str, written: Callable[[Expr], Expr]) -> Expr:
    """A column of {name, value} as the inside of a JSON object."""
    from polars import col, concat_str, element, lit

    name, value = (element().struct.field(field) for field in ("name", "value"))
    return (
        col(column).list.eval(concat_str(_quoted(name), lit(": "), written(value))).list.join(", ")
    )


def _number(value: Expr) -> Expr:
    """Whole numbers without a point."""
    from polars import Int64, String, when

    whole = (value == value.floor()) & (value.abs() < 2**53)
    return (
        when(whole).then(value.cast(Int64, strict=False).cast(String)).otherwise(value.cast(String))
    )


def _dated(column: str) -> Expr:
    """A date in quotes, or nothing."""
    from polars import col, lit, when

    return when(col(column) != "").then(_quoted(col(column))).otherwise(lit(""))


def _valid() -> Expr:
    from polars import concat_str, lit, when

    since, until = _dated("valid_from"), _dated("valid_to")
    comma = when((since != "") & (until != "")).then(lit(", ")).otherwise(lit(""))
    return concat_str(
        _unless_empty('"from": ', since, ""), comma, _unless_empty('"to": ', until, "")
    )


def _unless_empty(before: str, text: Expr, after: str) -> Expr:
    from polars import concat_str, lit, when

    return when(text != "").then(concat_str(lit(before), text, lit(after))).otherwise(lit(""))


def _fact(row: Row, relation: str) -> Fact:
    return Fact(
        id=row.text("id"),
        relation=relation,
        subject=entity_of(row.row("subject")),
        objects=tuple(entity_of(inner) for inner in row.rows("objects")),
        split=row.text("split", "test"),
        tags=row.texts("tags", empty=True),
        wrong=tuple(entity_of(inner) for inner in row.rows("wrong"))
        if "wrong" in row.values
        else (),
        details=row.mapping("details", str, "texts"),
        numbers=row.numbers("numbers"),
        date=_date(row, "date"),
        valid_from=(ends := _ends(row))[0],
        valid_to=ends[1],
    )


def _ends(row: Row) -> tuple[str, str]:
    """Since when and until when a fact is valid."""
    if "valid" not in row.values:
        return "", ""
    inner = row.row("valid")
    if other := sorted(set(inner.values) - {"from", "to"}):
        raise row.fault("'valid' must have 'from' and 'to' alone, or one of them", other[0])
    since, until = _date(inner, "from"), _date(inner, "to")
    if not in_order(since, until):
        raise row.fault("'valid' must not end before it begins", row.values["valid"])
    return since, until


def _date(row: Row, key: str) -> str:
    text = row.text(key, "")
    if text and not is_date(text):
        raise row.fault(f"{key!r} must be a date, {FORM}", text)
    return text


def entity_of(row: Row) -> Entity:
    """A thing with its names from its row."""
    return Entity(id=row.text("id"), names=row.texts("names"))
