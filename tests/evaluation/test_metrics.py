"""The catalog of metrics on the smallest cases, and against naive definitions."""

from collections.abc import Sequence
from itertools import combinations, groupby

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars import col

from sonde.evaluation import metrics as m
from sonde.evaluation.estimate import Metric, estimate
from sonde.evaluation.tables import Results

from .worlds import random_results, results


def values(table: Results, *metrics: Metric, over: str = "facts") -> list[float | None]:
    frame = estimate(table, metrics, over=[over])  # type: ignore[list-item]
    return [frame.filter(metric=metric.id, of="value")["value"][0] for metric in metrics]


def answers(
    texts: Sequence[str], templates: Sequence[int] = (), aliases: Sequence[int] = ()
) -> Results:
    """Answers about one fact; x is correct."""
    n = len(texts)
    columns = {"template_no": templates or [1] * n, "alias_no": aliases or range(n)}
    correct = [text == "x" for text in texts]
    return results(
        {"relation": ["P1"]}, {"fact_no": [0] * n, **columns, "answer": texts, "correct": correct}
    )


def test_accuracy_ranks_and_means() -> None:
    rows = {"fact_no": [0, 0, 1], "correct": [True, False, False], "rank": [1, 4, None]}
    table = results({"relation": ["P1"] * 2}, rows)
    found = values(table, m.accuracy(baseline=None), m.p_at(4), m.mrr(), m.mean("rank"))
    assert found == [1 / 4, 1 / 2, (1 + 1 / 4) / 4, 2.5]


@given(st.lists(st.sampled_from("abc"), min_size=2, max_size=8))
def test_consistency_is_the_share_of_pairs_with_equal_answers(texts: list[str]) -> None:
    pairs = [a == b for a, b in combinations(texts, 2)]
    assert values(answers(texts), m.consistency()) == [pytest.approx(np.mean(pairs))]


def test_one_prompt_has_no_consistency() -> None:
    assert values(answers(["a"]), m.consistency()) == [None]


def test_answers_may_match_without_being_equal() -> None:
    view = m.agreement_view(matches=lambda a, b: a in b or b in a)
    # ab matches both, which do not match each other; an empty answer matches itself alone
    found = values(answers(["a", "ab", "b", "", ""]), m.consistency(view=view))
    assert found == [3 / 10]


def test_drivers_are_what_names_and_templates_alone_do() -> None:
    table = answers(["x", "x", "x", "y"], templates=[1, 1, 2, 2], aliases=[0, 1, 0, 1])
    frame = estimate(table, m.answer_driver_metrics())
    found = dict(frame.filter(of="value", over="facts").select("metric", "value").iter_rows())
    assert found == {
        "only_aliases.consistency": 0.5,
        "only_aliases.min": 0.5,
        "only_aliases.max": 1,
        "only_templates.consistency": 0.5,
        "only_templates.min": 0.5,
        "only_templates.max": 1,
    }


def test_drivers_are_not_measured_with_one_name_or_one_template() -> None:
    single = answers(["x", "y"], templates=[1, 2], aliases=[0, 0])
    assert values(single, *m.answer_driver_metrics()) == [None] * 3 + [0, 0, 1]
    assert values(answers(["x", "y"]), *m.answer_driver_metrics())[3:] == [None] * 3


def test_paraphrases_are_compared_inside_groups_and_across() -> None:
    # groups of templates: 1 2 | 3
    table = answers(["a", "a", "b"], templates=[1, 2, 3], aliases=[0] * 3)
    assert values(table, *m.paraphrase_group_metrics()) == [1, 0]
    ungrouped = answers(["a", "b"], templates=[1, 3], aliases=[0] * 2)
    assert values(ungrouped, *m.paraphrase_group_metrics()) == [None, None]


def test_template_accuracies_and_coverage() -> None:
    rows = {
        "fact_no": [0, 0, 1, 1, 2],
        "template_no": [1, 2, 1, 2, 1],
        "correct": [True, False, False, True, True],
    }
    table = results({"relation": ["P1"] * 3}, rows)
    # template 1: facts 0 and 2 of 3; template 2: fact 1 of 2, which counts as one and a half of 3
    assert values(table, *m.TEMPLATE_ACCURACY) == pytest.approx([1 / 2, 2 / 3, (1 / 2 + 2 / 3) / 2])
    assert values(table, *m.COVERAGE) == pytest.approx([2 / 3, 2 / 3, 2 / 3, 1])


def ece(confidence: Sequence[float], correct: Sequence[bool]) -> float:
    """Sorted by confidence, cut into ten parts; those of equal confidence share their accuracy."""
    pairs = sorted(zip(confidence, correct, strict=True))
    gaps = []
    for value, group in groupby(pairs, key=lambda pair: pair[0]):
        verdicts = [pair[1] for pair in group]
        gaps += [value - np.mean(verdicts)] * len(verdicts)
    return float(sum(abs(sum(part)) for part in np.array_split(gaps, 10)) / len(gaps))


@given(
    st.lists(
        st.tuples(st.sampled_from([0.0, 0.25, 0.3, 0.5, 1.0]), st.booleans()),
        min_size=1,
        max_size=60,
    )
)
def test_ece_is_that_of_ten_bins_of_equal_size(prompts: list[tuple[float, bool]]) -> None:
    confidence, correct = zip(*prompts, strict=True)
    rows = {
        "fact_no": np.arange(len(prompts)) % 7,
        "confidence": confidence,
        "correct": correct,
        "alias_no": range(len(prompts)),
    }
    table = results({"relation": ["P1"] * 7}, rows)
    expected = pytest.approx(ece(confidence, correct), abs=1e-9)
    assert values(table, m.ECE)[0] == expected


def test_prompts_without_a_confidence_have_no_calibration() -> None:
    rows = {"fact_no": [0, 1], "confidence": [0.75, None], "correct": [False, True]}
    table = results({"relation": ["P1"] * 2}, rows)
    assert values(table, m.OVERCONFIDENCE, m.ECE) == [0.75, 0.75]


def test_accuracy_at_a_level_is_of_the_confident_answers() -> None:
    rows = {"fact_no": [0, 1, 2], "confidence": [0.9, 0.8, 0.3], "correct": [True, False, True]}
    table = results({"relation": ["P1"] * 3}, rows)
    assert [metric.id for metric in m.accuracy_at_confidence((0.5,))] == [
        "accuracy_at.0.5",
        "retained_at.0.5",
    ]
    assert values(table, *m.accuracy_at_confidence((0.5,))) == pytest.approx([1 / 2, 2 / 3])
    assert values(table, *m.accuracy_at_confidence((0.95,))) == [None, 0]


def test_a_harmonic_mean_with_a_zero_is_zero() -> None:
    table = answers(["y", "z"])
    assert values(table, m.harmonic_mean("h", m.accuracy(baseline=None), m.COVERAGE[-1])) == [0]


def test_aliases_help_where_the_correct_answer_is_more_likely() -> None:
    rows = {
        "fact_no": [0, 0, 0, 1],
        "alias_no": [0, 1, 2, 1],
        "gold_logprob": [-1.0, -0.5, -2.0, -0.1],
        "helped": [0, 1, 0, 0],
        "compared": [1, 2, 0, 0],
    }
    table = results({"relation": ["P1"] * 2}, rows)
    frame = estimate(table, m.ALIASES_HELP, over=["facts"])
    assert frame.select("value", "n").rows() == [(1 / 2, 2), (1 / 3, 3)]


def test_abstentions_count_among_generated_answers() -> None:
    rows = {
        "fact_no": range(4),
        "abstained": [True, True, False, False],
        "correct": [True, False, False, True],
        "answer_mode": ["generate"] * 3 + ["score"],
    }
    table = results({"relation": ["P1"] * 4}, rows)
    assert values(table, *m.ABSTENTION) == [1 / 3, 1 / 2]


def test_ranking_is_full_if_all_prompts_are() -> None:
    rows = {"fact_no": [0, 0, 1, 2], "ranked": [1.0, 0.5, 1.0, None]}
    assert values(results({"relation": ["P1"] * 3}, rows), *m.RANKING) == [7 / 8, 1 / 2]


def test_cells_count_the_same_whatever_their_number_of_prompts() -> None:
    table = answers(["x", "x", "x", "y"], templates=[1, 1, 1, 2])
    by_cell = Metric("cells", num=col("correct").mean(), view=m.cell_means_view("template_no"))
    assert values(table, by_cell) == [0.5]


def test_no_metric_warns(recwarn: pytest.WarningsRecorder) -> None:
    table = random_results(n=2, templates=1)
    every = [
        m.accuracy(),
        m.consistency(),
        m.OVERCONFIDENCE,
        m.ECE,
        *m.COVERAGE,
        *m.accuracy_at_confidence((2,)),
    ]
    assert estimate(table, every, groups=("relation", "template_no", "kind")).height
    assert not recwarn.list
    assert pl.DataFrame().is_empty()
