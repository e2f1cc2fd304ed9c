"""BELIEF: every pair of subject and relation in many templates, with every name of the subject."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import polars as pl
from polars import col

from sonde.answers import Answers, MaskScores, OptionScores, Ragged, to_arrow
from sonde.core.components import setting
from sonde.core.facts import LAMA, Dataset, Relation, Source, Template
from sonde.evaluation import metrics as m
from sonde.evaluation import special as s
from sonde.evaluation import stats
from sonde.evaluation.judge import judge
from sonde.evaluation.layout import Exhibit, Layout
from sonde.evaluation.tables import Results
from sonde.probes.base import MaskProbe
from sonde.prompting.templates import content_free, fill_templates, pair_names
from sonde.prompts import FillMask, PromptBatch, Score

CONTENT_FREE = ("N/A", "", "?")
HISTOGRAM_BINS = 40
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
    groups = (
        "relation",
        m.Group(("relation", "template_no"), ("acc_at_1", "overconfidence"), fine=True),
    )

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
            extra=belief_exhibits,
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
        subject, candidates, logprobs (NaN where a candidate is not one token)."""
        rows = judge(answers, facts)
        # a probability has 7 digits, and there are millions of rows
        tables = {"rows": rows.with_columns(col("confidence", "gold_logprob").cast(pl.Float32))}
        empty = np.flatnonzero(answers.frame["fact"] == "")
        if len(empty):
            tables["bias"] = candidate_logprobs(answers.select(empty))
        return tables


def candidate_logprobs(answers: Answers) -> pl.DataFrame:
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


def belief_exhibits(results: Results, estimates: pl.DataFrame) -> Iterator[Exhibit]:
    """What no group of a metric shows: the spread of draws, calibration, and what moves answers."""
    probe = results.probe
    assert isinstance(probe, Belief)
    yield from fluctuation_histogram(results, probe.fluctuation, probe.fluctuation_draws)
    yield calibration_curve(results)
    yield drivers(estimates)
    yield templates_table(results, estimates)


def fluctuation_histogram(
    results: Results, draw: Literal["relation", "pair"], draws: int
) -> Iterator[Exhibit]:
    """How the accuracy is distributed over draws of prompts, if it moves."""
    parts = [
        stats.success_distribution(cells.rates if draw == "relation" else cells.of_facts[:, None])
        for cells in s.relation_cells(results)
    ]
    distribution = stats.sum_distribution(parts)
    likely, n = np.flatnonzero(distribution * draws >= 0.5), len(distribution) - 1
    if len(likely) < 2:
        return
    width = -(-(likely[-1] + 1 - likely[0]) // HISTOGRAM_BINS)
    starts = np.arange(likely[0], likely[-1] + 1, width)
    shares = np.add.reduceat(distribution, starts)
    what = {"relation": "a template per relation and a name per pair", "pair": "a prompt per pair"}
    yield Exhibit(
        "fluctuation",
        f"Accuracy over draws of {what[draw]}",
        pl.DataFrame({"x": (starts - 0.5) / n, "y": shares}),
        {"x": "percent", "y": "percent"},
        "histogram",
        x_label="accuracy of a draw",
        y_label="share of draws",
    )


def calibration_curve(results: Results) -> Exhibit:
    """Accuracy in ten bins of equal size, by confidence; equal confidences share a bin."""
    counts = results.rows.lazy().drop_nulls("confidence").group_by("confidence")
    counts = counts.agg(n=pl.len(), correct=col("correct").sum()).sort("confidence")
    n, total = col("n"), col("n").sum()
    bin = ((n.cum_sum() - 1) * 10 // total).alias("bin")
    bins = counts.group_by(bin, maintain_order=True).agg(
        x=(col("confidence").cast(pl.Float64) * n).sum() / total,
        y=col("correct").sum() / total,
        n=total,
    )
    return Exhibit(
        "calibration",
        "Accuracy against confidence",
        bins.select("x", "y", "n").collect(),
        {"x": "percent", "y": "percent", "n": "count"},
        "lines",
        note="Ten bins of about equal size, by confidence.",
        x_label="mean confidence of a bin",
        y_label="accuracy of the bin",
    )


def drivers(estimates: pl.DataFrame) -> Exhibit:
    """How much answers move if only the name of the subject or only the template differs."""
    overall = estimates.filter(
        (col("of") == "value") & (col("over") == "facts") & (col("group").list.len() == 0)
    )
    values = dict(overall.select("metric", "value").iter_rows())
    rows = [
        (label, *(values.get(f"{id}.{part}") for part in ("consistency", "min", "max")))
        for label, id in (("name of the subject", "only_aliases"), ("template", "only_templates"))
    ]
    names = ("only this differs", "consistency", "worst", "best")
    schema = dict.fromkeys(names, pl.Float64) | {names[0]: pl.String}
    return Exhibit(
        "drivers",
        "What moves the answers",
        pl.DataFrame(rows, schema, orient="row"),
        dict.fromkeys(names[1:], "percent"),
        note="The lower the consistency and the wider worst and best differ, the more it matters.",
    )


def templates_table(results: Results, estimates: pl.DataFrame) -> Exhibit:
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
    numbers = dict.fromkeys(("bias level", "share", "average"), pl.Float64)
    schema = {"relation": pl.String, "template_no": pl.UInt16, "inflates": pl.String}
    table = table.join(pl.DataFrame(rows, schema | numbers, orient="row"), on=key, how="left")
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
