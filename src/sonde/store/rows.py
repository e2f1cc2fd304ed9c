"""Prompts and the answers to them as one Arrow table: as a shard is written, and for people."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa

from sonde.core.answers import Answer, Filled, Generated, Kind, Sampled, Scored, Traced
from sonde.core.columns import FilledColumns
from sonde.core.errors import ModelError, StoreError
from sonde.core.prompts import TEXTS, Prompts
from sonde.core.rated import RatedColumns
from sonde.store.shards import (
    ANSWERS,
    BLOCKS,
    FLOATS,
    RESERVED,
    SPANS,
    Head,
    heads_of,
    watched_values,
)

if TYPE_CHECKING:
    import polars

ANSWER: Mapping[Kind, tuple[type, ...]] = {
    "scored": (Scored, RatedColumns),
    "traced": (Traced, RatedColumns),
    "filled": (Filled, FilledColumns),
    "generated": (Generated,),
    "sampled": (Sampled,),
}
"""By kind how one answer comes, and how many come at once."""

Columns = FilledColumns | RatedColumns

LARGEST = np.iinfo(np.uint16).max


class Answering:
    """Takes the answers to some prompts, in any order, and makes the table of them."""

    def __init__(self, prompts: Prompts) -> None:
        _refuse_reserved(prompts)
        self.prompts = prompts
        self.heads = [Head.of(len(block), block.want) for block in prompts.blocks]
        self._answers: list[Answer | None] = [None] * len(prompts)
        self._parts: list[list[tuple[Any, Any]]] = [[] for _ in prompts.blocks]

    def add(self, positions: Any, answer: Answer | Columns) -> None:
        """Keep the answer to one prompt, or those to several that have their want in common."""
        if not isinstance(answer, Columns):
            self._answers[positions] = answer
            return
        blocks = np.searchsorted(self.prompts.starts, positions, side="right") - 1
        for block in np.unique(blocks).tolist():
            own = blocks == block
            part = answer if own.all() else answer.rows(own)
            self._parts[block].append((positions[own] - self.prompts.starts[block], part))

    def table(self) -> pa.Table:
        """The prompts with their answers."""
        columns = dict(prompt_columns(self.prompts))
        parts: list[tuple[Head, dict[str, Any]]] = []
        for number, head in enumerate(self.heads):
            parts.append((head, self._columns(number, head)))
        columns |= stacked(parts)
        order = [name for name in columns if name not in ANSWERS]
        order += [name for name in ANSWERS if name in columns]
        heads = [[head.rows, head.kind, list(head.names)] for head in self.heads]
        metadata = {BLOCKS: json.dumps(heads, ensure_ascii=False, separators=(",", ":"))}
        table = pa.table({name: columns[name] for name in order})
        return table.replace_schema_metadata(metadata)

    def _columns(self, number: int, head: Head) -> dict[str, Any]:
        start = self.prompts.starts[number]
        answers = cast(list[Any], self._answers[start : start + head.rows])
        given = [*answers, *(part for _, part in self._parts[number])]
        _refuse_others(given, ANSWER[head.kind])
        if head.kind == "generated":
            return written_columns(answers)
        if head.kind == "sampled":
            return drawn_columns(answers)
        parts = self._parts[number]
        if alone := [i for i, answer in enumerate(answers) if answer is not None]:
            gather = ANSWER[head.kind][1].gathered  # type: ignore[attr-defined]
            parts = [*parts, (np.array(alone), gather([answers[i] for i in alone]))]
        if head.kind == "filled":
            return filled_columns(arranged(parts, head.rows))
        order = np.argsort(np.concatenate([at for at, _ in parts]))
        return rated_columns(RatedColumns.joined([part for _, part in parts]).rows(order))


def _refuse_reserved(prompts: Prompts) -> None:
    """Refuse a probe's own column with the name of one that answers have, which would hide it."""
    for block in prompts.blocks:
        if taken := RESERVED.intersection(block.frame.columns):
            raise StoreError(
                f"the probe has a column of its own with the name {min(taken)!r}, which answers "
                "have; give it another name"
            )


def _refuse_others(answers: Iterable[Any], kinds: Sequence[type]) -> None:
    """Refuse answers that are not of the kinds asked for."""
    if wrong := [a for a in answers if a is not None and type(a) not in kinds]:
        raise ModelError(
            f"the model answered with {type(wrong[0]).__name__} where {kinds[0].__name__} was "
            "asked for"
        )


def arranged(parts: Sequence[tuple[Any, FilledColumns]], rows: int) -> FilledColumns:
    """Answers of one block in the order of its prompts; `parts` say at which rows they belong."""
    if len(parts) == 1 and np.array_equal(parts[0][0], np.arange(rows)):
        return parts[0][1]
    index: dict[str, int] = {}
    width, watched = max(part.top.shape[1] for _, part in parts), parts[0][1].watched
    top = np.full((rows, width), -1, dtype=np.int32)
    logps = np.full((rows, width), np.nan, dtype=np.float32)
    mass = np.empty(rows, dtype=np.float32)
    values = np.empty((rows, len(watched)), dtype=np.float32)
    ranks = np.empty(values.shape, dtype=np.int32)
    for at, part in parts:
        count = part.top.shape[1]
        used, places = np.unique(part.top, return_inverse=True)
        codes = [index.setdefault(part.names[u], len(index)) if u >= 0 else -1 for u in used]
        top[at, :count] = np.array(codes, dtype=np.int32)[places.reshape(part.top.shape)]
        logps[at, :count] = part.top_logps
        mass[at], values[at], ranks[at] = part.mass, part.watched_logps, part.watched_ranks
    return FilledColumns(
        names=list(index),
        top=top,
        top_logps=logps,
        mass=mass,
        watched=watched,
        watched_logps=values,
        watched_ranks=ranks,
    )


def prompt_columns(prompts: Prompts) -> Iterator[tuple[str, Any]]:
    """The columns that prompts were asked with: names, then texts, then what each row wants."""
    frame = together(block.frame for block in prompts.blocks)
    apart = (*TEXTS, "options", "spans", "turns")  # turns only say how a text may be put
    names = [name for name in frame.columns if name not in apart]
    for name in (*names, *TEXTS):
        column = _plain(frame[name].to_arrow())
        text = pa.types.is_string(column.type) and name not in TEXTS
        yield name, column.dictionary_encode() if text else column
    if "options" in frame.columns:
        yield "options", _encoded_lists(_plain(frame["options"].to_arrow()))
    if "spans" in frame.columns:
        yield "spans", frame["spans"].to_arrow().cast(SPANS)


def together(frames: Iterable[polars.DataFrame]) -> polars.DataFrame:
    """Frames under each other; a column of options or spans that some have is null in others."""
    import polars

    every = list(frames)
    return every[0] if len(every) == 1 else polars.concat(every, how="diagonal")


def _plain(column: Any) -> Any:
    """An Arrow column as older readers know it: no views, no large offsets."""
    kind = _plain_type(column.type)
    return column if kind.equals(column.type) else column.cast(kind)


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_large_list(kind) or pa.types.is_list(kind):
        return pa.list_(_plain_type(kind.value_type))
    texts = pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    return pa.string() if texts else kind


def _encoded_lists(lists: pa.ListArray) -> pa.ListArray:
    encoded = lists.values.dictionary_encode()
    return pa.ListArray.from_arrays(lists.offsets, encoded, mask=lists.is_null())


def filled_columns(answers: FilledColumns) -> dict[str, Any]:
    """The columns of filled positions; names are numbered in the order in which they stand."""
    there = answers.top >= 0
    flat = answers.top[there]
    first = np.full(len(answers.names), len(flat))
    first[flat[::-1]] = np.arange(len(flat))[::-1]  # of several places the last one written stays
    used = np.flatnonzero(first < len(flat))
    used = used[np.argsort(first[used])]
    codes = np.empty(len(first), dtype=np.int32)
    codes[used] = np.arange(len(used))
    words = pa.array([answers.names[u] for u in used.tolist()], pa.string())
    ends = np.concatenate([[0], np.cumsum(there.sum(axis=1))]).astype(np.int32)
    named = pa.DictionaryArray.from_arrays(pa.array(codes[flat]), words)
    columns = {
        "top": pa.ListArray.from_arrays(ends, named),
        "top_logps": _float_lists(ends, answers.top_logps[there]),
        "mass": pa.array(answers.mass.astype(np.float32, copy=False)),
    }
    if answers.watched:
        columns["watched_logps"] = _binary(answers.watched_logps.astype("<f4", copy=False))
        ranks = answers.watched_ranks
        small = ranks.max(initial=0) <= LARGEST
        columns["watched_ranks"] = _binary(ranks.astype("<u2" if small else "<u4"))
    return columns


def rated_columns(answers: RatedColumns) -> dict[str, Any]:
    """The columns of scored options or traced spans."""
    bounds = answers.bounds.astype(np.int32)
    columns = {
        "logps": pa.ListArray.from_arrays(bounds, _float_lists(answers.tokens, answers.logps))
    }
    if answers.suffix_tokens is not None and answers.suffix_logps is not None:
        inner = _float_lists(answers.suffix_tokens, answers.suffix_logps)
        columns["suffix_logps"] = pa.ListArray.from_arrays(bounds, inner)
    return columns


def written_columns(answers: Sequence[Generated]) -> dict[str, Any]:
    """The columns of written texts; thoughts only where there are any."""
    thoughts = [a.thoughts for a in answers]
    return {
        "text": pa.array([a.text for a in answers], pa.string()),
        "text_logps": pa.array([a.logps for a in answers], FLOATS),
        "end_logp": pa.array([a.end_logp for a in answers], pa.float32()),
        "finished": pa.array([a.finished for a in answers], pa.bool_()),
    } | ({"thoughts": pa.array(thoughts, pa.string())} if any(thoughts) else {})


def drawn_columns(answers: Sequence[Sampled]) -> dict[str, Any]:
    """The columns of drawn texts; thoughts only where there are any."""
    thoughts, kind = [a.thoughts or None for a in answers], ANSWERS["drawn_thoughts"]
    return {
        "texts": pa.array([a.texts for a in answers], pa.list_(pa.string())),
        "counts": pa.array([a.counts for a in answers], pa.list_(pa.int32())),
    } | ({"drawn_thoughts": pa.array(thoughts, kind)} if any(thoughts) else {})


def stacked(parts: Sequence[tuple[Head, Mapping[str, Any]]]) -> dict[str, Any]:
    """The columns of several blocks under each other; null where a block has none of a name."""
    names = dict.fromkeys(name for _, columns in parts for name in columns)
    found = {}
    for name in names:
        pieces = [
            columns[name] if name in columns else pa.nulls(head.rows, ANSWERS[name])
            for head, columns in parts
        ]
        found[name] = pieces[0] if len(pieces) == 1 else _joined(pieces)
    return found


def _joined(pieces: Sequence[Any]) -> Any:
    """Columns under each other; lists of names are numbered anew, for all of them together."""
    return pa.chunked_array(pieces).unify_dictionaries().combine_chunks()


def same_prompts(table: pa.Table, prompts: Prompts) -> bool:
    """Whether a shard's table answers these prompts."""
    heads = [Head.of(len(block), block.want) for block in prompts.blocks]
    asked = dict(prompt_columns(prompts))
    names = {n for n in table.column_names if n not in ANSWERS or n in ("options", "spans")}
    return (
        heads_of(table) == heads
        and names == set(asked)
        and all(
            _decoded(table.column(name).combine_chunks()).equals(_decoded(column))
            for name, column in asked.items()
        )
    )


def _decoded(column: Any) -> Any:
    if pa.types.is_dictionary(column.type):
        return column.cast(pa.string())
    return column.cast(pa.list_(pa.string())) if column.type.equals(ANSWERS["options"]) else column


def _float_lists(ends: Any, values: Any) -> pa.ListArray:
    flat = pa.array(np.ascontiguousarray(values, dtype=np.float32))
    return pa.ListArray.from_arrays(pa.array(np.asarray(ends, dtype=np.int32)), flat)


def _binary(matrix: Any) -> pa.Array:
    """A row of numbers as bytes, for each row."""
    rows, width = matrix.shape
    size = width * matrix.itemsize
    if rows * size > np.iinfo(np.int32).max:
        raise ValueError("a block has more watched values than a shard can hold")
    ends = pa.py_buffer(np.arange(0, (rows + 1) * size, size, dtype=np.int32))
    data = pa.py_buffer(np.ascontiguousarray(matrix))
    return pa.Array.from_buffers(pa.binary(), rows, [None, ends, data])


def friendly(table: pa.Table) -> pa.Table:
    """A shard's table with lists for what is bytes or stands in its metadata, and `kind`."""
    heads = heads_of(table)
    parts = []
    for head, start in zip(heads, accumulate((h.rows for h in heads), initial=0), strict=False):
        part = table.slice(start, head.rows)
        shared = {"scored": "options", "filled": "watched"}.get(head.kind)
        columns = {name: part.column(name) for name in part.column_names if name[:7] != "watched"}
        columns["kind"] = pa.array([head.kind] * head.rows)
        if shared and head.names:
            columns[shared] = pa.array([head.names] * head.rows, pa.list_(pa.string()))
        if head.kind == "filled" and head.names:
            logps, ranks = watched_values(part, head)
            columns["watched_logps"] = pa.array(list(np.where(ranks > 0, logps, None)), FLOATS)
            columns["watched_ranks"] = pa.array(list(ranks.astype(np.int32)), pa.list_(pa.int32()))
        parts.append(pa.table(columns))
    return pa.concat_tables(parts, promote_options="permissive")
