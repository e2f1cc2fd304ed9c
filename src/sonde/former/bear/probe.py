"""BEAR: every answer that a relation allows, ranked by the likelihood of the whole sentence.

As lm-pub-quiz asks: each fact in every template of its relation, sentences begin with a capital,
and all tokens count, closing punctuation too. Numbers: accuracy by template, their mean, per
relation, over relations and over facts, beside the majority control.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

from sonde.core.abilities import needs
from sonde.core.columns import Given
from sonde.core.components import setting
from sonde.core.facts import Dataset, Relation
from sonde.core.prompts import Block, Hidden, Score
from sonde.core.reports import Report
from sonde.core.scores import Normalise
from sonde.metrics.judged import Judged
from sonde.former.bear.judge import judge
from sonde.former.bear.report import build_report
from sonde.prompting.sentences import in_parts, sentences, usual_names


@dataclass(frozen=True, slots=True, kw_only=True)
class Bear:
    """Accuracy of choosing from an answer space by whole sentences."""

    name: ClassVar[str] = "bear"

    score: Literal["sentence", "answer"] = setting(
        "sentence",
        "compare answers by all tokens of the sentence, or only from the answer on "
        "(masked models: those of the answer)",
    )
    hidden: Hidden = setting(
        "word",
        "masked models predict a token of the answer with the rest of its word masked, or with "
        "the rest of the answer",
    )
    normalise: Normalise = setting(
        "none",
        "compare answers by summed log-probability (none) or per token (tokens)",
        analysis_only=True,
    )

    suited = needs("score")

    def ask(self, dataset: Dataset) -> Iterator[Block]:
        """Every fact in every template of its relation."""
        for relation in dataset.asked_relations():
            want, templates = self._want(dataset, relation), relation.templates
            if templates:
                for part in in_parts(usual_names(dataset.asked_frame(relation.id)), len(templates)):
                    yield sentences(relation, templates, part, want, capitals=True)

    def read(self, dataset: Dataset, answered: Given) -> Report:
        """Judge every answer and average."""
        outcomes = judge(dataset, answered, self.normalise)
        return build_report(dataset, outcomes, score=self.score, normalise=self.normalise)

    def judged(self, dataset: Dataset, answered: Given) -> Judged:
        """Every judged sentence, for comparisons with other runs."""
        return judge(dataset, answered, self.normalise).judged

    def _want(self, dataset: Dataset, relation: Relation) -> Score:
        return Score(
            options=dataset.object_names(relation.id),
            capitals=True,
            punctuation=True,
            whole=self.score == "sentence",
            hidden=self.hidden,
        )


COMPONENT = Bear
