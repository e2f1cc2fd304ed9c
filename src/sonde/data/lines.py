"""Read JSON so that every fault names its file, its line and what was expected; append lines.

Whole files are decoded at once; only where that fails are they read line by line, to say why.

Lines that are appended are forced to disk, so that they outlive a kill. Half a line at the end is
no line: it is passed over, and cut off by the next one that is written. A last line that is whole,
but for its end, stays.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from math import inf
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

import msgspec

from sonde.core.errors import DataError, StoreError
from sonde.core.fact_frames import has_blank, text_frame
from sonde.core.files import whole

if TYPE_CHECKING:
    from polars import DataFrame


T = TypeVar("T")

INCOMPLETE = "rows_incomplete"
"""Where notes count the rows of published sets that have an empty label."""

UNSOUND = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, OSError)
"""What decoding a file may raise."""

BATCH = 4096

LONGEST_LINE = 2**28
"""Bytes of a line at most, so that a packed file cannot fill the memory."""

KEY = re.compile(rb'"\s*:')
"""Where a key ends in a JSON text; a text with an escaped quotation mark may hold it, too."""

NOT_UTF8 = "not UTF-8"

Complain = Callable[[DataError], None]
"""What is done about a line that cannot be read: `refuse` ends there, another may go on."""

Tick = Callable[[int], None]
"""Called with the bytes read since the last call."""


def refuse(fault: DataError) -> None:
    """Read no further."""
    raise fault


class Row:
    """One JSON object with typed access; each complaint says where the object stands."""

    __slots__ = ("values", "where")

    def __init__(self, values: dict[str, Any], where: str) -> None:
        self.values = values
        self.where = where

    def text(self, key: str, default: str | None = None) -> str:
        """A text that is not empty."""
        value = self.values.get(key, default)
        if not isinstance(value, str) or (not value.strip() and value != default):
            raise self.fault(f"{key!r} must be a text that is not empty", value)
        return value

    def is_blank(self, *keys: str) -> bool:
        """Whether one of these fields is there, but null, blank or a list without or with such."""
        return any(_is_blank(self.values[key]) for key in keys if key in self.values)

    def choice(self, key: str, choices: tuple[str, ...], default: str | None = None) -> str:
        """One of a few texts."""
        value = self.text(key, default)
        if value not in choices:
            raise self.fault(f"{key!r} must be one of {', '.join(choices)}", value)
        return value

    def texts(self, key: str, *, empty: bool = False) -> tuple[str, ...]:
        """A list of texts, with at least one unless it may be empty."""
        value = self.values.get(key, [] if empty else None)
        if isinstance(value, list) and (value or empty):
            texts = tuple(v for v in value if isinstance(v, str) and v.strip())
            if len(texts) == len(value):
                return texts
        raise self.fault(f"{key!r} must be a list of texts that are not empty", value)

    def number(self, key: str) -> float | None:
        """A finite number, or None where the key is absent or null."""
        value = self.values.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not -inf < value < inf:
            raise self.fault(f"{key!r} must be a number", value)
        try:
            return float(value)
        except OverflowError:
            raise self.fault(f"{key!r} must be a number of 308 digits at most", value) from None

    def mapping(self, key: str, kind: type[T], named: str) -> dict[str, T]:
        """An object whose values are all of a kind, which may be missing."""
        value = self.values.get(key, {})
        if isinstance(value, dict) and all(type(inner) is kind for inner in value.values()):
            return value
        raise self.fault(f"{key!r} must be an object of {named}", value)

    def numbers(self, key: str) -> dict[str, float]:
        """An object of finite numbers, which may be missing."""
        value = self.values.get(key, {})
        if not isinstance(value, dict):
            raise self.fault(f"{key!r} must be an object of numbers", value)
        inner = Row(value, f"{self.where}, {key}")
        numbers = {name: inner.number(name) for name in value}
        sound = {name: number for name, number in numbers.items() if number is not None}
        if len(sound) < len(numbers):
            raise self.fault(f"{key!r} must be an object of numbers", value)
        return sound

    def row(self, key: str) -> Row:
        """An object inside this one."""
        return self._inner(self.values.get(key), key)

    def rows(self, key: str) -> tuple[Row, ...]:
        """A list of objects inside this one, with at least one."""
        value = self.values.get(key)
        if not isinstance(value, list) or not value:
            raise self.fault(f"{key!r} must be a list of objects with at least one", value)
        return tuple(self._inner(entry, key) for entry in value)

    def _inner(self, value: Any, key: str) -> Row:
        if not isinstance(value, dict):
            raise self.fault(f"{key!r} must be an object", value)
        return Row(value, f"{self.where}, {key}")

    def fault(self, expected: str, value: Any) -> DataError:
        """A complaint about this row."""
        shown = "nothing" if value is None else repr(value)[:80]
        return DataError(f"{self.where}: {expected}, found {shown}")


def regular(path: Path) -> Path:
    """The same path; rejects a named pipe or a device, which may never end."""
    if path.exists() and not path.is_file() and not path.is_dir():  # opening a folder fails
        raise DataError(
            f"{path} is a named pipe or a device and not a regular file; copy its content into a "
            "file and give that"
        )
    return path


def decoded(path: Path, kind: type[T]) -> Iterator[T]:
    """What stands on the lines of a JSON-lines file, blank ones passed over; raises UNSOUND."""
    decode = msgspec.json.Decoder(kind).decode_lines
    decode_any = msgspec.json.Decoder().decode_lines
    with regular(path).open("rb") as file:
        while lines := list(islice(file, BATCH)):
            raw = b"".join(lines)
            values = decode(raw)
            if len(values) != sum(not line.isspace() for line in lines):
                raise msgspec.DecodeError("an object must stand on one line, and alone")
            if len(KEY.findall(raw)) != _count_keys(decode_any(raw)):
                raise msgspec.DecodeError("a key may be there more than once")
            yield from values


@cache
def _line(needed: tuple[str, ...], optional: tuple[str, ...]) -> Any:
    kinds: list[Any] = [(n, str) for n in needed] + [(n, str | None, None) for n in optional]
    return msgspec.defstruct("Line", kinds)


def _is_blank(value: Any) -> bool:
    if isinstance(value, list):
        return not value or any(map(_is_blank, value))
    return value is None or (isinstance(value, str) and not value.strip())


def complete_rows(rows: Iterable[Row], keys: Sequence[str], counts: Counter[str]) -> Iterator[Row]:
    """The rows of a published set without those that have an empty field, which are counted."""
    for row in rows:
        if row.is_blank(*keys):
            counts[INCOMPLETE] += 1
        else:
            yield row


def read_texts(
    path: Path, needed: Sequence[str], optional: Sequence[str], counts: Counter[str]
) -> DataFrame:
    """Columns of a published JSON-lines file: texts, of which optional ones are null if empty.

    Rows with an empty text that is needed are dropped and counted.
    """
    names, line = (*needed, *optional), _line(tuple(needed), tuple(optional))

    def frame(lines: Iterable[Any]) -> DataFrame:
        rows = list(lines)
        return text_frame({n: [getattr(row, n) for row in rows] for n in names}, {})

    def closely(row: Row) -> Any:
        given = (name for name in optional if name in row.values and not row.is_blank(name))
        return line(**{name: row.text(name) for name in (*needed, *given)})

    try:
        if not has_blank(columns := frame(decoded(path, line))):
            return columns
    except UNSOUND:
        pass
    return frame(map(closely, complete_rows(read_rows(path), needed, counts)))


def read_rows(path: Path) -> Iterator[Row]:
    """The objects of a JSON-lines file, one a line; blank lines are passed over."""
    return (row_of(raw, where) for where, raw in raw_lines(path) if raw.strip())


def read_each(
    path: Path, make: Callable[[Row], T], complain: Complain = refuse
) -> Iterator[tuple[str, T]]:
    """What each line of a JSON-lines file is made into, with its place; blank ones are passed over.

    A line that cannot be is complained of, and is no reason to stop.
    """
    for where, raw in raw_lines(path, complain):
        if raw.strip():
            try:
                value = make(row_of(raw, where))
            except DataError as fault:
                complain(fault)
            else:
                yield where, value


def read_object(path: Path) -> Row:
    """The one object of a JSON file."""
    return row_of(b"".join(raw for _, raw in raw_lines(path)), str(path))


def read_list(path: Path) -> Iterator[Row]:
    """The objects of a JSON file that is one list of them."""
    raw = b"".join(line for _, line in raw_lines(path))
    values = _value(raw, str(path), "a JSON list of objects")
    if not isinstance(values, list):
        raise DataError(f"{path}: expected a JSON list of objects, found {repr(values)[:80]}")
    for number, value in enumerate(values, 1):
        if not isinstance(value, dict):
            raise DataError(f"{path}, entry {number}: expected an object, found {repr(value)[:80]}")
        yield Row(value, f"{path}, entry {number}")


def read_lines(path: Path, complain: Complain = refuse) -> Iterator[tuple[str, str]]:
    """The lines of a UTF-8 file, each behind its place."""
    for where, raw in raw_lines(path, complain):
        try:
            text = _text(raw, where)
        except DataError as fault:
            complain(fault)
        else:
            yield where, text.rstrip("\r\n")


def raw_lines(
    path: Path, complain: Complain = refuse, tick: Tick | None = None
) -> Iterator[tuple[str, bytes]]:
    """The lines of a file, each behind its place; unpacked where the name ends in .gz."""
    name, told = str(path), 0
    try:
        regular(path)
    except DataError as fault:
        complain(fault)
        return
    try:
        with path.open("rb") as file:
            source = gzip.GzipFile(fileobj=file) if path.suffix == ".gz" else file
            lines = iter(lambda: source.readline(LONGEST_LINE), b"")
            for number, line in enumerate(lines, 1):
                if len(line) == LONGEST_LINE:
                    complain(
                        DataError(f"{name}, line {number}: longer than {LONGEST_LINE:,} bytes")
                    )
                    return
                yield f"{name}, line {number}", line
                if tick is not None and number % BATCH == 0:
                    tick(file.tell() - told)
                    told = file.tell()
            if tick is not None:
                tick(file.tell() - told)
    except FileNotFoundError:
        complain(DataError(f"{path} is missing"))
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        complain(DataError(f"{path} cannot be unpacked: {error}; is it whole?"))
    except OSError as error:
        complain(DataError(f"{path} cannot be read: {error.strerror or error}"))


def row_of(raw: bytes, where: str) -> Row:
    """The JSON object that stands somewhere."""
    value = _value(raw, where, "a JSON object")
    if not isinstance(value, dict):
        raise DataError(
            f"{where}: expected a JSON object, found {_text(raw, where).strip()[:80]!r}"
        )
    return Row(value, where)


def _text(raw: bytes, where: str) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise DataError(f"{where}: {NOT_UTF8} ({error.reason})") from None


def _value(raw: bytes, where: str, expected: str) -> Any:
    """The value of a JSON text, in which no object may have a key twice."""
    try:
        value = msgspec.json.decode(raw)
        if len(KEY.findall(raw)) == _count_keys(value):
            return value
    except (*UNSOUND, UnicodeError):
        pass
    return _closely(_text(raw, where), where, expected)


def _count_keys(value: Any) -> int:
    if isinstance(value, dict):
        return len(value) + sum(map(_count_keys, value.values()))
    return sum(map(_count_keys, value)) if isinstance(value, list) else 0


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object without a key that is there twice."""
    if len(value := dict(pairs)) < len(pairs):
        [(key, _)] = Counter(key for key, _ in pairs).most_common(1)
        raise ValueError(f"key {key!r} is there more than once")
    return value


def _closely(text: str, where: str, expected: str) -> Any:
    """The value of a JSON text that was hard to read; json says most clearly where a fault is."""
    try:
        value = json.loads(text, object_pairs_hook=_unique)
        json.dumps(value, ensure_ascii=False).encode()  # half a character may be left
        return value
    except json.JSONDecodeError as error:
        line = f"line {error.lineno}, " if error.lineno > 1 else ""
        what = error.msg.removesuffix(" at")  # 'Unterminated string starting at'
        raise DataError(
            f"{where}: expected {expected}, but {what} at {line}column {error.colno}"
        ) from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where}: expected {expected}, but {error}") from None


def write_rows(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    """Write JSON lines; what stood there before can still be read while they are made."""
    with whole(path) as file:
        file.writelines((json.dumps(row, ensure_ascii=False) + "\n").encode() for row in rows)


def append_rows(path: Path, *rows: Mapping[str, Any]) -> None:
    """Write more lines to disk, all at once; their folder is made where it is missing."""
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a+b") as file:
            _close_last(file)
            file.write(text.encode(errors="replace"))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror or error}") from None


def whole_rows(path: Path) -> Iterator[Row]:
    """The lines that are whole; none where there is no file."""
    if not path.exists():
        return
    for where, raw in raw_lines(path):
        if raw.strip() and (raw.endswith(b"\n") or _is_json(raw)):
            yield row_of(raw, where)


def _close_last(file: IO[bytes]) -> None:
    """Make a file end with the end of a line."""
    if file.seek(0, os.SEEK_END) == 0:
        return
    file.seek(-1, os.SEEK_END)
    if file.read(1) == b"\n":
        return
    file.seek(0)
    before, end, last = file.read().rpartition(b"\n")
    if _is_json(last):
        file.write(b"\n")
    else:
        file.truncate(len(before + end))


def _is_json(raw: bytes) -> bool:
    try:
        json.loads(raw)
    except (ValueError, RecursionError):
        return False
    return True
