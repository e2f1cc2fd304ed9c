"""BELIEF: every pair of subject and relation in many wordings, under every name of the subject.

Masked models fill one position from their whole vocabulary, others score the relation's objects as
options. Numbers: Acc@1, template accuracies, fluctuation, Consist, Overconf, bias level,
coverage, what drives the fluctuation, names that help, manual against paraphrased templates.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

from sonde.core.abilities import Ability, need
from sonde.core.columns import Given
from sonde.core.components import setting
from sonde.core.facts import Dataset, Relation, Template
from sonde.core.prompts import Block, Fill, Score, Want
from sonde.core.reports import Report
from sonde.metrics.judged import Judged
from sonde.former.belief.judge import Outcomes, judge
from sonde.former.belief.report import build_report
from sonde.prompting.closing import CLOSE_HELP, closing_notice
from sonde.prompting.pairs import AskedPairs, numbered_pairs, pair_frames
from sonde.prompting.sentences import OWN, in_parts, nothing, sentences
from sonde.reporting.build.multi_prompt.sections import DRAWS, Draw

SAYS_NOTHING = ("N/A", "", "?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Belief:
    """Accuracy, consistency and confidence over many wordings of each fact."""

    name: ClassVar[str] = "belief"

    answer: Literal["auto", "fill", "score"] = setting(
        "auto",
        "fill a mask from the whole vocabulary, or score the relation's objects as options; auto "
        "fills where the model can, unless an object of a table is more than one token",
    )
    templates: Literal["all", "manual"] = setting(
        "all", "which templates to ask with: all, or those written by hand"
    )
    names: Literal["all", "original"] = setting(
        "all", "which names of a subject to ask with: all, or its usual one"
    )
    close: bool = setting(True, CLOSE_HELP)
    bias: bool = setting(True, "also ask each template about subjects that say nothing")
    top: int = setting(5, "how many of the likeliest answers to keep when filling", min=2)
    draw: Draw = setting(
        "relation",
        "fluctuation shown first: a template per relation, or a prompt per pair, is drawn",
        analysis_only=True,
    )
    draws: int = setting(DRAWS, "how many draws the fluctuation takes", min=2, analysis_only=True)
    floor: int = setting(
        100, "prompts a template needs for an Overconf of its own", min=1, analysis_only=True
    )

    def suited(self, can: frozenset[Ability]) -> Self:
        """Fill where the model can, else score."""
        choices: tuple[Literal["fill", "score"], ...] = (
            ("fill", "score") if self.answer == "auto" else (self.answer,)
        )
        answer = need(self.name, can, *choices)
        return replace(self, answer=answer, close=self.close and "fill" in can)

    def notices(self, dataset: Dataset) -> tuple[str, ...]:
        """What the probe changes in the dataset's templates."""
        relations = dataset.asked_relations() if self.close else ()
        return closing_notice((relation, self._templates(relation)) for relation in relations)

    def ask(self, dataset: Dataset) -> Iterator[Block]:
        """Relation by relation: templates with content-free subjects, then pair by pair."""
        asked = {r.id: r for r in dataset.asked_relations() if self._templates(r)}
        for id, frame in pair_frames(dataset, asked):
            relation, pairs = asked[id], frame.select("fact", "names", *OWN)
            templates, want = self._templates(relation), self._want(dataset, relation)
            plain = [template for template in templates if template.plain]
            if self.bias and plain:
                yield sentences(relation, plain, nothing(*SAYS_NOTHING), want, close=self.close)
            if self.names == "original":
                pairs = pairs.with_columns(pairs["names"].list.head(1))
            for part in in_parts(pairs, len(templates)):
                yield sentences(relation, templates, part, want, close=self.close)

    def read(self, dataset: Dataset, answered: Given) -> Report:
        """Judge every answer and compute every number."""
        known, outcomes = self._tallied(dataset, answered)
        report = build_report(
            dataset,
            known,
            outcomes,
            draw=self.draw,
            draws=self.draws,
            floor=self.floor,
            filled=self.answer == "fill",
        )
        return replace(report, notes=(*report.notes, *self.notices(dataset)))

    def judged(self, dataset: Dataset, answered: Given) -> Judged:
        """Every judged prompt, for comparisons with other runs."""
        return self._tallied(dataset, answered)[1].judged

    def _tallied(self, dataset: Dataset, answered: Given) -> tuple[AskedPairs, Outcomes]:
        asked = {r.id: self._templates(r) for r in dataset.asked_relations()}
        known = numbered_pairs(dataset, asked)
        return known, judge(known, answered, "filled" if self.answer == "fill" else "scored")

    def _templates(self, relation: Relation) -> tuple[Template, ...]:
        chosen = relation.templates
        return tuple(t for t in chosen if self.templates == "all" or t.source == "manual")

    def _want(self, dataset: Dataset, relation: Relation) -> Want:
        if self.answer == "score":
            return Score(options=dataset.object_names(relation.id))
        names = dataset.object_names(relation.id, aliases=True)
        # a name with a space in it is never one token, and most aliases have one
        return Fill(top=self.top, watched=tuple(n for n in names if len(n.split()) == 1))


COMPONENT = Belief
