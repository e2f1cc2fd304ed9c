"""Small grids for the tests of the metrics, complete or with prompts missing, and single numbers of
a grid, which a report estimates all at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from sonde.core.reports import Estimate
from sonde.metrics import accuracy, consistency
from sonde.metrics.accuracy import covered
from sonde.metrics.estimates import Resampled
from sonde.metrics.judged import Floats, Grid, Ints, grid_samples, mean_over_pairs

Prompt = tuple[int, int, int, bool, int]
"""Pair, template, name, right, answer."""


def grid(
    prompts: Sequence[Prompt], relations: Sequence[int], template_relations: Sequence[int]
) -> Grid:
    """A grid from its rows; the confidence is not measured."""
    pair, template, name, right, answer = (
        zip(*prompts, strict=True) if prompts else ((), (), (), (), ())
    )
    return Grid(
        pair=np.array(pair, dtype=np.int64),
        template=np.array(template, dtype=np.int64),
        name=np.array(name, dtype=np.int64),
        right=np.array(right, dtype=np.bool_),
        answer=np.array(answer, dtype=np.int64),
        confidence=np.full(len(prompts), np.nan),
        relations=np.array(relations, dtype=np.int64),
        template_relations=np.array(template_relations, dtype=np.int64),
    )


@st.composite
def grids(draw: st.DrawFn, *, complete: bool = False, pairs: int = 4, templates: int = 3) -> Grid:
    """Up to three relations in mixed order; answer 0 is the right one."""
    count = draw(st.integers(1, 3))
    relations = draw(st.lists(st.integers(0, count - 1), min_size=1, max_size=pairs))
    wordings = [
        *range(count),
        *draw(st.lists(st.integers(0, count - 1), max_size=templates * count - count)),
    ]
    names = [draw(st.integers(1, 3)) for _ in relations]
    asked = [
        (pair, template, name)
        for pair, relation in enumerate(relations)
        for template, own in enumerate(wordings)
        if own == relation
        for name in range(names[pair])
    ]
    if not complete:
        asked = [prompt for prompt in asked if draw(st.integers(0, 4))]
    answers = [draw(st.integers(0, 2)) for _ in asked]
    rows = [(*prompt, answer == 0, answer) for prompt, answer in zip(asked, answers, strict=True)]
    return grid(rows, relations, wordings)


def one_relation(answers: Sequence[Sequence[Sequence[int]]]) -> Grid:
    """One relation from its answers [pair][template][name]; 0 is right."""
    rows = [
        (pair, template, name, answer == 0, answer)
        for pair, of_pair in enumerate(answers)
        for template, of_template in enumerate(of_pair)
        for name, answer in enumerate(of_template)
    ]
    return grid(rows, [0] * len(answers), [0] * max(map(len, answers)))


def shuffled(given: Grid, seed: int) -> Grid:
    """The same rows in another order."""
    return given.rows(np.random.default_rng(seed).permutation(len(given)))


def measured(estimate: Estimate) -> tuple[float, float, float]:
    """The ends of the interval about the value, which was measured."""
    assert estimate.value is not None
    low, high = estimate.ends
    return low, estimate.value, high


def _means(columns: Sequence[Floats], of: Grid, seed: int) -> Iterator[Estimate]:
    return (mean_over_pairs(column, of, seed) for column in columns)


def acc_at_1(of: Grid, seed: int = 0) -> Estimate:
    """Acc@1."""
    return mean_over_pairs(accuracy.right_shares(of), of, seed)


def template_summary(of: Grid, seed: int = 0) -> tuple[Estimate, Estimate, Estimate]:
    """Accuracy with the worst and the best template of each relation, and a template's mean."""
    worst, best, mean = accuracy.worst_best_mean(of)
    weights = {str(block.relation): float(len(block.templates)) for block in of.blocks}
    low, high = _means((worst, best), of, seed)
    return low, high, Resampled(grid_samples(of, mean), seed).weighted_mean(weights)


def fluctuation(
    of: Grid, draw: accuracy.Draw = "relation", n: int = 50_000, seed: int = 0
) -> accuracy.Fluctuation | None:
    """The fluctuation of all relations together."""
    made = [accuracy.relation_spread(block, draw, seed) for block in of.blocks]
    return accuracy.fluctuation(made, draw, n, seed)


def consist(of: Grid, seed: int = 0) -> Estimate:
    """Consist, by equal answers."""
    return mean_over_pairs(consistency.agreement(of), of, seed)


class OneVaries(NamedTuple):
    consist: Estimate
    min: Estimate
    max: Estimate


def names_only(of: Grid, seed: int = 0, agreeing: consistency.Agreeing | None = None) -> OneVaries:
    """What names alone do."""
    return OneVaries(*_means(consistency.names_only(of, agreeing), of, seed))


def templates_only(
    of: Grid, seed: int = 0, agreeing: consistency.Agreeing | None = None
) -> OneVaries:
    """What templates alone do."""
    return OneVaries(*_means(consistency.templates_only(of, agreeing), of, seed))


class Groups(NamedTuple):
    inner: Estimate
    inter: Estimate


def within_groups(of: Grid, groups: Ints, seed: int = 0) -> Groups:
    """Agreement inside paraphrase groups and across them."""
    return Groups(*_means(consistency.within_groups(of, groups), of, seed))


class Coverage(NamedTuple):
    average: Estimate
    average_best_name: Estimate
    maximum: Estimate
    oracle: Estimate


def coverage(of: Grid, seed: int = 0) -> Coverage:
    """The four shares of pairs known."""
    columns = (accuracy.right_shares(of), *covered(of))
    return Coverage(*_means(columns, of, seed))


def plainly_shared(a: Any, b: Any) -> float | None:
    """Share of what run a knows that run b knows too, counted; None where a knows nothing."""
    return float((a & b).sum() / a.sum()) if a.any() else None
