"""Small grids for the tests of the metrics, complete or with prompts missing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from sonde.core.reports import Estimate
from sonde.metrics.judged import Grid

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
