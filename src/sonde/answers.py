"""What comes back from a model, as columns: one result type for each request type.

Log-probabilities are natural logarithms, float32, as the model gave them: neither summed nor
normalized. They are finite, or NaN if a name cannot be answered. Knows nothing of what is correct.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self, TypeAlias

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from sonde.core.errors import ModelError
from sonde.prompts import (
    FillMask,
    Generate,
    Ints,
    PromptBatch,
    Request,
    Sample,
    Score,
    TokenLogprobs,
)

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Ragged:
    """Lists of different lengths, end to end: list i is `values[offsets[i]:offsets[i + 1]]`.

    Values are numbers, texts, or lists again: the tokens of every option of every prompt are
    `Ragged(options of prompts, Ragged(tokens of options, log-probabilities))`.
    """

    offsets: Ints
    values: Any

    @classmethod
    def of(cls, counts: Sequence[int] | Ints, values: Any) -> "Ragged":
        """Lists with these lengths."""
        return cls(np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]), values)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def counts(self) -> Ints:
        """The length of each list."""
        return np.diff(self.offsets)

    @property
    def owners(self) -> Ints:
        """The list that each value belongs to."""
        return np.repeat(np.arange(len(self)), self.counts)

    def sums(self) -> NDArray[np.float64]:
        """The sum of each list."""
        # added list by list, in order: equal lists have equal sums, so ties stay ties
        sums = np.bincount(self.owners, self.values, len(self))
        return sums.astype(np.float64, copy=False)


Column: TypeAlias = "NDArray[Any] | Ragged | pa.Array"


def take(column: Column, rows: Ints) -> Column:
    """Some entries, in the order given."""
    if isinstance(column, Ragged):
        counts = column.counts[rows]
        offsets = Ragged.of(counts, None).offsets
        inner = np.repeat(column.offsets[:-1][rows] - offsets[:-1], counts)
        return Ragged(offsets, take(column.values, inner + np.arange(len(inner))))
    return column.take(pa.array(rows)) if isinstance(column, pa.Array) else column[rows]


def concat(columns: Sequence[Any]) -> Column:
    """Columns of one type below each other."""
    if len(columns) == 1:
        return columns[0]
    if isinstance(columns[0], Ragged):
        counts = np.concatenate([column.counts for column in columns])
        return Ragged.of(counts, concat([column.values for column in columns]))
    if isinstance(columns[0], pa.Array):
        return pa.chunked_array(columns).unify_dictionaries().combine_chunks()
    return np.concatenate(columns)


def to_arrow(column: Column) -> pa.Array:
    """A column for a table: lists as lists, a matrix as bytes."""
    if isinstance(column, Ragged):
        offsets = pa.array(column.offsets.astype(np.int32))
        return pa.ListArray.from_arrays(offsets, to_arrow(column.values))
    if isinstance(column, pa.Array):
        return column
    if column.ndim == 1:
        return pa.array(column)
    # a matrix as bytes: lists of 258 numbers take Parquet twice as long to write, six times to read
    offsets = np.arange(len(column) + 1, dtype=np.int32) * (column.shape[1] * column.itemsize)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(column))]
    return pa.Array.from_buffers(pa.binary(), len(column), buffers)


def from_arrow(array: pa.Array, dtype: str = "") -> Column:
    """The inverse of `to_arrow`; `dtype` is that of a matrix."""
    if pa.types.is_list(array.type):
        offsets = array.offsets.to_numpy()
        return Ragged((offsets - offsets[0]).astype(np.int64), from_arrow(array.flatten()))
    if pa.types.is_binary(array.type):
        _, buffer, data = array.buffers()
        ends = np.frombuffer(buffer, np.int32)[array.offset : array.offset + len(array) + 1]
        values = np.frombuffer(data or b"", np.uint8)[ends[0] : ends[-1]].view(dtype)
        return values.reshape(len(array), -1 if len(values) else 0)
    text = pa.types.is_string(array.type) or pa.types.is_dictionary(array.type)
    return array if text else array.to_numpy(zero_copy_only=False)


@dataclass(frozen=True, kw_only=True, eq=False)
class Result:
    """Base of the result types.

    Every field has one entry per prompt, in the order of the prompts, so that selecting, joining
    and storing are written once. Fields are columns of a shard, so a name has the same type in all
    of them.
    """

    def columns(self) -> dict[str, Column]:
        """The fields by name."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def __len__(self) -> int:
        return len(next(iter(self.columns().values())))

    def select(self, rows: Ints) -> Self:
        """Some of the prompts, in the order given; a row may be repeated."""
        return replace(self, **{name: take(c, rows) for name, c in self.columns().items()})

    @classmethod
    def concat(cls, parts: Sequence[Self]) -> Self:
        """Several below each other."""
        columns = [part.columns() for part in parts]
        return cls(**{name: concat([part[name] for part in columns]) for name in columns[0]})

    def to_arrow(self) -> pa.Table:
        """A table with a column for each field; matrices become bytes, their type metadata."""
        columns = self.columns()
        arrays = [to_arrow(column) for column in columns.values()]
        types = [getattr(column, "dtype", np.dtype("V")).str for column in columns.values()]
        schema = [
            pa.field(name, array.type, metadata={"dtype": dtype} if array.type == "binary" else {})
            for name, array, dtype in zip(columns, arrays, types, strict=True)
        ]
        return pa.table(arrays, schema=pa.schema(schema))

    @classmethod
    def from_arrow(cls, table: pa.Table) -> Self:
        """The inverse of `to_arrow`; further columns are ignored."""
        columns = {}
        for f in fields(cls):
            array = table.column(f.name).combine_chunks()
            dtype = (table.field(f.name).metadata or {}).get(b"dtype", b"").decode()
            columns[f.name] = from_arrow(array, dtype)
        return cls(**columns)

    def invalid(self) -> Ints:
        """The rows with a number that is no log-probability."""
        return np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, kw_only=True, eq=False)
class OptionScores(Result):
    """Log-probabilities of the tokens of every option of every prompt, [prompts, options, tokens].

    `suffix` has those of the text after the option: empty lists if nothing was scored there.
    """

    logprobs: Ragged
    suffix_logprobs: Ragged

    @classmethod
    def of(
        cls,
        options: Sequence[int] | Ints,
        tokens: Sequence[int] | Ints,
        logprobs: Floats,
        suffix_tokens: Ints | None = None,
        suffix_logprobs: Floats | None = None,
    ) -> "OptionScores":
        """From numbers end to end: `options` of each prompt, `tokens` of each option."""
        after = np.zeros(len(tokens), np.int64) if suffix_tokens is None else suffix_tokens
        suffix = np.zeros(0, np.float32) if suffix_logprobs is None else suffix_logprobs
        return cls(
            logprobs=Ragged.of(options, Ragged.of(tokens, logprobs)),
            suffix_logprobs=Ragged.of(options, Ragged.of(after, suffix)),
        )

    def sums(self, suffix: bool = True) -> NDArray[np.float64]:
        """The log-probability of each option, with that of the text after it or without."""
        sums: NDArray[np.float64] = self.logprobs.values.sums()
        return sums + self.suffix_logprobs.values.sums() if suffix else sums

    def counts(self, suffix: bool = True) -> Ints:
        """The number of tokens of each option."""
        counts: Ints = self.logprobs.values.counts
        return counts + self.suffix_logprobs.values.counts if suffix else counts

    def invalid(self) -> Ints:
        """As of `Result`."""
        bad = ~np.isfinite(self.sums())
        return np.unique(self.logprobs.owners[bad])


@dataclass(frozen=True, kw_only=True, eq=False)
class MaskScores(Result):
    """The most likely tokens in the gap, best first, and the request's targets.

    Log-probabilities are over the whole vocabulary, ranks among the allowed answers: 1 is best, and
    equal ones share the worse rank. A target that is not one allowed token has rank 0 and NaN.
    `allowed_logprob` is the log of the probability of all allowed answers together.
    """

    top: Ragged  # of names
    top_logprobs: Ragged
    allowed_logprob: Floats
    target_logprobs: Floats  # [prompts, targets]
    target_ranks: Ints  # [prompts, targets]

    def invalid(self) -> Ints:
        """As of `Result`."""
        bad = (~np.isfinite(self.target_logprobs) & (self.target_ranks > 0)).any(axis=1)
        bad |= ~np.isfinite(self.allowed_logprob)
        bad[self.top_logprobs.owners[~np.isfinite(self.top_logprobs.values)]] = True
        return np.flatnonzero(bad)


@dataclass(frozen=True, kw_only=True, eq=False)
class Completions(Result):
    """A generated text per prompt, up to where it ended.

    `end_logprob` belongs to the token that ended the text; NaN if it ran to its limit.
    """

    text: pa.Array
    token_logprobs: Ragged
    end_logprob: Floats
    finished: NDArray[np.bool_]
    reasoning: pa.Array

    def invalid(self) -> Ints:
        """As of `Result`."""
        return np.unique(self.token_logprobs.owners[~np.isfinite(self.token_logprobs.values)])


@dataclass(frozen=True, kw_only=True, eq=False)
class Samples(Result):
    """The distinct sampled texts of every prompt, the most frequent first, and how often each came.

    `texts_reasoning` has, for each text, what was generated before it each time, or nothing.
    """

    texts: Ragged
    counts: Ragged
    texts_reasoning: Ragged


@dataclass(frozen=True, kw_only=True, eq=False)
class SpanLogprobs(Result):
    """Log-probabilities of the tokens of every span of every prompt, [prompts, spans, tokens]."""

    logprobs: Ragged

    def invalid(self) -> Ints:
        """As of `Result`."""
        return np.unique(self.logprobs.owners[~np.isfinite(self.logprobs.values.sums())])


RESULT: dict[type[Request], type[Result]] = {
    Score: OptionScores,
    FillMask: MaskScores,
    Generate: Completions,
    Sample: Samples,
    TokenLogprobs: SpanLogprobs,
}

Part = tuple[int, Ints, Result]
"""What a model yields: the number of a batch, some of its rows, their result. In any order."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Answers:
    """A batch of prompts with what the model answered."""

    batch: PromptBatch
    result: Result

    def __len__(self) -> int:
        return len(self.batch)

    def __repr__(self) -> str:
        return f"<Answers: {len(self):,} prompts, {type(self.result).__name__}>"

    @property
    def frame(self) -> pl.DataFrame:
        """The columns of the prompts."""
        return self.batch.frame

    def select(self, rows: Ints) -> "Answers":
        """Some of the prompts with their answers, in the order given."""
        return Answers(batch=self.batch.select(rows), result=self.result.select(rows))

    def row(self, i: int) -> dict[str, Any]:
        """One prompt with its answer as plain values, for display and tests."""
        part = self.select(np.array([i]))
        values = {
            name: column[0].tolist()
            if isinstance(column, np.ndarray)
            else to_arrow(column)[0].as_py()
            for name, column in part.result.columns().items()
        }
        return part.frame.row(0, named=True) | values


def gather(batches: Sequence[PromptBatch], parts: Iterable[Part]) -> list[Answers]:
    """The parts that a model yields, in the order of the prompts. Each prompt is answered once."""
    by_batch: list[list[tuple[Ints, Result]]] = [[] for _ in batches]
    for number, rows, result in parts:
        by_batch[number].append((rows, result))
    return [_gather(batch, chosen) for batch, chosen in zip(batches, by_batch, strict=True)]


def _gather(batch: PromptBatch, parts: Sequence[tuple[Ints, Result]]) -> Answers:
    wanted = RESULT[type(batch.request)]
    for _, result in parts:
        if type(result) is not wanted:
            raise ModelError(f"expected {wanted.__name__}, the model gave {type(result).__name__}")
    rows = np.concatenate([np.zeros(0, np.int64), *(rows for rows, _ in parts)])
    order = np.argsort(rows, kind="stable")
    count = sum(len(result) for _, result in parts)
    if count != len(rows) or not np.array_equal(rows[order], np.arange(len(batch))):
        raise ModelError(f"{count} answers to {len(batch)} prompts, or one answered twice")
    result = wanted.concat([result for _, result in parts])
    if (np.diff(order) != 1).any():  # copies everything, and most models answer in order
        result = result.select(order)
    if len(bad := result.invalid()):
        prompt = batch.frame.row(int(bad[0]), named=True)
        raise ModelError(
            f"NaN or infinity as a log-probability, for fact {prompt['fact']!r}, template "
            f"{prompt['template']!r}: {prompt['prefix']!r}. Try --dtype float32"
        )
    return Answers(batch=batch, result=result)
