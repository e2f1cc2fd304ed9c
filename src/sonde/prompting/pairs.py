"""What a multi-prompt probe asks about: pairs of a subject and a relation, with all their names.

Knows facts and the keys of prompts, nothing of what was answered.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sonde.core.columns import Answers
from sonde.core.fact_frames import entities, united
from sonde.core.facts import Dataset, Relation, Template, commonest_objects

if TYPE_CHECKING:
    from polars import DataFrame

PAIR = ("relation", "subject_id", "date")
"""What makes facts one pair; few have a date."""

TOGETHER = 2**17
"""Facts whose pairs are worked out together, about."""


class Pair(NamedTuple):
    """A subject of a relation with every object that is correct for it.

    `fact` is the id of the pair's first fact, by which its prompts are known. `subject` is the
    subject's id, which pairs of different dates share. `names` of the subject and of each of the
    `objects`, the usual one first. `majority`: whether the relation's commonest object is correct.
    """

    fact: str
    subject: str
    names: tuple[str, ...]
    objects: tuple[tuple[str, ...], ...]
    majority: bool


def asked_pairs(dataset: Dataset, relation: str) -> Iterator[Pair]:
    """The pairs of a relation that the selection asks about, in the dataset's order.

    Facts with the same subject are one pair, and so are their objects, whatever their split.
    """
    for _, frame in pair_frames(dataset, [relation]):
        yield from _pairs(frame)


def _pairs(frame: DataFrame) -> Iterator[Pair]:
    for fact, subject, names, objects, majority in frame.select(Pair._fields).iter_rows():
        yield Pair(fact, subject, tuple(names), tuple(map(tuple, objects)), majority)


def pair_frames(dataset: Dataset, relations: Iterable[str]) -> Iterator[tuple[str, DataFrame]]:
    """The same pairs of each relation as columns: fact, names (list), objects (list of lists),
    majority, and the date and details of the first fact.

    The first relation is worked out alone, then twice as many each time together.
    """
    batch: list[str] = []
    done = facts = 0
    for relation in relations:
        batch.append(relation)
        facts += dataset.frame(relation).height
        if len(batch) > done or facts > TOGETHER:
            yield from _together(dataset, batch)
            done, batch, facts = done + len(batch), [], 0
    if batch:
        yield from _together(dataset, batch)


def _together(dataset: Dataset, relations: Sequence[str]) -> Iterator[tuple[str, DataFrame]]:
    import polars
    from polars import col, element

    asked = polars.concat([dataset.asked_frame(relation) for relation in relations]).lazy()
    firsts = asked.unique(PAIR, keep="first", maintain_order=True)
    every = polars.concat([dataset.frame(relation) for relation in relations]).lazy()
    facts = every.join(firsts, on=PAIR, how="semi", maintain_order="left")
    names = (
        polars.concat([firsts, facts])  # the names of the fact that is asked about stay first
        .select(*PAIR, names="subject_names")
        .explode("names")
        .group_by(PAIR)
        .agg(col("names").unique(maintain_order=True))
    )
    ranked = [(id, commonest_objects(dataset.split_frame(id))) for id in relations]
    common = {id: objects[0][0] if objects else "" for id, objects in ranked}
    usual = col("object_names").list.eval(element().list.first())
    objects = united(entities(facts, *PAIR), *PAIR).select(
        *PAIR,
        objects="object_names",
        majority=usual.list.contains(col("relation").replace_strict(common)),
    )
    pairs = (
        firsts.select("fact", "details", *PAIR, subject="subject_id")
        .join(names, on=PAIR, how="left", maintain_order="left")
        .join(objects, on=PAIR, how="left", maintain_order="left")
        .with_columns(col("objects").fill_null([]), col("majority").fill_null(False))
        .collect()
    )
    of_relation = pairs.partition_by("relation", as_dict=True)
    for relation in relations:
        frame = of_relation.get((relation,), pairs.clear())
        yield relation, frame.select(*Pair._fields, "date", "details")


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedPairs:
    """Everything that is asked about, counted from 0: relations, their templates, their pairs."""

    relations: tuple[Relation, ...]
    templates: tuple[Template, ...]
    template_relations: NDArray[np.int64]
    pairs: tuple[Pair, ...]
    pair_relations: NDArray[np.int64]

    @property
    def subjects(self) -> NDArray[np.int64]:
        """The number of each pair's subject, in sorted order."""
        owners = self.pair_relations.tolist()
        keys = [
            f"{self.relations[r].id}:{p.subject}" for r, p in zip(owners, self.pairs, strict=True)
        ]
        return np.unique(keys, return_inverse=True)[1].astype(np.int64)

    @property
    def majority(self) -> NDArray[np.bool_]:
        """For each pair, whether the relation's commonest object is correct."""
        return np.array([pair.majority for pair in self.pairs], dtype=np.bool_)


def numbered_pairs(dataset: Dataset, asked: Mapping[str, Sequence[Template]]) -> AskedPairs:
    """Count what is asked about; `asked` are the templates of each relation."""
    relations = dataset.asked_relations()
    templates = [(r, t) for r, relation in enumerate(relations) for t in asked[relation.id]]
    numbers = {relation.id: r for r, relation in enumerate(relations) if asked[relation.id]}
    frames = list(pair_frames(dataset, numbers))
    return AskedPairs(
        relations=relations,
        templates=tuple(t for _, t in templates),
        template_relations=np.array([r for r, _ in templates], dtype=np.int64),
        pairs=tuple(pair for _, frame in frames for pair in _pairs(frame)),
        pair_relations=np.repeat(
            np.array([numbers[id] for id, _ in frames], dtype=np.int64),
            [frame.height for _, frame in frames],
        ),
    )


class Keys:
    """Finds out which pair, template and name a prompt asks about, by the columns of its key."""

    def __init__(self, known: AskedPairs) -> None:
        relations = [relation.id for relation in known.relations]
        self.relations = {id: r for r, id in enumerate(relations)}
        owners = known.template_relations.tolist()
        self.templates = {
            (relations[owners[t]], template.id): t for t, template in enumerate(known.templates)
        }
        owners = known.pair_relations.tolist()
        self.most = max((len(pair.names) for pair in known.pairs), default=1)
        self.names = {
            (relations[owners[p]], pair.fact, name): p * self.most + number
            for p, pair in enumerate(known.pairs)
            for number, name in reversed(list(enumerate(pair.names)))
        }

    def places(self, block: Answers) -> dict[str, NDArray[Any]]:
        """The numbers of every prompt's pair, template and name; pair -1 for a content-free one."""
        named = block.numbers(("relation", "fact", "subject"), self.names, _none)
        return {
            "pair": named // self.most,
            "template": block.numbers(("relation", "template"), self.templates),
            "name": named % self.most,
        }

    def content_free(self, block: Answers, row: int) -> tuple[int, int, str]:
        """The relation, the template and the subject of a prompt about nothing."""
        relation, template, subject = block.names_at(row, ("relation", "template", "subject"))
        return self.relations[relation], self.templates[relation, template], subject


def _none(key: tuple[str, ...]) -> int:
    """The number of what asks about no fact; anything else must be known."""
    if key[1]:
        raise KeyError(key)
    return -1
