"""What a multi-prompt probe asks about: pairs of a subject and a relation, with all their names.

Knows facts, nothing of prompts or answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sonde.core.fact_frames import entities, united
from sonde.core.facts import Dataset, commonest_objects

if TYPE_CHECKING:
    from polars import DataFrame


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A subject of a relation with every object that is correct for it.

    `fact` is the id of the pair's first fact, by which its prompts are known. `names` of the
    subject and of each of the `objects`, the usual one first. `majority`: whether the relation's
    commonest object is correct.
    """

    fact: str
    names: tuple[str, ...]
    objects: tuple[tuple[str, ...], ...]
    majority: bool


def asked_pairs(dataset: Dataset, relation: str) -> Iterator[Pair]:
    """The pairs of a relation that the selection asks about, in the dataset's order.

    Facts with the same subject are one pair, and so are their objects, whatever their split.
    """
    for fact, names, objects, majority in pair_frame(dataset, relation).iter_rows():
        yield Pair(
            fact=fact,
            names=tuple(names),
            objects=tuple(map(tuple, objects)),
            majority=majority,
        )


def pair_frame(dataset: Dataset, relation: str) -> DataFrame:
    """The same pairs as columns: fact, names (list), objects (list of lists), majority."""
    import polars
    from polars import col, element

    asked = dataset.asked_frame(relation).lazy()
    firsts = asked.unique("subject_id", keep="first", maintain_order=True)
    facts = (
        dataset.frame(relation)
        .lazy()
        .join(firsts, on="subject_id", how="semi", maintain_order="left")
    )
    names = (
        polars.concat([firsts, facts])  # the names of the fact that is asked about stay first
        .select("subject_id", names="subject_names")
        .explode("names")
        .group_by("subject_id")
        .agg(col("names").unique(maintain_order=True))
    )
    ranked = commonest_objects(dataset.split_frame(relation))
    common = ranked[0][0] if ranked else ""
    usual = col("object_names").list.eval(element().list.first())
    objects = united(entities(facts, "subject_id"), "subject_id").select(
        "subject_id", objects="object_names", majority=usual.list.contains(common)
    )
    return (
        firsts.select("fact", "subject_id")
        .join(names, on="subject_id", how="left", maintain_order="left")
        .join(objects, on="subject_id", how="left", maintain_order="left")
        .select("fact", "names", col("objects").fill_null([]), col("majority").fill_null(False))
        .collect()
    )
