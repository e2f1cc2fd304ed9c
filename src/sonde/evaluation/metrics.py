"""Metrics that several probes share: expressions over rows, no statistics.

A view turns rows into something that a metric can aggregate per fact: cells of (fact, template),
pairs of prompts with equal answers, bins of confidence. What rows lack is not measured.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Literal

import numpy as np
import polars as pl
import polars.selectors as cs
from polars import Expr, LazyFrame, col

from sonde.core.facts import LAMA
from sonde.evaluation.estimate import Contrast as Contrast
from sonde.evaluation.estimate import Group as Group
from sonde.evaluation.estimate import Metric as Metric
from sonde.evaluation.estimate import Special as Special
from sonde.evaluation.estimate import View as View
from sonde.evaluation.estimate import standard_deviation as standard_deviation
from sonde.evaluation.stats import Floats

FACT = ("fact_no", "relation")
CORRECT, RANK = col("correct"), col("rank")
RECIPROCAL_RANK = (1 / RANK).fill_null(0.0)
CONFIDENCE = col("confidence").cast(pl.Float64)
GAP = CONFIDENCE - CORRECT
CONFIDENT = col("confidence").is_not_null()
WRITTEN = col("answer_mode") == "generate"
ABSTAINED = col("abstained") & ~CORRECT
BINS = 10

Matches = Callable[[str, str], bool]


def mean(id: str, value: Expr | str = "", **changes: Any) -> Metric:
    """Mean of a column or expression over a fact's prompts, averaged over facts."""
    expression = col(value or id) if isinstance(value, str) else value
    return replace(Metric(id, num=expression.mean(), label=id.replace("_", " ")), **changes)


def accuracy(id: str = "accuracy", **changes: Any) -> Metric:
    """Share of a fact's prompts with a correct answer, averaged over facts, next to the control."""
    help = "share of a fact's prompts with a correct answer"
    metric = Metric(
        id, num=CORRECT.mean(), baseline=col("baseline").mean(), label="accuracy", help=help
    )
    return replace(metric, **changes)


# LAMA's own prompt of a fact, of facts whose subject does not name the object
SINGLE_PROMPT = accuracy(
    "single_prompt.acc_at_1",
    where=(col("template_no") == 1)
    & (col("origin") == LAMA)
    & (col("alias_no") == 0)
    & ~col("guessable"),
    baseline=None,
    label="LU (UHN, string match)",
)


def p_at(k: int, **changes: Any) -> Metric:
    """Share of facts with a correct name among the first k answers."""
    help = f"share of facts with a correct name among the {k} most likely answers"
    share = (k >= RANK).fill_null(False).mean()
    return replace(Metric(f"p_at_{k}", num=share, label=f"P@{k}", help=help), **changes)


def mrr(id: str = "mrr", **changes: Any) -> Metric:
    """Mean of 1/rank of the best correct name."""
    help = "mean of 1/rank of the best correct name"
    return replace(
        Metric(id, num=RECIPROCAL_RANK.mean(), label="MRR", unit="number", help=help), **changes
    )


def sd_between(metric: Metric, by: str, id: str, **changes: Any) -> Metric:
    """Standard deviation of a metric between the values of a column."""
    help = f"standard deviation of the {metric.label} between values of {by.removesuffix('_no')}"
    label = f"SD of {metric.label}"
    changed = {"id": id, "by": by, "stat": standard_deviation, "baseline": None, "better": "lower"}
    return replace(metric, **{**changed, "label": label, "help": help, **changes})


def harmonic_mean(id: str, *parts: Metric, **changes: Any) -> Metric:
    """Of several metrics, on the same draws: CounterFact's score, F1."""

    def stat(x: Floats, labels: Sequence[Any]) -> Floats:
        with np.errstate(divide="ignore"):
            return np.asarray(x.shape[-1] / (1 / x).sum(axis=-1))

    help = f"harmonic mean of {', '.join(part.label for part in parts)}"
    return replace(Metric(id, parts=parts, stat=stat, label="harmonic mean", help=help), **changes)


def _count_agreeing_pairs(
    rows: LazyFrame, keys: Sequence[str], matches: Matches | None
) -> LazyFrame:
    """How many pairs of prompts with equal `keys` there are, and how many have equal answers.

    With `matches` also answers that differ may agree; "" agrees with itself alone.
    """
    unit, n = (*FACT, *keys), col("n")
    counts = rows.group_by(*unit, "answer").agg(n=pl.len().cast(pl.Int64))
    pairs = counts.group_by(unit).agg(same=(n * (n - 1)).sum(), pairs=n.sum() * (n.sum() - 1))
    if matches is not None:
        stated = counts.with_columns(col("answer").cast(pl.String)).filter(col("answer") != "")
        both = stated.join(stated, on=unit).filter(col("answer") < col("answer_right"))

        agree = cache(matches)
        texts = pl.struct("answer", "answer_right")
        alike = texts.map_elements(lambda pair: agree(*pair.values()), pl.Boolean)
        more = both.filter(alike).group_by(unit).agg(more=2 * (n * col("n_right")).sum())
        pairs = pairs.join(more, on=unit, how="left")
        pairs = pairs.with_columns(same=col("same") + col("more").fill_null(0))
    return pairs.filter(col("pairs") > 0)


def agreement_view(*keys: str, matches: Matches | None = None) -> View:
    """Pairs of a fact's prompts that agree, among prompts with equal `keys`."""
    return lambda rows: _count_agreeing_pairs(rows, keys, matches)


SHARE_SAME = (col("same") / col("pairs")).mean()
ALL_PROMPTS = agreement_view()


def consistency(id: str = "consistency", view: View = ALL_PROMPTS, **changes: Any) -> Metric:
    """Share of a fact's pairs of prompts with the same answer, correct or not."""
    help = "share of a fact's pairs of prompts with the same answer"
    return replace(Metric(id, num=SHARE_SAME, view=view, label="consistency", help=help), **changes)


def within_and_across_groups_view(group: str, matches: Matches | None = None) -> View:
    """Pairs of prompts whose templates are of one group, and of two.

    Relations without a group of two templates do not count.
    """

    def view(rows: LazyFrame) -> LazyFrame:
        known = rows.drop_nulls(group).filter(col(group) != "")
        sizes = known.group_by("relation", group).agg(n=col("template_no").n_unique())
        grouped = sizes.filter(col("n") > 1).select("relation").unique()
        known = known.join(grouped, on="relation", how="semi")
        inner = (
            _count_agreeing_pairs(known, [group], matches)
            .group_by(FACT)
            .agg(col("same", "pairs").sum())
        )
        every = _count_agreeing_pairs(known, [], matches)
        both = every.join(inner, on=FACT, how="left", suffix="_inner")
        return both.with_columns(col("same_inner", "pairs_inner").fill_null(0))

    return view


def paraphrase_group_metrics(matches: Matches | None = None) -> tuple[Metric, ...]:
    view, inner = (
        within_and_across_groups_view("group", matches),
        (col("same_inner"), col("pairs_inner")),
    )
    outer = col("same") - inner[0], col("pairs") - inner[1]
    shares = (
        ("inner", inner, "between paraphrases of one hand-written template"),
        ("inter", outer, "between templates of different groups"),
    )
    return tuple(
        Metric(
            f"groups.{id}_consistency", num=pl.when(pairs > 0).then(same / pairs).first(),
            view=view, label=f"consistency {help}", help=f"share of equal answers {help}",
        )
        for id, (same, pairs), help in shares
    )  # fmt: skip


def template_cells(rows: LazyFrame) -> LazyFrame:
    """One row per fact and template, and which template of the relation is worst, best by accuracy
    and widest by facts known. Of equal ones the first."""
    cells = rows.group_by(*FACT, "template_no").agg(
        rate=CORRECT.mean(), known=CORRECT.any(), every=CORRECT.all()
    )
    templates = cells.group_by("relation", "template_no").agg(
        accuracy=col("rate").mean().round(12), n_known=col("known").sum(), n=pl.len()
    )
    number = col("template_no")

    def first(*order: Expr) -> Expr:
        return number == number.sort_by(*order, number).first().over("relation")

    templates = templates.with_columns(
        worst=first(col("accuracy")),
        best=first(-col("accuracy")),
        widest=first(-col("n_known").cast(pl.Int64)),
        n_templates=pl.len().over("relation"),
    )
    facts = cells.group_by("relation").agg(n_facts=col("fact_no").n_unique())
    cells = cells.join(templates, on=("relation", "template_no")).join(facts, on="relation")
    # a fact that was not prompted with a template counts through the others
    return cells.with_columns(weighted=col("rate") * col("n_facts") / col("n"))


def _template_metric(id: str, num: Expr, help: str, **changes: Any) -> Metric:
    label = id.partition(".")[2].replace("_", " ")
    return replace(Metric(id, num=num, view=template_cells, label=label, help=help), **changes)


WORST = _template_metric(
    "template_accuracy.min", col("weighted").filter("worst").sum(),
    "accuracy with each relation's worst template", label="worst templates",
)  # fmt: skip
BEST = _template_metric(
    "template_accuracy.max", col("weighted").filter("best").sum(),
    "accuracy with each relation's best template", label="best templates",
)  # fmt: skip
TEMPLATE_ACCURACY = (
    WORST,
    BEST,
    _template_metric(
        "template_accuracy.mean",
        (col("weighted") / col("n_facts")).sum(),
        "mean accuracy of the templates",
        # every template counts the same over all relations
        den=(col("n_templates") / col("n_facts")).first(),
        label="mean of templates",
    ),
)
COVERAGE = (
    mean("coverage.average", CORRECT, label="average", help="share of a fact's correct prompts"),
    _template_metric(
        "coverage.average_best_name",
        col("known").mean(),
        "correct with some name of the subject, averaged over templates",
    ),
    _template_metric(
        "coverage.maximum",
        (col("known") & col("widest")).any(),
        "correct with some name of the subject and each relation's best template",
    ),
    _template_metric("coverage.oracle", col("known").any(), "correct in some prompt"),
)


def answer_driver_metrics(matches: Matches | None = None) -> Iterator[Metric]:
    """How often answers are equal, and accuracy at worst and best, if only the name of the subject
    differs, and if only the template does. Measured for facts with several of these."""
    names = (
        _template_metric(
            "only_aliases.min", col("every").mean(), "correct with every name of the subject"
        ),
        _template_metric(
            "only_aliases.max", col("known").mean(), "correct with some name of the subject"
        ),
    )
    templates = (
        replace(m, id=m.id.replace("template_accuracy", "only_templates")) for m in (WORST, BEST)
    )
    for kind, same, metrics in (
        ("aliases", "template_no", names),
        ("templates", "alias_no", templates),
    ):
        agree = consistency(f"only_{kind}.consistency", agreement_view(same, matches=matches))
        yield agree
        for metric in metrics:
            yield replace(metric, parts=(metric, agree), stat=lambda x, labels: x[..., 0])


OVERCONFIDENCE = Metric(
    "overconfidence", num=GAP.sum(), den=pl.len(), where=CONFIDENT, counts="prompts", unit="points",
    label="overconfidence", better="zero", help="mean confidence minus accuracy",
)  # fmt: skip


def calibration_gaps_by_bin(rows: LazyFrame) -> LazyFrame:
    """The sum of gaps of each fact in each of ten bins of equal size, and its prompts.

    Prompts of equal confidence share their accuracy, so that their order cannot matter: where they
    lie across bins, each counts in all of these in equal parts.
    """

    def rank(method: Literal["min", "max"]) -> Expr:
        return col("confidence").rank(method).over("pool").cast(pl.Int64)

    n = pl.len().over("pool").cast(pl.Int64)
    rows = rows.select(*FACT, gap=GAP, first=rank("min") - 1, stop=rank("max"), n=n)
    sums = {}
    for bin in range(BINS):
        # the first bins have one prompt more
        ends = [
            b * (col("n") // BINS) + pl.min_horizontal(b, col("n") % BINS) for b in (bin, bin + 1)
        ]
        inside = pl.min_horizontal("stop", ends[1]) - pl.max_horizontal("first", ends[0])
        share = inside.clip(0) / (col("stop") - col("first"))
        sums[str(bin)] = (col("gap") * share).sum()
    cells = rows.group_by(FACT).agg(prompts=pl.len(), **sums)
    return cells.unpivot(index=(*FACT, "prompts"), variable_name="bin", value_name="gap")


ECE = Metric(
    "ece", num=col("gap").sum(), den=col("prompts").sum(), where=CONFIDENT,
    view=calibration_gaps_by_bin,
    pooled=True, by="bin", stat=lambda x, labels: np.abs(x).sum(axis=-1), centered=True,
    counts="prompts", label="ECE", better="lower",
    help="mean distance between confidence and accuracy over ten bins of equal size",
)  # fmt: skip


def accuracy_at_confidence(levels: Sequence[float]) -> tuple[Metric, ...]:
    """Accuracy of the answers that have at least some confidence, and how many these are."""
    metrics = []
    for level in levels:
        sure = level <= CONFIDENCE
        shared: dict[str, Any] = {"where": CONFIDENT, "counts": "prompts"}
        at, share = f"@{level:g}", f"confidence of at least {level:g}"
        metrics += [
            Metric(
                f"accuracy_at.{level:g}", num=(CORRECT & sure).sum(), den=sure.sum(), label=at,
                help=f"accuracy of answers with a {share}", **shared,
            ),
            Metric(
                f"retained_at.{level:g}", num=sure.sum(), den=pl.len(), label=f"left {at}",
                better="", help=f"share of answers with a {share}", **shared,
            ),
        ]  # fmt: skip
    return tuple(metrics)


def added_aliases_beside_usual(rows: LazyFrame) -> LazyFrame:
    """Prompts with an added name of the subject, next to the same prompt with its usual name."""
    cell = (*FACT, "template_no")
    usual = rows.filter(col("alias_no") == 0).select(*cell, usual_logprob="gold_logprob")
    return rows.filter(col("alias_no") > 0).join(usual, on=cell)


ALIASES_HELP = (
    Metric(
        "aliases_help.subject", num=(col("gold_logprob") > col("usual_logprob")).sum(),
        den=pl.len(), view=added_aliases_beside_usual, counts="prompts", better="",
        label="added subject names that help",
        help="share with which the correct answer is more likely than with the usual name",
    ),
    Metric(
        "aliases_help.object", num=col("helped").sum(), den=col("compared").sum(),
        counts="prompts", better="", label="added object names that help",
        help="share that is more likely than the object's usual name in the same prompt",
    ),
)  # fmt: skip

ABSTENTION = (
    mean(
        "abstained", ABSTAINED, where=WRITTEN, better="",
        help="share of generated answers that state that the model does not know",
    ),
    mean(
        "correct_when_answered", CORRECT, where=WRITTEN & ~ABSTAINED,
        help="share of correct answers among those that do not abstain",
    ),
)  # fmt: skip

RANKING = (
    mean(
        "ranking", "ranked", where=col("ranked").is_not_null(),
        help="share of (correct, wrong) pairs of options in which the correct one is more likely",
    ),
    Metric(
        "ranking_full", num=(col("ranked") == 1).all(), where=col("ranked").is_not_null(),
        label="ranked fully",
        help="share of facts with every correct option above every wrong one in all prompts",
    ),
)  # fmt: skip


def cell_means_view(*keys: str) -> View:
    """One row per fact and value of `keys`, with the means of numbers and verdicts."""

    def view(rows: LazyFrame) -> LazyFrame:
        numbers = (cs.numeric() | cs.boolean()) - cs.by_name(*FACT, *keys, require_all=False)
        return rows.group_by(*FACT, *keys).agg(numbers.mean())

    return view
