"""MONITOR: does a right answer survive other wordings of the question, and wrong names before it?

Knows no model. For each fact the probability of its object is taken with the object itself in front
of the base question (the anchor), in every other frame of the question, and after wrong names; each
prompt is also answered in writing. Numbers: PFD, IRD and MONITOR over valid anchors, accuracies
over prompts, the anchors' probabilities.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import ClassVar

from sonde.core.abilities import needs
from sonde.core.columns import Given
from sonde.core.components import setting
from sonde.core.errors import DataError, UsageError
from sonde.core.facts import Dataset, Relation, Template
from sonde.core.prompts import Generate, Prompt, Score
from sonde.core.reports import Report
from sonde.metrics.distance import EQUAL, Monitored, Rule
from sonde.metrics.judged import Judged
from sonde.former.monitor.judge import Outcomes, judge
from sonde.former.monitor.report import build_report
from sonde.prompting.abstaining import ALL, HELP, abstaining, check_abstaining
from sonde.prompting.frames import (
    Asked,
    AskedFacts,
    Form,
    Item,
    LeftOut,
    Told,
    attempts,
    examples,
    frames,
    put,
)
from sonde.prompting.languages import MARKERS_HELP, STOP_HELP, Phrasing, check_markers, phrasing

TOGETHER = 64
"""Facts whose probabilities are asked for, then their answers, so that texts meet in a shard."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Monitor:
    """Reliability of answers under other framings of the question and misleading names."""

    name: ClassVar[str] = "monitor"
    shrinks: ClassVar[str] = "shots"

    frame: Form = setting("plain", "put questions as they are, or as 'Q: …' and 'A:' (qa)")
    shots: int = setting(
        0, "answered questions of the relation in front; small models need some", min=0
    )
    anchor: Rule = setting(
        "exact",
        "whose anchor counts: the answer after the right name is the object (exact), begins with "
        "it (prefix), or any prompt is answered so (any)",
        analysis_only=True,
    )
    alphas: tuple[float, ...] = setting(
        EQUAL, "weights of PFD², IRD² and PFD·IRD in MONITOR", analysis_only=True
    )
    frames: int = setting(0, "the most frames of a relation; 0 for all that it has", min=0)
    negatives: int = setting(5, "the most wrong names for a fact", min=1)
    most: int = setting(15, "the most tokens of an answer", min=1)
    markers: tuple[str, ...] = setting((), MARKERS_HELP)
    stop: str = setting("", STOP_HELP)
    abstaining: tuple[str, ...] = setting((ALL,), HELP, analysis_only=True)
    full: bool = setting(
        False, "also write answers in every frame after every wrong name, to compare the cost"
    )

    def __post_init__(self) -> None:
        if len(self.alphas) != 3:
            raise UsageError(f"setting alphas takes three numbers, not {len(self.alphas)}")
        if min(self.alphas) < 0 or max(self.alphas) <= 0:
            given = ", ".join(f"{alpha:g}" for alpha in self.alphas)
            raise UsageError(f"setting alphas: none below 0 and one above it, not {given}")
        check_markers(self.markers)
        check_abstaining(self.abstaining)

    suited = needs("score", "generate")

    def ask(self, dataset: Dataset) -> Iterator[Prompt]:
        """Relation by relation, some facts at a time: probabilities, then written answers."""
        some = False
        for relation in dataset.asked_relations():
            templates = self._frames(relation)
            asked = AskedFacts(dataset, relation.id, self._left_out()) if templates else ()
            waiting = iter(asked)
            while items := list(islice(waiting, TOGETHER)):
                around = phrasing(relation.language, markers=self.markers, stop=self.stop)
                put = ((item, self._prompts(item, templates, around)) for item in items)
                written = [(item, prompt) for item, prompts in put for prompt in prompts]
                for item, prompt in written:
                    if prompt.own["told"] != "wrong" or prompt.key.template == templates[0].id:
                        yield replace(prompt, want=Score(options=(item.gold,)))
                yield from (prompt for _, prompt in written)
                some = True
        if not some:
            raise DataError(
                f"dataset {dataset.name!r} has no question to ask: monitor needs templates of "
                "style 'question', such as --wording 'Where was [X] born? [Y].', and facts that "
                "are not all examples; 'sonde data build fktc' makes questions"
            )

    def read(self, dataset: Dataset, answered: Given) -> Report:
        """Find the anchors and compute every number."""
        sizes = {r.id: len(self._frames(r)) for r in dataset.asked_relations()}
        return build_report(
            dataset,
            self._outcomes(dataset, answered),
            without_frames=[id for id, size in sizes.items() if not size],
            one_frame=[id for id, size in sizes.items() if size == 1],
            bare=self.frame == "plain" or not self.shots,
            most=self.most,
            attempts=attempts(self.frame, self.shots),
        )

    def monitored(self, dataset: Dataset, answered: Given) -> Monitored:
        """What MONITOR is computed from, for comparisons with other runs."""
        return self._outcomes(dataset, answered).monitored

    def judged(self, dataset: Dataset, answered: Given) -> Judged:
        """Every answer to a bare question, for comparisons with other runs."""
        return self.monitored(dataset, answered).judged()

    def _outcomes(self, dataset: Dataset, answered: Given) -> Outcomes:
        relations = [relation for relation in dataset.asked_relations() if self._frames(relation)]
        asked = Asked.of(dataset, relations, self._left_out())
        one, two, three = self.alphas
        return judge(
            asked,
            [self._frames(relation) for relation in asked.relations],
            answered,
            full=self.full,
            rule=self.anchor,
            alphas=(one, two, three),
            abstains=abstaining(self.abstaining),
            seed=dataset.selection.seed,
        )

    def _frames(self, relation: Relation) -> tuple[Template, ...]:
        return frames(relation, self.frames or None)

    def _left_out(self) -> LeftOut:
        return LeftOut(shots=self.shots, negatives=self.negatives)

    def _prompts(
        self, item: Item, templates: Sequence[Template], around: Phrasing
    ) -> Iterator[Prompt]:
        """The anchor, the frames, the wrong names; with `full` these in every frame."""
        subject = item.fact.subject.name
        before = examples(templates[0], item.before, self.frame, around)
        misleading = templates if self.full else templates[:1]
        places: list[tuple[Template, Told, str]] = [
            (templates[0], "right", item.gold),
            *((template, "none", "") for template in templates),
            *((template, "wrong", name) for template in misleading for name in item.wrong),
        ]
        for template, kind, name in places:
            asked = before.then(put(template, subject, self.frame, name, around))
            want = Generate(most=self.most)
            yield item.prompt(template, asked, want, {"told": kind, "object": name})


COMPONENT = Monitor
