"""The tables of a data card: what a dataset holds, its answers, its leaks, what is there twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from sonde.cards.numbers import (
    BAYES,
    CHANCE,
    EASY,
    EVENNESS,
    GUESSED,
    IN_NAME,
    LEAKED,
    MAJORITY,
    SPREAD,
    SUBJECT_SEEN,
    by_language,
)
from sonde.cards.relations import Described, Shared, Twin
from sonde.core.facts import Card, Dataset, Relation
from sonde.core.overviews import listing
from sonde.core.reports import ColumnKind, Estimate, Estimates, Metric, Table
from sonde.core.words import counted
from sonde.data.statistics import relation_counts, totals
from sonde.reports.legacy import RELATIONS, Field, by_relation, table

COMMONEST = 3
"""Objects of a relation that are named."""

OWN_SPACE = (
    " Where all facts name what is wrong, each chooses from options of its own: the most that a "
    "fact has are counted. Evenness is told by the objects of the relation's facts all the same."
)

TWINS: Mapping[str, Callable[[Described], Sequence[Twin]]] = {
    "templates": lambda d: d.twin_templates,
    "facts": lambda d: d.twin_facts,
    "subjects": lambda d: d.twin_subjects,
}

MOST = 2000
"""Rows of a list of leaks or near-duplicates."""

WORDS = {
    "subjects": "different ones, by identifier, over all relations",
    "objects": "different ones, by identifier, over all relations",
    "subjects with several names": "",
    "objects with several names": "",
    "unique triples": "subject, relation and one correct object, without facts collected apart",
    "derived triples": "all ways to say them: names × templates × names",
    "subject-relation pairs": "what is asked about, without facts collected apart",
    "prompts": "a pair's subject names × templates",
}


def about(card: Card, fingerprint: str, citation: str) -> Table:
    """Where the dataset comes from and how it may be used."""
    rows = [
        ("name", card.name),
        ("version", card.version),
        ("description", card.description or "none given"),
        ("licence", card.licence),
        ("sources", "; ".join(card.sources) or "none given"),
        ("content", f"{fingerprint} (changes with every fact and template)"),
        ("how to cite", citation),
    ]
    return listing("about", "About", rows)


def contents(dataset: Dataset) -> Table:
    """What is in it, counted as `sonde data stats` counts."""
    counts = totals(relation_counts(dataset)) | _things(dataset)
    order = ("relations", "templates", "facts", *WORDS)
    fields: list[Field[str]] = [
        Field("what", lambda name: name),
        Field("number", lambda name: counts[name], "count"),
        Field("meaning", lambda name: WORDS.get(name, "")),
    ]
    return replace(table(order, fields, id="contents", title="What is in it"), leads=True)


def _things(dataset: Dataset) -> dict[str, float | None]:
    """How many different subjects and objects there are, and how many have several names."""
    names: tuple[dict[str, int], dict[str, int]] = {}, {}
    for relation in dataset.relations:
        frame = dataset.frame(relation.id)
        objects = frame.select("object_ids", "object_names").explode("object_ids", "object_names")
        for found, ids, all in (
            (names[0], frame["subject_id"], frame["subject_names"]),
            (names[1], objects["object_ids"], objects["object_names"]),
        ):
            for id, count in zip(ids, all.list.len(), strict=True):
                found[id] = max(found.get(id, 0), count)
    counts: dict[str, float | None] = {}
    for what, found in zip(("subjects", "objects"), names, strict=True):
        counts[what] = len(found)
        counts[f"{what} with several names"] = sum(count > 1 for count in found.values())
    return counts


def splits(relations: Sequence[Described]) -> Table:
    """How many facts each split has, in how many relations."""
    sizes = sum((d.splits for d in relations), Counter())
    fields: list[Field[str]] = [
        Field("split", lambda split: split),
        Field("facts", lambda split: sizes[split], "count"),
        Field("relations", lambda s: sum(s in d.splits for d in relations), "count"),
    ]
    return table(sorted(sizes), fields, id="splits", title="Splits")


def between_splits(relations: Sequence[Described]) -> Table | None:
    """How many facts of each split have their subject, or stand as a whole, in another."""
    shared: dict[tuple[str, str], list[Shared]] = {}
    for d in relations:
        for pair, own in d.shared.items():
            shared.setdefault(pair, []).append(own)
    if not shared:
        return None
    fields: list[Field[tuple[str, str]]] = [
        Field("facts of", lambda pair: pair[0]),
        Field("in", lambda pair: pair[1]),
        Field("subject there", lambda pair: sum(s.subjects for s in shared[pair]), "count"),
        Field("fact there", lambda pair: sum(s.facts for s in shared[pair]), "count"),
    ]
    note = "Within a relation; a name of the subject, and one of an object, stands there too."
    title = "What splits have in common"
    return table(sorted(shared), fields, id="between-splits", title=title, note=note)


def languages(relations: Sequence[Described], estimates: Estimates) -> Table:
    """What there is in each language that relations name, and what can be guessed of it."""
    fields = _groups("language", relations, lambda r: (r.language,))

    def look(language: str, metric: Metric) -> Estimate:
        return estimates[metric.at(f"language.{language}")]

    guessed = [
        m for m in (BAYES, MAJORITY, IN_NAME) if estimates[m.at(RELATIONS)].value is not None
    ]
    return table(
        by_language(relations), [*fields, *guessed], look, id="languages", title="Languages"
    )


def relation_tags(relations: Sequence[Described]) -> Table:
    """Relations, templates and facts of each tag of relations."""
    named = sorted({tag for d in relations for tag in d.relation.tags})
    fields = _groups("tag", relations, lambda r: r.tags)
    return table(named, fields, id="tags", title="Tags of relations")


def _groups(
    head: str, relations: Sequence[Described], groups: Callable[[Relation], Sequence[str]]
) -> list[Field[str]]:
    """How much there is in a group of relations."""

    def own(name: str) -> list[Described]:
        return [d for d in relations if name in groups(d.relation)]

    return [
        Field(head, lambda name: name),
        Field("relations", lambda name: len(own(name)), "count"),
        Field("templates", lambda n: sum(len(d.relation.templates) for d in own(n)), "count"),
        Field("facts", lambda name: sum(d.splits.total() for d in own(name)), "count"),
    ]


def fact_tags(relations: Sequence[Described]) -> Table:
    """How many facts have each tag."""
    tags = sum((d.tags for d in relations), Counter())
    fields: list[Field[str]] = [
        Field("tag", lambda tag: tag),
        Field("facts", lambda tag: tags[tag], "count"),
    ]
    return table(sorted(tags), fields, id="fact-tags", title="Tags of facts")


def by_relations(relations: Sequence[Described]) -> Table:
    """What each relation has."""
    of = {d.relation.id: d for d in relations}
    names = sorted(set().union(*(d.splits for d in relations)))
    fields: list[Field[Relation]] = [
        Field("type", lambda r: r.kind or ""),
        Field("templates", lambda r: len(r.templates), "count"),
        Field("questions", lambda r: sum(t.style == "question" for t in r.templates), "count"),
        *(_split(name, of) for name in names),
    ]
    if any(d.relation.language for d in relations):
        fields.insert(1, Field("language", lambda r: r.language))
    if any(d.relation.tags for d in relations):
        fields.insert(1, Field("tags", lambda r: ", ".join(r.tags)))
    return by_relation({}, [d.relation for d in relations], fields, id="relations")


def _split(name: str, of: Mapping[str, Described]) -> Field[Relation]:
    return Field(name, lambda r: of[r.id].splits[name], "count", f"facts in split {name}")


def answers(relations: Sequence[Described], estimates: Estimates) -> Table:
    """How large answer spaces are, and how their use is spread."""
    of = {d.relation.id: d.spread for d in relations}
    fields: list[Field[Relation] | Metric] = [
        Field(
            "options",
            lambda r: of[r.id].own or of[r.id].options,
            "count",
            "size of the answer space",
        ),
        Field(
            "distractors",
            lambda r: of[r.id].distractors,
            "count",
            "options that are no fact's object",
            detail=True,
        ),
        Field("asked", lambda r: len(of[r.id].objects), "count", "different objects asked for"),
        *(metric.detail(metric is EVENNESS) for metric in SPREAD),
        Field("commonest", lambda r: _commonest(of[r.id].objects), help="with their counts"),
    ]
    return by_relation(
        estimates,
        [d.relation for d in relations],
        fields,
        id="answers",
        title="Answer spaces",
        note="The answer space of a relation is the one it names, else the objects of its facts."
        + (OWN_SPACE if any(spread.own for spread in of.values()) else ""),
    )


def _commonest(objects: Sequence[tuple[str, int]]) -> str:
    return ", ".join(f"{name} ({count:,})" for name, count in objects[:COMMONEST])


def guessability(relations: Sequence[Described], estimates: Estimates) -> Table:
    """What guesses without knowledge get right."""
    on = {d.relation.id: d.guesses.counted for d in relations}
    fitted = Field[Relation](
        "counted on", lambda r: on[r.id] or None, "count", "training facts; none: by fold", True
    )
    return by_relation(
        estimates,
        [d.relation for d in relations],
        [*_measured(GUESSED, estimates), fitted],
        id="guessability",
        title="What can be guessed",
    )


def leaks(relations: Sequence[Described], estimates: Estimates) -> Table:
    """What each relation gives away, and what it has twice."""
    of = {d.relation.id: d for d in relations}
    fields: list[Field[Relation] | Metric] = [
        *_measured(LEAKED, estimates),
        Field(
            "leaking",
            lambda r: len(of[r.id].leaks),
            "count",
            "facts of train and dev whose names are those of a test fact",
        ),
        Field("telling", lambda r: _telling(of[r.id]), "count", "templates that hold an answer"),
        Field("templates alike", lambda r: len(of[r.id].twin_templates), "count"),
        Field("subjects alike", lambda r: len(of[r.id].twin_subjects), "count", detail=True),
    ]
    some = [d for d in relations if _leaks(d)]
    none = len(relations) - len(some)
    return by_relation(
        estimates,
        [d.relation for d in some],
        fields,
        id="leaks",
        title="Leaks and near-duplicates",
        note=f"{counted(none, 'relation has', 'relations have')} none." if none else "",
    )


def _leaks(described: Described) -> bool:
    """Whether anything of a relation leaks or is there twice."""
    d = described
    lists = (d.leaks, d.given_away, d.twin_facts, d.twin_subjects, d.twin_templates)
    return any(lists) or bool(np.nansum(d.subject_seen) + np.nansum(d.prompted))


def _telling(described: Described) -> int:
    return len({template for template, _, _ in described.given_away})


def _measured(metrics: Sequence[Metric], estimates: Estimates) -> list[Metric]:
    """Those of the metrics that were measured; some are for wide pages only."""
    known = [m for m in metrics if estimates[m.at(RELATIONS)].value is not None]
    return [metric.detail(metric in (CHANCE, EASY, SUBJECT_SEEN)) for metric in known]


def lists(relations: Sequence[Described]) -> Iterator[Table]:
    """Everything that leaks or is there twice, to be searched."""
    titles = {d.relation.id: d.relation.title for d in relations}
    yield _listed(
        "leaking-facts",
        "Training facts that are asked about",
        ("relation", "split", "subject", "objects"),
        [
            (titles[f.relation], f.split, f.subject.name, ", ".join(o.name for o in f.objects))
            for d in relations
            for f in d.leaks
        ],
    )
    yield _listed(
        "telling-templates",
        "Templates that hold an answer",
        ("relation", "template", "text", "answer"),
        [(titles[d.relation.id], *row) for d in relations for row in d.given_away],
    )
    for what, twins in TWINS.items():
        found = [(titles[d.relation.id], twin) for d in relations for twin in _once(twins(d))]
        yield _twin_list(what, found)


def _once(twins: Sequence[Twin]) -> Iterator[Twin]:
    """Of two that are each other's likest, one."""
    listed: set[tuple[str, str]] = set()
    for twin in twins:
        listed.add((twin.id, twin.other))
        if (twin.other, twin.id) not in listed:
            yield twin


def _twin_list(what: str, twins: Sequence[tuple[str, Twin]]) -> Table:
    """Pairs side by side; templates have no splits."""
    heads = ["relation", *(name.replace("_", " ") for name in Twin._fields)]
    rows = [(title, *twin) for title, twin in twins]
    kept = [i for i, head in enumerate(heads) if what != "templates" or "split" not in head]
    return _listed(
        f"near-duplicate-{what}",
        f"Near-duplicate {what}",
        [heads[i] for i in kept],
        [tuple(row[i] for i in kept) for row in rows],
    )


def _listed(
    id: str, title: str, heads: Sequence[str], rows: Sequence[tuple[str | float, ...]]
) -> Table:
    """A list to be searched, the first of it where it is too long."""
    fields = [
        Field[int](head, [row[i] for row in rows[:MOST]], _kind(head))
        for i, head in enumerate(heads)
    ]
    note = f"The first {MOST:,} of {len(rows):,}." if len(rows) > MOST else ""
    shown = range(min(len(rows), MOST))
    return table(shown, fields, id=id, title=title, note=note, browsable=True)


def _kind(head: str) -> ColumnKind:
    return "percent" if head == "alike" else "text"
