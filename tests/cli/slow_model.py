"""`slow:SECONDS`: a model from another package, found by its entry point, that takes its time.

`slow:load` never finishes loading. It answers as the majority control does, and only scores.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from sonde.core.abilities import Identity, Model
from sonde.core.answers import Scored
from sonde.core.facts import Dataset
from sonde.core.prompts import Prompt
from sonde.models.controls.counting import Majority, majority
from sonde.models.options import LoadOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class Slow:
    """Sleeps before each answer."""

    seconds: float
    inner: Majority

    @property
    def identity(self) -> Identity:
        return Identity(name="slow", architecture="sleeping", weights=self.inner.identity.weights)

    def score(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Scored]]:
        for position, answer in self.inner.score(prompts):
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
            time.sleep(60)
        assert dataset is not None
        return Slow(seconds=float(rest), inner=majority(dataset))


COMPONENT = SlowScheme()
