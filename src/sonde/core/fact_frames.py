"""Facts as columns: one frame a relation, read once, each fact under an id of its own.

Knows neither files nor what facts mean. Columns:

fact, relation, split    the fact's id, its relation, its split
subject, subject_id      the usual name, the identifier
subject_names            list: all names, the usual one first
object_ids               list: the identifier of each correct object
object_names             list of lists: the names of each, the usual one first
tags                     list
wrong_ids, wrong_names   as of objects: options that the dataset names as wrong
details                  list of {name, value}: further columns of the source
numbers                  list of {name, value}: such as popularity
date                     the time that is asked about; empty for none, as the next two
valid_from, valid_to     when the objects are right
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain, count, islice
from threading import RLock
from typing import TYPE_CHECKING, Any, cast

from sonde.core.errors import DataError

if TYPE_CHECKING:
    from polars import DataFrame, Expr, LazyFrame, Series

    from sonde.core.facts import Dataset, Relation

APART = "apart"
"""A tag of facts that were collected apart from those that are asked about, to train on.

Their objects are no options. They have names and no identifiers: joins leave them as they are."""

BATCH = 4096
DATES = ("date", "valid_from", "valid_to")

Space = Mapping[str, Sequence[str]]
"""The names of all that may be answered, by id."""

KEPT = 2**27
"""Bytes of frames that are kept; beyond that, those that were looked at last stay."""

SHOWN = 5
"""Ids that are named where some stand for two things."""


class FactFrames:
    """The frame of each relation, made of what `read` gives when it is first looked at.

    `spaces` are the names of all that may be answered, by relation and id; an object of a fact
    that is not among them, or has none of the names there, is refused.
    """

    def __init__(
        self,
        read: Callable[[str], Iterable[Any] | DataFrame],
        spaces: Mapping[str, Space] | None = None,
    ) -> None:
        self._read = read
        self._spaces = spaces or {}
        self._frames: dict[str, DataFrame] = {}
        self._size = 0.0
        # a run copies its dataset on one thread and asks on another
        self._lock = RLock()

    def __reduce__(self) -> tuple[Any, ...]:
        return FactFrames, (self._read, self._spaces)  # a lock stays where it is

    def __call__(self, relation: str) -> DataFrame:
        """The facts of a relation, a row each."""
        with self._lock:
            frame = self._frames.pop(relation, None)
            if frame is None:
                frame = frame_of(self._read(relation))
                self._check_space(relation, frame)
                self._size += frame.estimated_size()
            self._frames[relation] = frame  # the last one now
            while len(self._frames) > 1 and self._size > KEPT:
                self._size -= self._frames.pop(next(iter(self._frames))).estimated_size()
            return frame

    def _check_space(self, relation: str, frame: DataFrame) -> None:
        if not (space := self._spaces.get(relation)):
            return
        for row, why in outside(frame, space, relation):
            where = next(islice(self.places(relation), row, None))
            raise DataError(f"{where}: {why}")

    def places(self, relation: str) -> Iterator[str]:
        """Where each fact stands, in words: by file and line, if it was read from a file."""
        places = getattr(self._read, "places", None)
        if places is not None:
            return cast(Iterator[str], places(relation))
        return (f"relation {relation}, fact {number}" for number in count(1))


def refuse_repeats(dataset: Dataset, relations: Sequence[Relation]) -> None:
    """Raise DataError if an id of these relations stands for two things."""
    repeated = list(_repeated_templates(relations)) or list(_repeated_facts(dataset, relations))
    if not repeated:
        return
    more = [f"and {len(repeated) - SHOWN} more"] if len(repeated) > SHOWN else []
    raise DataError(
        f"dataset {dataset.name!r} has {len(repeated)} ids that stand for something else "
        "already, so that answers would be mixed:\n  "
        + "\n  ".join([*repeated[:SHOWN], *more])
        + "\ngive each an id of its own; 'sonde data check' lists everything that is wrong"
    )


def _repeated_templates(relations: Sequence[Relation]) -> Iterator[str]:
    """Relations that have another's id, and templates that have that of another of the relation."""
    for id, times in Counter(relation.id for relation in relations).items():
        yield from [f"relation id {id!r}"] * (times - 1)
    for relation in relations:
        for id, times in Counter(template.id for template in relation.templates).items():
            yield from [f"relation {relation.id}: template id {id!r}"] * (times - 1)


def _repeated_facts(dataset: Dataset, relations: Sequence[Relation]) -> Iterator[str]:
    """Where the facts stand that have another's id, and where the other stands."""
    import polars

    if not relations:
        return
    hashes = polars.concat([_hashes(dataset, relation) for relation in relations])
    if hashes.n_unique() == len(hashes):
        return
    assert isinstance(dataset.read, FactFrames)
    firsts: dict[str, str] = {}
    for relation in relations:
        ids = dataset.frame(relation.id)["fact"]
        for id, place in zip(ids, dataset.read.places(relation.id), strict=False):
            first = firsts.setdefault(id, place)
            if first != place:
                yield f"{place}: fact id {id!r}, as in {first}"


def _hashes(dataset: Dataset, relation: Relation) -> Series:
    """Eight bytes a fact, however many there are."""
    return dataset.frame(relation.id)["fact"].hash()


def frame_of(facts: Iterable[Any] | DataFrame, relation: str = "") -> DataFrame:
    """The frame of facts, or of whatever has their attributes; a frame is given back as it is.

    `relation` is that of lines, which do not say it.
    """
    import polars

    if isinstance(facts, polars.DataFrame):
        return facts
    given = iter(facts)
    parts = []
    while batch := list(islice(given, BATCH)):  # objects are made and gone a batch at a time
        parts.append(_part(batch, relation))
    return polars.concat(parts, rechunk=True) if parts else no_facts()


@cache
def no_facts() -> DataFrame:
    """The frame without a row."""
    return _part([], "")


def outside(facts: DataFrame, space: Space, relation: str) -> Iterator[tuple[int, str]]:
    """What is wrong with objects that are not among a relation's answers, or are called otherwise
    there, each behind the number of the fact's row.

    Facts collected apart have names for ids and are passed over."""
    from polars import DataFrame, col

    answers = DataFrame(
        {"object_ids": list(space), "called": [list(names) for names in space.values()]}
    )
    asked = facts.lazy().with_row_index("row").filter(~is_apart())
    objects = entities(asked, "row", "fact").join(
        answers.lazy(), on="object_ids", how="left", maintain_order="left"
    )
    shared = col("object_names").list.set_intersection("called").list.len()
    wrong = objects.filter(col("called").is_null() | (shared == 0)).collect()
    for row, fact, id, names, called in wrong.iter_rows():
        text = f"object {id!r} of fact {fact!r} is"
        there = f"the answers of relation {relation!r}"
        if called is None:
            yield row, f"{text} not among {there}; add it to 'answers' there, or mend the fact"
        else:
            text += f" called {names[0]!r}, but {called[0]!r} among {there}"
            yield row, f"{text}; add the name there, or mend the fact"


def completed(facts: LazyFrame) -> LazyFrame:
    """The frame of facts of which a source has some columns: fact, relation, subject_id at least.

    `subject` may stand for subject_names, `object` and `object_id` for lists of one object; the
    split is test unless it is given, and what else is missing is empty.
    """
    from polars import col, concat_list, element, lit

    schema, given = no_facts().schema, facts.collect_schema()
    single = {
        "split": lit("test"),
        "subject": col("subject_names").list.first(),
        "subject_names": concat_list("subject"),
        "object_ids": concat_list("object_id"),
        "object_names": concat_list("object").list.eval(concat_list(element())),
        **dict.fromkeys(DATES, lit("")),
    }
    missing = {
        name: single[name] if name in single else lit([], dtype)
        for name, dtype in schema.items()
        if name not in given
    }
    return facts.with_columns(**missing).select(col(name).cast(schema[name]) for name in schema)


def entities(facts: LazyFrame, *key: str, of: str = "object") -> LazyFrame:
    """The objects, or wrong objects, of facts, a row each: the key, an id, a list of names."""
    columns = (f"{of}_ids", f"{of}_names")
    return facts.select(*key, *columns).explode(columns).drop_nulls(columns)


def united(objects: LazyFrame, *key: str) -> LazyFrame:
    """The objects of a key as lists: each once, with all the names it has, as they appear."""
    from polars import col

    return (
        objects.explode("object_names")
        .group_by(*key, "object_ids", maintain_order=True)
        .agg(col("object_names").unique(maintain_order=True))
        .group_by(*key, maintain_order=True)
        .agg("object_ids", "object_names")
    )


def names_options(facts: DataFrame) -> bool:
    """Whether all of some facts name what is wrong, so that each has options of its own."""
    return facts.height > 0 and bool(facts["wrong_ids"].list.len().min())


def is_apart() -> Expr:
    """Whether a fact was collected apart."""
    from polars import col

    return col("tags").list.contains(APART)


def rows(frame: DataFrame) -> Iterator[tuple[Any, ...]]:
    """The columns of each fact but its usual name, which is also the first of its names."""
    for part in frame.drop("subject").iter_slices(BATCH):
        yield from zip(*(column.to_list() for column in part), strict=True)


def text_frame(
    texts: Mapping[str, Sequence[str]], lists: Mapping[str, Sequence[Sequence[str]]]
) -> DataFrame:
    """A frame of columns of texts, then of lists of texts."""
    import polars
    from pyarrow import table

    columns = {name: _texts(values) for name, values in texts.items()}
    columns |= {name: _lists(values) for name, values in lists.items()}
    return cast("DataFrame", polars.from_arrow(table(columns)))


def text_lists(values: Sequence[Sequence[str]]) -> Series:
    """A column of lists of texts."""
    return text_frame({}, {"texts": values})["texts"]


def has_blank(frame: DataFrame) -> bool:
    """Whether a text, or one in a list, is empty or of spaces alone, as `str.strip` sees it."""
    from polars import List, String, col

    checks = []
    for name, kind in frame.schema.items():
        if name in DATES:
            continue
        texts, dtype = col(name), cast(Any, kind)
        while isinstance(dtype, List):
            texts, dtype = texts.explode(), dtype.inner
        if dtype == String:
            checks.append(texts.str.contains(r"[^\s\x1c-\x1f]").all())
    return not all(frame.select(checks).row(0))


def _part(facts: Sequence[Any], relation: str) -> DataFrame:
    import polars
    from pyarrow import table

    columns = {
        "fact": _texts([fact.id for fact in facts]),
        "relation": _texts([relation or fact.relation for fact in facts]),
        "split": _texts([fact.split for fact in facts]),
        "subject": _texts([fact.subject.names[0] for fact in facts]),
        "subject_id": _texts([fact.subject.id for fact in facts]),
        "subject_names": _lists([fact.subject.names for fact in facts]),
        "object_ids": _lists([[o.id for o in fact.objects] for fact in facts]),
        "object_names": _lists([[o.names for o in fact.objects] for fact in facts], _lists),
        "tags": _lists([fact.tags for fact in facts]),
        "wrong_ids": _lists([[o.id for o in fact.wrong] for fact in facts]),
        "wrong_names": _lists([[o.names for o in fact.wrong] for fact in facts], _lists),
        "details": _lists([list(fact.details.items()) for fact in facts], _details),
        "numbers": _lists([list(fact.numbers.items()) for fact in facts], _numbers),
        **{name: _texts([getattr(fact, name) for fact in facts]) for name in DATES},
    }
    return cast("DataFrame", polars.from_arrow(table(columns)))


def _texts(values: Sequence[str]) -> Any:
    from pyarrow import array, string

    try:
        return array(values, string())
    except UnicodeEncodeError as error:
        raise DataError(
            f"{error.object!r} holds half a character, which cannot be stored; write it whole"
        ) from None


def _lists(values: Sequence[Sequence[Any]], flat: Callable[[list[Any]], Any] = _texts) -> Any:
    """A column of lists; `flat` makes the column of what is in all of them."""
    from numpy import cumsum
    from pyarrow import ListArray

    ends = cumsum([0, *map(len, values)], dtype="int32")
    return ListArray.from_arrays(ends, flat(list(chain.from_iterable(values))))


def _details(pairs: list[tuple[str, str]]) -> Any:
    return _named(pairs, _texts([value for _, value in pairs]))


def _numbers(pairs: list[tuple[str, float]]) -> Any:
    from pyarrow import array, float64

    return _named(pairs, array([float(value) for _, value in pairs], float64()))


def _named(pairs: list[tuple[str, Any]], values: Any) -> Any:
    from pyarrow import StructArray

    return StructArray.from_arrays([_texts([name for name, _ in pairs]), values], ["name", "value"])
