"""Models for in-context estimation that answer as they are told to, and reports about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log

from sonde.core.abilities import Identity, Probe
from sonde.core.answers import Answered, Scored
from sonde.core.columns import in_blocks
from sonde.core.facts import Dataset, Fact
from sonde.core.prompts import Prompt, Score
from sonde.core.reports import Report
from sonde.metrics.judged import Judged
from sonde.models.scripted import Scripted
from tests.rows import answer_all, asked
from tests.worlds import fact

ANSWERS = {"P36-Austria": "Vienna", "P36-Egypt": "Lima", "P1303-Gus": "violin"}


def trained(*names: str, relation: str = "P36") -> list[Fact]:
    """Facts for training about subjects of these names, each with an object of its own."""
    return [fact(relation, name, f"{name} City", split="train") for name in names]


def read(probe: Probe, data: Dataset, answers: dict[str, str] | None = None) -> Report:
    """The report about a model that answers as a table says."""
    model = Scripted(answers=ANSWERS if answers is None else answers)
    return probe.read(data, in_blocks(answer_all(model, probe.ask(data))))


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """Scores options by a table of probabilities, whatever the prompt."""

    table: dict[str, float]

    @property
    def identity(self) -> Identity:
        return Identity(name="told", architecture="table")

    def score(self, prompts: Sequence[Prompt]) -> list[tuple[int, Scored]]:
        return [(i, self._scored(prompt)) for i, prompt in enumerate(prompts)]

    def _scored(self, prompt: Prompt) -> Scored:
        assert isinstance(prompt.want, Score)
        options = prompt.want.options
        return Scored(
            options=options, logps=tuple((log(self.table.get(o, 1e-9)),) for o in options)
        )


def read_as(probe: Probe, data: Dataset, shares: Mapping[str, int]) -> Report:
    """The report about a model that is right on the first so many capitals, by the way of asking.

    Options are scored; the way is a pair of separators, or the template.
    """
    golds = {f.id: f.objects[0].name for f in data.asked("P36")}
    places = {id: place for place, id in enumerate(golds)}
    rows = []
    for prompt in asked(probe, data):
        assert isinstance(prompt.want, Score)
        right = places[prompt.key.fact] < shares[prompt.own.get("separators", prompt.key.template)]
        chosen = [(name == golds[prompt.key.fact]) == right for name in prompt.want.options]
        logps = tuple((0.0 - k / 1000,) if ok else (-9.0,) for k, ok in enumerate(chosen))
        answer = Scored(options=prompt.want.options, logps=logps)
        rows.append(
            Answered(key=prompt.key, prefix=prompt.prefix, suffix="", answer=answer, own=prompt.own)
        )
    return probe.read(data, in_blocks(rows))


def right(judged: Judged) -> dict[str, bool]:
    """Whether each fact was answered right."""
    pairs = zip(judged.grid.pair.tolist(), judged.grid.right.tolist(), strict=True)
    return {judged.pairs[pair]: right for pair, right in pairs}
