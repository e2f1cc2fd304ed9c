"""Answers to many prompts as arrays, and blocks of prompts with their answers.

Arrays of log-probabilities are float32, as models give them. Knows nothing of files or of what is
right.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from sonde.core.answers import Answer, Answered, Filled, Generated, Kind, Sampled, Scored, Traced
from sonde.core.prompts import KEY, TEXTS, Key
from sonde.core.rated import Floats, Ints, RatedColumns

if TYPE_CHECKING:
    import polars


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FilledColumns:
    """Filled positions, a row each, all with the same `watched` names.

    `top` [rows, k] indexes `names`, -1 where there are fewer than k answers; `top_logps` has nan
    there. `watched_logps` and `watched_ranks` [rows, watched]: nan and 0 where a name is not one
    allowed token. `mass` [rows].
    """

    names: Sequence[str]
    top: Ints
    top_logps: Floats
    mass: Floats
    watched: tuple[str, ...]
    watched_logps: Floats
    watched_ranks: Ints

    def __len__(self) -> int:
        return len(self.mass)

    def rows(self, chosen: slice | Ints) -> FilledColumns:
        """Some of the rows."""
        arrays = ("top", "top_logps", "mass", "watched_logps", "watched_ranks")
        return replace(self, **{name: getattr(self, name)[chosen] for name in arrays})

    def each(self) -> Iterator[Filled]:
        """One answer after the other, as an object."""
        columns = (self.top, self.top_logps, self.watched_logps, self.watched_ranks, self.mass)
        for top, logps, watched, ranks, mass in zip(*columns, strict=True):
            count = int((top >= 0).sum())
            own = list(zip(watched.tolist(), ranks.tolist(), strict=True))
            yield Filled(
                top=tuple([self.names[i] for i in top[:count].tolist()]),
                top_logps=tuple(logps[:count].tolist()),
                watched=self.watched,
                watched_logps=tuple([logp if rank else None for logp, rank in own]),
                watched_ranks=tuple([rank or None for _, rank in own]),
                mass=float(mass),
            )

    @classmethod
    def gathered(cls, answers: Sequence[Filled]) -> FilledColumns:
        """Answers that were given one by one; they watch the same names."""
        codes: dict[str, int] = {}
        width = max(len(a.top) for a in answers)
        top = np.full((len(answers), width), -1, dtype=np.int32)
        logps = np.full(top.shape, np.nan, dtype=np.float32)
        for i, a in enumerate(answers):
            top[i, : len(a.top)] = [codes.setdefault(name, len(codes)) for name in a.top]
            logps[i, : len(a.top)] = a.top_logps
        shape = (len(answers), len(answers[0].watched))
        return cls(
            names=list(codes),
            top=top,
            top_logps=logps,
            mass=np.array([a.mass for a in answers], dtype=np.float32),
            watched=answers[0].watched,
            watched_logps=np.array(
                [a.watched_logps for a in answers],
                dtype=np.float32,  # None becomes nan
            ).reshape(shape),
            watched_ranks=np.array(
                [[rank or 0 for rank in a.watched_ranks] for a in answers], dtype=np.int32
            ).reshape(shape),
        )


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Answers:
    """A block of prompts with their answers, as a run keeps them.

    `asked` is an Arrow table of the columns that the block was asked with, names as dictionaries.
    `columns` holds what was answered: arrays for what was filled, scored or traced, a list of
    objects for texts.
    """

    kind: Kind
    asked: Any
    columns: FilledColumns | RatedColumns | list[Generated] | list[Sampled]
    _codes: dict[str, tuple[Ints, list[str]]] = field(default_factory=dict)

    def __len__(self) -> int:
        return int(self.asked.num_rows)

    def __repr__(self) -> str:
        return f"<Answers: {len(self):,} prompts, {self.kind}>"

    @property
    def filled(self) -> FilledColumns:
        """The answers, of a block that was filled."""
        assert isinstance(self.columns, FilledColumns), f"{self.kind}, not filled"
        return self.columns

    @property
    def rated(self) -> RatedColumns:
        """The answers, of a block that was scored or traced."""
        assert isinstance(self.columns, RatedColumns), f"{self.kind}, not scored or traced"
        return self.columns

    def codes(self, name: str) -> tuple[Ints, list[str]]:
        """A column of names: for each prompt a number, and the names that numbers stand for."""
        if name in self._codes:
            return self._codes[name]
        column = self.asked.column(name).combine_chunks()
        if not hasattr(column, "dictionary"):
            column = column.dictionary_encode()
        self._codes[name] = column.indices.to_numpy(), column.dictionary.to_pylist()
        return self._codes[name]

    def numbers(
        self,
        names: Sequence[str],
        table: Mapping[Any, int],
        other: Callable[[tuple[str, ...]], int] | None = None,
        rows: Ints | slice = slice(None),
    ) -> Ints:
        """What a table has for some names of each prompt; `other` tells what it does not have.

        Prompts repeat their names, so the table is asked once for each combination.
        """
        columns = [(codes[rows], words) for codes, words in map(self.codes, names)]
        keys = np.zeros(len(columns[0][0]), dtype=np.int64)
        for codes, words in columns:
            keys = keys * max(len(words), 1) + codes
        _, first, index = np.unique(keys, return_index=True, return_inverse=True)
        own = [[words[i] for i in codes[first].tolist()] for codes, words in columns]
        each = zip(*own, strict=True)
        found = [table[key] if key in table or other is None else other(key) for key in each]
        return np.array(found, dtype=np.int64)[index]

    def naming(self, name: str, wanted: Container[str]) -> Ints:
        """The rows whose name in a column is one of some."""
        codes, words = self.codes(name)
        return np.flatnonzero(np.array([word in wanted for word in words], dtype=np.bool_)[codes])

    def texts(self) -> list[str]:
        """Every prompt as one text, with a gap for the answer."""
        before, after = (self.asked.column(name).to_pylist() for name in TEXTS)
        return [f"{prefix}___{suffix}" for prefix, suffix in zip(before, after, strict=True)]

    def rows(self, chosen: Ints) -> Answers:
        """Some of the prompts, in the order given."""
        columns: Any = self.columns
        part = [columns[i] for i in chosen] if isinstance(columns, list) else columns.rows(chosen)
        codes = {name: (own[chosen], words) for name, (own, words) in self._codes.items()}
        return Answers(kind=self.kind, asked=self.asked.take(chosen), columns=part, _codes=codes)

    @cached_property
    def frame(self) -> polars.DataFrame:
        """The columns that the block was asked with; names as text."""
        import polars

        # how polars numbers names depends on all that it read before, so they become text
        frame = cast(polars.DataFrame, polars.from_arrow(self.asked))
        return frame.with_columns(polars.col(polars.Categorical).cast(polars.String))

    def each(self) -> Iterator[Answered]:
        """One answered prompt after the other, as an object."""
        rows = self.frame.drop("options", "spans", strict=False).iter_rows(named=True)
        answers = self.columns if isinstance(self.columns, list) else self.columns.each()
        for row, answer in zip(rows, answers, strict=True):
            texts = {name: row.pop(name) for name in TEXTS}
            key = Key(**{name: row.pop(name) for name in KEY})
            yield Answered(key=key, answer=answer, own=row, **texts)


Given = Iterable[Answers] | Iterable[Answered]
"""Answered prompts, in blocks or one by one."""


def one_by_one(results: Iterable[tuple[Any, Any]]) -> Iterator[tuple[int, Any]]:
    """What a model yields, as (position, answer) for each prompt."""
    for position, answer in results:
        if isinstance(answer, FilledColumns | RatedColumns):
            yield from zip(position.tolist(), answer.each(), strict=True)
        else:
            yield int(position), answer


def in_columns(results: Iterable[tuple[Any, Any]]) -> Iterator[tuple[Ints, RatedColumns]]:
    """What a model yields that scores or traces, (positions, columns) whatever comes."""
    for position, answer in results:
        if isinstance(answer, RatedColumns):
            yield position, answer
        else:
            yield np.array([position]), RatedColumns.gathered([answer])


def in_blocks(answers: Given) -> Iterator[Answers]:
    """Answered prompts in blocks; rows that come one by one are gathered."""
    every = iter(answers)
    for first in every:
        rest: Any = chain([first], every)
        if isinstance(first, Answers):
            yield from rest
            return
        for _, rows in groupby(rest, lambda row: (type(row.answer), _watched(row.answer))):
            yield _block(list(rows))


def _watched(answer: Answer) -> tuple[str, ...]:
    return answer.watched if isinstance(answer, Filled) else ()


def _block(rows: Sequence[Answered]) -> Answers:
    from pyarrow import array, string, table

    columns = {name: [getattr(row.key, name) for row in rows] for name in KEY}
    columns |= {name: [getattr(row, name) for row in rows] for name in TEXTS}
    own = {name: array([row.own[name] for row in rows]) for name in rows[0].own}
    answers: list[Any] = [row.answer for row in rows]
    gather: Any = {
        Filled: FilledColumns.gathered,
        Scored: RatedColumns.gathered,
        Traced: RatedColumns.gathered,
    }.get(type(answers[0]), list)
    return Answers(
        kind=cast(Kind, type(answers[0]).__name__.lower()),
        asked=table({n: array(values, string()) for n, values in columns.items()} | own),
        columns=gather(answers),
    )
