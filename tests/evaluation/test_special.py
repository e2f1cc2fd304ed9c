"""Fluctuation, bias, ranks and overconfidence of templates, against their definitions."""

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars import col

from sonde.evaluation import special as s
from sonde.evaluation.estimate import Special, estimate
from sonde.evaluation.tables import Results

from .worlds import random_results, results


def lines(table: Results, special: Special, **settings: Any) -> dict[str, dict[str, Any]]:
    frame = estimate(table, [special], over=["facts"], **settings)
    rows = frame.iter_rows(named=True)
    return {".".join([row["metric"].partition(".")[2], *row["group"]]): row for row in rows}


def mixed() -> Results:
    """Two relations of three facts, two templates, two names; not all of them prompted."""
    table = random_results(n=6, templates=2, aliases=2, seed=3)
    return replace(table, rows=table.rows.filter((col("fact_no") != 4) | (col("template_no") == 1)))


def deviation(table: Results) -> float:
    """Over every choice of a template per relation and, given it, of an alias per fact."""
    rows = table.rows.with_columns(col("relation").cast(pl.String))
    facts = rows.group_by("relation", "fact_no", maintain_order=True).agg("template_no", "correct")
    found = []
    for chosen in product((1, 2), repeat=2):
        templates = dict(zip(("P0", "P1"), chosen, strict=True))
        options = []
        for relation, _, numbers, correct in facts.iter_rows():
            own = [c for n, c in zip(numbers, correct, strict=True) if n == templates[relation]]
            options.append(own or correct)
        weight = 1 / np.prod([len(option) for option in options])
        found += [(np.mean(draw), weight) for draw in product(*options)]
    values, weights = map(np.array, zip(*found, strict=True))
    mean = np.average(values, weights=weights)
    return float(np.sqrt(np.average((values - mean) ** 2, weights=weights)))


def test_the_closed_form_is_that_of_all_draws() -> None:
    table = mixed()
    exact = deviation(table)
    found = lines(table, s.prompt_sensitivity(20_000))
    assert found["relation.closed_form"]["value"] == pytest.approx(exact)
    assert found["relation.closed_form"]["low"] is None
    assert found["relation.stdev"]["value"] == pytest.approx(exact, rel=0.03)
    assert found["relation.stdev"]["low"] < exact < found["relation.stdev"]["high"]
    assert (found["relation.stdev"]["n"], found["relation.stdev"]["n_clusters"]) == (6, 4)


def test_a_prompt_per_fact_is_a_poisson_binomial() -> None:
    table = mixed()
    rates = table.rows.group_by("fact_no").agg(col("correct").mean())["correct"].to_numpy()
    exact = (rates * (1 - rates)).sum() ** 0.5 / 6
    found = lines(table, s.prompt_sensitivity(5000))
    assert found["pair.closed_form"]["value"] == pytest.approx(exact)
    sizes = [found[f"pair.closed_form.{relation}"]["n"] for relation in ("P0", "P1")]
    assert sizes == [3, 3]


def test_one_prompt_per_fact_does_not_fluctuate() -> None:
    found = lines(random_results(templates=1), s.prompt_sensitivity())
    assert {row["value"] for row in found.values()} == {None}


def test_bias_is_0_for_even_and_1_for_one_candidate() -> None:
    levels = s.bias_level(np.array([[0.25] * 4, [1.0, 0, 0, 0], [0.5, 0.5, 0, 0]]))
    assert levels == pytest.approx([0, 1, 0.5])


def biased(*shares: tuple[float, ...]) -> Results:
    """One relation; each template's shares of candidates, the same for two subjects."""
    table = random_results(n=2, templates=len(shares), relations=1)
    columns = [
        ("P0", f"P0-{n}", subject, ["a", "b", "c"], np.log(share).tolist())
        for n, share in enumerate(shares, 1)
        for subject in ("", "N/A")
    ]
    names = ("relation", "template", "subject", "candidates", "logprobs")
    return replace(table, side={"bias": pl.DataFrame(columns, names, orient="row")})


def test_biases_that_cancel_have_no_bias_together() -> None:
    table = biased((0.5, 0.25, 0.25), (0.25, 0.5, 0.25), (0.25, 0.25, 0.5))
    found = lines(table, s.template_bias())
    level = s.bias_level(np.array([0.5, 0.25, 0.25]))
    assert found["single"]["value"] == pytest.approx(level)
    assert found["multi"]["value"] == pytest.approx(0)
    assert found["single"]["n"] == 3
    assert found["single.P0"]["value"] == found["single"]["value"]


def test_one_template_has_a_bias_without_an_interval() -> None:
    found = lines(biased((0.5, 0.25, 0.25)), s.template_bias())
    assert found["multi"]["value"] == found["single"]["value"] > 0
    assert found["single"]["low"] is None


def test_a_candidate_that_is_not_one_token_is_none() -> None:
    table = biased((0.5, 0.25, 0.25))
    logprobs = [[0.0, float("nan"), 0.0]] * 2
    side = table.side["bias"].with_columns(logprobs=pl.Series(logprobs))
    ((relation, templates, names, shares),) = s.candidate_shares(
        replace(table, side={"bias": side})
    )
    assert (relation, templates.tolist(), names) == ("P0", [1], ["a", "c"])
    assert shares.tolist() == [[0.5, 0.5]]


def test_without_content_free_prompts_bias_is_not_measured() -> None:
    assert {row["value"] for row in lines(random_results(), s.template_bias()).values()} == {None}


def test_hand_written_templates_rank_by_accuracy() -> None:
    # template 1 is hand-written; 1 and 2 are equal, 3 is better
    correct = [True, False, True, False, True, True]
    rows = {"fact_no": [0, 1] * 3, "template_no": [1, 1, 2, 2, 3, 3], "correct": correct}
    table = results({"relation": ["P1"] * 2}, rows)
    found = lines(table, s.prompt_sensitivity(50))
    assert (found["rank"]["value"], found["rank"]["n"]) == (2.5, 1)
    assert found["rank_by_chance"]["value"] == 2
    only = table.select(where=col("template_no") == 1)
    assert lines(only, s.prompt_sensitivity(50))["rank"]["value"] is None


def test_overconfidence_differs_between_templates() -> None:
    rows = {
        "fact_no": [0, 1, 0, 1, 0],
        "template_no": [1, 1, 2, 2, 3],
        "correct": [True, False, True, True, False],
        "confidence": [1.0, 1.0, 0.5, 0.7, 1.0],
    }
    table = results({"relation": ["P1"] * 2}, rows)
    found = lines(table, s.template_overconfidence(2))
    # of 0.5 and -0.4; the third has one prompt
    values = {name: found[name]["value"] for name in ("mean", "stdev", "min", "max")}
    assert values == pytest.approx({"mean": 0.05, "stdev": 0.9 / 2**0.5, "min": -0.4, "max": 0.5})
    assert [found[name]["n"] for name in ("mean", "min")] == [2, 2]
    first = lines(table, s.template_overconfidence(1, where=col("fact_no") == 0))
    assert first["mean"]["value"] == pytest.approx((0 - 0.5 + 1) / 3)
    assert lines(table, s.template_overconfidence(9))["mean"]["value"] is None
