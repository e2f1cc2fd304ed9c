"""The engine: values by hand, groups as filters, and intervals that agree with their tests."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars import col

from sonde.core.errors import UsageError
from sonde.evaluation import estimate as engine
from sonde.evaluation import metrics as m
from sonde.evaluation import stats
from sonde.evaluation.estimate import (
    Contrast,
    Group,
    Metric,
    Special,
    bootstrap_draws,
    estimate,
    paired_differences,
)
from sonde.evaluation.tables import ESTIMATES, Results

from .worlds import random_results, results

NUMBERS = ("value", "low", "high", "p", "n", "n_clusters")
ALL = (
    m.accuracy(),
    m.mrr(),
    m.consistency(),
    m.OVERCONFIDENCE,
    m.ECE,
    *m.TEMPLATE_ACCURACY,
    *m.COVERAGE,
    m.sd_between(m.accuracy(), "template_no", "spread"),
    m.harmonic_mean("harmonic", m.accuracy(), m.consistency()),
)


def line(frame: pl.DataFrame, metric: str, of: str = "value", *group: str) -> dict[str, Any]:
    over = "relations" if "relations" in frame["over"] else "facts"
    lines = frame.filter(
        (col("metric") == metric)
        & (col("of") == of)
        & (col("over") == over)
        & (col("group") == list(group))
    )
    return lines.row(0, named=True)


def numbers(frame: pl.DataFrame) -> dict[tuple[str, ...], tuple[Any, ...]]:
    key = ("metric", "of", "over")
    return {row[:3]: row[3:] for row in frame.select(*key, *NUMBERS).iter_rows()}


def outcomes(correct: Sequence[float], baseline: Sequence[float] = (), **facts: Any) -> Results:
    """A prompt for each fact."""
    n = len(correct)
    rows = {"fact_no": range(n), "correct": correct, "baseline": baseline or [0.0] * n}
    return results({"relation": ["P1"] * n, **facts}, rows)


def one(table: Results, metric: Metric, of: str = "value", **settings: Any) -> dict[str, Any]:
    return line(estimate(table, [metric], **settings), metric.id, of)


def test_a_mean_is_over_facts_and_over_relations() -> None:
    table = results(
        {"relation": ["P1", "P2", "P2"]},
        {"fact_no": [0, 1, 1, 2], "correct": [1.0, 1.0, 0.0, 0.0], "baseline": [0.0] * 4},
    )
    frame = estimate(table, [m.accuracy()])
    assert frame.schema == ESTIMATES
    values = dict(frame.filter(of="value").select("over", "value").iter_rows())
    assert values == {"relations": (1 + 1 / 4) / 2, "facts": 1.5 / 3}


def test_n_counts_facts_prompts_or_groups() -> None:
    table = random_results(n=12, templates=3)
    spread = m.sd_between(m.accuracy(), "template_no", "spread", counts="groups")
    frame = estimate(table, [m.accuracy(), m.OVERCONFIDENCE, spread])
    counts = [line(frame, id)["n"] for id in ("accuracy", "overconfidence", "spread")]
    assert counts == [12, 36, 3]
    assert line(frame, "accuracy")["n_clusters"] == 6


def test_a_null_numerator_does_not_count() -> None:
    some = Metric("some", num=pl.when(col("fact_no").first() > 0).then(col("correct").mean()))
    found = one(outcomes([0.0, 1.0, 0.0]), some)
    assert (found["value"], found["n"]) == (1 / 2, 2)
    nothing = one(outcomes([0.0]), Metric("nothing", num=pl.lit(None, pl.Float64)))
    assert (nothing["value"], nothing["low"], nothing["n"]) == (None, None, 0)


def test_the_order_of_rows_does_not_matter() -> None:
    table = random_results()
    shuffled = replace(table, rows=table.rows.sample(fraction=1.0, shuffle=True, seed=1))
    first, second = (
        estimate(t, ALL, groups=("relation", "kind")).select(NUMBERS).to_numpy().astype(float)
        for t in (table, shuffled)
    )
    np.testing.assert_allclose(first, second, atol=1e-12)


@pytest.mark.parametrize("column", ["relation", "template_no", "kind", "tags"])
def test_a_group_is_a_filter(column: str) -> None:
    table = random_results(n=60)
    groups = estimate(table, ALL, groups=(column,))
    groups = groups.filter(pl.col("group").list.len() == 1)
    values = table.table().select(column).explode(column) if column == "tags" else table.table()
    for value in values.select(column).collect().to_series().unique():
        is_it = pl.col(column).list.contains(value) if column == "tags" else col(column) == value
        alone = numbers(estimate(table.select(where=is_it), ALL))
        same = numbers(groups.filter(col("group") == [str(value)]))
        # agreement of one template's prompts, or a spread over it, is not measured
        known = {key for key, (value, *_) in alone.items() if value is not None}
        assert same.keys() == {
            key for key in known if (column, key[0]) != ("template_no", "spread")
        }
        for key, found in same.items():
            assert found == pytest.approx(alone[key], abs=1e-12), (key, value)


def test_groups_may_be_of_several_columns_and_some_metrics() -> None:
    frame = estimate(random_results(), ALL, groups=(Group(("relation", "kind"), ("accuracy",)),))
    grouped = frame.filter(col("group_by") == ["relation", "kind"], of="value", over="facts")
    assert grouped["metric"].unique().to_list() == ["accuracy"]
    assert sorted(grouped["group"].to_list()) == [
        [relation, kind] for relation in ("P0", "P1") for kind in ("1-1", "N-M")
    ]


def test_within_a_relation_one_number_has_both_names() -> None:
    frame = estimate(random_results(), ALL, groups=("relation",))
    parts = frame.filter(col("group_by") == ["relation"]).partition_by("over", include_key=False)
    assert parts[0].equals(parts[1])


def test_fine_groups_are_not_resampled() -> None:
    table = random_results(n=40, templates=2)
    metrics, group = [m.accuracy(), m.OVERCONFIDENCE], Group(("relation", "template_no"), fine=True)
    frame = estimate(table, metrics, groups=[group])
    found = line(frame, "accuracy", "value", "P1", "2")
    chosen = table.table().filter(col("relation") == "P1", template_no=2)
    correct = chosen.select(col("correct").mean()).collect().item()
    assert (found["value"], found["n"], found["n_clusters"]) == (correct, 20, 10)
    assert (found["low"], found["high"]) == pytest.approx(stats.wilson_interval(correct * 10, 10))
    assert line(frame, "overconfidence", "value", "P1", "2")["low"] is None
    assert frame.filter(col("group_by").list.len() == 2, of="difference").is_empty()


def test_relations_are_aggregated_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    table = random_results(n=60, relations=5)
    whole = estimate(table, ALL, groups=("relation", "kind"))
    monkeypatch.setattr(engine, "CHUNK", 40)
    assert estimate(table, ALL, groups=("relation", "kind")).equals(whole)


def test_independent_outcomes_have_wilsons_interval() -> None:
    found = one(outcomes([1.0, 0.0, 1.0, 1.0]), m.accuracy())
    assert (found["low"], found["high"]) == pytest.approx(stats.wilson_interval(3, 4))


def test_facts_of_one_subject_are_resampled_together() -> None:
    correct = [1.0, 1.0, 0.0, 0.0] * 10
    alone, paired = (
        one(outcomes(correct, cluster=cluster), m.accuracy())
        for cluster in (range(40), [i // 2 for i in range(40)])
    )
    assert paired["n_clusters"] == 20
    assert paired["high"] - paired["low"] > 1.3 * (alone["high"] - alone["low"])


@pytest.mark.parametrize("value", [0, 1])
def test_shares_that_do_not_vary_still_have_an_interval(value: int) -> None:
    rows = {"fact_no": [0, 0, 1, 2, 3, 3], "correct": [float(value)] * 6}
    table = results({"relation": ["P1"] * 2 + ["P2"] * 2}, rows)
    prompts = Metric("prompts", num=col("correct").sum(), den=pl.len(), counts="prompts")
    best = Metric(
        "best",
        num=col("correct").mean(),
        by="template_no",
        stat=lambda x, labels: x.max(axis=-1),
        centered=True,
    )
    frame = estimate(table, [prompts, best, replace(prompts, id="points", unit="points")])
    low, high = stats.wilson_interval(4 * value, 4)
    for id in ("prompts", "best"):
        found = line(frame, id)
        assert (found["value"], found["n"]) == (value, 6 if id == "prompts" else 4)
        assert (found["low"], found["high"]) == pytest.approx((low, high))
    assert line(frame, "points")["low"] is None


def test_shares_have_no_interval_outside_of_0_to_1() -> None:
    for seed in range(5):
        frame = estimate(random_results(n=10, seed=seed), ALL, groups=("relation", "template_no"))
        percent = [metric.id for metric in ALL if metric.unit == "percent"]
        shares = frame.filter(col("metric").is_in(percent), col("of") != "difference")
        assert shares.filter((col("low") < 0) | (col("high") > 1)).is_empty()
        assert frame.filter((col("low") > col("value")) | (col("high") < col("value"))).is_empty()


def test_draws_of_extremes_are_centered() -> None:
    table = random_results(n=60, templates=8)
    best = {"by": "template_no", "stat": lambda x, labels: x.max(axis=-1), "baseline": None}
    plain, centered = (
        one(table, m.accuracy(f"best{i}", centered=bool(i), **best)) for i in range(2)
    )
    middles = [(found["low"] + found["high"]) / 2 - found["value"] for found in (plain, centered)]
    assert middles[0] > 0.02 > abs(middles[1])


def test_a_difference_is_paired_with_its_baseline() -> None:
    correct, baseline = [1.0] * 8 + [0.0] * 4, [1.0] * 2 + [0.0] * 10
    frame = estimate(outcomes(correct, baseline), [m.accuracy()])
    found = line(frame, "accuracy", "difference")
    assert found["value"] == pytest.approx(6 / 12)
    assert found["p"] == pytest.approx(2 / 2**6, abs=0.01)
    assert found["low"] >= 0
    assert line(frame, "accuracy", "baseline")["value"] == 2 / 12


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=6, max_size=30))
def test_interval_and_p_of_a_difference_agree(pairs: list[tuple[bool, bool]]) -> None:
    correct, baseline = ([float(pair[i]) for pair in pairs] for i in range(2))
    found = one(outcomes(correct, baseline), m.accuracy(), "difference")
    assert (found["low"] <= 0 <= found["high"]) or found["p"] < 0.05
    assert found["p"] >= 0.05 or found["low"] >= 0 or found["high"] <= 0
    assert -1 <= found["low"] <= found["value"] <= found["high"] <= 1


@pytest.mark.parametrize("relations", [1, 2])
def test_few_changed_outcomes_have_newcombes_interval(relations: int) -> None:
    rows = {"fact_no": range(20), "correct": [1.0] + [0.0] * 19, "baseline": [0.0] * 20}
    table = results({"relation": [f"P{i * relations // 20}" for i in range(20)]}, rows)
    found = one(table, m.accuracy(), "difference")
    ends = stats.newcombe_interval(1 / 20, 0, 20)
    assert found["p"] >= 0.05
    assert (found["low"], found["high"]) == pytest.approx(ends)


def test_few_clusters_have_no_test() -> None:
    found = one(outcomes([1.0] * 5), m.accuracy(), "difference")
    assert (found["value"], found["low"], found["high"], found["p"]) == (1, None, None, None)
    assert one(outcomes([1.0] * 6), m.accuracy(), "difference")["p"] < 0.05


def test_p_falls_with_the_number_of_clusters() -> None:
    n = 1200
    better = [float(i % 10 < 6) for i in range(n)]
    worse = [float(i % 10 < 4) for i in range(n)]
    assert one(outcomes(better, worse), m.accuracy(), "difference")["p"] < 1e-12


def test_parts_share_draws() -> None:
    table = random_results()
    same = (m.accuracy(), m.accuracy())
    zero = Metric("zero", parts=same, stat=lambda x, labels: x[..., 0] - x[..., 1], unit="points")
    frame = estimate(table, [*same[:1], m.consistency(), ALL[-1], zero])
    assert line(frame, "zero")["value"] == 0
    assert line(frame, "zero")["low"] is None
    accuracy, consistency = (line(frame, id)["value"] for id in ("accuracy", "consistency"))
    harmonic = line(frame, "harmonic")
    assert harmonic["value"] == pytest.approx(2 / (1 / accuracy + 1 / consistency))
    assert harmonic["n"] == 40


def test_parts_on_some_of_the_cases_share_their_draws() -> None:
    rng = np.random.default_rng(2)
    correct = (rng.random(90) < 0.5).astype(float).tolist()
    table = outcomes(correct)
    most = m.accuracy("most", where=col("fact_no") < 80, baseline=None)
    gap = Metric("gap", parts=(m.accuracy(), most), stat=lambda x, labels: x[..., 0] - x[..., 1])
    found = one(table, gap)
    # nearly the same facts: far less than independent draws would give
    assert found["high"] - found["low"] < 0.12


def test_a_statistic_sees_labels_in_order() -> None:
    seen = []

    def stat(values: np.ndarray, labels: list[int]) -> np.ndarray:
        seen.append((values.shape, labels))
        return np.full(values.shape[:-1], float(labels[-1]))

    table = random_results(templates=11)
    last = Metric("last", num=col("correct").mean(), by="template_no", stat=stat, unit="count")
    assert one(table, last)["value"] == 11
    assert seen[0] == ((2001, 11), list(range(1, 12)))


def test_a_statistic_may_be_within_relations() -> None:
    rows = {
        "fact_no": [0, 0, 1, 1],
        "template_no": [1, 2, 1, 2],
        "correct": [1.0, 0.0, 0.0, 1.0],
    }
    table = results({"relation": ["P1", "P2"]}, rows)
    best: dict[str, Any] = {"num": col("correct").mean(), "by": "template_no", "unit": "number"}
    across, within = (
        Metric(str(inside), stat=lambda x, labels: x.max(axis=-1), within=inside, **best)
        for inside in (False, True)
    )
    assert [one(table, metric)["value"] for metric in (across, within)] == [0.5, 1]


def test_relations_may_be_what_a_statistic_is_over() -> None:
    table = random_results(relations=4)
    spread = m.sd_between(m.accuracy(), "relation", "spread", counts="groups")
    frame = estimate(table, [m.accuracy(), spread], groups=("relation",))
    values = frame.filter(metric="accuracy", of="value", over="facts", group_by=["relation"])
    assert line(frame, "spread")["value"] == pytest.approx(values["value"].std())
    assert line(frame, "spread")["n"] == 4


def test_p_is_corrected_for_the_groups_of_the_same_columns() -> None:
    frame = estimate(random_results(n=80, relations=4), [m.accuracy()], groups=("relation",))
    tested = frame.filter(col("p").is_not_null(), over="facts")
    overall, groups = (tested.filter(col("group_by").list.len() == n) for n in (0, 1))
    assert overall["p"].equals(overall["p_adjusted"])
    assert groups["p_adjusted"].to_list() == stats.holm_corrected(groups["p"].to_list())


def test_a_contrast_is_the_paired_difference_to_the_reference() -> None:
    table = random_results(n=40, templates=3)
    harmonic = m.harmonic_mean("harmonic", m.accuracy(), m.mrr())
    frame = estimate(
        table,
        [m.accuracy(), harmonic],
        groups=("relation", "template_no"),
        contrasts=(Contrast("template_no", "last"),),
    )
    gaps = frame.filter(reference="3")
    assert gaps["of"].unique().to_list() == ["difference"]
    assert set(gaps["group_by"].to_list()[0]) == {"template_no"}
    one_gap = line(gaps, "accuracy", "difference", "1")
    values = [line(frame, "accuracy", "value", str(i))["value"] for i in (1, 3)]
    assert one_gap["value"] == pytest.approx(values[0] - values[1])
    inside = gaps.filter(group_by=["template_no", "relation"], over="facts", metric="accuracy")
    assert inside["group"].to_list() == [["1", "P0"], ["1", "P1"], ["2", "P0"], ["2", "P1"]]
    combined = line(gaps, "harmonic", "difference", "1")
    assert (combined["low"] <= 0 <= combined["high"]) == (combined["p"] >= 0.05)


def test_a_contrast_counts_the_facts_that_both_measure() -> None:
    first, second = outcomes([1.0, 1.0, 0.0, 1.0]), outcomes([0.0, 1.0, 1.0, 1.0])
    second = second.select(where=col("fact_no") < 3)
    found = line(paired_differences(first, second, [m.accuracy()]), "accuracy", "difference")
    assert (found["value"], found["n"]) == (0, 3)


def test_a_contrast_is_of_ratios_with_their_own_denominators() -> None:
    rows = {"fact_no": [0, 1], "correct": [1.0, 0.0]}
    first, second = [
        results({"relation": ["P1"] * 2}, {**rows, "weight": weight})
        for weight in ([1.0, 3.0], [1.0, 1.0])
    ]
    ratio = Metric("ratio", num=(col("correct") * col("weight")).sum(), den=col("weight").sum())
    found = line(paired_differences(first, second, [ratio]), "ratio", "difference")
    assert found["value"] == pytest.approx(1 / 4 - 1 / 2)


def test_draws_are_those_of_the_estimate() -> None:
    table = random_results()
    drawn = bootstrap_draws(table, m.consistency())
    found = one(table, m.consistency())
    assert drawn[0] == found["value"]
    assert stats.bootstrap_interval(drawn, 20, 2) == pytest.approx((found["low"], found["high"]))


def test_a_special_is_estimated_next_to_metrics() -> None:
    nothing, two = Metric("nothing"), Metric("two")
    special = Special((nothing, two), lambda results, seed: [("two", [], [], 2.0, 1, 3, 5, 4)])
    frame = estimate(random_results(), [special])
    assert line(frame, "two")["n"] == 5
    assert line(frame, "nothing")["value"] is None
    assert frame["over"].unique().sort().to_list() == ["facts", "relations"]


def test_missing_columns_are_named() -> None:
    with pytest.raises(UsageError, match="names a missing column"):
        estimate(random_results(), [m.mean("wrong")])
    with pytest.raises(UsageError, match="no column 'wrong' to group by"):
        estimate(random_results(), [m.accuracy()], groups=("wrong",))


def test_other_seeds_give_other_draws_of_the_same_value() -> None:
    found = [one(random_results(), m.consistency(), seed=seed) for seed in (0, 0, 2)]
    assert found[0] == found[1] != found[2]
    assert all(a["value"] == b["value"] for a, b in pairwise(found))
