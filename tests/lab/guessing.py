"""A model that guesses among the objects of a relation, the same way for the same prompt."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import log
from random import Random
from typing import Any

from sonde.core.abilities import Identity
from sonde.core.answers import Filled, Generated, Scored, Traced
from sonde.core.facts import Dataset
from sonde.core.prompts import Prompt
from sonde.models.tables import fill_from, generate_from, score_from, trace_from

Table = dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Writes:
    """Scores, traces and writes."""

    dataset: Dataset
    name: str = "guessing"

    @property
    def identity(self) -> Identity:
        return Identity(name=self.name, architecture="guessing", weights=self.name)

    def score(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Scored]]:
        return self._each(prompts, lambda p: score_from(p, self.table(p, p.key.fact)))

    def generate(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Generated]]:
        return self._each(prompts, lambda p: generate_from(p, self.table(p, p.key.fact)))

    def trace(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Traced]]:
        return self._each(prompts, lambda p: trace_from(p, [self.table(p, f, "") for f in p.facts]))

    def table(self, prompt: Prompt, fact: str, text: str | None = None) -> Table:
        """Shares of the relation's objects, drawn by the fact and the text before them."""
        names = self.dataset.object_names(prompt.key.relation, aliases=True)
        random = Random(f"{fact}:{prompt.prefix if text is None else text}")
        shares = [random.random() ** 4 for _ in names]
        return {n: log(share / sum(shares)) for n, share in zip(names, shares, strict=True)}

    def _each(
        self, prompts: Sequence[Prompt], answer: Callable[[Prompt], Any]
    ) -> Iterator[tuple[int, Any]]:
        return ((i, answer(prompt)) for i, prompt in enumerate(prompts))


@dataclass(frozen=True, slots=True, kw_only=True)
class Fills:
    """Fills holes, and scores; half of its probability is on what nobody asks about."""

    writes: Writes

    @property
    def identity(self) -> Identity:
        return self.writes.identity

    def score(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Scored]]:
        return self.writes.score(prompts)

    def fill(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Filled]]:
        for i, prompt in enumerate(prompts):
            table = self.writes.table(prompt, prompt.key.fact)
            yield i, fill_from(prompt, {name: logp - log(2) for name, logp in table.items()})
