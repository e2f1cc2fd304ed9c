"""Judge answers into a frame, and average a column of it: what a small probe needs.

Knows facts, answers and numbers, nothing of prompts or tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sonde.core.columns import Given, in_blocks
from sonde.core.facts import Dataset
from sonde.core.reports import Estimate, Metric
from sonde.core.scores import Normalise
from sonde.metrics.estimates import FACTS, RELATIONS, Sample, resampled_together
from sonde.metrics.verdicts import judge_block

if TYPE_CHECKING:
    from polars import DataFrame, Series


def judge(dataset: Dataset, answers: Given, normalise: Normalise = "none") -> DataFrame:
    """How every filled or scored prompt about a fact did, a row each; others are left out.

    Columns: relation, fact, subject (its id: facts of one subject are no independent ones),
    template, name (of the subject in the prompt), answer, right, rank (0: no correct name could be
    answered), confidence, gold_logprob (log-probability of all correct names together).
    """
    import polars

    frames = [dataset.asked_frame(relation.id) for relation in dataset.asked_relations()]
    facts = polars.concat(frames)
    keys = zip(facts["relation"], facts["fact"], strict=True)
    places = {key: place for place, key in enumerate(keys)}
    places |= {(relation.id, ""): -1 for relation in dataset.asked_relations()}
    correct = dict(enumerate(facts["object_names"].to_list()))
    parts = []
    for block in in_blocks(answers):
        numbers = block.numbers(("relation", "fact"), places)
        owners = np.maximum(numbers, 0)
        found = judge_block(block, owners, correct, normalise)
        said = np.where(found.answer < 0, len(found.names), found.answer)
        columns = {
            **{name: _texts(*block.codes(name)) for name in ("relation", "fact", "template")},
            "name": _texts(*block.codes("subject")),
            "subject": facts["subject_id"].gather(owners),
            "answer": _texts(said, [*found.names, ""]),
            "right": found.rank == 1,
            **{name: getattr(found, name) for name in ("rank", "confidence", "gold_logprob")},
        }
        parts.append(polars.DataFrame(columns).filter(polars.Series(numbers >= 0)))
    return polars.concat(parts)


def _texts(numbers: NDArray[Any], texts: Sequence[str]) -> Series:
    from polars import Series, String

    return Series(texts, dtype=String).gather(numbers)


def mean(
    metric: Metric,
    frame: DataFrame,
    value: str,
    *,
    cluster: str,
    minus: str | None = None,
    by: str = "relation",
    seed: int = 0,
) -> dict[str, Estimate]:
    """The mean of a column with its interval: of each relation, over relations and over rows.

    Rows with an equal `cluster` are resampled together. With `minus`, the column of a control, it
    is the mean of the paired difference.
    """
    used = dict.fromkeys(name for name in (by, cluster, value, minus) if name is not None)
    samples = {
        str(name): Sample(
            values=part[value].cast(float).to_numpy(),
            clusters=part[cluster].rank("dense").to_numpy().astype(np.int64),
            minus=None if minus is None else part[minus].cast(float).to_numpy(),
        )
        for (name,), part in frame.select(*used).sort(by, cluster).group_by(by, maintain_order=True)
    }
    resampled = resampled_together({metric.id: samples}, seed)[metric.id]
    return {
        metric.at(RELATIONS): resampled.mean_over_relations(),
        metric.at(FACTS): resampled.mean_over_facts(),
        **{metric.at(f"{by}.{name}"): resampled.relation(name) for name in samples},
    }
