"""A model small enough to read, and what runs leave behind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from sonde.core.abilities import Identity
from sonde.core.answers import Scored
from sonde.core.prompts import Prompt, Score
from sonde.store.manifest import Complete


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Scores each option by its length, and lists the facts it was asked about."""

    name: str = "listing"
    asked: list[str] = field(default_factory=list)

    @property
    def identity(self) -> Identity:
        return Identity(name=self.name, architecture="listing")

    def score(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Scored]]:
        for position, prompt in reversed(list(enumerate(prompts))):  # any order will do
            assert isinstance(prompt.want, Score)
            self.asked.append(prompt.key.fact)
            logps = tuple((-float(len(option)), -0.5) for option in prompt.want.options)
            yield position, Scored(options=prompt.want.options, logps=logps)


def unseal(out: Path) -> None:
    """Make a finished run one of those that were made before runs were sealed."""
    path = out / "complete.json"
    path.write_text(replace(Complete.from_json(path.read_text()), sealed={}).to_json())
