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
from sonde.core.columns import Given, rows_of
from sonde.core.errors import DataError, UsageError
from sonde.core.facts import Dataset
from sonde.core.prompts import Prompt
from sonde.core.reports import Report
from sonde.core.settings import setting
from sonde.metrics.distance import EQUAL, Monitored, Rule
from sonde.metrics.judged import Judged
from sonde.probes.monitor.ask import Census, Shape, items, prompts
from sonde.probes.monitor.report import build_report
from sonde.probes.monitor.tally import Outcomes, Tally, as_judged
from sonde.prompting.frames import Form


@dataclass(frozen=True, slots=True, kw_only=True)
class Monitor:
    """Reliability of answers under other framings of the question and misleading names."""

    name: ClassVar[str] = "monitor"
    shrinks: ClassVar[str] = "shots"

    frame: Form = setting("plain", "put questions as they are, or as 'Q: …' and 'A:' (qa)")
    shots: int = setting(
        0, "answered questions of the relation in front; small models need some", least=0
    )
    anchor: Rule = setting(
        "exact",
        "whose anchor counts: the answer after the right name is the object (exact), begins with "
        "it (prefix), or any prompt is answered so (any)",
        reads=True,
    )
    alphas: tuple[float, ...] = setting(
        EQUAL, "weights of PFD², IRD² and PFD·IRD in MONITOR", reads=True
    )
    frames: int = setting(0, "the most frames of a relation; 0 for all that it has", least=0)
    negatives: int = setting(5, "the most wrong names for a fact", least=1)
    most: int = setting(15, "the most tokens of an answer", least=1)
    full: bool = setting(
        False, "also write answers in every frame after every wrong name, to compare the cost"
    )

    def __post_init__(self) -> None:
        if len(self.alphas) != 3:
            raise UsageError(f"setting alphas takes three numbers, not {len(self.alphas)}")
        if min(self.alphas) < 0 or max(self.alphas) <= 0:
            given = ", ".join(f"{alpha:g}" for alpha in self.alphas)
            raise UsageError(f"setting alphas: none below 0 and one above it, not {given}")

    def suited(self, can: frozenset[Ability]) -> Self:
        """As it is: the model must score and write."""
        need(self.name, can, "score")
        need(self.name, can, "generate")
        return self

    def ask(self, dataset: Dataset) -> Iterator[Prompt]:
        """Relation by relation, fact by fact: the anchor, the frames, the wrong names."""
        census, some = Census(), False
        for _, item in items(dataset, self._shape(), census):
            some = True
            yield from prompts(item, self._shape())
        if not some:
            raise DataError(
                f"dataset {dataset.name!r} has no question to ask: monitor needs templates of "
                "style 'question', such as 'Where was [X] born? [Y].', and facts that are not all "
                "examples; 'sonde data build fktc' makes questions"
            )

    def read(self, dataset: Dataset, answered: Given) -> Report:
        """Find the anchors and compute every number."""
        return build_report(dataset, self._outcomes(dataset, answered), self._shape())

    def monitored(self, dataset: Dataset, answered: Given) -> Monitored:
        """What MONITOR is computed from, for comparisons with other runs."""
        return self._outcomes(dataset, answered).monitored

    def judged(self, dataset: Dataset, answered: Given) -> Judged:
        """Every answer to a bare question, for comparisons with other runs."""
        return as_judged(self._outcomes(dataset, answered))

    def _outcomes(self, dataset: Dataset, answered: Given) -> Outcomes:
        tally = Tally(dataset, self._shape())
        for row in rows_of(answered):
            tally.add(row)
        one, two, three = self.alphas
        return tally.outcomes(self.anchor, (one, two, three))

    def _shape(self) -> Shape:
        return Shape(
            form=self.frame,
            shots=self.shots,
            frames=self.frames,
            negatives=self.negatives,
            most=self.most,
            full=self.full,
        )


COMPONENT = Monitor
