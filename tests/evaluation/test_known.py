"""What is known: chance, deals, the gate, EM and κ, worked out again with loops."""

from collections.abc import Sequence
from itertools import permutations
from typing import Any

import numpy as np
import pytest

from benchmarks.profile_simulated import DESIGNS, World, measure
from sonde.evaluation import known
from sonde.evaluation.known import Floats

ORDERS = {n: [p for p in permutations(range(n)) if all(i != j for i, j in enumerate(p))]
          for n in range(2, 6)}  # fmt: skip
Answers = Sequence[str | None]


def deal(golds: Sequence[set[str]], *instruments: Answers, seed: int = 0) -> known.Dealt:
    """Deal texts; "" fits no fact, and None was not asked."""
    columns, numbers, fits = [], [], []
    for texts in instruments:
        words = sorted({text for text in texts if text})
        column = [-2 if t is None else words.index(t) if t else -1 for t in texts]
        columns.append(np.array(column))
        numbers.append(np.arange(len(golds)))
        fit = [[word in names for word in words] for names in golds]
        fits.append(np.array(fit, dtype=bool).reshape(len(golds), len(words)))
    return known.deal_answers(columns, numbers, fits, np.random.default_rng(seed))


def chance(golds: Sequence[set[str]], texts: Answers) -> list[float]:
    """By fact, the share of the answers to other facts that would be correct for it."""
    shares = []
    for i, names in enumerate(golds):
        others = [t for j, t in enumerate(texts) if j != i and t is not None]
        shares.append(sum(t in names for t in others) / len(others))
    return shares


def two_classes(correct: Floats, by_chance: Floats) -> tuple[float, list[float], list[float]]:
    """Share, sensitivities and posteriors, fact by fact, to the last digit."""
    n, k = correct.shape
    asked = ~np.isnan(correct)
    limit = known.LIMIT

    def clip(value: Any, low: float = limit) -> float:
        return float(min(max(value, low), 1 - limit))

    floor: list[float] = []
    sensitivity: list[float] = []
    for i in range(k):
        rows = [row for row in range(n) if asked[row, i]]
        mean = float(np.mean([clip(by_chance[row, i]) for row in rows]))
        floor.append(min(mean + limit, 1 - limit))
        start = min(max(float(np.mean([correct[row, i] for row in rows])) + 0.2, 0.3), 0.95)
        sensitivity.append(max(start, floor[i]))
    share = 0.5
    for _ in range(20_000):
        posterior = []
        for row in range(n):
            p_known, p_unknown = share, 1 - share
            for i in range(k):
                if asked[row, i]:
                    c, s = clip(by_chance[row, i]), sensitivity[i]
                    p_known *= s if correct[row, i] else 1 - s
                    p_unknown *= c if correct[row, i] else 1 - c
            posterior.append(p_known / (p_known + p_unknown))
        before, share = share, clip(float(np.mean(posterior)))
        for i in range(k):
            rows = [row for row in range(n) if asked[row, i]]
            weight = sum(posterior[row] for row in rows)
            hits = sum(posterior[row] * correct[row, i] for row in rows)
            sensitivity[i] = clip(hits / max(weight, 1e-9), floor[i])
        if abs(share - before) < 1e-9:
            break
    return share, sensitivity, posterior


def answered(n: int, k: int, share: float = 0.5, seed: int = 0) -> tuple[Floats, Floats]:
    """Independent instruments of four relations with a chance each; some were not asked."""
    rng = np.random.default_rng(seed)
    by_chance = np.repeat(rng.uniform(0.02, 0.3, (4, k)), n // 4, axis=0)
    is_known = rng.random(n) < share
    right = np.where(is_known[:, None], rng.uniform(0.5, 0.9, k), by_chance)
    return (rng.random((n, k)) < right).astype(float), by_chance


def test_chance_is_the_share_of_other_answers_that_fit() -> None:
    golds = [{"Paris"}, {"Rome"}, {"Paris", "Lutetia"}, {"Bern"}]
    one = ["Paris", "Paris", "Rome", ""]
    other = ["Bern", None, "Lutetia", "Paris"]
    dealt = deal(golds, one, other)
    assert dealt.chance[:, 0] == pytest.approx([1 / 3, 1 / 3, 2 / 3, 0])
    assert dealt.chance[:, 0] == pytest.approx(chance(golds, one))
    assert dealt.chance[[0, 2, 3], 1] == pytest.approx([0.5, 0.5, 0.5])
    assert np.isnan(dealt.chance[1, 1])


@pytest.mark.parametrize("seed", range(5))
def test_chance_of_random_answers_and_its_deals(seed: int) -> None:
    rng = np.random.default_rng(seed)
    words = list("abcde")
    golds = [set(rng.choice(words, rng.integers(1, 3))) for _ in range(30)]
    texts: list[str] = rng.choice([*words, ""], 30).tolist()
    dealt = deal(golds, texts, seed=seed)
    assert dealt.chance[:, 0] == pytest.approx(chance(golds, texts))
    means = dealt.hits[..., 0].mean(axis=1)
    assert means.mean() == pytest.approx(np.mean(chance(golds, texts)), abs=0.02)


def test_whole_vectors_of_answers_are_dealt() -> None:
    golds = [{"a"}, {"b"}, {"c"}]
    texts = ["a", "b", "c"]
    dealt = deal(golds, texts, texts, ["b", "c", "a"])
    assert (dealt.hits[..., 0] == dealt.hits[..., 1]).all()
    assert not dealt.hits[..., 0].any()  # nobody gets the answer to itself
    # of the two ways to deal three facts, one is that of the last instrument
    assert set(map(tuple, dealt.hits[..., 2])) == {(True,) * 3, (False,) * 3}


def test_deals_are_those_of_other_facts() -> None:
    golds = [{"a"}, {"a", "b"}, {"c"}, {"b"}]
    texts = ["b", "a", "a", "c"]
    possible = {tuple(texts[j] in golds[i] for i, j in enumerate(p)) for p in ORDERS[4]}
    dealt = deal(golds, texts)
    assert dealt.hits.shape == (known.DEALS, 4, 1)
    assert set(map(tuple, dealt.hits[..., 0])) == possible


def test_two_facts_swap_their_answers() -> None:
    dealt = deal([{"a"}, {"b"}], ["b", "b"], ["b", "a"])
    assert dealt.chance.tolist() == [[0, 1], [1, 1]]
    assert (dealt.hits == [[False, True], [True, True]]).all()


def test_one_fact_has_no_other_answer() -> None:
    dealt = deal([{"a"}], ["a"])
    assert np.isnan(dealt.chance).all()
    assert not dealt.hits.any()


def test_instruments_that_skip_facts_are_dealt_among_those_they_asked() -> None:
    golds = [{"a"}] * 6
    skips: list[str | None] = ["a", None, "a", None, "a", None]
    dealt = deal(golds, ["a"] * 6, skips)
    asked = [0, 2, 4]
    assert dealt.chance[asked, 1].tolist() == [1.0] * 3
    assert dealt.hits[:, asked].all()
    assert not dealt.hits[:, [1, 3, 5], 1].any()


def test_relations_of_more_than_500_facts_are_dealt_in_blocks() -> None:
    n = 2 * known.BLOCK + 1
    golds = [{"a" if i % 4 else "b"} for i in range(n)]
    texts = ["a" if i % 3 else "b" for i in range(n)]
    dealt = deal(golds, texts, ["a"] * n)
    assert not np.isnan(dealt.chance).any()
    whole = np.array(chance(golds, texts))
    # a block is a sample of the relation
    assert np.abs(dealt.chance[:, 0] - whole).max() < 0.1
    assert dealt.chance[:, 0].mean() == pytest.approx(whole.mean(), abs=0.01)
    assert (dealt.chance[:, 1] == [g == {"a"} for g in golds]).all()
    hits = dealt.hits[..., 0].mean(axis=1)
    assert hits.mean() == pytest.approx(whole.mean(), abs=0.01)


@pytest.mark.parametrize(
    ("texts", "expected"),
    [([""] * 4, 0.0), (["z"] * 4, 0.0), (["a"] * 4, 0.5), (["a", "b", "a", "b"], 1 / 3)],
    ids=["empty", "all wrong", "all equal", "all correct"],
)
def test_chance_of_answers_that_know_nothing_and_of_those_that_know_all(
    texts: list[str], expected: float
) -> None:
    golds = [{"a"}, {"b"}, {"a"}, {"b"}]
    assert deal(golds, texts).chance[:, 0].mean() == pytest.approx(expected)


def test_the_threshold_is_the_95th_percentile_of_the_deals() -> None:
    deals = np.random.default_rng(0).random(200)
    rank = 0.95 * 199
    low, high = sorted(deals)[int(rank) : int(rank) + 2]
    assert known.evidence_threshold(deals) == pytest.approx(
        low + (high - low) * (rank % 1), abs=1e-8
    )
    assert known.evidence_threshold(np.full(200, 0.25)) >= 0.25  # all equal: each deal ties


@pytest.mark.parametrize("k", [1, 2, 3, 7])
@pytest.mark.parametrize("share", [0.2, 0.7])
def test_the_estimate_is_that_of_plain_em(k: int, share: float) -> None:
    correct, by_chance = answered(60, k, share, seed=k)
    correct[::7, 0] = np.nan
    correct[1, :] = np.nan  # asked by nothing
    expected, sensitivity, posterior = two_classes(correct, by_chance)
    # a step changes the share by less than the tolerance, so that the end may be some steps away
    close = 2e-3 if k > 2 else 2e-2
    result = known.estimate_share_known(correct, by_chance)
    assert result.share == pytest.approx(expected, abs=close)
    if k > 2:
        assert result.sensitivity == pytest.approx(sensitivity, abs=5e-3)
        assert result.posterior == pytest.approx(posterior, abs=1e-2)
    assert result.posterior[1] == pytest.approx(result.share, abs=1e-3)


def test_no_other_values_are_more_likely() -> None:
    correct, by_chance = answered(120, 4, 0.4)
    result = known.estimate_share_known(correct, by_chance)

    def likelihood(share: float, sensitivity: Floats) -> float:
        s = np.where(correct == 1, sensitivity, 1 - sensitivity).prod(axis=1)
        c = np.where(correct == 1, by_chance, 1 - by_chance).prod(axis=1)
        return float(np.log(share * s + (1 - share) * c).sum())

    best = likelihood(result.share, result.sensitivity)
    rng = np.random.default_rng(0)
    for _ in range(2000):
        assert likelihood(rng.random(), rng.uniform(by_chance.mean(axis=0), 1)) < best
        nudge = rng.normal(0, 0.02, 5)
        share = np.clip(result.share + nudge[0], 0.01, 0.99)
        near = np.clip(result.sensitivity + nudge[1:], by_chance.mean(axis=0), 0.999)
        assert likelihood(float(share), near) < best + 1e-3


def test_the_order_of_facts_does_not_matter() -> None:
    correct, by_chance = answered(80, 5)
    order = np.random.default_rng(0).permutation(80)
    one, other = (
        known.estimate_share_known(correct, by_chance),
        known.estimate_share_known(correct[order], by_chance[order]),
    )
    assert other.share == pytest.approx(one.share)
    assert other.posterior == pytest.approx(one.posterior[order])


@pytest.mark.parametrize(
    ("value", "by_chance"), [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0), (1.0, 0.5)]
)
@pytest.mark.parametrize("k", [1, 5])
def test_degenerate_answers_give_finite_numbers(value: float, by_chance: float, k: int) -> None:
    shape = (10, k)
    result = known.estimate_share_known(np.full(shape, value), np.full(shape, by_chance))
    numbers = np.concatenate([[result.share], result.sensitivity, result.posterior])
    assert ((numbers >= 0) & (numbers <= 1)).all()
    if (value, by_chance) == (1.0, 0.0):
        assert result.share > 0.99
    here = np.zeros(10, dtype=np.int64)
    ends = known.share_known_intervals(
        np.full(shape, value), np.full(shape, by_chance), here, np.arange(10), rng()
    )
    assert 0 <= ends[None][0] <= ends[None][1] <= 1


def rng() -> np.random.Generator:
    return np.random.default_rng(3)


def test_the_interval_draws_subjects_within_their_relation() -> None:
    correct, by_chance = answered(80, 5, 0.5)
    relation, subjects = np.arange(80) // 40, np.arange(80)
    ends = known.share_known_intervals(correct, by_chance, relation, subjects, rng())
    assert set(ends) == {None, 0, 1}
    assert ends == known.share_known_intervals(correct, by_chance, relation, subjects, rng())
    share = known.estimate_share_known(correct, by_chance).share
    assert ends[None][0] < share < ends[None][1]
    # one subject in each relation leaves nothing to draw
    low, high = known.share_known_intervals(correct, by_chance, relation, relation, rng())[None]
    assert low == pytest.approx(high) == pytest.approx(share)
    # subjects of ten facts are fewer than facts
    wide = known.share_known_intervals(correct, by_chance, relation, np.arange(80) // 10, rng())[
        None
    ]
    assert wide[0] < share < wide[1]


def test_kappa_by_its_definition() -> None:
    one = np.array([1, 1, 0, 0, 1, np.nan, 0, 1])
    other = np.array([1, 0, 0, 1, 1, 1, np.nan, 1])
    agree, by_chance = 4 / 6, (4 * 4 + 2 * 2) / 36
    assert known.cohens_kappa(one, other) == pytest.approx((agree - by_chance) / (1 - by_chance))
    assert known.cohens_kappa(one, one) == 1.0
    for constant in (np.zeros(8), np.ones(8), np.full(8, np.nan)):
        assert np.isnan(known.cohens_kappa(one, constant))


def simulated(design: str, share: float, **more: Any) -> dict[str, float]:
    return measure(World(design=design, share=share, instruments=3, facts=48), 20, **more)


@pytest.mark.parametrize("design", DESIGNS)
def test_the_gate_stays_closed_where_nothing_is_known_and_opens_where_much_is(design: str) -> None:
    assert simulated(design, 0.0)["open"] <= 0.15
    assert simulated(design, 0.7)["open"] == 1.0


def test_independent_instruments_have_little_bias() -> None:
    assert abs(simulated("independent", 0.7)["bias"]) < 0.05
    assert simulated("shared misses", 0.7)["bias"] < -0.03
