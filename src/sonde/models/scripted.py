"""`scripted:FILE`: a test double that answers from a table. No weights, no surprise.

The file is JSON: {"answers": {"FACT ID": "NAME", …}}. A fact that is not in it gets the same
probability for every answer: a tie, which counts as wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log
from pathlib import Path
from typing import ClassVar

from sonde.core.abilities import Identity, Model
from sonde.core.answers import Filled, Generated, Sampled, Scored, Traced
from sonde.core.errors import ModelError
from sonde.core.facts import Dataset
from sonde.core.fingerprints import canonical, fingerprint
from sonde.core.prompts import Fill, Prompt, Score
from sonde.models.options import LoadOptions, read_json
from sonde.models.tables import fill_from, generate_from, sample_from, score_from, trace_from


@dataclass(frozen=True, slots=True, kw_only=True)
class Scripted:
    """Answers each fact as its table says, with probability 0.9."""

    answers: Mapping[str, str]

    @property
    def identity(self) -> Identity:
        """Named by the content of its table."""
        weights = fingerprint([canonical(dict(self.answers))])
        return Identity(name="scripted", architecture="table", weights=weights)

    def score(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Scored]]:
        """Yield (position, answer)."""
        for i, prompt in enumerate(prompts):
            names = prompt.want.options if isinstance(prompt.want, Score) else ()
            yield i, score_from(prompt, self._table(prompt, names))

    def fill(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Filled]]:
        """Yield (position, answer)."""
        for i, prompt in enumerate(prompts):
            names = prompt.want.watched if isinstance(prompt.want, Fill) else ()
            yield i, fill_from(prompt, self._table(prompt, names))

    def generate(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Generated]]:
        """Yield (position, answer)."""
        for i, prompt in enumerate(prompts):
            yield i, generate_from(prompt, self._table(prompt, ()))

    def sample(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Sampled]]:
        """Yield (position, answer)."""
        for i, prompt in enumerate(prompts):
            yield i, sample_from(prompt, self._table(prompt, ()))

    def trace(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Traced]]:
        """Yield (position, answer); where the key names a fact for each span, by that fact."""
        for i, prompt in enumerate(prompts):
            known = [self.answers.get(fact) for fact in prompt.facts]
            tables = [{} if name is None else {name: log(0.9)} for name in known]
            yield i, trace_from(prompt, tables, log(0.1))

    def _table(self, prompt: Prompt, names: Sequence[str]) -> dict[str, float]:
        known = self.answers.get(prompt.key.fact)
        others = [name for name in names if name != known]
        share = (1.0 if known is None else 0.1) / max(len(others), 1)
        table = dict.fromkeys(others, log(share))
        return table if known is None else {known: log(0.9), **table}


@dataclass(frozen=True, slots=True)
class ScriptedScheme:
    """A table of answers in a file."""

    name: ClassVar[str] = "scripted"
    usage: ClassVar[str] = "scripted:FILE"
    summary: ClassVar[str] = (
        "answers from a JSON table, for tests and dry runs; fills, scores and writes"
    )

    def load(self, rest: str, options: LoadOptions, dataset: Dataset | None) -> Model:
        """Read the table."""
        if not rest:
            return Scripted(answers={})
        advice = 'expected a JSON file {"answers": {fact: name}}'
        table = read_json(Path(rest), advice).get("answers")
        if not isinstance(table, dict):
            raise ModelError(f"scripted:{rest} has no table of answers; {advice}")
        return Scripted(answers={str(k): str(v) for k, v in table.items()})


COMPONENT = ScriptedScheme()
