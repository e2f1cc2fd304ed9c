"""Kinds of prompts that runs may differ on: types of relations, tags and columns of the dataset,
templates by their source. Knows judged prompts and what facts say, nothing of who is right.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from sonde.analysis.runs import Aligned
from sonde.core.fact_frames import APART
from sonde.metrics.judged import Bools

MOST = 12
"""A column with more different values than this makes no groups."""


class Group(NamedTuple):
    """Prompts that have something in common, out of those of all runs."""

    kind: str
    name: str
    prompts: Bools


def groups(aligned: Aligned) -> list[Group]:
    """Every group that is neither empty nor everything, a kind after the other."""
    found = (*_of_relations(aligned), *_of_facts(aligned), *_of_templates(aligned))
    return [group for group in found if 0 < int(group.prompts.sum()) < len(group.prompts)]


def _of_relations(aligned: Aligned) -> Iterator[Group]:
    grid = aligned.first.grid
    kinds = np.array([relation.kind for relation in aligned.first.relations])
    of_prompts = kinds[grid.relations[grid.pair]]
    for kind in sorted(set(kinds.tolist())):
        yield Group("type", kind, of_prompts == kind)


def _of_facts(aligned: Aligned) -> Iterator[Group]:
    """By what the dataset says of facts, and by whether the name of the subject gives it away."""
    first = aligned.first
    if first.guessable is not None:
        guessable = first.guessable.astype(bool)
        yield Group("answer", "can be guessed from the subject's name", guessable)
        yield Group("answer", "cannot be guessed from it", ~guessable)
    facts = aligned.runs[0].facts
    if facts is None:
        return
    columns = ("fact", "gold", "commonest", "tags", "details")
    rows = {row["fact"]: row for row in facts.select(columns).iter_rows(named=True)}
    empty = {"gold": [], "commonest": False, "tags": [], "details": []}
    told = [rows.get(id, empty) for id in first.pairs]

    def group(kind: str, name: str, members: list[bool]) -> Group:
        return Group(kind, name, np.array(members, dtype=np.bool_)[first.grid.pair])

    yield group("answer", "the commonest of its relation", [row["commonest"] for row in told])
    yield group("answer", "another", [not row["commonest"] for row in told])
    yield group("answers", "one is right", [len(row["gold"]) < 2 for row in told])
    yield group("answers", "several are right", [len(row["gold"]) > 1 for row in told])
    tags = dict.fromkeys(tag for row in told for tag in row["tags"] if tag != APART)
    for tag in tags if len(tags) <= MOST else ():
        yield group("tag", tag, [tag in row["tags"] for row in told])
    columns_of = [{d["name"]: d["value"] for d in row["details"]} for row in told]
    for name in dict.fromkeys(name for row in columns_of for name in row):
        values = dict.fromkeys(row[name] for row in columns_of if name in row)
        for value in values if 1 < len(values) <= MOST else ():
            yield group(name, value, [row.get(name) == value for row in columns_of])


def _of_templates(aligned: Aligned) -> Iterator[Group]:
    first = aligned.first
    for kind in ("source", "style"):
        values = np.array([getattr(template, kind) for template in first.templates])
        for value in dict.fromkeys(values.tolist()):
            yield Group(f"templates by {kind}", value, (values == value)[first.grid.template])
