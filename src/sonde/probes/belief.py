"""BELIEF: every pair of subject and relation in many templates, with every name of the subject."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import polars as pl
from polars import col

from sonde.answers import Answers, MaskScores, OptionScores, Ragged, to_arrow
from sonde.core.components import setting
from sonde.core.facts import Dataset, Relation, Source, Template
from sonde.evaluation import metrics as m
from sonde.evaluation import special as s
from sonde.evaluation.exhibits import calibration_curve
from sonde.evaluation.judge import judge
from sonde.evaluation.layout import Exhibit, Layout
from sonde.evaluation.tables import Results
from sonde.probes.base import MaskProbe, Probe
from sonde.prompting.templates import (
    content_free_subjects,
    fill_templates,
    pairs_with_subject_names,
)
from sonde.prompts import FillMask, PromptBatch, Score

CONTENT_FREE = ("N/A", "", "?")


@dataclass(frozen=True, kw_only=True)
class PairProbe(Probe):
    """Base of probes that prompt each pair in many templates."""

    aliases: Literal["all", "original"] = setting(
        "all", "which names of a subject to use: all, or its usual one"
    )
    fluctuation_draws: int = setting(
        50_000, "how many draws the fluctuation takes", min=2, analysis_only=True
    )
    min_prompts: int = setting(
        100,
        "prompts that a template needs to have its overconfidence measured",
        min=1,
        analysis_only=True,
    )

    unit = "pair"

    def pairs(self, data: Dataset, relation: Relation) -> pl.DataFrame:
        """The pairs of a relation with the subject's names to prompt with."""
        names = col("names").list.head(1) if self.aliases == "original" else col("names")
        return pairs_with_subject_names(data, relation.id).with_columns(subject=names)

    def pair_metrics(self, matches: m.Matches | None = None) -> Sequence[m.Metric | m.Special]:
        """What is estimated of all pairs; `matches` decides whether two answers agree."""
        return (
            m.accuracy("acc_at_1", label="Acc@1"),
            *m.TEMPLATE_ACCURACY,
            m.consistency(view=m.agreement_view(matches=matches)),
            m.OVERCONFIDENCE,
            m.ECE,
            *m.COVERAGE,
            m.SINGLE_PROMPT,
            *m.answer_driver_metrics(matches),
            *m.paraphrase_group_metrics(matches),
            s.prompt_sensitivity(self.fluctuation_draws),
        )

    def exhibits(self, results: Results, estimates: pl.DataFrame) -> Iterator[Exhibit]:
        """Calibration, which no group of a metric shows."""
        yield calibration_curve(results)


@dataclass(frozen=True, kw_only=True)
class Belief(PairProbe, MaskProbe):
    """Accuracy, consistency and confidence over many templates of each fact."""

    template_source: Literal["all", "manual"] = setting(
        "all", "which templates to use: all, or those written by hand"
    )
    bias: bool = setting(True, "also fill each template with subjects that state nothing")
    top_k: int = setting(5, "how many of the most likely answers to store when filling", min=2)

    name = "belief"
    answerable_only = True
    groups = (
        "relation",
        m.Group(("relation", "template_no"), ("acc_at_1", "overconfidence"), fine=True),
    )

    @property
    def metrics(self) -> Sequence[m.Metric | m.Special]:
        return (
            *self.pair_metrics(),
            *m.ALIASES_HELP,
            s.template_bias(),
            s.template_overconfidence(self.min_prompts),
            *m.RANKING,
        )

    @property
    def layout(self) -> Layout:
        return Layout(
            headlines=(
                "acc_at_1",
                "fluctuation.relation.range",
                "consistency",
                "overconfidence",
                "coverage.oracle",
                "bias.single",
                "single_prompt.acc_at_1",
            ),
            over="facts",
            extra=self.exhibits,
            notes=("Any name of any correct object counts.", *self.notes),
        )

    def exhibits(self, results: Results, estimates: pl.DataFrame) -> Iterator[Exhibit]:
        yield from super().exhibits(results, estimates)
        yield template_exhibit(results, estimates)

    def templates(self, relation: Relation) -> tuple[Template, ...]:
        sources = ("manual",) if self.template_source == "manual" else get_args(Source)
        return tuple(t for t in relation.templates if t.source in sources)

    def prompts(self, data: Dataset) -> Iterator[PromptBatch]:
        """Relation by relation: templates with content-free subjects, then pair by pair."""
        for relation in data.asked_relations():
            templates = self.templates(relation)
            plain = [template for template in templates if template.plain and self.bias]
            subjects = self.pairs(data, relation).with_columns(names="subject").drop("subject")
            request: Score | FillMask = Score()
            if self.answer == "fill":
                # a name with a space in it is never one token, and most aliases have one
                names = data.object_names(relation.id, aliases=True)
                targets = tuple(name for name in names if len(name.split()) == 1)
                request = FillMask(top_k=self.top_k, targets=targets)
            options = [data.object_names(relation.id)]
            for chosen, part in (
                (plain, content_free_subjects(*CONTENT_FREE)),
                (templates, subjects),
            ):
                yield from fill_templates(
                    relation, chosen, part, request, options=options, close=self.close
                )

    def judge(self, answers: Answers, facts: pl.DataFrame) -> dict[str, pl.DataFrame]:
        """Answers to content-free prompts become the side table `bias`: relation, template,
        subject, candidates, logprobs (NaN where a candidate is not one token)."""
        rows = judge(answers, facts)
        # a probability has 7 digits, and there are millions of rows
        tables = {"rows": rows.with_columns(col("confidence", "gold_logprob").cast(pl.Float32))}
        empty = np.flatnonzero(answers.frame["fact"] == "")
        if len(empty):
            tables["bias"] = content_free_candidate_logprobs(answers.select(empty))
        return tables


def content_free_candidate_logprobs(answers: Answers) -> pl.DataFrame:
    """The log-probability of each candidate under content-free prompts."""
    result, request, n = answers.result, answers.batch.request, len(answers)
    if isinstance(result, MaskScores) and isinstance(request, FillMask):
        lists = [request.targets] * n
        logprobs = np.where(result.target_ranks > 0, result.target_logprobs, np.nan)
        values = Ragged.of([len(request.targets)] * n, logprobs.ravel())
    else:
        assert isinstance(result, OptionScores)
        lists = [answers.batch.options[i] for i in answers.batch.options_ids()]
        values = Ragged(result.logprobs.offsets, result.sums())
    # categories, because every prompt has the same names
    return answers.frame.select("relation", "template", "subject").with_columns(
        candidates=pl.Series(lists, dtype=pl.List(pl.Categorical)),
        logprobs=pl.Series(to_arrow(values)),
    )


def template_exhibit(results: Results, estimates: pl.DataFrame) -> Exhibit:
    """The numbers of every template, and what it favors before a subject is named."""
    key = ("relation", "template_no")
    table = results.templates.select(col("relation").cast(pl.String), *key[1:], "text", "source")
    group = {"relation": col("group").list.get(0), "no": col("group").list.get(1)}
    chosen = estimates.filter(
        (col("of") == "value") & (col("over") == "facts") & (col("group_by") == list(key))
    )
    for metric in ("acc_at_1", "overconfidence"):
        values = chosen.filter(metric=metric).select(col("value").alias(metric), **group)
        values = values.select("relation", metric, template_no=col("no").cast(pl.UInt16))
        table = table.join(values, on=key, how="left", maintain_order="left")
    rows = []
    for relation, templates, candidates, shares in s.candidate_shares(results):
        average, levels = shares.mean(axis=0), s.bias_level(shares)
        for number, share, level in zip(templates, shares, levels, strict=True):
            most = int((share - average).argmax())
            rows.append((relation, number, candidates[most], level, share[most], average[most]))
    schema: dict[str, Any] = {"relation": pl.String, "template_no": pl.UInt16}
    schema |= {"inflates": pl.String, "bias level": float, "share": float, "average": float}
    table = table.join(pl.DataFrame(rows, schema, orient="row"), on=key, how="left")
    return Exhibit(
        "templates",
        "Templates",
        table.sort("acc_at_1", descending=True, nulls_last=True).drop("template_no"),
        dict.fromkeys(("acc_at_1", "share", "average"), "percent")
        | {"overconfidence": "points", "bias level": "number"},
        note="The bias level is that of a template without a subject: 0 is even over the "
        "candidates, 1 states a single one. It inflates the candidate whose share is furthest "
        "above the average over the relation's templates.",
    )
