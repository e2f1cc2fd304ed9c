"""Answers one by one, for tests that look at single ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sonde import testing
from sonde.core.abilities import Model, Probe
from sonde.core.answers import Answered
from sonde.core.columns import Answers, Given
from sonde.core.facts import Dataset
from sonde.core.prompts import Block, Prompt, prompts_of


def rows_of(answers: Given) -> Iterator[Answered]:
    """Answered prompts one after the other."""
    for each in answers:
        yield from each.each() if isinstance(each, Answers) else (each,)


def answer_all(model: Model, prompts: Iterable[Block] | Iterable[Prompt]) -> list[Answered]:
    """Put prompts to a model; each with its answer."""
    return list(rows_of(testing.answer_all(model, prompts)))


def asked(probe: Probe, dataset: Dataset) -> list[Prompt]:
    """Every prompt of a probe."""
    return list(prompts_of(probe.ask(dataset)))
