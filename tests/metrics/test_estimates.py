"""Averages over facts and relations: what weighs what, and whose draws move when."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonde.core.reports import Estimate
from sonde.core.words import told_apart
from sonde.metrics.estimates import Resampled, Sample
from sonde.stats.intervals import wilson

GROUPS = st.dictionaries(
    st.sampled_from("abcd"), st.lists(st.floats(0, 1), min_size=1, max_size=9), min_size=1
)


def sample(values: list[float], clusters: str = "", minus: list[float] | None = None) -> Sample:
    names = tuple(clusters) or tuple(map(str, range(len(values))))
    control = None if minus is None else np.array(minus)
    return Sample(values=np.array(values), clusters=names, minus=control)


@given(GROUPS)
def test_one_mean_weighs_relations_the_other_facts(groups: dict[str, list[float]]) -> None:
    resampled = Resampled({name: sample(values) for name, values in groups.items()}, seed=0)
    by_relation = resampled.mean_over_relations()
    by_fact = resampled.mean_over_facts()
    everything = [v for values in groups.values() for v in values]
    assert by_relation.value is not None
    assert by_fact.value is not None
    assert abs(by_relation.value - np.mean([np.mean(v) for v in groups.values()])) < 1e-9
    assert abs(by_fact.value - np.mean(everything)) < 1e-9
    assert by_relation.n == by_fact.n == len(everything)


@given(GROUPS, st.integers(-5, 5))
def test_no_relation_moves_anothers_draws(groups: dict[str, list[float]], seed: int) -> None:
    samples = {name: sample(values) for name, values in groups.items()}
    together = Resampled({"before": sample([0.1, 0.9]), **samples}, seed)
    for name, own in samples.items():
        alone = Resampled({name: own}, seed)
        assert np.array_equal(alone.draws(name), together.draws(name))


def test_the_mean_of_one_relation_is_that_relations_estimate() -> None:
    resampled = Resampled({"a": sample([0.0, 0.0, 1.0])}, seed=0)
    assert resampled.mean_over_relations() == resampled.relation("a")
    assert (resampled.relation("a").low, resampled.relation("a").high) == wilson(1, 3)


def test_facts_of_one_subject_widen_the_interval() -> None:
    values = [1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0] * 5
    apart = Resampled({"a": sample(values)}, seed=0).relation("a")
    names = "".join(c * 4 for c in "abcdefghij")
    together = Resampled({"a": sample(values, names)}, seed=0).relation("a")
    assert None not in (apart.low, apart.high, together.low, together.high)
    assert together.high - together.low > 1.5 * (apart.high - apart.low)  # type: ignore[operator]


def test_a_difference_is_paired_by_fact() -> None:
    """The same answers as the control: no difference, and a narrow interval about it."""
    outcomes = [1.0, 0.0] * 20
    same = Resampled({"a": sample(outcomes, minus=outcomes)}, seed=0).relation("a")
    other = Resampled({"a": sample(outcomes, minus=outcomes[::-1])}, seed=0).relation("a")
    assert same.value == other.value == 0
    assert same.high is not None
    assert other.high is not None
    assert same.high < other.high / 2


def test_nothing_to_average_is_not_measured() -> None:
    resampled = Resampled({"a": sample([])}, seed=0)
    for estimate in (resampled.relation("a"), resampled.mean_over_relations()):
        assert estimate.value is None
        assert estimate.n == 0


def test_an_average_of_nothing_but_failures_is_not_sure_of_it() -> None:
    resampled = Resampled({"a": sample([0.0] * 20), "b": sample([0.0] * 10)}, seed=0)
    assert ends(resampled.mean_over_facts()) == pytest.approx(wilson(0, 30))
    low, high = ends(resampled.mean_over_relations())  # where the smaller weighs as much
    assert (low, high) == pytest.approx(wilson(0, 1 / (0.25 / 20 + 0.25 / 10)))
    assert high > wilson(0, 30)[1]


def test_an_average_of_nothing_but_successes_is_not_sure_of_it() -> None:
    resampled = Resampled({"a": sample([1.0] * 20), "b": sample([1.0] * 10)}, seed=0)
    assert ends(resampled.mean_over_facts()) == pytest.approx(wilson(30, 30))


@pytest.mark.parametrize("facts", [6, 12, 30])
def test_the_interval_of_a_difference_and_its_test_give_one_verdict(facts: int) -> None:
    random = np.random.default_rng(facts)
    for _ in range(60):
        right, control = (random.random(facts) < share for share in (0.6, 0.3))
        made = sample(right.astype(float).tolist(), minus=control.astype(float).tolist())
        found = Resampled({"a": made}, 0).mean_over_relations()
        assert found.p is not None and found.value is not None
        low, high = found.ends
        assert told_apart(found) == (found.p < 0.05)
        assert found.p < 0.05 or low <= 0 <= high
        assert found.p >= 0.05 or min(low * found.value, high * found.value) >= 0


def test_trials_that_cannot_differ_count_clusters_not_facts() -> None:
    together = Resampled({"a": sample([0.0] * 6, "xxyyzz")}, seed=0)
    assert ends(together.relation("a")) == pytest.approx(wilson(0, 3))


def test_a_control_that_always_agrees_leaves_a_width() -> None:
    samples = {name: sample([0.0] * 15, minus=[0.0] * 15) for name in "ab"}
    low, high = ends(Resampled(samples, seed=0).mean_over_facts())
    assert (round(low, 3), round(high, 3)) == (-0.114, 0.114)


def test_a_difference_on_few_facts_is_told_from_none_only_where_a_paired_test_says_so() -> None:
    won = {"a": sample([1.0] * 5 + [0.0], minus=[1.0] * 2 + [0.0] * 4)}
    three = Resampled(won, seed=0).relation("a")
    assert three.low == 0, "the interval alone would be above 0"
    assert three.p == 0.25 and not told_apart(three)
    both = {name: sample([1.0, 1.0, 1.0, 0.5], minus=[0.0] * 4) for name in "ab"}
    mean = Resampled(both, seed=0).mean_over_relations()
    assert mean.p is not None and mean.p < 0.05 and told_apart(mean)
    one_subject = {name: sample([1.0] * 4, "xxxx", minus=[0.0] * 4) for name in "ab"}
    assert (Resampled(one_subject, seed=0).mean_over_relations().p or 0.0) > 0.4


def test_of_many_facts_the_interval_is_enough() -> None:
    rng = np.random.default_rng(0)
    values, minus = rng.random((2, 600)).tolist()
    assert Resampled({"a": sample(values, minus=minus)}, seed=0).mean_over_facts().p is None
    assert Resampled({"a": sample(values)}, seed=0).mean_over_facts().p is None


def test_an_interval_without_width_is_none() -> None:
    for high in (0.3, 0.3 + 1e-15):
        flat = Estimate(value=0.3, low=0.3, high=high, n=4)
        assert (flat.low, flat.high, flat.ends) == (None, None, (0.3, 0.3))
    assert Estimate(value=0.3, low=0.2, high=0.3, n=4).ends == (0.2, 0.3)


def test_values_that_do_not_vary_have_the_interval_of_a_share_or_none() -> None:
    shares = Resampled({"a": sample([0.3] * 5), "b": sample([0.3] * 7)}, seed=0)
    assert ends(shares.mean_over_facts()) == pytest.approx(wilson(0.3 * 12, 12))
    nats = Resampled({"a": sample([-2.5] * 5), "b": sample([-2.5] * 7)}, seed=0)
    assert (nats.mean_over_facts().value, nats.mean_over_facts().low) == (-2.5, None)


def test_a_control_that_agrees_on_every_fact_leaves_a_width_whatever_the_share() -> None:
    outcomes = [1.0, 0.0] * 15
    for names in ("a", "ab"):
        samples = {name: sample(outcomes, minus=outcomes) for name in names}
        low, high = ends(Resampled(samples, seed=0).mean_over_facts())
        assert (low, high) == pytest.approx((-wilson(0, 30 * len(names))[1], -low))


def ends(estimate: Estimate) -> tuple[float, float]:
    assert estimate.low is not None
    assert estimate.high is not None
    return estimate.low, estimate.high
