"""MONITOR: does a right answer survive other wordings of the question, and wrong names before it?

Knows no model. For each fact the probability of its object is taken with the object itself in front
of the base question (the anchor), in every other frame of the question, and after wrong names; each
prompt is also answered in writing. methods: PFD, IRD and MONITOR over valid anchors, accuracies
over prompts, the anchors' probabilities.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

from sonde.core.abilities import Ability, need
from sonde.core.columns import Given
from sonde.core.errors import DataError
from sonde.core.facts import Dataset
from sonde.core.prompts import Prompt
from sonde.core.reports import Report
from sonde.metrics.distance import Monitored
from sonde.metrics.judged import Judged
from sonde.probes.monitor.ask import Census, Settings, every
from sonde.probes.monitor.judge import judge
from sonde.probes.monitor.report import build_report


@dataclass(frozen=True, slots=True, kw_only=True)
class Monitor(Settings):
    """Reliability of answers under other framings of the question and misleading names."""

    name: ClassVar[str] = "monitor"
    shrinks: ClassVar[str] = "shots"

    def suited(self, can: frozenset[Ability]) -> Self:
        """As it is: the model must score and write."""
        need(self.name, can, "score")
        need(self.name, can, "generate")
        return self

    def ask(self, dataset: Dataset) -> Iterator[Prompt]:
        """Relation by relation, fact by fact: the anchor, the frames, the wrong names."""
        census, some = Census(), False
        for asking in every(dataset, self, census):
            for prompt in asking.prompts(census):
                some = True
                yield prompt
        if not some:
            raise DataError(
                f"dataset {dataset.name!r} has no question to ask: monitor needs templates of "
                "style 'question', such as 'Where was [X] born? [Y].', and facts that are not all "
                "examples; 'sonde data build fktc' makes questions"
            )

    def read(self, dataset: Dataset, answered: Given) -> Report:
        """Find the anchors and compute every number."""
        return build_report(dataset, judge(dataset, answered, self), self)

    def monitored(self, dataset: Dataset, answered: Given) -> Monitored:
        """What MONITOR is computed from, for comparisons with other runs."""
        return judge(dataset, answered, self).monitored

    def judged(self, dataset: Dataset, answered: Given) -> Judged:
        """Every answer to a bare question, for comparisons with other runs."""
        return self.monitored(dataset, answered).judged()


COMPONENT = Monitor
