"""`scripted:FILE`: a test double that answers from a table. No weights, no surprise.

The file is JSON: {"answers": {"FACT ID": "NAME", …}}. A fact that is not in it gets the same
probability for every answer: a tie, which counts as wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import log
from pathlib import Path
from typing import ClassVar

from sonde.core.abilities import Identity, Model
from sonde.core.errors import ModelError
from sonde.core.facts import Dataset
from sonde.core.fingerprints import canonical, fingerprint
from sonde.core.prompts import Prompt, Trace
from sonde.models.options import LoadOptions, read_json
from sonde.models.tables import UNSEEN, TableModel


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Scripted(TableModel):
    """Answers each fact as its table says, with probability 0.9."""

    KEYS: ClassVar = ("fact",)
    answers: Mapping[str, str]

    @property
    def identity(self) -> Identity:
        """Named by the content of its table."""
        weights = fingerprint([canonical(dict(self.answers))])
        return Identity(name="scripted", architecture="table", weights=weights)

    def tables(self, prompt: Prompt) -> tuple[list[dict[str, float]], float]:
        """What is said of the fact, or of each; other names that are asked for share the rest."""
        if isinstance(prompt.want, Trace):
            said = [self.answers.get(fact) for fact in prompt.facts]
            return [{} if name is None else {name: log(0.9)} for name in said], log(0.1)
        names = getattr(prompt.want, "options", ()) or getattr(prompt.want, "watched", ())
        answer = self.answers.get(prompt.key.fact)
        others = [name for name in names if name != answer]
        share = (1.0 if answer is None else 0.1) / max(len(others), 1)
        table = dict.fromkeys(others, log(share))
        return [table if answer is None else {answer: log(0.9), **table}], UNSEEN


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
