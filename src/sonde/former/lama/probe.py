"""LAMA: one sentence per fact, one answer, right or wrong.

Masked models fill one masked position; other models score the relation's objects as options. Where
facts name options of their own, these are chosen from.
Numbers: P@1, P@k and MRR per relation, by relation type, averaged over relations and over facts,
on all facts and on those whose answer cannot be guessed from the name (UHN), beside the majority
control.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

from sonde.core.abilities import Ability, need
from sonde.core.columns import Given
from sonde.core.components import setting
from sonde.core.errors import DataError
from sonde.core.fact_frames import names_options
from sonde.core.facts import Dataset, Relation, Template
from sonde.core.prompts import Block, Fill, Score, Want
from sonde.core.reports import Report
from sonde.core.scores import Normalise
from sonde.metrics.judged import AnswerKind, Judged
from sonde.former.lama.judge import Outcomes, judge
from sonde.former.lama.report import Asking, build_report
from sonde.prompting.closing import CLOSE_HELP, closing_notice
from sonde.prompting.options import own_options, with_options
from sonde.prompting.sentences import in_parts, name_prompts, sentences, usual_names


@dataclass(frozen=True, slots=True, kw_only=True)
class Lama:
    """Accuracy on cloze sentences, one per fact."""

    name: ClassVar[str] = "lama"

    answer: Literal["auto", "fill", "score"] = setting(
        "auto",
        "fill a mask from a vocabulary, or score the relation's objects as options; auto fills "
        "where the model can, unless an object of a table is more than one token",
    )
    template: int = setting(1, "which template of each relation to use, counted from 1", min=1)
    k: int = setting(
        10, "P@k: an answer counts if it is among the k likeliest", min=2, analysis_only=True
    )
    top: int = setting(10, "how many of the likeliest answers to keep", min=2)
    vocabulary: Literal["dataset", "full"] = setting(
        "dataset", "answers allowed when filling: the dataset's list where it has one, or any token"
    )
    options: Literal["own", "relation"] = setting(
        "own",
        "what is chosen from: what facts themselves name, where all of a relation do (own), or the "
        "relation's objects",
    )
    normalise: Normalise = setting(
        "none",
        "compare options by summed log-probability (none) or per token (tokens)",
        analysis_only=True,
    )
    uhn: Literal["string", "names"] = setting(
        "string", "UHN drops answers found in the subject's name; 'names' also asks the model"
    )
    capitals: bool = setting(
        False, "begin every sentence with a capital, also where a name or the answer opens it"
    )
    punctuation: bool = setting(
        False, "score the punctuation that closes a sentence, too, not only words"
    )
    close: bool = setting(True, CLOSE_HELP)

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
        return closing_notice((relation, [self._template(relation)]) for relation in relations)

    def ask(self, dataset: Dataset) -> Iterator[Block]:
        """One prompt per fact; for uhn='names' also one per part of a person's name."""
        for relation in dataset.asked_relations():
            want, template = self._want(dataset, relation), self._template(relation)
            facts = dataset.asked_frame(relation.id)
            for part in in_parts(usual_names(facts), 1):
                block = sentences(
                    relation, [template], part, want, capitals=self.capitals, close=self.close
                )
                own = isinstance(want, Score) and self._own(dataset, relation)
                yield with_options(block, facts) if own else block
            if self.uhn == "names":
                yield from name_prompts(relation, facts, want)

    def read(self, dataset: Dataset, answered: Given) -> Report:
        """Judge every answer and average."""
        asking = Asking(
            uhn=self.uhn,
            filled=self.answer == "fill",
            capitals=self.capitals,
            punctuation=self.punctuation,
            own=any(self._own(dataset, relation) for relation in dataset.asked_relations()),
        )
        outcomes = self._outcomes(dataset, answered)
        report = build_report(dataset, outcomes, k=self.k, asking=asking)
        return replace(report, notes=(*report.notes, *self.notices(dataset)))

    def judged(self, dataset: Dataset, answered: Given) -> Judged:
        """Every judged fact, for comparisons with other runs."""
        return self._outcomes(dataset, answered, most=0).judged

    def _outcomes(self, dataset: Dataset, answered: Given, **most: int) -> Outcomes:
        way: AnswerKind = "filled" if self.answer == "fill" else "scored"
        shape = {"template": self.template, **most}
        own = self.options == "own"
        return judge(dataset, answered, self.normalise, way=way, own=own, **shape)

    def _own(self, dataset: Dataset, relation: Relation) -> bool:
        """Whether each fact of a relation is asked with options of its own."""
        return self.options == "own" and names_options(dataset.asked_frame(relation.id))

    def _want(self, dataset: Dataset, relation: Relation) -> Want:
        if self.answer == "score":
            options = dataset.object_names(relation.id)
            return Score(options=options, capitals=self.capitals, punctuation=self.punctuation)
        watched = dataset.object_names(relation.id, aliases=True)
        if self._own(dataset, relation):
            named = own_options(dataset.asked_frame(relation.id)).explode()
            watched = tuple(dict.fromkeys((*watched, *named)))
        return Fill(
            top=self.top,
            watched=watched,
            vocabulary=dataset.vocabulary if self.vocabulary == "dataset" else None,
            capitals=self.capitals,
        )

    def _template(self, relation: Relation) -> Template:
        if not 1 <= self.template <= len(relation.templates):
            raise DataError(
                f"relation {relation.id} has {len(relation.templates)} templates; "
                f"template {self.template} was asked for"
            )
        return relation.templates[self.template - 1]


COMPONENT = Lama
