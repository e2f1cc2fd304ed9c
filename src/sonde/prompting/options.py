"""Which objects a model chooses between: the right one, and others that are wrong for the subject.

Knows facts and scored options, no models. Options are drawn by the names of fact and object, so
that neither another fact nor another option moves a draw, and are given in an order that does not
tell which is right.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from heapq import nsmallest
from typing import Any

import numpy as np
import polars as pl
from polars import DataFrame, Series

from sonde.answers import Answers, OptionScores, Ragged, take
from sonde.core.facts import Dataset, Fact, commonest_objects
from sonde.core.fingerprints import draw_key, draw_keys

MANY = 100


def options(
    fact: Fact, correct: frozenset[str], pool: Iterable[str], seed: int, count: int = MANY
) -> tuple[str, ...]:
    """The fact's own object and up to `count` - 1 wrong ones, sorted by name.

    The wrong ones are those that the dataset names for the fact, else they are drawn from `pool`,
    the relation's objects; never one of `correct`, the names of all objects that are right for the
    subject.
    """
    gold = fact.objects[0].name
    wrong = dict.fromkeys([entity.name for entity in fact.wrong] or pool)
    for name in (gold, *correct):
        wrong.pop(name, None)
    if len(wrong) < count:
        return tuple(sorted([gold, *wrong]))
    keys = draw_keys(seed, [f"options:{fact.id}:{name}" for name in wrong])
    drawn = sorted(zip(keys, wrong, strict=True))[: count - 1]
    return tuple(sorted([gold, *(name for _, name in drawn)]))


OFFERED: Mapping[str, Any] = {
    "fact": pl.String,
    "options": pl.List(pl.String),
    "n_options": pl.UInt32,
    "dropped_wrong": pl.UInt32,
    "spellings": pl.List(pl.String),
    "gold_spellings": pl.List(pl.String),
    "baseline": pl.Boolean,
}


def offer_options(
    data: Dataset, relation: str, limit: int = MANY, *, aliases: bool = False
) -> DataFrame:
    """The options of each fact of a relation that is prompted, a row each, in their order.

    `options` are usual names: that of the fact's first object, and those of wrong ones.
    `dropped_wrong` counts options that the dataset calls wrong, but are correct for the subject.
    `spellings` are the names to score: with `aliases`, all names of the options, else the options.
    Those of the correct option are `gold_spellings`. `baseline`: the option that is the object of
    most facts is the correct one.
    """
    several, pool = correct_names(data, relation), data.object_names(relation)
    names = spellings(data, relation) if aliases else {}
    common = [name for name, _ in commonest_objects(data.split_frame(relation))]
    rows = []
    for fact in data.asked(relation):
        correct, gold = correct_for(fact, several), fact.objects[0].name
        chosen = options(fact, correct, pool, data.selection.seed, limit)
        dropped = sum(entity.name in correct for entity in fact.wrong)
        owners = {name: name for name in chosen}
        if aliases:
            owners = spelled(chosen, fact, correct, names)
        golds = [name for name, option in owners.items() if option == gold]
        offered = {*chosen}
        guess = next(name for name in common if name in offered)
        scored = sorted(owners)
        rows.append((fact.id, chosen, len(chosen), dropped, scored, golds, guess == gold))
    return DataFrame(rows, OFFERED, orient="row")


def select_options(answers: Answers, options: Iterable[Sequence[str]]) -> Answers:
    """Answers to some of the scored options of each prompt."""
    batch, result = answers.batch, answers.result
    assert isinstance(result, OptionScores)
    sets = list(map(tuple, options))
    scored = (batch.options[i] for i in batch.options_ids().tolist())
    pairs = zip(scored, map(frozenset, sets), strict=True)
    kept = np.flatnonzero([name in chosen for names, chosen in pairs for name in names])
    counts = np.bincount(result.logprobs.owners[kept], minlength=len(answers))
    tokens, after = (
        Ragged.of(counts, take(column.values, kept))
        for column in (result.logprobs, result.suffix_logprobs)
    )
    frame = answers.frame.with_columns(options_id=pl.int_range(pl.len(), dtype=pl.UInt32))
    chosen = replace(batch, frame=frame, options=sets)
    return Answers(batch=chosen, result=OptionScores(logprobs=tokens, suffix_logprobs=after))


def negatives(
    fact: Fact, correct: frozenset[str], pool: Sequence[str], seed: int, most: int
) -> tuple[tuple[str, ...], int]:
    """Up to `most` names of objects that are wrong for the fact, and how many were right after all.

    They are those that the dataset names for the fact, in its order where there are no more; else
    they are drawn by the seed, from these or, without any, from `pool`, the relation's objects.
    None is in `correct`, the names right for the subject.
    """
    named = tuple(dict.fromkeys(entity.name for entity in fact.wrong))
    wrong = tuple(name for name in (named or pool) if name not in correct)
    right = sum(name in correct for name in named)
    if named and len(wrong) <= most:
        return wrong, right
    key = f"negatives:{fact.relation}:{fact.id}"
    return tuple(nsmallest(most, wrong, key=lambda n: (draw_key(seed, f"{key}:{n}"), n))), right


def own_options(facts: DataFrame) -> Series:
    """What each of such facts names, right or wrong, by usual names: as given, sorted by name."""
    usual = (
        pl.col(f"{of}_names").list.eval(pl.element().list.first()) for of in ("object", "wrong")
    )
    return facts.select(options=pl.concat_list(*usual).list.unique().list.sort())["options"]


def correct_names(dataset: Dataset, relation: str) -> Mapping[str, frozenset[str]]:
    """Every name of every object that is right for a subject with several facts in the relation.

    Kept by the subject's id and by its usual name: facts of all splits count, and two subjects of
    one name share theirs, since a model reads the name.
    """
    seen: set[str] = set()
    repeated: set[str] = set()
    frame = dataset.frame(relation)
    every = [_keys(*row) for row in frame.select("subject_id", "subject", "date").iter_rows()]
    for keys in every:
        repeated.update(seen.intersection(keys))
        seen.update(keys)
    names: dict[str, set[str]] = {}
    right = frame["object_names"].to_list() if repeated else ()
    for keys, objects in zip(every, right, strict=False):
        for key in repeated.intersection(keys):
            names.setdefault(key, set()).update(name for own in objects for name in own)
    return {key: frozenset(found) for key, found in names.items()}


def spellings(dataset: Dataset, relation: str) -> Mapping[str, tuple[str, ...]]:
    """All names of the relation's objects, by the usual one, where there is more than that one."""
    found: dict[str, dict[str, None]] = {}
    for fact in dataset.facts(relation):
        for entity in (*fact.objects, *fact.wrong):
            if len(entity.names) > 1:
                found.setdefault(entity.name, {}).update(dict.fromkeys(entity.names))
    return {usual: tuple(names) for usual, names in found.items()}


def spelled(
    chosen: tuple[str, ...],
    fact: Fact,
    correct: frozenset[str],
    names: Mapping[str, tuple[str, ...]],
) -> dict[str, str]:
    """Every name of some options with the option that it is a name of; usual names are their own.

    A name of the fact's own object is no other option's, and a name of another object that is
    right for the subject (`correct`) is nobody's.
    """
    gold = fact.objects[0]
    found = dict.fromkeys(gold.names, gold.name) | {option: option for option in chosen}
    for option in chosen:
        for name in names.get(option, ()):
            if name not in correct:
                found.setdefault(name, option)
    return found


def correct_for(fact: Fact, names: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """What is right for the fact's subject: its own objects, and what `correct_names` found."""
    nothing: frozenset[str] = frozenset()
    keys = _keys(fact.subject.id, fact.subject.name, fact.date)
    return _own(fact).union(*(names.get(key, nothing) for key in keys))


def _keys(id: str, name: str, date: str) -> tuple[str, str]:
    at = f"@{date}" if date else ""
    return f"id:{id}{at}", f"name:{name}{at}"


def _own(fact: Fact) -> frozenset[str]:
    return frozenset(name for entity in fact.objects for name in entity.names)
