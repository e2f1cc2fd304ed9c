"""Refuse relations, templates and facts that share an id: by ids answers are joined to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from sonde.core.errors import DataError
from sonde.core.fact_frames import FactFrames
from sonde.core.facts import Dataset, Relation

if TYPE_CHECKING:
    from polars import Series

SHOWN = 5


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
    for id, count in Counter(relation.id for relation in relations).items():
        yield from [f"relation id {id!r}"] * (count - 1)
    for relation in relations:
        for id, count in Counter(template.id for template in relation.templates).items():
            yield from [f"relation {relation.id}: template id {id!r}"] * (count - 1)


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
