"""How answers are ranked. Knows numbers and names, no facts.

The share of (correct, wrong) pairs of options in which the correct one is likelier: `ranked` looks
at one prompt and is what `ranked_each`, which takes many at once, is held against.

Where the right answers stand among all, for questions that have several: a thing is a wrong answer,
or a right object under any of its names, by its likeliest. Of equal scores wrong ones stand first;
names filled in with one rank are taken for one token.

RankC, how alike two rankings of N candidates are: the sum over j of w_j · s_j, where s_j is the
share of the first j of one that is also among the first j of the other, and the weights
w_j = e^(N−j) / Σ_k e^(N−k) add up to 1.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import compress
from math import exp
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sonde.core.columns import FilledColumns
from sonde.core.rated import RatedColumns
from sonde.core.scores import Normalise
from sonde.metrics.verdicts import Names

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


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
    rows, objects, ranks = rows[may], names.object[entries[may]], ranks[may]
    size = int(ranks.max(initial=0)) + 1
    tokens = np.unique(rows * size + ranks)  # two names may be one token
    thing, negative = _best(rows, objects, -ranks.astype(np.float64))
    best = (-negative).astype(np.int64)
    order = np.lexsort((best, thing))
    thing, best = thing[order], best[order]
    better = np.searchsorted(tokens, thing * size + best) - np.searchsorted(tokens, thing * size)
    return Places(thing, best - better + np.arange(len(thing)) - _starts(thing))


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
