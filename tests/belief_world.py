"""Two countries in two wordings, small enough to compute every number of BELIEF by hand.

France has two names and so has its capital; Peru has one of each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log

from sonde.core.abilities import Identity
from sonde.core.answers import Filled, Scored
from sonde.core.facts import Dataset, Fact, Template
from sonde.core.prompts import Prompt
from sonde.models.tables import fill_from, score_from
from tests.worlds import dataset_of, entity, fact, relation, template

Shares = Mapping[str, float]

TEMPLATES = (
    template("t1", "The capital of [X] is [Y]."),
    template("t2", "[X] is governed from [Y].", source="paraphrase", group="t1"),
)

ANSWERS: Mapping[tuple[str, str], Shares] = {
    ("t1", "France"): {"Paris": 0.8, "Lutetia": 0.1},
    ("t1", "Gaul"): {"Lyon": 0.5, "Paris": 0.3, "Lutetia": 0.1},
    ("t2", "France"): {"Lutetia": 0.6, "Paris": 0.2},
    ("t2", "Gaul"): {"Paris": 0.7, "Lutetia": 0.15},
    ("t1", "Peru"): {"Lima": 0.9},
    ("t2", "Peru"): {"Cusco": 0.7, "Lima": 0.1},
    **{("t1", s): {"Paris": 0.5, "Lutetia": 0.25, "Lima": 0.25} for s in ("N/A", "", "?")},
    **{("t2", s): {"Lima": 0.5, "Lutetia": 0.25, "Paris": 0.25} for s in ("N/A", "", "?")},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A model that answers as a table of (template, subject) says."""

    answers: Mapping[tuple[str, str], Shares]

    @property
    def identity(self) -> Identity:
        return Identity(name="told", architecture="table")

    def fill(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Filled]]:
        for i, prompt in enumerate(prompts):
            yield i, fill_from(prompt, self._logps(prompt))

    def score(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Scored]]:
        for i, prompt in enumerate(prompts):
            yield i, score_from(prompt, self._logps(prompt))

    def _logps(self, prompt: Prompt) -> dict[str, float]:
        shares = self.answers.get((prompt.key.template, prompt.key.subject), {})
        return {name: log(share) for name, share in shares.items()}


FACTS = (
    fact("P36", entity("France", "Gaul"), entity("Paris", "Lutetia")),
    fact("P36", "Peru", "Lima"),
)


def world(*facts: Fact, templates: Sequence[Template] = TEMPLATES) -> Dataset:
    return dataset_of(facts, relation("P36", *templates, label="capital", kind="1-1"))


def marked(dataset: Dataset) -> Dataset:
    """The dataset with the first template of every relation called LAMA's own."""
    relations = (
        replace(r, templates=(replace(r.templates[0], origin="lama"), *r.templates[1:]))
        for r in dataset.relations
    )
    return replace(dataset, relations=tuple(relations))
