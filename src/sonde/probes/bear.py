"""BEAR: every answer that a relation allows, ranked by the likelihood of the whole sentence.

As in lm-pub-quiz: each fact in every template of its relation, sentences begin with a capital, and
all tokens count, closing punctuation too.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from sonde.core.components import setting
from sonde.core.facts import Dataset
from sonde.evaluation import metrics as m
from sonde.evaluation.layout import Layout
from sonde.probes.base import Probe
from sonde.prompting.templates import fill_templates, usual_names
from sonde.prompts import PromptBatch, Score


@dataclass(frozen=True, kw_only=True)
class Bear(Probe):
    """Accuracy of choosing from an answer space by whole sentences."""

    score: Literal["sentence", "answer"] = setting(
        "sentence",
        "compare options by all tokens of the sentence, or only from the answer on "
        "(masked models: those of the answer)",
    )
    mask: Literal["word", "answer"] = setting(
        "word",
        "masked models predict a token of the answer with the rest of its word masked, or with "
        "the rest of the answer",
    )
    normalize: Literal["none", "tokens"] = setting(
        "none",
        "compare options by summed log-probability (none) or per token (tokens)",
        analysis_only=True,
    )

    name = "bear"
    requires = (frozenset({"score"}),)
    metrics = (
        m.accuracy(),
        m.mrr(),
        m.sd_between(m.accuracy(), "template_no", id="template_spread"),
        *m.RANKING,
    )
    groups = ("relation", "template_no", ("relation", "template_no"))

    @property
    def layout(self) -> Layout:
        tokens = {
            "sentence": "all tokens of the sentence, closing punctuation included",
            "answer": "the tokens from the answer on; of masked models, those of the answer",
        }
        by = "mean" if self.normalize == "tokens" else "summed"
        return Layout(
            headlines=("accuracy", "mrr", "template_spread"),
            over="facts",
            notes=(
                f"Options are compared by the {by} log-probability of {tokens[self.score]}. "
                "Sentences begin with a capital. Ties count as wrong.",
                "The mean over facts is the score that lm-pub-quiz reports for a dataset.",
            ),
        )

    def prompts(self, data: Dataset) -> Iterator[PromptBatch]:
        """Every fact in every template of its relation."""
        request = Score(
            capitalize=True, punctuation=True, whole=self.score == "sentence", mask=self.mask
        )
        for relation in data.asked_relations():
            yield from fill_templates(
                relation,
                self.templates(relation),
                usual_names(data.asked_frame(relation.id)),
                request,
                options=[data.object_names(relation.id)],
                capitalize=True,
            )
