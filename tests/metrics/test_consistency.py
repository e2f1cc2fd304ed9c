"""Consist: from counts, pair by pair, and by matching; names and templates apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonde.core.reports import Estimate
from sonde.metrics.consistency import consist_of_texts
from sonde.metrics.judged import Grid
from tests.grids import (
    acc_at_1,
    consist,
    grid,
    grids,
    measured,
    names_only,
    one_relation,
    shuffled,
    templates_only,
    within_groups,
)

Row = tuple[int, int, int, int]


def rows(of: Grid) -> list[Row]:
    """Pair, template, name, answer."""
    columns = (of.pair, of.template, of.name, of.answer)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def pairwise(of: Grid, counts: Callable[[Row, Row], bool] = lambda a, b: True) -> list[float]:
    """Per pair the share of its couples of prompts, of those that count, with equal answers."""
    shares = []
    for pair in sorted(set(of.pair.tolist())):
        own = [row for row in rows(of) if row[0] == pair]
        couples = [(a, b) for a, b in combinations(own, 2) if counts(a, b)]
        if couples:
            shares.append(sum(a[3] == b[3] for a, b in couples) / len(couples))
    return shares


def same(found: Estimate, shares: list[float]) -> None:
    """The estimate is the mean of the shares, in bounds and inside its interval."""
    assert found.n == len(shares)
    if not shares:
        assert found.value is None
        return
    assert found.value == pytest.approx(sum(shares) / len(shares))
    low, value, high = measured(found)
    assert 0 <= low <= value <= high <= 1


@given(grids())
def test_counting_gives_what_comparing_every_couple_gives(of: Grid) -> None:
    same(consist(of), pairwise(of))


@given(grids())
def test_matching_by_equality_gives_the_same(of: Grid) -> None:
    counts = [
        [(f"{answer}", n) for answer, n in Counter(of.answer[of.pair == pair].tolist()).items()]
        for pair in range(len(of.relations))
    ]
    same(by_matching(counts, lambda a, b: a == b), pairwise(of))


WORDS = st.lists(st.sampled_from(["", "a", "b", "a b", "b c", "c"]), max_size=6)


def by_matching(
    counts: Sequence[Sequence[tuple[str, int]]], matches: Callable[[str, str], bool]
) -> Estimate:
    """Consist of pairs whose answers, and how often each was given, are told."""
    texts: dict[str, int] = {}
    rows = [
        (pair, texts.setdefault(text, len(texts)))
        for pair, answers in enumerate(counts)
        for text, times in answers
        for _ in range(times)
    ]
    pair, answer = np.array(rows, dtype=np.int64).reshape(-1, 2).T
    nothing = np.zeros(len(rows), dtype=np.int64)
    of = Grid(
        pair=pair,
        template=nothing,
        name=nothing,
        right=nothing > 0,
        answer=answer,
        confidence=np.full(len(rows), np.nan),
        relations=np.zeros(len(counts), dtype=np.int64),
        template_relations=np.zeros(1, dtype=np.int64),
    )
    return consist_of_texts(of, list(texts), matches)


def inside(a: str, b: str) -> bool:
    """Words of one among those of the other: not transitive."""
    return set(a.split()) <= set(b.split()) or set(b.split()) <= set(a.split())


@given(st.lists(WORDS, min_size=1, max_size=4))
def test_matching_by_counts_gives_what_every_couple_gives(answers: list[list[str]]) -> None:
    def agree(a: str, b: str) -> bool:
        return a == b if not a or not b else inside(a, b)

    shares = [
        float(np.mean([agree(a, b) for a, b in combinations(own, 2)]))
        for own in answers
        if len(own) > 1
    ]
    same(by_matching([list(Counter(own).items()) for own in answers], inside), shares)


def test_matching_need_not_be_transitive() -> None:
    found = by_matching([[("New York", 1), ("York", 1), ("York Minster", 1)]], inside)
    assert found.value == pytest.approx(2 / 3)


def test_an_empty_answer_matches_only_another() -> None:
    everything = by_matching([[("", 2), ("Paris", 1)]], lambda a, b: True)
    assert everything.value == pytest.approx(1 / 3)


def test_an_answer_given_twice_is_one_answer() -> None:
    assert by_matching([[("a", 1), ("a", 1)]], inside).value == 1


def test_pairs_with_one_prompt_are_not_measured() -> None:
    assert consist(one_relation([[[0]], [[1]]])).value is None
    assert by_matching([[("a", 1)], []], inside).value is None
    half = consist(one_relation([[[0]], [[1, 1]]]))
    assert (half.value, half.n) == (1.0, 1)


def test_answers_that_are_all_the_same_agree() -> None:
    assert consist(one_relation([[[5, 5], [5, 5]], [[5, 5], [5, 5]]])).value == 1


@given(grids(), st.integers(0, 9))
def test_neither_order_nor_numbering_of_answers_matters(of: Grid, seed: int) -> None:
    other = shuffled(of, seed)
    renumbered = Grid(
        pair=other.pair,
        template=other.template,
        name=other.name,
        right=other.right,
        answer=np.array([7, 1000, 3])[other.answer],
        confidence=other.confidence,
        relations=other.relations,
        template_relations=other.template_relations,
    )
    assert consist(of) == consist(renumbered)
    assert names_only(of) == names_only(renumbered)
    assert templates_only(of) == templates_only(renumbered)
    groups = np.arange(len(of.template_relations)) % 2
    assert within_groups(of, groups) == within_groups(renumbered, groups)


def mean_of_means(of: Grid, fixed: Callable[[Row], int]) -> list[float]:
    """Per pair the mean, over what stays fixed, of the share of couples with equal answers."""
    found = []
    for pair in sorted(set(of.pair.tolist())):
        own = [row for row in rows(of) if row[0] == pair]
        groups = [[row for row in own if fixed(row) == key] for key in {fixed(r) for r in own}]
        shares = [
            float(np.mean([a[3] == b[3] for a, b in combinations(group, 2)]))
            for group in groups
            if len(group) > 1
        ]
        if shares:
            found.append(sum(shares) / len(shares))
    return found


@given(grids())
def test_names_alone_are_compared_under_one_template(of: Grid) -> None:
    same(names_only(of).consist, mean_of_means(of, lambda row: row[1]))


@given(grids())
def test_templates_alone_are_compared_under_one_name(of: Grid) -> None:
    same(templates_only(of).consist, mean_of_means(of, lambda row: row[2]))


def test_names_alone_give_the_share_right_under_every_and_under_some_name() -> None:
    # the first pair: under template 0 one of two names is right, under template 1 both
    found = names_only(one_relation([[[0, 1], [0, 0]], [[1], [0]]]))
    assert found.min.value == (0.5 + 0.5) / 2
    assert found.max.value == (1.0 + 0.5) / 2
    assert found.consist.value == 0.5
    assert found.consist.n == 1


def test_templates_alone_give_the_worst_and_the_best_template_of_each_relation() -> None:
    rows = [
        *((pair, template, 0, pair < template, 0) for pair in (0, 1, 2) for template in (0, 1, 2)),
        *((3, template, 0, template == 3, 0) for template in (3, 4)),
    ]
    found = templates_only(grid(rows, [0, 0, 0, 1], [0, 0, 0, 1, 1]))
    # three pairs of a relation with 0 to 2 of 3 right, one of a relation with 0 to 1 of 1
    assert found.min.value == 0
    assert found.max.value == pytest.approx((3 * (2 / 3) + 1) / 4)


@given(grids(complete=True))
def test_accuracy_lies_between_the_worst_and_the_best(of: Grid) -> None:
    accuracy = acc_at_1(of).value
    for found in (names_only(of), templates_only(of)):
        if found.min.value is not None and found.max.value is not None and accuracy is not None:
            assert found.min.value - 1e-9 <= accuracy <= found.max.value + 1e-9


def test_one_name_or_one_template_alone_is_not_measured() -> None:
    one_name, one_template = one_relation([[[0], [1]]]), one_relation([[[0, 1]]])
    assert names_only(one_name).consist.value is names_only(one_name).min.value is None
    assert templates_only(one_template).consist.value is None
    assert templates_only(one_template).max.value is None


@given(grids(), st.lists(st.integers(-1, 1), min_size=9, max_size=9))
def test_groups_split_the_couples_of_prompts(of: Grid, numbers: list[int]) -> None:
    groups = np.array(numbers[: len(of.template_relations)])

    def inner(a: Row, b: Row) -> bool:
        return bool(groups[a[1]] == groups[b[1]] >= 0)

    def inter(a: Row, b: Row) -> bool:
        return bool(groups[a[1]] != groups[b[1]] and min(groups[a[1]], groups[b[1]]) >= 0)

    found = within_groups(of, groups)
    same(found.inner, pairwise(of, inner))
    same(found.inter, pairwise(of, inter))


def test_templates_of_no_group_are_not_measured() -> None:
    found = within_groups(one_relation([[[0], [0]]]), np.array([-1, -1]))
    assert found.inner.value is found.inter.value is None
