"""Answers one by one, for tests that look at single ones."""

from __future__ import annotations

from collections.abc import Iterable

from sonde import testing
from sonde.core.abilities import Model, Probe
from sonde.core.answers import Answered
from sonde.core.columns import rows_of
from sonde.core.facts import Dataset
from sonde.core.prompts import Block, Prompt, prompts_of


def answer_all(model: Model, prompts: Iterable[Block] | Iterable[Prompt]) -> list[Answered]:
    """Put prompts to a model; each with its answer."""
    return list(rows_of(testing.answer_all(model, prompts)))


def asked(probe: Probe, dataset: Dataset) -> list[Prompt]:
    """Every prompt of a probe."""
    return list(prompts_of(probe.ask(dataset)))
