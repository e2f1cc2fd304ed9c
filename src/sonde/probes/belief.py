"""BELIEF: every pair of subject and relation in many templates, with every name of the subject."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal, get_args

import numpy as np
import polars as pl
from polars import col

from sonde.answers import Answers, MaskScores, OptionScores
from sonde.core.components import setting
from sonde.core.facts import LAMA, Dataset, Relation, Source, Template
from sonde.evaluation import metrics as m
from sonde.evaluation import special as s
from sonde.evaluation.judge import judge
from sonde.evaluation.layout import Layout
from sonde.probes.base import MaskProbe
from sonde.prompting.templates import content_free, fill_templates, pair_names
from sonde.prompts import FillMask, PromptBatch, Score

CONTENT_FREE = ("N/A", "", "?")
# LAMA's own prompt of a fact, on the facts of LAMA-UHN
LAMA_PROMPT = (
    (col("template_no") == 1) & (col("origin") == LAMA) & (col("alias_no") == 0) & ~col("guessable")
)


@dataclass(frozen=True, kw_only=True)
class Belief(MaskProbe):
    """Accuracy, consistency and confidence over many templates of each fact."""

    template_source: Literal["all", "manual"] = setting(
        "all", "which templates to use: all, or those written by hand"
    )
    aliases: Literal["all", "original"] = setting(
        "all", "which names of a subject to use: all, or its usual one"
    )
    bias: bool = setting(True, "also fill each template with subjects that state nothing")
    top_k: int = setting(5, "how many of the most likely answers to store when filling", min=2)
    fluctuation: Literal["relation", "pair"] = setting(
        "relation",
        "fluctuation shown first: of a template drawn per relation, or of a prompt per pair",
        analysis_only=True,
    )
    fluctuation_draws: int = setting(
        50_000, "how many draws the fluctuation takes", min=2, analysis_only=True
    )
    min_prompts: int = setting(
        100,
        "prompts a template needs for an overconfidence of its own",
        min=1,
        analysis_only=True,
    )

    name = "belief"
    unit = "pair"
    answerable_only = True

    @property
    def metrics(self) -> Sequence[m.Metric | m.Special]:
        return (
            m.accuracy("acc_at_1", label="Acc@1"),
            *m.TEMPLATE_ACCURACY,
            m.consistency(),
            m.OVERCONFIDENCE,
            m.ECE,
            *m.COVERAGE,
            m.accuracy("single_prompt.acc_at_1", where=LAMA_PROMPT, baseline=None, label="LU"),
            *m.ONLY_ALIASES,
            *m.ONLY_TEMPLATES,
            m.DRIVERS_GAP,
            *m.ALIASES_HELP,
            *m.PARAPHRASE_GROUPS,
            s.fluctuation("relation", self.fluctuation_draws),
            s.fluctuation("pair", self.fluctuation_draws),
            s.bias(),
            s.manual_rank(),
            s.template_overconfidence(self.min_prompts),
            *m.RANKING,
            *m.SETS,
        )

    @property
    def layout(self) -> Layout:
        return Layout(
            headlines=(
                "acc_at_1",
                f"fluctuation.{self.fluctuation}.range",
                "consistency",
                "overconfidence",
                "coverage.oracle",
                "bias.single",
                "single_prompt.acc_at_1",
            ),
            over="facts",
            notes=("Any name of any correct object counts. Ties count as wrong.",),
        )

    def templates(self, relation: Relation) -> tuple[Template, ...]:
        sources = ("manual",) if self.template_source == "manual" else get_args(Source)
        return tuple(t for t in relation.templates if t.source in sources)

    def prompts(self, data: Dataset) -> Iterator[PromptBatch]:
        """Relation by relation: templates with content-free subjects, then pair by pair."""
        for relation in data.asked_relations():
            templates = self.templates(relation)
            plain = [template for template in templates if template.plain and self.bias]
            subjects = pair_names(data, relation.id)
            if self.aliases == "original":
                subjects = subjects.with_columns(col("names").list.head(1))
            request: Score | FillMask = Score()
            if self.answer == "fill":
                # a name with a space in it is never one token, and most aliases have one
                names = data.object_names(relation.id, aliases=True)
                targets = tuple(name for name in names if len(name.split()) == 1)
                request = FillMask(top_k=self.top_k, targets=targets)
            options = [data.object_names(relation.id)]
            for chosen, part in ((plain, content_free(*CONTENT_FREE)), (templates, subjects)):
                yield from fill_templates(
                    relation, chosen, part, request, options=options, close=self.close
                )

    def judge(self, answers: Answers, facts: pl.DataFrame) -> dict[str, pl.DataFrame]:
        """Answers to content-free prompts become the side table `bias`: relation, template,
        subject, candidate, logprob (NaN where a candidate is not one token)."""
        rows = judge(answers, facts)
        # a probability has 7 digits, and there are millions of rows
        tables = {"rows": rows.with_columns(col("confidence", "gold_logprob").cast(pl.Float32))}
        empty = np.flatnonzero(answers.frame["fact"] == "")
        if len(empty):
            tables["bias"] = candidate_logprobs(answers.select(empty))
        return tables


def candidate_logprobs(answers: Answers) -> pl.DataFrame:
    """What is known of each candidate under content-free prompts, a row for each of both."""
    result, request = answers.result, answers.batch.request
    if isinstance(result, MaskScores) and isinstance(request, FillMask):
        lists = [request.targets] * len(answers)
        logprobs = np.where(result.target_ranks > 0, result.target_logprobs, np.nan).ravel()
    else:
        assert isinstance(result, OptionScores)
        lists = [answers.batch.options[i] for i in answers.batch.options_ids()]
        logprobs = result.sums()
    owners = np.repeat(np.arange(len(lists)), [len(names) for names in lists])
    # categories: each text is repeated for all the candidates
    prompts = answers.frame.select("relation", "template", "subject").cast(pl.Categorical)[owners]
    names = pl.Series(list(chain.from_iterable(lists)), dtype=pl.Categorical)
    return prompts.with_columns(candidate=names, logprob=pl.Series(logprobs))
