"""The columns of a shard, and what its blocks are (docs/run-format.md). Knows no files.

What the prompts of a block share, the options that are scored or the names that are watched, stands
once in the table's metadata. Columns that no answer of a shard has are not there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from sonde.core.answers import KINDS, Kind
from sonde.core.prompts import KEY, TEXTS, Fill, Generate, Sample, Score, Trace, Want

NAMES = pa.dictionary(pa.int32(), pa.string())
FLOATS = pa.list_(pa.float32())
SPANS = pa.list_(pa.list_(pa.int32()))

ANSWERS: Mapping[str, pa.DataType] = {
    "options": pa.list_(NAMES),
    "spans": SPANS,
    "logps": pa.list_(FLOATS),
    "suffix_logps": pa.list_(FLOATS),
    "top": pa.list_(NAMES),
    "top_logps": FLOATS,
    "mass": pa.float32(),
    "watched_logps": pa.binary(),
    "watched_ranks": pa.binary(),
    "text": pa.string(),
    "text_logps": FLOATS,
    "end_logp": pa.float32(),
    "finished": pa.bool_(),
    "texts": pa.list_(pa.string()),
    "counts": pa.list_(pa.int32()),
}
"""The columns that answers may have, in their order; those of the prompts come before them."""

SCHEMA = pa.schema(
    [*((name, NAMES) for name in KEY), *((n, pa.string()) for n in TEXTS), *ANSWERS.items()]
)
"""Every column that sonde's own prompts and answers have; a probe may add names to the first."""

OF_KIND: Mapping[Kind, tuple[str, ...]] = {
    "scored": ("logps",),
    "traced": ("logps",),
    "filled": ("top", "top_logps", "mass"),  # and what is watched, if anything is
    "generated": ("text", "text_logps", "end_logp", "finished"),
    "sampled": ("texts", "counts"),
}
"""The columns that answers of a kind always have."""

KIND: Mapping[type, Kind] = {
    Score: "scored",
    Trace: "traced",
    Fill: "filled",
    Generate: "generated",
    Sample: "sampled",
}

BLOCKS = b"sonde.blocks"


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """What a block of a shard is: so many rows, answered in a way, and the names they share."""

    rows: int
    kind: Kind
    names: tuple[str, ...] = ()

    @classmethod
    def of(cls, rows: int, want: Want) -> Head:
        """The head of a block that wants this."""
        names = want.options if isinstance(want, Score) else ()
        names = want.watched if isinstance(want, Fill) else names
        return cls(rows=rows, kind=KIND[type(want)], names=names)


def heads_of(table: pa.Table) -> list[Head]:
    """What the blocks of a table are; raises ValueError on anything that is none."""
    try:
        entries = json.loads((table.schema.metadata or {})[BLOCKS])
        heads = [Head(rows=int(n), kind=kind, names=tuple(names)) for n, kind, names in entries]
    except (KeyError, TypeError, ValueError):
        raise ValueError("it does not say what its blocks are") from None
    if sum(head.rows for head in heads) != table.num_rows:
        raise ValueError("its blocks have other rows than its columns")
    if any(head.kind not in KINDS for head in heads):
        raise ValueError("its blocks are answered in no known way")
    check_columns(table, heads)
    return heads


def check_columns(table: pa.Table, heads: Sequence[Head]) -> None:
    """Refuse a table that lacks a column, or has one of another type."""
    needed = {name for head in heads for name in OF_KIND[head.kind]} | {*KEY, *TEXTS}
    if any(head.kind == "filled" and head.names for head in heads):
        needed |= {"watched_logps", "watched_ranks"}
    missing = needed - set(table.column_names)
    wrong = [
        n for n in table.column_names if n in ANSWERS and table.schema.field(n).type != ANSWERS[n]
    ]
    if missing or wrong:
        raise ValueError(
            f"it has other columns than this version of sonde writes ({min([*missing, *wrong])})"
        )
