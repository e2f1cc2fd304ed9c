"""The warning about dominating answers, on simulated runs that its thresholds were not set on."""

from itertools import count

import numpy as np
import polars as pl

from sonde.reports.collapse import find_collapsed_relations
from tests.reports.sample import sample_run, say, world
from tests.worlds import dataset_of, fact

RELATIONS, FACTS = 120, 20


def simulated(seed: int, planted: float) -> tuple[int, int]:
    """How many of some relations are flagged if answers are drawn from the gold distribution, and a
    share of them is one name; and how many relations there are."""
    rng, numbers = np.random.default_rng(seed), count()
    made, names = [], {}
    for r in range(RELATIONS):
        weights = rng.dirichlet(np.ones(int(rng.integers(4, 30))))
        gold = rng.choice(len(weights), FACTS, p=weights)
        given = rng.choice(gold, FACTS)
        given[: round(planted * FACTS)] = rng.choice(gold)
        for own, name in zip(gold, given, strict=True):
            id = f"f{next(numbers)}"
            made.append(fact(f"P{r}", f"subject {id}", f"n{own}", id=id))
            names[id] = f"n{name}"
    results, _ = sample_run(dataset_of(made), say(**names))
    return len(find_collapsed_relations(results)), RELATIONS


def test_answers_from_the_gold_distribution_are_rarely_flagged() -> None:
    flagged, relations = simulated(31, planted=0.0)
    assert flagged <= 0.05 * relations


def test_a_name_planted_in_three_of_five_answers_is_found() -> None:
    flagged, relations = simulated(32, planted=0.6)
    assert flagged >= 0.9 * relations


def test_correct_answers_do_not_collapse_though_one_object_is_frequent() -> None:
    data = world(facts=20, objects=["a"] * 9 + ["b"])
    gold = {f.id: f.objects[0].name for f in data.facts("P0")}
    assert find_collapsed_relations(sample_run(data, say(**gold))[0]) == []
    (found,) = find_collapsed_relations(sample_run(world(facts=20), say(default="a"))[0])
    assert (found.names, found.share, found.gold, found.hits) == (("a",), 1.0, 0.25, 5)


def test_few_facts_allow_no_warning() -> None:
    assert find_collapsed_relations(sample_run(world(facts=8), say(default="a"))[0]) == []


def test_prompts_of_a_fact_count_as_one() -> None:
    results, _ = sample_run(world(facts=20), say(default="a"))
    first = results.rows.filter(pl.col("fact_no") == 0)
    more = pl.concat([results.rows, *[first.with_columns(answer=first["answer"])] * 50])
    assert results.rows.height == 20
    (found,) = find_collapsed_relations(type(results)(**{**vars(results), "rows": more}))
    assert (found.share, found.n) == (1.0, 20)
