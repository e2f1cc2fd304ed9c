"""Where the right answers stand among all, for questions that have several. Knows no facts.

A thing is a wrong answer, or a right object under any of its names, by its likeliest. Of equal
scores wrong ones stand first; names filled in with one rank are taken for one token.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sonde.core.columns import FilledColumns
from sonde.core.rated import RatedColumns
from sonde.core.scores import Normalise
from sonde.metrics.verdicts import Names

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
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
