"""Fluctuation: draws against enumeration, simulation and the closed form."""

from __future__ import annotations

from itertools import chain, product
from math import sqrt

import numpy as np
import pytest
from hypothesis import assume, given
from numpy.typing import NDArray
from scipy.stats import chisquare, ks_2samp

from sonde.metrics.accuracy import Draw, Fluctuation
from sonde.metrics.judged import Grid
from tests.grids import acc_at_1, fluctuation, grid, grids, measured, one_relation, shuffled

DRAWS: list[Draw] = ["relation", "pair"]


def prompts(of: Grid) -> dict[int, dict[int, list[bool]]]:
    """Right or wrong by pair and template."""
    found: dict[int, dict[int, list[bool]]] = {}
    for pair, template, right in zip(of.pair, of.template, of.right, strict=True):
        found.setdefault(int(pair), {}).setdefault(int(template), []).append(bool(right))
    return found


def enumerated(of: Grid, draw: Draw) -> dict[float, float]:
    """Probability of each accuracy as the definition reads: every template, every prompt."""
    asked = prompts(of)
    relations = sorted({int(of.relations[pair]) for pair in asked})
    under = {
        r: sorted({t for p in asked for t in asked[p] if of.relations[p] == r}) for r in relations
    }
    found: dict[float, float] = {}
    ways = list(product(*(under[r] for r in relations)))
    for way in ways if draw == "relation" else ways[:1]:
        taken = dict(zip(relations, way, strict=True))
        outcomes = {0: 1.0}
        for pair, by_template in asked.items():
            everything = [right for cell in by_template.values() for right in cell]
            if draw == "relation":
                possible = by_template.get(taken[int(of.relations[pair])], everything)
            else:
                possible = everything
            share = sum(possible) / len(possible)
            outcomes = _after(outcomes, share)
        for right, chance in outcomes.items():
            key = right / len(asked)
            found[key] = found.get(key, 0.0) + chance / (len(ways) if draw == "relation" else 1)
    return found


def _after(outcomes: dict[int, float], share: float) -> dict[int, float]:
    after: dict[int, float] = {}
    for right, chance in outcomes.items():
        after[right] = after.get(right, 0.0) + chance * (1 - share)
        after[right + 1] = after.get(right + 1, 0.0) + chance * share
    return after


@pytest.mark.parametrize("draw", DRAWS)
@given(of=grids())
def test_draws_come_as_enumeration_says(draw: Draw, of: Grid) -> None:
    found = fluctuation(of, draw, n=4000)
    assume(found is not None)
    assert found is not None
    chances = {a: p for a, p in sorted(enumerated(of, draw).items()) if p > 1e-9}
    values = np.array(list(chances))
    place = np.abs(found.draws[:, None] - values).argmin(axis=1)
    np.testing.assert_allclose(found.draws, values[place], atol=1e-9)
    seen, expected = np.bincount(place, minlength=len(values)), np.array(list(chances.values()))
    if len(values) > 1:
        assert chisquare(seen, 4000 * expected / expected.sum()).pvalue > 1e-6


@pytest.mark.parametrize("draw", DRAWS)
@given(of=grids())
def test_the_closed_form_is_the_deviation_of_the_enumeration(draw: Draw, of: Grid) -> None:
    found = fluctuation(of, draw, n=10)
    assume(found is not None)
    assert found is not None
    accuracies, chances = (np.array(x) for x in zip(*enumerated(of, draw).items(), strict=True))
    mean = accuracies @ chances
    assert found.closed_form == pytest.approx(sqrt(chances @ (accuracies - mean) ** 2), abs=1e-7)


def world(seed: int = 0, relations: int = 3, pairs: int = 60, templates: int = 5) -> Grid:
    """Complete, with templates that differ and one to three names."""
    rng = np.random.default_rng(seed)
    ease = rng.random((relations, templates))
    rows = [
        (r * pairs + p, r * templates + t, name, bool(hit), int(not hit))
        for r in range(relations)
        for p in range(pairs)
        for t in range(templates)
        for name in range(1 + p % 3)
        for hit in [rng.random() < ease[r, t]]
    ]
    return grid(
        rows,
        np.repeat(range(relations), pairs).tolist(),
        np.repeat(range(relations), templates).tolist(),
    )


def simulated(of: Grid, draw: Draw, n: int) -> NDArray[np.float64]:
    """One draw after another, prompt by prompt."""
    rng, asked = np.random.default_rng(9), prompts(of)
    templates = [np.flatnonzero(of.template_relations == r) for r in range(of.relations.max() + 1)]
    found = []
    for _ in range(n):
        taken = [int(rng.choice(own)) for own in templates]
        right = 0
        for pair, by_template in asked.items():
            cell = by_template[taken[of.relations[pair]]]
            given = cell if draw == "relation" else [*chain(*by_template.values())]
            right += given[rng.integers(len(given))]
        found.append(right / len(asked))
    return np.array(found)


@pytest.mark.parametrize("draw", DRAWS)
def test_draws_are_distributed_like_draws_made_one_by_one(draw: Draw) -> None:
    of = world()
    found = fluctuation(of, draw, n=5000)
    assert found is not None
    assert ks_2samp(found.draws, simulated(of, draw, 1500)).pvalue > 0.001


@pytest.mark.parametrize("draw", DRAWS)
def test_many_draws_have_the_deviation_of_the_closed_form(draw: Draw) -> None:
    found = fluctuation(world(), draw)
    assert found is not None
    assert len(found.draws) == 50_000
    assert found.stdev.value == pytest.approx(found.closed_form, rel=0.02)
    assert found.stdev.value == found.draws.std()
    assert found.range.value == np.ptp(found.draws)


def test_the_mean_over_draws_is_the_accuracy() -> None:
    for draw in DRAWS:
        found, accuracy = fluctuation(world(), draw), acc_at_1(world()).value
        assert found is not None and accuracy is not None
        assert found.draws.mean() == pytest.approx(accuracy, abs=4 * found.closed_form / 223)


def test_templates_drawn_together_fluctuate_more_than_prompts_drawn_alone() -> None:
    together, alone = fluctuation(world(), "relation"), fluctuation(world(), "pair")
    assert together is not None and alone is not None
    assert together.closed_form > 2 * alone.closed_form


def intervals(found: Fluctuation) -> None:
    for estimate in (found.range, found.stdev):
        low, value, high = measured(estimate)
        assert 0 <= low <= value <= high


@pytest.mark.parametrize("draw", DRAWS)
@given(of=grids())
def test_values_lie_in_their_intervals_and_in_bounds(draw: Draw, of: Grid) -> None:
    found = fluctuation(of, draw, n=200)
    assume(found is not None)
    assert found is not None
    intervals(found)
    assert 0 <= found.draws.min() <= found.draws.max() <= 1
    assert found.closed_form <= 0.5 + 1e-12


@pytest.mark.parametrize("draw", DRAWS)
def test_the_interval_of_the_deviation_holds_that_of_a_large_world(draw: Draw) -> None:
    """Pairs are the sample: small worlds drawn from a large one are right about it 95 times in 100.

    A deviation shrinks with the number of pairs where pairs are drawn alone, so it is compared at
    the size of the small world.
    """
    large = world(pairs=900)
    whole = fluctuation(large, draw, n=10)
    assert whole is not None
    target = whole.closed_form * (sqrt(10) if draw == "pair" else 1)
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(60):
        chosen = [rng.choice(np.arange(900) + 900 * r, 90, replace=False) for r in range(3)]
        small = large.rows(np.isin(large.pair, np.concatenate(chosen)))
        found = fluctuation(small, draw, n=2000)
        assert found is not None
        low, _, high = measured(found.stdev)
        hits += low <= target <= high
    assert hits >= 49


def test_chance_differences_of_templates_do_not_push_the_interval_off_the_value() -> None:
    answers = np.random.default_rng(0).integers(0, 2, (40, 20, 1))
    found = fluctuation(one_relation(answers.tolist()), n=2000)
    assert found is not None
    low, value, high = measured(found.stdev)
    assert low < 0.9 * value < 1.1 * value < high


@pytest.mark.parametrize("draw", DRAWS)
def test_the_order_of_prompts_does_not_matter(draw: Draw) -> None:
    one, other = fluctuation(world(), draw), fluctuation(shuffled(world(), 1), draw)
    assert one is not None and other is not None
    assert (one.draws == other.draws).all()
    assert (one.range, one.stdev) == (other.range, other.stdev)


def test_another_seed_gives_other_draws() -> None:
    one, other = fluctuation(world(), seed=0), fluctuation(world(), seed=1)
    assert one is not None and other is not None
    assert (one.draws != other.draws).any()


def test_one_template_is_not_measured() -> None:
    one_prompt = one_relation([[[0]], [[1]]])
    assert fluctuation(one_prompt, "relation") is None
    assert fluctuation(one_prompt, "pair") is None
    two_names = one_relation([[[0, 1]], [[1, 0]]])
    assert fluctuation(two_names, "relation") is None
    assert fluctuation(two_names, "pair") is not None


def test_nothing_asked_is_not_measured() -> None:
    assert fluctuation(grid([], [0], [0, 0])) is None


@pytest.mark.parametrize("draw", DRAWS)
def test_answers_that_are_all_the_same_do_not_fluctuate(draw: Draw) -> None:
    found = fluctuation(one_relation([[[0], [0]], [[0], [0]]]), draw, n=100)
    assert found is not None
    assert found.range.value == found.stdev.value == found.closed_form == 0
    assert (found.range.low, found.range.high) == (None, None), "an interval has a width"


def test_a_relation_with_one_template_stands_still_beside_others() -> None:
    rows = [(0, 0, 0, True, 0), (0, 1, 0, False, 1), (1, 2, 0, True, 0)]
    found = fluctuation(grid(rows, [0, 1], [0, 0, 1]), n=200)
    assert found is not None
    assert set(found.draws) == {0.5, 1.0}
