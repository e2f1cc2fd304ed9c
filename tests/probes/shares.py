"""Answers of a model whose texts and probabilities are written down, for tests of probes."""

from collections.abc import Callable, Iterable, Mapping
from math import log
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from sonde.answers import (
    Answers,
    Completions,
    MaskScores,
    OptionScores,
    Ragged,
    Result,
    Samples,
)
from sonde.core.facts import Dataset
from sonde.evaluation.estimate import estimate_results
from sonde.evaluation.tables import Results, collect_results
from sonde.probes.base import Probe
from sonde.prompts import FillMask, Generate, PromptBatch, Sample, Score

Shares = Mapping[str, Any]  # of an option: its probability, or one for each of its tokens
Model = Callable[[dict[str, Any]], Any]
"""What is answered to a prompt, whose `request` is FillMask, Generate, Sample or Score."""
UNSEEN = 1e-13  # of an option or target without a probability


def by_fact(**names: str) -> Model:
    """A model that answers each of these facts with a name, and others with nothing."""
    return lambda prompt: {names[prompt["fact"]]: 0.9} if prompt["fact"] in names else {}


def answer(batch: PromptBatch, model: Model) -> Answers:
    """Scored options, filled masks or texts; a target with a space in it is no token."""
    kind = {"request": type(batch.request).__name__}
    tables: list[Any] = [model(prompt | kind) for prompt in batch.frame.iter_rows(named=True)]
    result: Result
    if isinstance(batch.request, Generate):
        # a text, of one token or with the log-probability of each
        pairs = [(t, (-0.5,)) if isinstance(t, str) else t for t in tables]
        logprobs = np.array([logprob for _, each in pairs for logprob in each], np.float32)
        result = Completions(
            text=pa.array([text for text, _ in pairs], pa.string()),
            token_logprobs=Ragged.of([len(each) for _, each in pairs], logprobs),
            end_logprob=np.zeros(len(tables), np.float32),
            finished=np.ones(len(tables), np.bool_),
            reasoning=pa.array([""] * len(tables), pa.string()),
        )
        return Answers(batch=batch, result=result)
    if isinstance(batch.request, Sample):
        sizes, drawn = [len(t) for t in tables], [item for t in tables for item in t.items()]
        nothing = Ragged.of([0] * len(drawn), pa.array([], pa.string()))
        result = Samples(
            texts=Ragged.of(sizes, pa.array([text for text, _ in drawn], pa.string())),
            counts=Ragged.of(sizes, np.array([count for _, count in drawn], np.int64)),
            texts_reasoning=Ragged.of(sizes, nothing),
        )
        return Answers(batch=batch, result=result)
    if isinstance(batch.request, FillMask):
        result = _filled(batch.request, tables)
    else:
        assert isinstance(batch.request, Score)
        lists = [batch.options[i] for i in batch.options_ids()]
        both = zip(tables, lists, strict=True)
        shares = [np.atleast_1d(table.get(n, UNSEEN)) for table, names in both for n in names]
        values = np.log(np.concatenate(shares)).astype(np.float32)
        result = OptionScores.of([len(n) for n in lists], [len(s) for s in shares], values)
    return Answers(batch=batch, result=result)


def _filled(request: FillMask, tables: list[Shares]) -> MaskScores:
    tables = [
        {
            name: share
            for name, share in (dict.fromkeys(request.targets, UNSEEN) | dict(shares)).items()
            if " " not in name and (request.vocabulary is None or name in request.vocabulary)
        }
        for shares in tables
    ]
    top = [sorted(table, key=lambda name: (-table[name], name)) for table in tables]
    top = [names[: request.top_k] for names in top]
    counts = [len(names) for names in top]
    best = [log(t[name]) for t, names in zip(tables, top, strict=True) for name in names]
    targets = np.array([[t.get(name, np.nan) for name in request.targets] for t in tables])
    ranks = [[sum(s >= value for s in t.values()) for value in row]
             for t, row in zip(tables, targets, strict=True)]  # fmt: skip
    return MaskScores(
        top=Ragged.of(counts, pa.array([name for names in top for name in names], pa.string())),
        top_logprobs=Ragged.of(counts, np.array(best, np.float32)),
        allowed_logprob=np.zeros(len(tables), np.float32),
        target_logprobs=np.log(targets).astype(np.float32),
        target_ranks=np.array(ranks, np.int64),
    )


def results(probe: Probe, data: Dataset, model: Model) -> Results:
    """The results of a probe with this model."""
    return collect_results(probe, data, (answer(batch, model) for batch in probe.prompts(data)))


class Numbers:
    """Estimates of a probe with a model, by metric and group."""

    def __init__(self, probe: Probe, data: Dataset, model: Model) -> None:
        self.results = results(probe, data, model)
        self.frame = estimate_results(self.results)
        self.over = probe.layout.over

    def line(self, metric: str, *group: str, of: str = "value", over: str = "") -> dict[str, Any]:
        """The line of a metric; of those over everything, the one of the layout."""
        lines = self.frame.filter(
            (pl.col("metric") == metric)
            & (pl.col("of") == of)
            & (pl.col("over") == (over or self.over))
            & (pl.col("group") == list(group))
        )
        assert lines.height == 1, f"{lines.height} lines of {metric} {group}"
        return lines.row(0, named=True)

    def __call__(self, metric: str, *group: str, of: str = "value", over: str = "") -> float:
        value: float = self.line(metric, *group, of=of, over=over)["value"]
        return value


def texts(batches: Iterable[PromptBatch]) -> list[tuple[str, str]]:
    """What is before and after the gap of every prompt."""
    return [pair for b in batches for pair in b.frame.select("prefix", "suffix").iter_rows()]
