"""BEAR, LAMA and BELIEF from the stored answers of a control, with plain numpy."""

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import sonde
from sonde.answers import Answers, MaskScores, OptionScores
from sonde.evaluation.estimate import estimate_results
from tests.worlds import world

Prompt = tuple[str, str, float, float, float]
"""Relation, fact, whether the answer is correct, 1/rank, confidence."""


def graded(answers: Answers, gold: dict[str, list[str]]) -> Iterator[Prompt]:
    """One prompt at a time, as the papers write it; those about no fact are left out."""
    result, rows = answers.result, answers.frame.rows(named=True)
    for i, row in enumerate(rows):
        if not row["fact"]:
            continue
        names = gold[row["fact"]]
        if isinstance(result, OptionScores):
            options = np.array(answers.batch.options[row.get("options_id") or 0])
            tokens, first = result.logprobs.values, result.logprobs.offsets[i]
            ends = tokens.offsets[first : first + len(options) + 1]
            scores = np.array([tokens.values[a:b].sum(dtype=float) for a, b in pairwise(ends)])
            correct = np.isin(options, names)
            rank = 1 + (scores[~correct] >= scores[correct].max()).sum()
            confidence = np.exp(scores - scores.max()).sum() ** -1
        else:
            assert isinstance(result, MaskScores)
            targets = answers.batch.request.targets  # type: ignore[union-attr]
            ranks = result.target_ranks[i][np.isin(targets, names)]
            rank = ranks[ranks > 0].min()
            confidence = np.exp(result.top_logprobs.values[result.top_logprobs.offsets[i]])
        yield row["relation"], row["fact"], float(rank == 1), 1 / rank, float(confidence)


def over_facts(prompts: list[Prompt], column: int) -> float:
    facts = defaultdict[tuple[str, str], list[float]](list)
    for prompt in prompts:
        facts[prompt[:2]].append(float(prompt[column]))
    return float(np.mean([np.mean(values) for values in facts.values()]))


def over_relations(prompts: list[Prompt], column: int) -> float:
    relations = {prompt[0] for prompt in prompts}
    each = ([p for p in prompts if p[0] == relation] for relation in relations)
    return float(np.mean([over_facts(part, column) for part in each]))


@pytest.mark.parametrize("answer", ["fill", "score"])
@pytest.mark.parametrize(
    ("name", "accuracy", "mrr"),
    [("bear", "accuracy", "mrr"), ("lama", "p_at_1", "mrr"), ("belief", "acc_at_1", "")],
)
def test_numbers_are_those_of_plain_numpy(
    name: str, accuracy: str, mrr: str, answer: str, tmp_path: Path
) -> None:
    data = world()
    probe = sonde.probe(name) if name == "bear" else sonde.probe(name, answer=answer)
    run = sonde.run(probe, "control:naive-bayes", data, tmp_path / "run")
    gold = {
        f.id: [n for o in f.objects for n in o.names]
        for r in data.relations
        for f in data.facts(r.id)
    }
    prompts = [prompt for answers in run.answers() for prompt in graded(answers, gold)]
    frame = estimate_results(run.results()).filter(pl.col("group_by").list.len() == 0, of="value")

    def value(metric: str, over: str) -> float:
        return float(frame.filter(metric=metric, over=over)["value"].item())

    assert 0 < over_facts(prompts, 2) < 1, "the control answers some facts"
    for metric, column in {accuracy: 2, mrr: 3}.items():
        if metric:
            assert value(metric, "facts") == pytest.approx(over_facts(prompts, column), abs=1e-9)
            assert value(metric, "relations") == pytest.approx(
                over_relations(prompts, column), abs=1e-9
            )
    if name == "belief":
        gaps = [p[4] - p[2] for p in prompts]
        assert value("overconfidence", "facts") == pytest.approx(np.mean(gaps), abs=1e-7)
