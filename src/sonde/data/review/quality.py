"""What judgements of quality add up to (the papers' table 9), and how far reviewers agree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sonde.core.reports import Estimate
from sonde.data.review.judgements import KEEP, QUESTIONS, Judgement
from sonde.data.statistics import resampled_mean
from sonde.evaluation.stats import wilson_interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Quality:
    """What the judgements of one dataset's templates add up to (the papers' table 9)."""

    source: str
    shares: tuple[Estimate, ...]
    total: Estimate
    irrelevant: int
    fully_matching: int
    histogram: tuple[int, ...]


def qualities(judgements: Iterable[Judgement]) -> list[Quality]:
    """The quality of each dataset's templates, by name; all reviewers together."""
    groups: dict[str, list[Judgement]] = {}
    for judgement in judgements:
        for source in judgement.sources if judgement.answers else ():
            groups.setdefault(source, []).append(judgement)
    return [_quality(source, groups[source]) for source in sorted(groups)]


def _quality(source: str, judged: Sequence[Judgement]) -> Quality:
    answers = np.array([judgement.answers for judgement in judged])
    totals, fitting = answers.sum(axis=1), answers[:, 1:].sum(axis=1)
    items = [judgement.item for judgement in judged]
    return Quality(
        source=source,
        shares=tuple(_mean(column, items) for column in answers.T),
        total=_mean(totals, items),
        irrelevant=int((fitting == 0).sum()),
        fully_matching=int((fitting == 3).sum()),
        histogram=tuple(np.bincount(totals, minlength=5).tolist()),
    )


def _mean(values: NDArray[np.int64], items: Sequence[str]) -> Estimate:
    """A mean with its interval: Wilson's for shares of single judgements, else a bootstrap.

    What several reviewers say of one template belongs together.
    """
    mean, n = float(values.mean()), len(values)
    _, index = np.unique(np.asarray(items), return_inverse=True)
    sizes = np.bincount(index).astype(float)
    if len(sizes) == n and values.max() <= 1:
        low, high = map(float, wilson_interval(float(values.sum()), n))
        return Estimate(value=mean, low=min(low, mean), high=max(high, mean), n=n)
    sums = np.bincount(index, weights=values.astype(float)).astype(np.float64)
    return resampled_mean(sums, sizes, np.random.default_rng(0), n)


class Agreement(NamedTuple):
    """How far reviewers agree beyond chance on the n templates that all of them judged.

    Cohen's kappa of two reviewers, Fleiss' of more; None: not measured, where chance alone would
    agree fully.
    """

    question: str
    kappa: float | None
    n: int
    reviewers: int


def agreement(judgements: Iterable[Judgement]) -> list[Agreement]:
    """The agreement on every question that two or more reviewers answered."""
    said: dict[str, dict[str, dict[str, int]]] = {}
    for j in judgements:
        answers = dict(zip(QUESTIONS, j.answers, strict=True)) if j.answers else {}
        kept = {} if j.keep is None else {KEEP: int(j.keep)}
        for question, answer in (kept | answers).items():
            said.setdefault(question, {}).setdefault(j.reviewer, {})[j.item] = answer
    return [
        _agreement(question, list(said[question].values()))
        for question in (KEEP, *QUESTIONS)
        if len(said.get(question, ())) > 1
    ]


def _agreement(question: str, by: Sequence[Mapping[str, int]]) -> Agreement:
    shared = [item for item in by[0] if all(item in other for other in by[1:])]
    rows = [tuple(answers[item] for answers in by) for item in shared]
    value = kappa([(a, b) for a, b in rows]) if len(by) == 2 else fleiss(rows)
    return Agreement(question, value, len(shared), len(by))


def kappa(pairs: Sequence[tuple[int, int]]) -> float | None:
    """Cohen's kappa of answers 0 or 1: agreement beyond chance, 1 at most.

    >>> kappa([(1, 1), (0, 0), (1, 0), (0, 0)])
    0.5
    """
    if not pairs:
        return None
    agree = sum(a == b for a, b in pairs) / len(pairs)
    first, second = (sum(answers) / len(pairs) for answers in zip(*pairs, strict=True))
    chance = first * second + (1 - first) * (1 - second)
    return None if chance == 1 else (agree - chance) / (1 - chance)


def fleiss(rows: Sequence[Sequence[int]]) -> float | None:
    """Fleiss' kappa of answers 0 or 1 by the same number of reviewers: chance is one for all.

    >>> fleiss([(1, 1, 1), (0, 0, 0)]), round(fleiss([(1, 1, 0), (0, 0, 0)]), 3)
    (1.0, 0.25)
    """
    if not rows:
        return None
    pairs = [a == b for row in rows for a, b in combinations(row, 2)]
    agree = sum(pairs) / len(pairs)
    ones = sum(map(sum, rows)) / sum(map(len, rows))
    chance = ones**2 + (1 - ones) ** 2
    return None if chance == 1 else (agree - chance) / (1 - chance)
