"""Facts as columns: one frame a relation, read once. Knows neither files nor what facts mean.

fact, relation, split    the fact's id, its relation, its split
subject, subject_id      the usual name, the identifier
subject_names            list: all names, the usual one first
object_ids               list: the identifier of each correct object
object_names             list of lists: the names of each, the usual one first
tags                     list
wrong_ids, wrong_names   as of objects: options that the dataset names as wrong
details                  list of {name, value}: further columns of the source
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, count, islice
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from polars import DataFrame

BATCH = 4096
KEPT = 2**28
"""Bytes of frames that are kept; beyond that, those that were looked at last stay."""


class FactFrames:
    """The frame of each relation, made of what `read` gives when it is first looked at."""

    def __init__(self, read: Callable[[str], Iterable[Any] | DataFrame]) -> None:
        self._read = read
        self._frames: dict[str, DataFrame] = {}

    def __call__(self, relation: str) -> DataFrame:
        """The facts of a relation, a row each."""
        frame = self._frames.pop(relation, None)
        if frame is None:
            frame = frame_of(self._read(relation))
        self._frames[relation] = frame  # the last one now
        while len(self._frames) > 1 and self._size() > KEPT:
            del self._frames[next(iter(self._frames))]
        return frame

    def places(self, relation: str) -> Iterator[str]:
        """Where each fact stands, in words: by file and line, if it was read from a file."""
        places = getattr(self._read, "places", None)
        if places is not None:
            return cast(Iterator[str], places(relation))
        return (f"relation {relation}, fact {number}" for number in count(1))

    def _size(self) -> float:
        return sum(frame.estimated_size() for frame in self._frames.values())


def frame_of(facts: Iterable[Any] | DataFrame, relation: str = "") -> DataFrame:
    """The frame of facts, or of whatever has their attributes; a frame is given back as it is.

    `relation` is that of lines, which do not say it.
    """
    import polars

    if isinstance(facts, polars.DataFrame):
        return facts
    given = iter(facts)
    parts = [_part([], relation)]
    while batch := list(islice(given, BATCH)):  # objects are made and gone a batch at a time
        parts.append(_part(batch, relation))
    return polars.concat(parts, rechunk=True)


def rows(frame: DataFrame) -> Iterator[tuple[Any, ...]]:
    """The columns of each fact but its usual name, which is also the first of its names."""
    for part in frame.drop("subject").iter_slices(BATCH):
        yield from zip(*(column.to_list() for column in part), strict=True)


def _part(facts: Sequence[Any], relation: str) -> DataFrame:
    import polars
    from pyarrow import array, string, table

    def texts(values: Iterable[str]) -> Any:
        return array(list(values), string())

    columns = {
        "fact": texts(fact.id for fact in facts),
        "relation": texts(relation or fact.relation for fact in facts),
        "split": texts(fact.split for fact in facts),
        "subject": texts(fact.subject.names[0] for fact in facts),
        "subject_id": texts(fact.subject.id for fact in facts),
        "subject_names": _lists([fact.subject.names for fact in facts], texts),
        "object_ids": _lists([[o.id for o in fact.objects] for fact in facts], texts),
        "object_names": _names([[o.names for o in fact.objects] for fact in facts], texts),
        "tags": _lists([fact.tags for fact in facts], texts),
        "wrong_ids": _lists([[o.id for o in fact.wrong] for fact in facts], texts),
        "wrong_names": _names([[o.names for o in fact.wrong] for fact in facts], texts),
        "details": _lists([list(fact.details.items()) for fact in facts], _details),
    }
    return cast("DataFrame", polars.from_arrow(table(columns)))


Flat = Callable[[list[Any]], Any]


def _lists(values: Sequence[Sequence[Any]], flat: Flat) -> Any:
    """A column of lists; `flat` makes the column of what is in all of them."""
    from numpy import cumsum
    from pyarrow import ListArray

    ends = cumsum([0, *map(len, values)], dtype="int32")
    return ListArray.from_arrays(ends, flat(list(chain.from_iterable(values))))


def _names(values: Sequence[Sequence[Sequence[str]]], texts: Flat) -> Any:
    return _lists(values, lambda names: _lists(names, texts))


def _details(pairs: list[tuple[str, str]]) -> Any:
    from pyarrow import StructArray, array, string

    columns = [array([pair[i] for pair in pairs], string()) for i in (0, 1)]
    return StructArray.from_arrays(columns, ["name", "value"])
