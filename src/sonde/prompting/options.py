"""The objects that a model chooses between: the correct one, and others wrong for the subject.

Knows facts and scored options, no models. Options are drawn by the names of fact and object, so
that neither another fact nor another option moves a draw. Their order does not depend on which is
correct.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from heapq import nsmallest
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from polars import DataFrame, Series

from sonde.answers import Answers, OptionScores, Ragged, take
from sonde.core.facts import Dataset, Fact, commonest_objects, facts_of
from sonde.core.fingerprints import draw_key, draw_keys

MANY = 100


def draw_options(
    fact: Fact, correct: frozenset[str], pool: Iterable[str], seed: int, count: int = MANY
) -> tuple[str, ...]:
    """The fact's object and up to `count` - 1 wrong ones, sorted by name.

    The wrong ones are those that the dataset names for the fact. If there are none, they are drawn
    from `pool`, the relation's objects. None is in `correct`, the names of all objects that are
    correct for the subject.
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


def build_option_table(
    data: Dataset, relation: str, limit: int = MANY, *, aliases: bool = False
) -> DataFrame:
    """The options of each fact of a relation that is prompted, a row each, in their order.

    `options` are usual names: that of the fact's first object, and those of wrong ones.
    `dropped_wrong` counts options that the dataset calls wrong, but are correct for the subject.
    `spellings` are the names to score: with `aliases`, all names of the options, else the options.
    Those of the correct option are `gold_spellings`. `baseline`: the option that is the object of
    most facts is the correct one.
    """
    several, pool = names_correct_for_repeated_subjects(data, relation), data.object_names(relation)
    names = aliases_by_usual_name(data, relation) if aliases else {}
    common = [name for name, _ in commonest_objects(data.split_frame(relation))]
    rows = []
    for fact in facts_of(data.asked_frame(relation)):
        correct, gold = names_correct_for(fact, several), fact.objects[0].name
        chosen = draw_options(fact, correct, pool, data.selection.seed, limit)
        dropped = sum(entity.name in correct for entity in fact.wrong)
        named = {name: name for name in chosen}
        if aliases:
            named = map_names_to_options(chosen, fact, correct, names)
        golds = [name for name, option in named.items() if option == gold]
        offered = {*chosen}
        guess = next(name for name in common if name in offered)
        scored = sorted(named)
        rows.append((fact.id, chosen, len(chosen), dropped, scored, golds, guess == gold))
    return DataFrame(rows, OFFERED, orient="row")


def select_options(answers: Answers, options: Iterable[Sequence[str]]) -> Answers:
    """Answers to some of the scored options of each prompt."""
    batch, result = answers.batch, answers.result
    assert isinstance(result, OptionScores)
    sets = list(map(tuple, options))
    scored = (batch.options[i] for i in batch.options_ids().tolist())
    pairs = zip(scored, map(frozenset, sets), strict=True)
    indices = np.flatnonzero([name in chosen for names, chosen in pairs for name in names])
    counts = np.bincount(result.logprobs.owners[indices], minlength=len(answers))
    tokens, after = (
        Ragged.of(counts, take(column.values, indices))
        for column in (result.logprobs, result.suffix_logprobs)
    )
    frame = answers.frame.with_columns(options_id=pl.int_range(pl.len(), dtype=pl.UInt32))
    chosen = replace(batch, frame=frame, options=sets)
    return Answers(batch=chosen, result=OptionScores(logprobs=tokens, suffix_logprobs=after))


class WrongNames(NamedTuple):
    """Names of wrong objects; `dropped` counts those called wrong by the dataset, but correct."""

    names: tuple[str, ...]
    dropped: int


def draw_wrong_names(
    fact: Fact, correct: frozenset[str], pool: Sequence[str], seed: int, limit: int
) -> WrongNames:
    """Up to `limit` names of wrong objects.

    They are those that the dataset names for the fact, in its order; of more, as many are drawn by
    the seed. If it names none, they are drawn from `pool`, the relation's objects. None is in
    `correct`, the names that are correct for the subject.
    """
    named = tuple(dict.fromkeys(entity.name for entity in fact.wrong))
    wrong = tuple(name for name in (named or pool) if name not in correct)
    dropped = sum(name in correct for name in named)
    if named and len(wrong) <= limit:
        return WrongNames(wrong, dropped)
    key = f"negatives:{fact.relation}:{fact.id}"
    drawn = nsmallest(limit, wrong, key=lambda name: (draw_key(seed, f"{key}:{name}"), name))
    return WrongNames(tuple(drawn), dropped)


def options_in_facts(facts: DataFrame) -> Series:
    """The usual names of each fact's objects and of its wrong options, sorted, so that their order
    does not show which is correct."""
    usual = pl.concat_list("object_names", "wrong_names").list.eval(pl.element().list.first())
    return facts.select(options=usual.list.unique().list.sort())["options"]


def names_correct_for_repeated_subjects(
    dataset: Dataset, relation: str
) -> Mapping[str, frozenset[str]]:
    """Every name of every object that is correct for a subject with several facts in the relation.

    The keys are the subject's id and its usual name, because a model reads the name: two subjects
    of one name share their objects. Facts of all splits count.
    """
    seen: set[str] = set()
    repeated: set[str] = set()
    frame = dataset.frame(relation)
    every = [
        _subject_keys(*row) for row in frame.select("subject_id", "subject", "date").iter_rows()
    ]
    for keys in every:
        repeated.update(seen.intersection(keys))
        seen.update(keys)
    names: dict[str, set[str]] = {}
    objects = frame["object_names"].to_list() if repeated else ()
    for keys, entities in zip(every, objects, strict=False):
        for key in repeated.intersection(keys):
            names.setdefault(key, set()).update(chain.from_iterable(entities))
    return {key: frozenset(correct) for key, correct in names.items()}


def aliases_by_usual_name(dataset: Dataset, relation: str) -> Mapping[str, tuple[str, ...]]:
    """All names of the relation's objects with more than one, by the usual name."""
    names: dict[str, dict[str, None]] = {}
    for fact in dataset.facts(relation):
        for entity in (*fact.objects, *fact.wrong):
            if len(entity.names) > 1:
                names.setdefault(entity.name, {}).update(dict.fromkeys(entity.names))
    return {usual: tuple(spelled) for usual, spelled in names.items()}


def map_names_to_options(
    chosen: tuple[str, ...],
    fact: Fact,
    correct: frozenset[str],
    names: Mapping[str, tuple[str, ...]],
) -> dict[str, str]:
    """Every name of the chosen options, with the option that it belongs to.

    A name of the fact's object belongs to no other option. A name of another object that is correct
    for the subject belongs to none.
    """
    gold = fact.objects[0]
    named = dict.fromkeys(gold.names, gold.name) | {option: option for option in chosen}
    for option in chosen:
        for name in names.get(option, ()):
            if name not in correct:
                named.setdefault(name, option)
    return named


def names_correct_for(
    fact: Fact, repeated_subjects: Mapping[str, frozenset[str]]
) -> frozenset[str]:
    """The names that are correct for the fact's subject.

    `repeated_subjects` are from `names_correct_for_repeated_subjects`.
    """
    keys = _subject_keys(fact.subject.id, fact.subject.name, fact.date)
    objects = [entity.names for entity in fact.objects]
    return frozenset().union(*objects, *(repeated_subjects.get(key, ()) for key in keys))


def _subject_keys(id: str, name: str, date: str) -> tuple[str, str]:
    at = f"@{date}" if date else ""
    return f"id:{id}{at}", f"name:{name}{at}"
