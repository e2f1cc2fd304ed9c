"""`slow:SECONDS`: a model from another package, found by its entry point, that takes its time.

`slow:load` never finishes loading. It answers as the majority control does, and only scores. Where
SLOW_MOST is set, it falls silent after so many answers and makes the file SLOW_SILENT: whoever
wants to stop a run half way has all the time there is, however busy the machine.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import ClassVar

from sonde.core.abilities import Identity, Model
from sonde.core.answers import Scored
from sonde.core.columns import one_by_one
from sonde.core.facts import Dataset
from sonde.core.prompts import Prompt
from sonde.models.controls import Majority, majority
from sonde.models.options import LoadOptions

FOR_EVER = 3600.0
OFTEN = 0.05
"""Seconds of a nap: a signal that comes just before a long sleep would not end it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slow:
    """Sleeps before each answer."""

    seconds: float
    inner: Majority
    answers: Iterator[int] = field(default_factory=count)

    @property
    def identity(self) -> Identity:
        return Identity(name="slow", architecture="sleeping", weights=self.inner.identity.weights)

    def score(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Scored]]:
        for position, answer in one_by_one(self.inner.score(prompts)):
            if next(self.answers) == int(os.environ.get("SLOW_MOST", -1)):
                Path(os.environ["SLOW_SILENT"]).touch()
                sleep_on()
            time.sleep(self.seconds)
            yield position, answer


@dataclass(frozen=True, slots=True)
class SlowScheme:
    """Names the pause between two answers."""

    name: ClassVar[str] = "slow"
    usage: ClassVar[str] = "slow:SECONDS"
    summary: ClassVar[str] = "sleeps"

    def load(self, rest: str, options: LoadOptions, dataset: Dataset | None) -> Model:
        if rest == "load":
            print("loading", file=sys.stderr, flush=True)
            sleep_on()
        assert dataset is not None
        return Slow(seconds=float(rest), inner=majority(dataset))


def sleep_on() -> None:
    """Do nothing until a signal comes."""
    for _ in range(int(FOR_EVER / OFTEN)):
        time.sleep(OFTEN)


COMPONENT = SlowScheme()
