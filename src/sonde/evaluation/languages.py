"""The same facts in several languages: what is known in each, and how alike options are ranked.

Facts of two languages are the same if their relations are (`canonical_id`), their subjects and
their splits; of several facts of a subject, also their objects. A fact is known if most of its
prompts are correct.

RankC compares how N candidates are ranked in two languages: Σ w_j · s_j over the ranks j, where s_j
is the share of the first j of one that is among the first j of the other, and the weights
w_j = e^(N−j) / Σ e^(N−k). A candidate is a thing, not a name: in a prompt it has the best score of
its names, and of several prompts about a fact the mean.
"""

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl
from polars import col

from sonde.answers import Answers, MaskScores, OptionScores
from sonde.core.fact_frames import entities, names_options
from sonde.core.facts import NAME_PARTS, Dataset, Relation
from sonde.core.fingerprints import draw_key
from sonde.evaluation.estimate import Group, Metric, estimate
from sonde.evaluation.judge import compared, numbered
from sonde.evaluation.layout import Exhibit
from sonde.evaluation.tables import ESTIMATES, FACT, LEFT, Results
from sonde.prompts import FillMask

ACCURACY = Metric(
    "language.accuracy", num=col("accuracy").mean(), label="accuracy",
    help="share of a fact's correct prompts, in one language",
)  # fmt: skip
COUPLES = (
    Metric(
        "language.rankc", num=col("rankc").mean(), label="RankC", unit="number",
        help="how alike candidates are ranked in two languages, the first ranks above all",
    ),
    Metric(
        "language.known_only", num=col("only").mean(), label="known in one only", better="lower",
        help="share of facts known in the first language and not in the second",
    ),
    Metric(
        "language.difference", num=col("first").mean(), baseline=col("second").mean(), better="",
        label="difference in accuracy", baseline_label="accuracy in the other language",
        help="accuracy in two languages on the same facts",
    ),
)  # fmt: skip


def languages(
    results: Results, data: Dataset, answers: Iterable[Answers], seed: int = 0
) -> tuple[pl.DataFrame, list[Exhibit]]:
    """ESTIMATES of each language, and of each two: by "language" and "other".

    `answers` are read again, as RankC needs the score of every candidate. Data without a relation
    in two languages have no estimates.
    """
    relations = [r for r in data.asked_relations() if r.same and r.language]
    if len({relation.same for relation in relations}) == len(relations):
        return pl.DataFrame(schema=ESTIMATES), []
    units = _units(results, data, relations)
    scores = _candidates(results, pl.concat(_names(data, r) for r in relations), answers)
    about = (col("same").alias("relation"), col("subject_id").rank("dense").alias("cluster"))
    parts = [units.select(*about, "language", "accuracy")]
    for first, second in combinations(units["language"].unique(maintain_order=True), 2):
        one, other = (units.filter(language=code) for code in (first, second))
        both = one.join(other, on="unit", suffix="_2", maintain_order="left")
        both = both.join(_rankc(both, scores), on="unit", **LEFT)
        only = col("known") & ~col("known_2"), col("known_2") & ~col("known")
        values = col("accuracy").alias("first"), col("accuracy_2").alias("second"), col("rankc")
        parts.append(both.select(*about, *values, "language", other="language_2", only=only[0]))
        parts.append(both.select(*about, language="language_2", other="language", only=only[1]))
    couples = Group(("language", "other"), tuple(metric.id for metric in COUPLES))
    groups = [Group("language", (ACCURACY.id,)), couples]
    rows = Results.of(pl.concat(parts, how="diagonal"))
    estimates = estimate(rows, [ACCURACY, *COUPLES], groups=groups, seed=seed, whole=False)
    of = col("metric").replace_strict({COUPLES[-1].id: "difference"}, default="value")
    shown = estimates.filter(col("of") == of, over="facts").with_columns(
        col("metric").replace({metric.id: metric.label for metric in (ACCURACY, *COUPLES)}),
        language=col("group").list.first(),
        other=col("group").list.get(1, null_on_oob=True),
    )
    table = shown.pivot("metric", index=["language", "other"], values="value")
    columns: dict[str, str] = {metric.label: metric.unit for metric in (ACCURACY, *COUPLES[:-1])}
    columns[COUPLES[-1].label] = "points"
    return estimates, [Exhibit("languages", "Languages", table, columns)]


def _names(data: Dataset, relation: Relation) -> pl.DataFrame:
    """Every name of everything that may be answered: relation, id, name, and its place in ties."""
    answers = [(entity.id, list(entity.names)) for entity in relation.answers]
    schema: dict[str, Any] = {"id": pl.String, "name": pl.List(pl.String)}
    parts = [pl.DataFrame(answers, schema, orient="row")]
    for kind in ("object", "wrong"):
        named = entities(data.frame(relation.id).lazy(), of=kind).collect()
        parts.append(named.select(id=f"{kind}_ids", name=f"{kind}_names"))
    names = pl.concat(parts).explode("name").unique(maintain_order=True)
    key = f"ties:{relation.same}:{relation.language}"
    ties = {id: float(draw_key(data.selection.seed, f"{key}:{id}")) for id in names["id"].unique()}
    tie = col("id").replace_strict(ties, return_dtype=pl.Float64)
    return names.select("id", "name", relation=pl.lit(relation.id), tie=tie)


def _units(results: Results, data: Dataset, relations: Sequence[Relation]) -> pl.DataFrame:
    """Graded facts with the number that each has in all languages.

    `options` has identifiers if each fact of the relation names its options.
    """
    rows = results.table(["fact_no", "correct"]).group_by("fact_no")
    accuracy = rows.agg(accuracy=col("correct").mean()).collect()
    frames = []
    for relation in relations:
        ids = (col("object_ids"), pl.concat_list("object_ids", "wrong_ids").list.unique())
        objects, every = (column.list.sort() for column in ids)
        options = pl.when(names_options(data.asked_frame(relation.id))).then(every)
        frames.append(data.frame(relation.id).select(*FACT, objects=objects, options=options))
    key = ("same", "split", "subject_id")
    facts = results.facts.with_columns(col("relation").cast(pl.String), same="canonical_id")
    facts = facts.join(accuracy, on="fact_no", maintain_order="left")
    facts = facts.select(
        "fact_no", *FACT, "language", *key, "accuracy", known=col("accuracy") > 0.5
    )
    facts = facts.join(pl.concat(frames), on=FACT, maintain_order="left")
    several = pl.len().over("language", *key).max().over(key) > 1
    facts = facts.with_columns(objects=pl.when(several).then("objects"))
    again = col("fact").cum_count().over("language", *key, "objects")
    return facts.with_columns(unit=pl.struct(*key, "objects", again).rank("dense"))


def _candidates(results: Results, names: pl.DataFrame, answers: Iterable[Answers]) -> pl.DataFrame:
    """The mean score of every candidate of every fact: fact_no, id, score, tie."""
    normalize: Any = getattr(results.probe, "normalize", "none")
    parts = []
    for batch in answers:
        result, request = batch.result, batch.batch.request
        if isinstance(result, OptionScores):
            named = [name for i in batch.batch.options_ids() for name in batch.batch.options[i]]
            owners, values = result.logprobs.owners, compared(result, normalize)
        elif isinstance(result, MaskScores) and isinstance(request, FillMask):
            named = [*request.targets] * len(batch)
            owners = np.repeat(np.arange(len(batch)), len(request.targets))
            values = np.where(result.target_ranks > 0, result.target_logprobs, np.nan).ravel()
        else:
            continue
        prompts, _ = numbered(batch, results.facts)
        prompts = prompts.filter(~col("template").str.starts_with(NAME_PARTS))
        scores = pl.DataFrame({"prompt": owners, "name": named, "score": values})
        scores = scores.cast({"prompt": pl.UInt32, "score": pl.Float64}).drop_nans("score")
        scores = scores.join(prompts.select("prompt", "relation", "fact_no"), on="prompt")
        scores = scores.join(names, on=("relation", "name"))
        parts.append(scores.group_by("prompt", "fact_no", "id", "tie").agg(col("score").max()))
    if not parts:
        columns = {"fact_no": pl.UInt32, "id": pl.String, "score": pl.Float64, "tie": pl.Float64}
        return pl.DataFrame(schema=columns)
    return pl.concat(parts).group_by("fact_no", "id", "tie").agg(col("score").mean())


def _rankc(both: pl.DataFrame, scores: pl.DataFrame) -> pl.DataFrame:
    """RankC of facts in two languages: unit, rankc. Facts that name different options, or
    with fewer than two candidates scored in both languages, have none."""
    table = both.filter(col("options").eq_missing(col("options_2"))).join(scores, on="fact_no")
    table = table.join(scores, left_on=("fact_no_2", "id"), right_on=("fact_no", "id"), suffix="_2")
    table = table.filter(col("id").is_in("options").fill_null(True))
    for rank, *order in (("rank", "score", "tie"), ("rank_2", "score_2", "tie_2")):
        table = table.sort(order, descending=[True, False])
        table = table.with_columns(pl.int_range(1, pl.len() + 1).over("unit").alias(rank))
    table = table.with_columns(n=pl.len().over("unit")).filter(col("n") > 1)
    n = table["n"].to_numpy()
    j = np.arange(1, 1 + n.max(initial=0))
    # a candidate is among the first j of both from the later of its ranks on
    weights, adds = (np.append(0, np.cumsum(x)) for x in (np.exp(1.0 - j), np.exp(1.0 - j) / j))
    last = table.select(pl.max_horizontal("rank", "rank_2")).to_series().to_numpy()
    shares = pl.Series("rankc", (adds[n] - adds[last - 1]) / weights[n])
    return table.select("unit", shares).group_by("unit").agg(col("rankc").sum())
