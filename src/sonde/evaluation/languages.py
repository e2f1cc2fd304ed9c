"""The same facts in several languages: what is known in each, and how alike options are ranked.

Facts of two languages are the same if their relations are (`canonical_id`), their subjects and
their splits; of several facts of a subject, also their objects. A fact is known if most of its
prompts are correct.

RankC compares how N candidates are ranked in two languages: Σ w_j · s_j over the ranks j, where s_j
is the share of the first j of one that is among the first j of the other, and the weights
w_j = e^(N−j) / Σ e^(N−k). A candidate is a thing, not a name: in a prompt it has the best score of
its names, and of several prompts about a fact the mean.
"""

from collections.abc import Iterable

import numpy as np
import polars as pl
from polars import col

from sonde.answers import Answers, OptionScores
from sonde.core.fact_frames import entities, names_options
from sonde.core.facts import NAME_PARTS, Dataset
from sonde.core.fingerprints import draw_key
from sonde.evaluation.estimate import Group, Metric, estimate
from sonde.evaluation.judge import match_prompts_to_facts, option_scores
from sonde.evaluation.layout import Exhibit
from sonde.evaluation.tables import ESTIMATES, FACT, LEFT, Results

COUPLE = ("fact_no", "fact_no_2")

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


def compare_languages(
    results: Results, data: Dataset, answers: Iterable[Answers], seed: int = 0
) -> tuple[pl.DataFrame, list[Exhibit]]:
    """ESTIMATES of each language, and of each two: by "language" and "other".

    `answers` are read again, as RankC needs the score of every option. Data without a relation
    in two languages have no estimates.
    """
    relations = [r for r in data.asked_relations() if r.same and r.language]
    if len({relation.same for relation in relations}) == len(relations):
        return pl.DataFrame(schema=ESTIMATES), []
    candidates, names = [], []
    for relation in relations:
        frame = data.frame(relation.id)
        every = pl.concat_list("object_ids", "wrong_ids").list.unique().list.sort()
        own = pl.when(names_options(data.asked_frame(relation.id))).then(every)
        candidates.append(frame.select(*FACT, objects=col("object_ids").list.sort(), options=own))
        objects = [(relation.id, entity.id, list(entity.names)) for entity in relation.answers]
        for kind in ("object", "wrong"):
            objects += entities(frame.lazy(), "relation", of=kind).collect().rows()
        table = pl.DataFrame(objects, ["relation", "id", "name"], orient="row").explode("name")
        key = f"ties:{relation.same}:{relation.language}"
        ties = [float(draw_key(data.selection.seed, f"{key}:{id}")) for id in table["id"]]
        names.append(table.with_columns(tie=pl.Series(ties)).unique())
    facts = _facts_in_all_languages(results, pl.concat(candidates))
    scores = _mean_option_scores(results, pl.concat(names), answers)
    order = pl.Enum(facts["language"].unique(maintain_order=True))
    one, other = (col(name).cast(order) for name in ("language", "language_2"))
    both = facts.join(facts, on="shared", suffix="_2", maintain_order="left").filter(one != other)
    parts = both.filter(one < other).partition_by("language", "language_2")
    rankc = pl.concat([_estimate_rankc(part, scores) for part in (both.clear(), *parts)])
    about = (col("same").alias("relation"), col("subject_id").rank("dense").alias("cluster"))
    values = pl.when(one < other).then(pl.struct("rankc", first="accuracy", second="accuracy_2"))
    couples = both.join(rankc, on=COUPLE, **LEFT).select(
        *about, "language", values.struct.unnest(),
        other="language_2", only=col("known") & ~col("known_2"),
    )  # fmt: skip
    rows = pl.concat([facts.select(*about, "language", "accuracy"), couples], how="diagonal")
    metrics, ids = (ACCURACY, *COUPLES), tuple(metric.id for metric in COUPLES)
    groups = [Group("language", (ACCURACY.id,)), Group(("language", "other"), ids)]
    estimates = estimate(Results.of(rows), metrics, groups=groups, seed=seed, whole=False)
    difference = col("metric") == COUPLES[-1].id
    shown = estimates.filter((col("of") == "difference") == difference, over="facts")
    shown = shown.filter(col("of") != "baseline").with_columns(
        col("metric").replace({metric.id: metric.label for metric in metrics}),
        language=col("group").list.first(),
        other=col("group").list.get(1, null_on_oob=True),
    )
    table = shown.pivot("metric", index=["language", "other"], values="value")
    units = {metric.label: metric.unit for metric in metrics} | {COUPLES[-1].label: "points"}
    return estimates, [Exhibit("languages", "Languages", table, units)]


def _facts_in_all_languages(results: Results, candidates: pl.DataFrame) -> pl.DataFrame:
    """Graded facts with the number that each has in all languages, `shared`.

    `options` has identifiers if each fact of the relation names its options.
    """
    rows = results.table(["fact_no", "correct"]).group_by("fact_no")
    accuracy = rows.agg(accuracy=col("correct").mean()).collect()
    key = ("same", "split", "subject_id")
    facts = results.facts.with_columns(col("relation").cast(pl.String), same="canonical_id")
    facts = facts.select("fact_no", *FACT, "language", *key).join(accuracy, on="fact_no", **LEFT)
    facts = facts.join(candidates, on=FACT, maintain_order="left")
    several = pl.len().over("language", *key).max().over(key) > 1
    facts = facts.with_columns(
        known=col("accuracy") > 0.5, objects=pl.when(several).then("objects")
    )
    again = col("fact").cum_count().over("language", *key, "objects")
    return facts.with_columns(shared=pl.struct(*key, "objects", again).rank("dense"))


def _mean_option_scores(
    results: Results, names: pl.DataFrame, answers: Iterable[Answers]
) -> pl.DataFrame:
    """The mean score of every option of every fact: fact_no, id, tie, score."""
    zero = pl.lit(0.0)
    parts = [results.facts.clear().select("fact_no", id="fact", tie=zero, score=zero)]
    for batch in answers:
        if isinstance(batch.result, OptionScores):
            sets = [list(batch.batch.options[i]) for i in batch.batch.options_ids()]
            values = option_scores(batch.result, getattr(results.probe, "normalize", "none"))
            table = pl.DataFrame({"name": sets}).with_row_index("prompt").explode("name")
            prompts, _ = match_prompts_to_facts(batch, results.facts)
            prompts = prompts.filter(~col("template").str.starts_with(NAME_PARTS))
            table = table.with_columns(score=values).join(prompts, on="prompt")
            table = table.join(names, on=("relation", "name"))
            scores = table.group_by("prompt", "fact_no", "id", "tie").agg(col("score").max())
            parts.append(scores.drop("prompt"))
    return pl.concat(parts).group_by("fact_no", "id", "tie").agg(col("score").mean())


def _estimate_rankc(both: pl.DataFrame, scores: pl.DataFrame) -> pl.DataFrame:
    """RankC of facts in two languages. Facts that name different options, or with fewer than two
    candidates scored in both languages, have none."""
    table = both.filter(col("options").eq_missing(col("options_2"))).join(scores, on="fact_no")
    table = table.join(scores, left_on=("fact_no_2", "id"), right_on=("fact_no", "id"), suffix="_2")
    table = table.filter(col("id").is_in("options").fill_null(True))
    orders = (pl.struct(-col(f"score{n}"), f"tie{n}") for n in ("", "_2"))
    # a candidate is among the first j of both from the later of its ranks on
    last = pl.max_horizontal(order.rank("ordinal").over(COUPLE) for order in orders)
    table = table.select(*COUPLE, last=last, n=pl.len().over(COUPLE)).filter(col("n") > 1)
    n, last_rank = table["n"].to_numpy(), table["last"].to_numpy()
    j = np.arange(1, 1 + n.max(initial=0))
    weights, adds = (np.append(0, np.cumsum(x)) for x in (np.exp(1.0 - j), np.exp(1.0 - j) / j))
    shares = pl.Series("rankc", (adds[n] - adds[last_rank - 1]) / weights[n])
    return table.select(*COUPLE, shares).group_by(COUPLE).agg(col("rankc").sum())
