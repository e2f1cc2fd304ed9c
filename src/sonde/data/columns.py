"""Read rows out of tables of any common form: JSON lines, CSV or Parquet, one batch at a time.

Cells that hold lists or objects may also be written as text, in JSON or as Python writes them.
"""

from __future__ import annotations

import ast
import csv
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sonde.core.errors import DataError
from sonde.data.lines import Row, read_rows

FORMS = (".jsonl", ".csv", ".parquet")
BATCH = 4096


def tables(folder: Path) -> list[Path]:
    """The tables in a folder and one level below it, in order of their paths."""
    found = (*folder.glob("*"), *folder.glob("*/*"))  # no deeper: any folder may be asked about
    return sorted(p for p in found if p.suffix in FORMS and p.is_file())


def read_table(path: Path) -> Iterator[Row]:
    """The rows of a table, each with its place for complaints."""
    if path.suffix == ".csv":
        return _csv_rows(path)
    if path.suffix == ".parquet":
        return _parquet_rows(path)
    return read_rows(path)


def structure(row: Row, key: str) -> Any:
    """A cell that holds a list or an object, parsed where it is written as text."""
    value = row.values.get(key)
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        pass
    try:
        return ast.literal_eval(value)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        raise row.fault(f"{key!r} must be a list, also as JSON or Python text", value) from None


def _csv_rows(path: Path) -> Iterator[Row]:
    csv.field_size_limit(sys.maxsize)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            for values in reader:
                yield Row(dict(values), f"{path}, line {reader.line_num}")
    except FileNotFoundError:
        raise DataError(f"{path} is missing") from None
    except (csv.Error, UnicodeDecodeError) as error:
        raise DataError(f"{path}: not a CSV file in UTF-8 ({error})") from None


def _parquet_rows(path: Path) -> Iterator[Row]:
    import pyarrow
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as file:
            number = 0
            for batch in file.iter_batches(batch_size=BATCH):
                for values in batch.to_pylist():
                    number += 1
                    yield Row(values, f"{path}, row {number}")
    except (OSError, pyarrow.ArrowException) as error:
        raise DataError(f"{path}: not a Parquet file that can be read ({error})") from None
