"""Put facts, templates and names of several sources together into one dataset.

A joined dataset has one fact per subject and relation, with every correct object: that is the pair
that BELIEF asks about. Facts are still read a relation at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

from sonde.core.fact_frames import entities, united
from sonde.core.facts import APART, Card, Dataset, Template
from sonde.core.fingerprints import fingerprint
from sonde.data.wordings import Wordings

if TYPE_CHECKING:
    from polars import DataFrame, Expr


def merged(dataset: Dataset) -> Dataset:
    """One fact per subject, relation and split, with the objects of all of them."""
    apart = any(dataset.frame(r.id).select(is_apart().any()).item() for r in dataset.relations)
    how = "merged, some apart" if apart else "merged"
    joined = replace(
        dataset,
        read=lambda id: merged_facts(dataset.frame(id)),
        fingerprint=fingerprint([dataset.fingerprint, how]),
    )
    return replace(joined, notes={**dataset.notes, "rows_merged": dataset.size - joined.size})


def merged_facts(facts: DataFrame) -> DataFrame:
    """The facts of one relation, those of one subject and split made one, in order of appearance.

    A merged fact is called after its relation and subject, `P36:Q142`. Facts collected apart follow
    as they are: they name things that may share a name, and to count them is what they are for.
    """
    import polars
    from polars import col, format, when

    key = ("subject_id", "split")
    alone = facts.lazy().filter(~is_apart())
    right = entities(alone, *key)
    firsts = alone.unique(key, keep="first", maintain_order=True)
    wrong = entities(firsts, *key, of="wrong").join(
        right,
        left_on=(*key, "wrong_ids"),
        right_on=(*key, "object_ids"),
        how="anti",
        maintain_order="left",
    )
    texts = col("subject_names", "tags").explode().drop_nulls().unique(maintain_order=True)
    columns = {
        "fact": when(col("split") == "test")
        .then(format("{}:{}", "relation", "subject_id"))
        .otherwise(format("{}:{}:{}", "relation", "subject_id", "split")),
        "subject": col("subject_names").list.first(),
        "wrong_ids": col("wrong_ids").fill_null([]),
        "wrong_names": col("wrong_names").fill_null([]),
    }
    made = firsts.select("relation", "details", *key)
    for part in (
        alone.group_by(key).agg(texts),
        united(right, *key),
        wrong.group_by(key, maintain_order=True).agg("wrong_ids", "wrong_names"),
    ):
        made = made.join(part, on=key, how="left", maintain_order="left")
    made = made.with_columns(**columns).select(facts.columns)
    return polars.concat([made, facts.lazy().filter(is_apart())]).collect()


def is_apart() -> Expr:
    """Whether a fact was collected apart."""
    from polars import col

    return col("tags").list.contains(APART)


def worded(dataset: Dataset, sources: Sequence[Wordings]) -> Dataset:
    """The facts under the sources' templates, which take the place of the dataset's own.

    A template that says what one of these says has its origin. Relations that only one side has are
    left out and counted.
    """
    templates = _together(sources)
    known = {relation.id for relation in dataset.relations}
    kept = tuple(
        replace(relation, templates=tuple(_of_origin(templates[relation.id], relation.templates)))
        for relation in dataset.relations
        if relation.id in templates
    )
    left = [relation for relation in dataset.relations if relation.id not in templates]
    notes = {
        "relations_without_templates": len(left),
        "facts_without_templates": replace(dataset, relations=tuple(left)).size,
        "relations_without_facts": len(set(templates) - known),
        "templates_without_facts": sum(len(t) for id, t in templates.items() if id not in known),
    }
    for source in sources:
        notes = summed(notes, source.notes)
    brought = sum(len(t) for source in sources for t in source.templates.values())
    shared = brought - sum(map(len, templates.values()))
    notes = summed(notes, {"templates_repeated": shared})
    return replace(dataset, relations=kept, notes={**dataset.notes, **notes})


def _of_origin(templates: Iterable[Template], own: Iterable[Template]) -> Iterator[Template]:
    """Templates, with the origin of those that a dataset had of the same words; spaces apart."""
    origins = {"".join(template.text.split()): template.origin for template in own}
    for template in templates:
        origin = origins.get("".join(template.text.split()), "")
        yield replace(template, origin=origin) if origin else template


def wordings_of(dataset: Dataset) -> Wordings:
    """A dataset's own templates, for the facts of another."""
    templates = {r.id: r.templates for r in dataset.relations if r.templates}
    return Wordings(
        card=dataset.card,
        templates=templates,
        fingerprint=dataset.fingerprint,
        notes={"templates_read": sum(map(len, templates.values()))},
    )


def _together(sources: Sequence[Wordings]) -> dict[str, tuple[Template, ...]]:
    """The templates of several sources; where two have the same text, the first one's stays.

    An id that another source's template has already gets a number behind it.
    """
    found: dict[str, dict[str, Template]] = {}
    for source in sources:
        for relation, templates in source.templates.items():
            texts = found.setdefault(relation, {})
            ids = _ids(texts, templates)
            for t in templates:
                named = replace(t, id=ids[t.id], group=ids.get(t.group, t.group))
                texts.setdefault(t.text, named)
    return {relation: tuple(texts.values()) for relation, texts in found.items()}


def _ids(texts: Mapping[str, Template], templates: Sequence[Template]) -> dict[str, str]:
    """What the templates of one more source are to be called: one that is there is that one."""
    taken = {template.id for template in texts.values()}
    own = {template.id for template in templates}

    def free(id: str) -> str:
        return next(f"{id}~{k}" for k in count(2) if f"{id}~{k}" not in taken | own)

    return {
        t.id: texts[t.text].id if t.text in texts else free(t.id) if t.id in taken else t.id
        for t in templates
    }


def summed(notes: Mapping[str, int], more: Mapping[str, int]) -> dict[str, int]:
    """Counts of two sources; those of the same name are added."""
    return {key: notes.get(key, 0) + more.get(key, 0) for key in (*notes, *more)}


def named_after(dataset: Dataset, names: Sequence[str], cards: Sequence[Card]) -> Dataset:
    """The dataset with a card that names everything it was joined from."""
    cards = (dataset.card, *cards)
    licences = dict.fromkeys(f"{card.name}: {card.licence}" for card in cards)
    card = Card(
        name="+".join((dataset.card.name, *names)),
        licence="; ".join(licences),
        sources=tuple(dict.fromkeys(source for card in cards for source in card.sources)),
        description=f"{dataset.card.name}, joined with {', '.join(names)}",
    )
    return replace(dataset, card=card)
