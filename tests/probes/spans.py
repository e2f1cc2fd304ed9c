"""Answers of a model that gives each span of a text a probability, for tests of probes."""

from collections.abc import Callable
from math import log
from typing import Any

import numpy as np

from sonde.answers import Answers, Ragged, SpanLogprobs
from sonde.core.facts import Dataset
from sonde.evaluation.tables import Results, collect_results
from sonde.probes.base import Probe
from sonde.prompts import PromptBatch

Model = Callable[[dict[str, Any], int, str], float | None]
"""The probability of a span: of a prompt, its number and its text; None: no token of its own."""


def answer(batch: PromptBatch, model: Model) -> Answers:
    logprobs, sizes = [], []
    for prompt in batch.frame.iter_rows(named=True):
        texts = [prompt["prefix"][a:b].strip(" ") for a, b in prompt["spans"]]
        logprobs += [model(prompt, number, text) for number, text in enumerate(texts)]
        sizes.append(len(texts))
    values = np.array([log(p) for p in logprobs if p is not None], np.float32)
    tokens = Ragged.of([p is not None for p in logprobs], values)
    return Answers(batch=batch, result=SpanLogprobs(logprobs=Ragged.of(sizes, tokens)))


def results(probe: Probe, data: Dataset, model: Model) -> Results:
    """The results of a probe with this model."""
    return collect_results(probe, data, (answer(batch, model) for batch in probe.prompts(data)))
