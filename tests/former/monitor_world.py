"""Capitals and birthplaces with several questions each, and wrong names for some facts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import log
from typing import Any

from sonde.core.abilities import Identity
from sonde.core.answers import Generated, Scored
from sonde.core.facts import Dataset, Fact, Relation
from sonde.core.prompts import Prompt, Score
from sonde.core.reports import Report
from sonde.former.monitor.probe import Monitor
from tests.rows import answer_all
from tests.worlds import dataset_of, fact, question, relation, template

Likely = Callable[[Prompt], float]
Saying = Callable[[Prompt], str]


CAPITAL = relation(
    "P36",
    template("P36-s", "The capital of [X] is [Y]."),
    question("P36-1", "What is the capital of [X]?"),
    question("P36-2", "Which city is the capital of [X]?"),
    question("P36-3", "Which city governs [X]?"),
    label="capital",
    kind="1-1",
)
BIRTH = relation(
    "P19",
    question("P19-1", "Where was [X] born?"),
    question("P19-2", "In which place was [X] born?"),
    label="place of birth",
)
FACTS = (
    fact("P36", "Peru", "Lima", wrong=("Oslo", "Quito", "Bern")),
    fact("P36", "Norway", "Oslo", wrong=("Lima", "Oslo")),
    fact("P36", "Austria", "Vienna", wrong=("Lima",)),
    fact("P36", "Chile", "Santiago", split="train"),
    fact("P36", "Kenya", "Nairobi", split="train"),
    fact("P36", "Japan", "Tokyo", split="train"),
    fact("P36", "Egypt", "Cairo", split="train"),
    fact("P19", "Ann", "York"),
    fact("P19", "Bob", "Leeds"),
    fact("P19", "Cy", "York"),
)


def world(
    facts: Sequence[Fact] = FACTS,
    having: Sequence[Relation] = (CAPITAL, BIRTH),
    **selection: Any,
) -> Dataset:
    return dataset_of(facts, *having, **selection)


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """Gives an option a probability, and writes a text, as functions of the prompt say."""

    likely: Likely
    says: Saying

    @property
    def identity(self) -> Identity:
        return Identity(name="told", architecture="functions")

    def score(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Scored]]:
        for i, prompt in enumerate(prompts):
            assert isinstance(prompt.want, Score)
            logp = log(self.likely(prompt))
            yield i, Scored(options=prompt.want.options, logps=((logp,),))

    def generate(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Generated]]:
        for i, prompt in enumerate(prompts):
            yield i, Generated(text=f" {self.says(prompt)}", logps=(-0.1,))


def kind(prompt: Prompt) -> str:
    """What is told before the question: none, right or wrong."""
    return str(prompt.own["told"])


def golden(data: Dataset) -> Saying:
    """Says the fact's own object, always."""
    known = {f.id: f.objects[0].name for r in data.relations for f in data.facts(r.id)}
    return lambda prompt: known[prompt.key.fact]


def read(
    data: Dataset, likely: Likely, says: Saying | None = None, probe: Monitor | None = None
) -> Report:
    probe = probe or Monitor()
    model = Told(likely=likely, says=says or golden(data))
    return probe.read(data, answer_all(model, list(probe.ask(data))))


def without_wrong(given: Fact) -> Fact:
    """The fact with only its own object for a wrong one: none is left."""
    return replace(given, wrong=given.objects)
