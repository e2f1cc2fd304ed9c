"""How answers are ranked. Knows stored answers, names and facts, nothing of probes.

The share of (correct, wrong) pairs of options in which the correct one is likelier: `ranked` looks
at one prompt and is what `ranked_each`, which takes many at once, is held against.

Where the right answers stand among all, for questions that have several: a thing is a wrong answer,
or a right object under any of its names, by its likeliest. Of equal scores wrong ones stand first;
equally likely names of one spelling that are filled in are one token (decision 051).

RankC, how alike two rankings of N candidates are: the sum over j of w_j · s_j, where s_j is the
share of the first j of one that is also among the first j of the other, and the weights
w_j = e^(N−j) / Σ_k e^(N−k) add up to 1. A candidate is a thing, not a name: it has the best score
of its names in a prompt, and of several prompts about a fact the mean.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from math import exp
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sonde.core.columns import Answers, FilledColumns
from sonde.core.fact_frames import entities, names_options
from sonde.core.facts import NAME_PARTS, Dataset, Relation
from sonde.core.rated import RatedColumns, ends_of, taken
from sonde.core.scores import Normalise
from sonde.metrics.verdicts import Bools, Floats, Ints, Names

if TYPE_CHECKING:
    from polars import DataFrame


def ranked(values: Sequence[float], right: Sequence[bool]) -> float | None:
    """Of one prompt; ties count against the correct option. None without a pair.

    >>> ranked([0.5, 0.3, 0.2], [False, True, False]), ranked([0.5, 0.5], [True, False])
    (0.5, 0.0)
    """
    correct = list(compress(values, right))
    wrong = list(compress(values, (not own for own in right)))
    pairs = [one > other for one in correct for other in wrong]
    return sum(pairs) / len(pairs) if pairs else None


def ranked_each(values: Floats, right: Bools, owners: Ints, count: int) -> Floats:
    """Of `count` prompts whose options are laid end to end, `owners` being the prompt of each.

    nan for a prompt without a pair.
    """
    places, wrong = np.flatnonzero(right), np.flatnonzero(~right)
    correct = np.bincount(owners[places], minlength=count)
    pairs = np.bincount(owners[wrong], minlength=count) * correct
    number = np.arange(len(places)) - (np.cumsum(correct) - correct)[owners[places]]
    own, value = owners[wrong], values[wrong]
    won = np.zeros(count)
    for each in range(int(correct.max(initial=0))):  # the first correct option of all, the second
        left = correct[own] > each
        own, value = own[left], value[left]
        target, at = np.empty(count), places[number == each]
        target[owners[at]] = values[at]
        won += np.bincount(own[value < target[own]], minlength=count)
    return np.asarray(np.divide(won, pairs, out=np.full(count, np.nan), where=pairs > 0))


Objects = Sequence[Sequence[str]]


class Places(NamedTuple):
    """Right things that could be answered: the prompt of each, and its position there from 1.

    In the order of prompts and positions.
    """

    prompt: Ints
    position: Ints


class Tops(NamedTuple):
    """For each prompt its n, and how the n likeliest things do; nan where n is below 2.

    n is how many right things could be answered.
    """

    n: Ints
    precision: Floats
    recall: Floats
    f1: Floats
    average: Floats
    whole: Floats


def right_places(
    answers: FilledColumns | RatedColumns,
    chosen: Ints,
    owners: Ints,
    correct: Mapping[int, Objects],
    normalise: Normalise = "none",
) -> Places:
    """The places of right things in the `chosen` prompts, counted from 0; `correct[owners[i]]` are
    the objects that the one of number i asks for."""
    if isinstance(answers, FilledColumns):
        return _filled(answers, chosen, owners, correct)
    return _scored(answers.rows(chosen), owners, correct, normalise)


def _scored(
    rated: RatedColumns, owners: Ints, correct: Mapping[int, Objects], normalise: Normalise
) -> Places:
    assert rated.options is not None
    names = {name: place for place, name in enumerate(rated.names)}
    distinct, index = np.unique(owners, return_inverse=True)
    table = np.full((len(distinct), len(names)), -1)
    for row, owner in enumerate(distinct.tolist()):
        for number, own in reversed(list(enumerate(correct[owner]))):
            table[row, [names[name] for name in own if name in names]] = number
    prompts, scores = rated.owners.astype(np.int64), rated.compared(normalise)
    objects = table[index[prompts], rated.options]
    right = objects >= 0
    thing, best = _best(prompts[right], objects[right], scores[right])
    rows, score = np.append(prompts[~right], thing), np.append(scores[~right], best)
    is_right = np.arange(len(rows)) >= len(rows) - len(best)
    order = np.lexsort((is_right, -score, rows))
    rows, at = rows[order], np.flatnonzero(is_right[order])
    return Places(rows[at], at - _starts(rows)[at] + 1)


def _starts(rows: Ints) -> Ints:
    """Where the row of each entry begins; rows rise."""
    return np.asarray(np.searchsorted(rows, rows), dtype=np.int64)


def _best(prompts: Ints, objects: Ints, scores: Floats) -> tuple[Ints, Floats]:
    """The likeliest name of every object of a prompt: the prompt, and its score."""
    order = np.lexsort((-scores, objects, prompts))
    prompts, objects = prompts[order], objects[order]
    first = np.ones(len(order), dtype=np.bool_)
    first[1:] = (prompts[1:] != prompts[:-1]) | (objects[1:] != objects[:-1])
    return prompts[first], scores[order][first]


def _filled(
    filled: FilledColumns, chosen: Ints, owners: Ints, correct: Mapping[int, Objects]
) -> Places:
    names = Names.of(filled.watched, owners, correct)
    rows, entries = names.spread()
    ranks = filled.watched_ranks[chosen[rows], names.place[entries]].astype(np.int64)
    may = ranks > 0
    rows, entries, ranks = rows[may], entries[may], ranks[may]
    size = int(ranks.max(initial=0)) + 1
    tokens = np.column_stack([rows * size + ranks, names.spelling[entries]])
    right = np.unique(tokens, axis=0)[:, 0]  # two names may be one token
    thing, negative = _best(rows, names.object[entries], -ranks.astype(np.float64))
    best = (-negative).astype(np.int64)
    order = np.lexsort((best, thing))
    thing, best = thing[order], best[order]
    until = np.searchsorted(right, thing * size + best, side="right")
    wrong = best - (until - np.searchsorted(right, thing * size))  # those as likely stand first
    return Places(thing, wrong + 1 + np.arange(len(thing)) - _starts(thing))


def tops(places: Places, objects: Ints) -> Tops:
    """How each prompt does, given how many objects are right for it."""
    prompt, position, size = places.prompt, places.position, len(objects)
    n = np.bincount(prompt, minlength=size)
    hits = np.bincount(prompt, weights=position <= n[prompt], minlength=size)
    nth = np.arange(len(prompt)) - _starts(prompt) + 1
    found = np.bincount(prompt, weights=nth / position, minlength=size)

    def share(values: NDArray[Any], of: NDArray[Any]) -> Floats:
        return np.asarray(np.divide(values, of, out=np.full(size, np.nan), where=n > 1))

    return Tops(
        n=n,
        precision=share(hits, n),
        recall=share(hits, objects),
        f1=share(2 * hits, n + objects),
        average=share(found, objects),
        whole=share((hits == objects).astype(np.float64), np.ones(size)),
    )


FEWEST = 2
"""One candidate alone has no order."""


def consistency(one: Sequence[Hashable], other: Sequence[Hashable]) -> float:
    """RankC of two rankings, the first candidate of each in front; as it is defined.

    >>> consistency("abc", "abc"), round(consistency("ab", "ba"), 3)
    (1.0, 0.269)
    """
    n = len(one)
    weights = [exp(n - j) for j in range(1, n + 1)]
    shares = [len({*one[:j]} & {*other[:j]}) / j for j in range(1, n + 1)]
    total = sum(weights)
    return sum(weight / total * share for weight, share in zip(weights, shares, strict=True))


def consistencies(one: Floats, other: Floats, ranked: Bools, ties: tuple[Floats, Floats]) -> Floats:
    """RankC of many: rows of candidates' values, the higher the better; nan where too few count.

    `ranked` says which candidates of a row count. Of equal values the one with the lower number of
    `ties` comes first: a number for each candidate, on either side.
    """
    last = np.maximum(*(ranks(v, ranked, t) for v, t in zip((one, other), ties, strict=True)))
    counts = ranked.sum(axis=1)
    found = np.full(len(counts), np.nan)
    for n in np.unique(counts[counts >= FEWEST]).tolist():
        rows = np.flatnonzero(counts == n)
        # a candidate is among the first j of both from the later of its ranks on
        adds = np.append(_from_rank_on(n), 0.0)
        found[rows] = adds[np.where(ranked[rows], last[rows], n + 1) - 1].sum(axis=1)
    return found


def ranks(values: Floats, ranked: Bools, ties: Floats) -> NDArray[np.int64]:
    """The rank of each candidate in its row, from 1; those that do not count come last."""
    worth = np.where(ranked, -values, np.inf)
    order = np.lexsort((np.broadcast_to(ties, worth.shape), worth), axis=-1)
    places: NDArray[Any] = np.empty_like(order)
    np.put_along_axis(places, order, np.arange(1, order.shape[1] + 1)[None, :], axis=1)
    return places


def _from_rank_on(n: int) -> Floats:
    """Σ over j ≥ r of w_j / j, for every rank r up to n."""
    j = np.arange(1, n + 1)
    weights = np.exp(1.0 - j)
    return np.cumsum((weights / weights.sum() / j)[::-1])[::-1]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Candidates:
    """The things that may be answered in a relation, and how a model scores them.

    `values` [facts, ids]: mean scores, nan where none was measured. `own` [facts, ids]:
    what each fact chooses from; all, unless facts have `named` their options.
    """

    facts: dict[str, int]
    ids: dict[str, int]
    values: Floats
    own: Bools
    named: bool


class Tally:
    """Adds up the scores of one relation's things."""

    def __init__(self, dataset: Dataset, relation: Relation, normalise: Normalise = "none") -> None:
        self.normalise = normalise
        asked = dataset.asked_frame(relation.id)
        things = _things(dataset, relation)
        self.facts = {fact: row for row, fact in enumerate(asked["fact"])}
        self.ids = {id: column for column, id in enumerate(dict.fromkeys(id for id, _ in things))}
        self.columns: dict[str, list[int]] = {}
        for id, name in things:
            self.columns.setdefault(name, []).append(self.ids[id])
        self.named = names_options(asked)
        self.own = self._own(asked)
        self.sums = np.zeros((len(self.facts), len(self.ids)))
        self.counts = np.zeros(self.sums.shape, dtype=np.int32)

    def _own(self, asked: DataFrame) -> Bools:
        """What each fact chooses from."""
        if not self.named:
            return np.ones((len(self.facts), len(self.ids)), dtype=np.bool_)
        own = np.zeros((len(self.facts), len(self.ids)), dtype=np.bool_)
        for of in ("object_ids", "wrong_ids"):
            each = asked.select("fact", id=of).explode("id").drop_nulls()
            rows = [self.facts[fact] for fact in each["fact"]]
            own[rows, [self.ids[id] for id in each["id"]]] = True
        return own

    def add(self, answers: Answers) -> None:
        """Count in what was answered about facts of the relation."""
        codes, templates = answers.codes("template")
        about = np.array([not id.startswith(NAME_PARTS) for id in templates], dtype=np.bool_)[codes]
        codes, facts = answers.codes("fact")
        place = np.array([self.facts.get(fact, -1) for fact in facts])[codes]
        rows = np.flatnonzero(about & (place >= 0))
        if not len(rows):
            return
        values = self._values(answers.rows(rows))
        there = ~np.isnan(values)
        np.add.at(self.sums, place[rows], np.where(there, values, 0.0))
        np.add.at(self.counts, place[rows], there)

    def _values(self, answers: Answers) -> Floats:
        """The best score of each thing's names in every prompt; nan for none."""
        values = np.full((len(answers), len(self.ids)), np.nan)
        if answers.kind == "filled":
            filled = answers.filled
            logps = np.where(filled.watched_ranks > 0, filled.watched_logps, np.nan)
            for place, name in enumerate(filled.watched):
                for column in self.columns.get(name, ()):
                    values[:, column] = np.fmax(values[:, column], logps[:, place])
            return values
        rated: Any = answers.rated
        lists = [self.columns.get(name, []) for name in rated.names]
        ends = ends_of([len(columns) for columns in lists])
        flat = np.array([column for columns in lists for column in columns], dtype=np.int64)
        kept, places = taken(ends, rated.options)
        times = np.diff(kept)
        sums = rated.compared(self.normalise)
        rows, scores = np.repeat(rated.owners, times), np.repeat(sums, times)
        np.fmax.at(values, (rows, flat[places]), scores)
        return values

    def done(self) -> Candidates:
        """What has been added up."""
        with np.errstate(invalid="ignore"):
            values = self.sums / np.where(self.counts, self.counts, np.nan)
        return Candidates(
            facts=self.facts, ids=self.ids, values=values, own=self.own, named=self.named
        )


def candidates(
    dataset: Dataset,
    relations: Sequence[Relation],
    answers: Iterable[Answers],
    normalise: Normalise = "none",
) -> dict[str, Candidates]:
    """The scored things of each relation, by its id; without values where nothing was scored."""
    tallies = {relation.id: Tally(dataset, relation, normalise) for relation in relations}
    for block in answers:
        if block.kind not in ("filled", "scored"):
            continue
        codes, ids = block.codes("relation")
        for number, id in enumerate(ids):
            rows = np.flatnonzero(codes == number)
            if id in tallies and len(rows):
                tallies[id].add(block if len(rows) == len(block) else block.rows(rows))
    return {id: tally.done() for id, tally in tallies.items()}


def thing_names(dataset: Dataset, relation: Relation) -> dict[str, str]:
    """The thing that each name is of; of several the first by id."""
    found: dict[str, str] = {}
    for id, name in sorted(_things(dataset, relation)):
        found.setdefault(name, id)
    return found


def _things(dataset: Dataset, relation: Relation) -> list[tuple[str, str]]:
    """Every thing that may be answered with each of its names."""
    facts = dataset.frame(relation.id).lazy()
    named = {(entity.id, name): None for entity in relation.answers for name in entity.names}
    for of in ("object", "wrong"):
        pairs = entities(facts, of=of).explode(f"{of}_names").unique(maintain_order=True)
        named |= dict.fromkeys(pairs.collect().iter_rows())
    return list(named)
