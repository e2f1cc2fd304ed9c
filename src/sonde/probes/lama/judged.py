"""LAMA's judged facts as a grid, for comparisons between runs. Knows no estimates and no tables.

Every fact is a pair of its own: a row of LAMA counts its own object alone, so that facts of one
subject share a prompt and differ in what is right.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable
from math import log

import numpy as np

from sonde.core.facts import Dataset, Relation, Template
from sonde.metrics.answers import Judgement
from sonde.metrics.grid import Floats, Grid, Ints
from sonde.metrics.judged import Judged, Way

NEVER = float("-inf")


class Rows:
    """Judged facts by their place in the dataset, a few bytes each."""

    def __init__(self) -> None:
        self._answers: dict[str, int] = {}
        self._place, self._answer = array("q"), array("q")
        self._right, self._sure, self._gold = array("b"), array("d"), array("d")
        self._guessable, self._guessed = array("b"), array("q")

    def add(self, place: int, judgement: Judgement, guessable: bool) -> None:
        """Keep one judged fact; one that could not be answered right is left out."""
        if judgement.rank is None:
            return
        answer, sure = judgement.top[0] if judgement.top else ("", float("nan"))
        self._place.append(place)
        self._answer.append(self._answers.setdefault(answer, len(self._answers)))
        self._right.append(judgement.rank == 1)
        self._guessable.append(guessable)
        self._sure.append(sure)
        self._gold.append(log(judgement.probability) if judgement.probability else NEVER)

    def guessed(self, place: int) -> None:
        """Note that a part of the subject's name suggests the answer."""
        self._guessed.append(place)

    def judged(
        self, dataset: Dataset, template: Callable[[Relation], Template], way: Way
    ) -> Judged:
        """Everything kept, in the dataset's order; of two for a fact the later one counts."""
        relations = dataset.asked_relations()
        asked = [(r, f.id) for r, own in enumerate(relations) for f in dataset.asked(own.id)]
        place = np.array(self._place, dtype=np.int64)
        order = np.argsort(place, kind="stable")
        order = order[np.append(place[order][1:] != place[order][:-1], True)[: len(order)]]
        owners = _whole(r for r, _ in asked)
        sure = np.array(self._sure, dtype=np.float64)[order]
        return Judged(
            grid=Grid(
                pair=place[order],
                template=owners[place[order]],
                name=np.zeros(len(order), dtype=np.int64),
                right=np.array(self._right, dtype=np.bool_)[order],
                answer=np.array(self._answer, dtype=np.int64)[order],
                confidence=sure,
                relations=owners,
                template_relations=np.arange(len(relations), dtype=np.int64),
            ),
            relations=relations,
            pairs=tuple(id for _, id in asked),
            templates=tuple(map(template, relations)),
            answers=tuple(self._answers),
            way=way,
            sure=sure,
            gold=_reals(self._gold)[order],
            guessable=np.array(self._guessable, dtype=np.bool_)[order]
            | np.isin(place[order], np.array(self._guessed, dtype=np.int64)),
        )


def _whole(values: Iterable[int]) -> Ints:
    return np.fromiter(values, dtype=np.int64)


def _reals(values: Iterable[float]) -> Floats:
    return np.fromiter(values, dtype=np.float64)
