"""The rows of a table in a file: CSV, TSV, JSON lines, Parquet or Excel. Knows no columns.

A line that cannot be read is complained of with its place, and hides no other. The place of a row
is its line in a text file, and in a spreadsheet its number there.
"""

from __future__ import annotations

import csv
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TextIO
from xml.parsers.expat import ExpatError
from zipfile import BadZipFile

from sonde.core.errors import DataError, MissingExtra
from sonde.data.lines import (
    BATCH,
    LONGEST_LINE,
    NOT_UTF8,
    Complain,
    Row,
    raw_lines,
    read_each,
    refuse,
    regular,
)
from sonde.data.tables.columns import LONGEST_CELL, SHOWN
from sonde.data.tables.excel import MIB, UNPACKED, check_workbook

DELIMITERS = ",;\t"
UNREADABLE = (OSError, BadZipFile, ExpatError, zlib.error, EOFError, RuntimeError)
"""What unpacking a workbook may raise."""

UTF16 = (b"\xff\xfe", b"\xfe\xff")


def _csv_rows(path: Path, complain: Complain) -> Iterator[Row]:
    csv.field_size_limit(LONGEST_CELL)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            mark = _delimiter(file.readline(LONGEST_LINE), path)
            file.seek(0)
            reader = csv.reader(_lines(file, path), delimiter=mark, strict=True)
            yield from _under_header(path, reader, complain)
    except FileNotFoundError:
        complain(DataError(f"{path} is missing"))
    except UnicodeDecodeError:
        complain(DataError(_not_utf8(path)))
    except csv.Error as error:
        complain(
            DataError(f"{path}, line {reader.line_num}: {error}; is a quotation mark left open?")
        )


def _lines(file: TextIO, path: Path) -> Iterator[str]:
    """The lines of a file, none of which may fill the memory."""
    for number, line in enumerate(iter(lambda: file.readline(LONGEST_LINE), ""), 1):
        if len(line) == LONGEST_LINE:
            raise DataError(f"{path}, line {number}: longer than {LONGEST_LINE:,} characters")
        yield line


def _under_header(path: Path, reader: Iterator[list[str]], complain: Complain) -> Iterator[Row]:
    """Rows as objects; blank lines are passed over, and columns without a name left out."""
    header = [name.strip() for name in next(reader, [])]
    for name, often in Counter(filter(None, header)).items():
        if often > 1:
            complain(
                DataError(f"{path}, line 1: {often} columns are called {name!r}; name them apart")
            )
    for cells in reader:
        where = f"{path}, line {reader.line_num}"  # type: ignore[attr-defined]
        if len(cells) > len(header) and any(cells[len(header) :]):
            complain(
                DataError(
                    f"{where}: {len(cells)} cells under a header of {len(header)}; put a cell that "
                    "holds the separator in double quotes"
                )
            )
        elif any(cells):
            cells += [""] * (len(header) - len(cells))
            named = zip(header, cells, strict=False)
            yield Row({name: cell for name, cell in named if name}, where)


def _delimiter(header: str, path: Path) -> str:
    """What separates cells: the commonest candidate of the header."""
    return "\t" if path.suffix.lower() == ".tsv" else max(DELIMITERS, key=header.count)


def _not_utf8(path: Path) -> str:
    """Which lines of a file are no UTF-8, and what to do about them."""
    with path.open("rb") as file:
        if file.read(2) in UTF16:
            return f"{path} is in UTF-16; {_convert(path, 'UTF-16')}"
    bad, good = [], 0
    for number, (_, raw) in enumerate(raw_lines(path), 1):
        try:
            good += not raw.decode().isascii()
        except UnicodeDecodeError:
            bad.append((number, raw.decode("latin-1").strip()[:60]))
    lines = ", ".join(str(number) for number, _ in bad[:SHOWN])
    more = f" and {len(bad) - SHOWN:,} more" if len(bad) > SHOWN else ""
    number, text = bad[0]
    said = f"{path} is not in UTF-8: line{'s' * (len(bad) > 1)} {lines}{more}"
    if good:
        return (
            f"{said}; others hold UTF-8, so it mixes encodings: write these lines anew in UTF-8 "
            f"(line {number} may mean {text!r})"
        )
    return f"{said}; if line {number} means {text!r}, it is in Latin-1: {_convert(path, 'LATIN1')}"


def _convert(path: Path, encoding: str) -> str:
    new = path.with_stem(f"{path.stem}-utf8")
    return f"save it as UTF-8, or run: iconv -f {encoding} -t UTF-8 {path} > {new}"


def _json_rows(path: Path, complain: Complain) -> Iterator[Row]:
    def told(fault: DataError) -> None:
        complain(DataError(_not_utf8(path)) if NOT_UTF8 in str(fault) else fault)

    return (row for _, row in read_each(path, lambda row: row, told))


def _parquet_rows(path: Path, complain: Complain) -> Iterator[Row]:
    import pyarrow
    from pyarrow import parquet

    try:
        metadata = parquet.read_metadata(path)
        schema = metadata.schema.to_arrow_schema()
        if maps := [column.name for column in schema if _has_map(column.type)]:
            raise DataError(
                f"{path}: column {maps[0]!r} is a map, which sonde does not read; save it as a "
                "text or a list, or drop it"
            )
        _check_unpacked(path, metadata)
        leaves = {metadata.schema.column(i).path for i in range(metadata.num_columns)}
        texts = [leaf for column in schema for leaf in _text_leaves(column) if leaf in leaves]
        with parquet.ParquetFile(path, read_dictionary=texts) as file:
            number = 0
            for batch in file.iter_batches(batch_size=BATCH):
                columns = [_cells(path, *named) for named in zip(schema.names, batch, strict=True)]
                for cells in zip(*columns, strict=True):
                    number += 1
                    values = dict(zip(schema.names, cells, strict=True))
                    try:
                        yield decode_row(values, f"{path}, row {number}")
                    except DataError as fault:
                        complain(fault)
    except (OSError, pyarrow.ArrowException) as error:
        complain(DataError(f"{path}: not a Parquet file that can be read ({error})"))


def _check_unpacked(path: Path, metadata: Any) -> None:
    """Reject a file whose texts, a part of which is unpacked at once, need too much memory."""
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        for column in map(group.column, range(group.num_columns)):
            is_text = column.physical_type == "BYTE_ARRAY"
            if is_text and column.total_uncompressed_size > UNPACKED * MIB:
                raise DataError(
                    f"{path}: column {column.path_in_schema!r} unpacks to more than {UNPACKED} MiB "
                    "in one row group; split the table, or drop the column"
                )


def _has_map(kind: Any) -> bool:
    """Whether a type of Parquet is a map or holds one."""
    from pyarrow import types

    inner = (kind.field(number).type for number in range(kind.num_fields))
    return types.is_map(kind) or any(map(_has_map, inner))


def _text_leaves(column: Any) -> tuple[str, ...]:
    """Where Parquet may keep the texts of a column or of its lists."""
    from pyarrow import types

    if _is_text(column.type):
        return (column.name,)
    if types.is_list(column.type) and _is_text(column.type.value_type):
        return (f"{column.name}.list.element", f"{column.name}.list.item")
    return ()


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    tests = (types.is_string, types.is_binary, types.is_large_string, types.is_large_binary)
    return any(test(kind) for test in tests)


def _cells(path: Path, name: str, column: Any) -> list[Any]:
    """The cells of a column; texts that are repeated are made once."""
    from pyarrow import compute, types

    if types.is_list(column.type):
        values, ends = _cells(path, name, column.values), column.offsets.to_pylist()
        lists = zip(column.is_valid().to_pylist(), ends[:-1], ends[1:], strict=True)
        return [values[start:end] if valid else None for valid, start, end in lists]
    if not types.is_dictionary(column.type) or not _is_text(column.type.value_type):
        return list(column.to_pylist())
    places = column.indices.unique().drop_null()
    texts = column.dictionary.take(places)
    if (compute.max(compute.binary_length(texts)).as_py() or 0) > LONGEST_CELL:
        raise DataError(f"{path}: column {name!r} has a cell of more than {LONGEST_CELL:,} bytes")
    by_place = dict(zip(places.to_pylist(), texts.to_pylist(), strict=True))
    return [by_place.get(place) for place in column.indices.to_pylist()]


def decode_row(values: dict[str, Any], where: str) -> Row:
    """A row whose binary cells are texts in UTF-8."""
    for column, cell in values.items():
        try:
            values[column] = _decode(cell)
        except UnicodeDecodeError:
            raise DataError(f"{where}: {column!r} is binary and not text in UTF-8") from None
    return Row(values, where)


def _decode(cell: Any) -> Any:
    if isinstance(cell, list):
        return [_decode(part) for part in cell]
    return cell.decode() if isinstance(cell, bytes) else cell


def _excel_rows(path: Path, complain: Complain) -> Iterator[Row]:
    """The rows of the first sheet; its first row is the header."""
    if find_spec("fastexcel") is None:
        raise MissingExtra(
            f"{path} needs fastexcel, which reads Excel files; run: pip install 'sonde[excel]', or "
            "save the sheet as CSV (UTF-8)"
        )
    import fastexcel

    try:
        check_workbook(path)
        sheet = fastexcel.read_excel(path).load_sheet(0, dtypes="string").to_polars()
    except (*UNREADABLE, fastexcel.FastExcelError) as error:
        complain(DataError(f"{path}: not an Excel file that can be read ({error})"))
        return
    for number, cells in enumerate(sheet.iter_rows(), 2):
        if any(cells):
            yield Row(dict(zip(sheet.columns, cells, strict=True)), f"{path}, row {number}")


TABLES: dict[str, Callable[[Path, Complain], Iterator[Row]]] = {
    ".csv": _csv_rows,
    ".tsv": _csv_rows,
    ".jsonl": _json_rows,
    ".parquet": _parquet_rows,
    ".xlsx": _excel_rows,
}
"""How a table is read, by the ending of its file."""


def is_table(path: Path) -> bool:
    """Whether a path has the ending of a table."""
    return path.suffix.lower() in TABLES


def tables(folder: Path) -> list[Path]:
    """The tables in a folder and one level below it, in order of their paths."""
    paths = (*folder.glob("*"), *folder.glob("*/*"))  # no deeper: any folder may be asked about
    return sorted(p for p in paths if is_table(p) and p.is_file())


def read_table(path: Path, complain: Complain = refuse) -> Iterator[Row]:
    """The rows of a table, each with its place for complaints."""
    return TABLES.get(path.suffix.lower(), _json_rows)(regular(path), complain)
