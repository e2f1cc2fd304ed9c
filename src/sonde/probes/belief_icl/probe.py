"""BELIEF-ICL: causal models answer in their own words, after an instruction and some examples.

Knows no model. Each pair of subject and relation is asked in every template, under every name that
is chosen; the answer is written greedily to the end of the line, and for up to 10,000 pairs also
drawn many times. methods: Acc@1, fluctuation, Consist by matching, one-word rate, Overconf from
drawn answers and from probabilities by length, template accuracies, coverage.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

from sonde.core.abilities import Ability, need
from sonde.core.columns import Given
from sonde.core.facts import Dataset
from sonde.core.prompts import Prompt
from sonde.core.reports import Report
from sonde.metrics.judged import Judged
from sonde.probes.belief_icl.ask import Settings, prompts
from sonde.probes.belief_icl.judge import Outcomes, judge
from sonde.probes.belief_icl.report import build_report
from sonde.prompting.pairs import World, world


@dataclass(frozen=True, slots=True, kw_only=True)
class BeliefIcl(Settings):
    """Accuracy, consistency and confidence of answers written after examples."""

    name: ClassVar[str] = "belief-icl"

    def suited(self, can: frozenset[Ability]) -> Self:
        """As it is: the model must write, and draw unless no confidence is wanted."""
        need(self.name, can, "generate")
        if self.samples:
            need(f"{self.name}, unless samples=0,", can, "sample")
        return self

    def ask(self, dataset: Dataset) -> Iterator[Prompt]:
        """Relation by relation, some pairs at a time, template by template."""
        self.check_templates(dataset)
        return prompts(dataset, self)

    def read(self, dataset: Dataset, answered: Given) -> Report:
        """Judge every answer by its lemmas and compute every number."""
        return build_report(dataset, *self._outcomes(dataset, answered), self)

    def judged(self, dataset: Dataset, answered: Given) -> Judged:
        """Every judged prompt, for comparisons with other runs."""
        return self._outcomes(dataset, answered)[1].judged

    def _outcomes(self, dataset: Dataset, answered: Given) -> tuple[World, Outcomes]:
        asked = world(dataset, {r.id: self.eligible(r) for r in dataset.asked_relations()})
        return asked, judge(dataset, asked, answered, self.language)


COMPONENT = BeliefIcl
