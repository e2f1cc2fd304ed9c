"""The same facts in several languages: what is known in each, and how alike answers are.

Facts of two languages are the same if their relations are (`canonical_id`), their subjects and
their splits; of several facts of a subject, also their objects. A fact's first answer is the most
frequent one of its prompts, and the fact is known if that is correct.

RankC compares how N candidates are ranked in two languages: Σ w_j · s_j over the ranks j, where s_j
is the share of the first j of one that is among the first j of the other, and the weights
w_j = e^(N−j) / Σ e^(N−k). A candidate is a thing, not a name: in a prompt it has the best score of
its names, and of several prompts about a fact the mean.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import permutations

import numpy as np
import polars as pl
from polars import col

from sonde.answers import Answers, MaskScores, OptionScores
from sonde.core.errors import MissingExtra
from sonde.core.fact_frames import entities, names_options
from sonde.core.facts import NAME_PARTS, Dataset, Relation
from sonde.core.fingerprints import draw_key
from sonde.evaluation.estimate import Group, Metric, estimate
from sonde.evaluation.judge import numbered
from sonde.evaluation.layout import Exhibit
from sonde.evaluation.tables import ESTIMATES, FACT, LEFT, Results
from sonde.prompting.matching import OWN, PLAIN, check_language, language_of, normal, within
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
        "language.agreement", num=col("agrees").mean(), label="same answer",
        help="share of facts whose first answers name the same thing in two languages",
    ),
    Metric(
        "language.known_only", num=col("only").mean(), label="known in one only", better="lower",
        help="share of facts known in the first language and not in the second",
    ),
    Metric(
        "language.difference", num=col("first").mean(), baseline=col("second").mean(), better="",
        label="accuracy in the first language", baseline_label="accuracy in the second language",
        help="accuracy in two languages on the same facts",
    ),
)  # fmt: skip


def languages(
    results: Results, data: Dataset, answers: Iterable[Answers], seed: int = 0
) -> tuple[pl.DataFrame, list[Exhibit]]:
    """ESTIMATES of each language (by "language") and of each two (by "languages": "en-fr").

    `answers` are read again for RankC, as it needs the score of every candidate. Nothing comes of
    data with one language.
    """
    relations = [r for r in data.asked_relations() if r.same and r.language]
    if len({relation.same for relation in relations}) == len(relations):
        return pl.DataFrame(schema=ESTIMATES), []
    units = _units(results, data, relations)
    scores = _candidates(results, data, relations, answers)
    spoken = units["language"].unique(maintain_order=True).to_list()
    parts = [units.select("unit", "language", "accuracy")]
    for first, second in permutations(spoken, 2):
        one, other = (units.filter(col("language") == code) for code in (first, second))
        both = one.join(other, on="unit", suffix="_2", maintain_order="left")
        columns = {"only": col("known") & ~col("known_2")}
        if spoken.index(first) < spoken.index(second):
            both = both.join(_rankc(both, scores, data.selection.seed), on="unit", **LEFT)
            agrees = (col("thing") == col("thing_2")).fill_null(False)
            columns |= {
                "rankc": col("rankc"),
                "agrees": agrees,
                "first": col("accuracy"),
                "second": col("accuracy_2"),
            }
        parts.append(both.select("unit", languages=pl.lit(f"{first}-{second}"), **columns))
    facts = units.unique("unit", keep="first", maintain_order=True).sort("unit")
    same = col("same").cast(pl.Enum(facts["same"].unique(maintain_order=True)))
    facts = facts.select(
        fact_no=col("unit"),
        relation=same,
        cluster=col("subject_id").rank("dense"),
        excluded=pl.lit(None, pl.String),
    )
    rows = pl.concat(parts, how="diagonal").rename({"unit": "fact_no"})
    rows = rows.join(facts.select("fact_no", "relation"), on="fact_no").sort(
        "relation", maintain_order=True
    )
    rows = rows.with_columns(template_no=pl.lit(0))
    groups = [Group("language", (ACCURACY.id,)), Group("languages", tuple(m.id for m in COUPLES))]
    estimates = estimate(
        replace(results, facts=facts, rows=rows), [ACCURACY, *COUPLES], groups=groups, seed=seed
    )
    estimates = estimates.filter(col("group_by").list.len() > 0)
    return estimates, [_heat(estimates, metric) for metric in COUPLES[:3]]


def _units(results: Results, data: Dataset, relations: Sequence[Relation]) -> pl.DataFrame:
    """Graded facts with the number that each has in all languages, and with their first answer.

    `thing` is the identifier of what the first answer names; null if it is nothing known.
    """
    rows = results.table(["fact_no", "answer", "correct"]).with_columns(
        col("answer").cast(pl.String)
    )
    answers = rows.group_by("fact_no", "answer").agg(n=pl.len(), known=col("correct").mean() >= 0.5)
    answers = answers.sort("n", "answer", descending=[True, False]).unique("fact_no", keep="first")
    accuracy = rows.group_by("fact_no").agg(accuracy=col("correct").mean())
    frames = []
    for relation in relations:
        frame = data.frame(relation.id).select(*FACT, "object_ids", "object_names", "wrong_ids")
        named = names_options(data.asked_frame(relation.id))
        every = "\n".join(_things(data, relation)["id"].unique().sort())
        own = pl.concat_list("object_ids", "wrong_ids").list.unique().list.sort().list.join("\n")
        own = own if named else pl.lit(every)
        frames.append(frame.with_columns(own=own, named=pl.lit(named)))
    subject = ("same", "split", "subject_id")
    several = pl.struct("fact").len().over("language", *subject).max().over(subject) > 1
    key = (*subject, "objects")
    ids = col("object_ids").list.sort().list.join("\n")
    units = (
        results.facts.select(
            "fact_no", *FACT, "language", "split", "subject_id", same="canonical_id"
        )
        .with_columns(col("relation").cast(pl.String))
        .join(pl.concat(frames), on=FACT, maintain_order="left")
        .join(accuracy.collect(), on="fact_no", maintain_order="left")
        .join(answers.collect(), on="fact_no", maintain_order="left")
        .with_columns(objects=pl.when(several).then(ids).otherwise(pl.lit("")))
        .with_columns(again=col("fact").cum_count().over("language", *key))
        .with_columns(unit=pl.struct(*key, "again").rank("dense").cast(pl.UInt32) - 1)
    )
    generated = "generate" in results.table(["answer_mode"]).collect().to_series().cast(pl.String)
    things = {}
    for relation in relations:
        plain = _lemmas(relation.language) if generated else str.casefold
        first: dict[str, str] = {}
        for id, name in _things(data, relation).sort("id", "name").iter_rows():
            first.setdefault(name, id)
        named = {plain(name): id for name, id in first.items()}
        frame = data.frame(relation.id).select("subject_id", "object_ids", "object_names")
        correct: dict[str, list[tuple[str, str]]] = {}
        pairs = frame.explode("object_ids", "object_names").explode("object_names")
        for subject_id, id, name in pairs.iter_rows():
            correct.setdefault(subject_id, []).append((name, id))
        part = units.filter(col("relation") == relation.id)
        columns = ("fact_no", "subject_id", "answer", "known", "object_ids", "object_names")
        for fact, subject_id, answer, known, object_ids, names in part.select(columns).iter_rows():
            usual = [(n, id) for id, each in zip(object_ids, names, strict=True) for n in each]
            own = {plain(n): id for n, id in (*correct[subject_id], *usual)} if known else {}
            text = plain((answer or "").strip())
            # the longest name in a text; else the only correct object
            held = next((n for n in sorted(own, key=len, reverse=True) if within(n, text)), "")
            only = next(iter(own.values())) if len({*own.values()}) == 1 else None
            things[fact] = own.get(text) or named.get(text) or own.get(held, only)
    numbers = {"fact_no": list(things), "thing": list(things.values())}
    found = pl.DataFrame(numbers, {"fact_no": pl.UInt32, "thing": pl.String})
    return units.join(found, on="fact_no", maintain_order="left")


def _lemmas(language: str) -> Callable[[str], str]:
    """How generated texts of a language are compared; as they are if its segmenter is missing."""
    chosen = language_of(OWN, language)
    try:
        check_language(chosen)
    except MissingExtra:
        chosen = PLAIN
    return partial(normal, language=chosen)


def _things(data: Dataset, relation: Relation) -> pl.DataFrame:
    """Every name of everything that may be answered: id, name."""
    answers = [(entity.id, name) for entity in relation.answers for name in entity.names]
    parts = [pl.DataFrame(answers, {"id": pl.String, "name": pl.String}, orient="row")]
    for kind in ("object", "wrong"):
        named = entities(data.frame(relation.id).lazy(), of=kind).explode(f"{kind}_names")
        parts.append(named.select(id=f"{kind}_ids", name=f"{kind}_names").collect())
    return pl.concat(parts).drop_nulls().unique(maintain_order=True)


def _candidates(
    results: Results, data: Dataset, relations: Sequence[Relation], answers: Iterable[Answers]
) -> pl.DataFrame:
    """The mean score of every candidate of every fact: fact_no, id, score."""
    things = {relation.id: _things(data, relation) for relation in relations}
    normalize = getattr(results.probe, "normalize", "none")
    parts = []
    for batch in answers:
        result, (prompts, _) = batch.result, numbered(batch, results.facts)
        prompts = prompts.filter(~col("template").str.starts_with(NAME_PARTS))
        prompts = prompts.select("prompt", "relation", "fact_no")
        if isinstance(result, OptionScores):
            names = [name for i in batch.batch.options_ids() for name in batch.batch.options[i]]
            values = result.sums() / (result.counts() if normalize == "tokens" else 1)
            owners = result.logprobs.owners
        elif isinstance(result, MaskScores) and isinstance(batch.batch.request, FillMask):
            names = [*batch.batch.request.targets] * len(batch)
            able = result.target_ranks > 0
            values = np.where(able, result.target_logprobs, np.nan).astype(np.float64).ravel()
            owners = np.repeat(np.arange(len(batch)), able.shape[1])
        else:
            continue
        scores = pl.DataFrame({"prompt": owners.astype(np.uint32), "name": names, "score": values})
        scores = scores.filter(col("score").is_not_nan()).join(prompts, on="prompt")
        for (relation,), part in scores.group_by("relation"):
            if relation in things:
                best = part.join(things[relation], on="name").group_by("prompt", "fact_no", "id")
                parts.append(best.agg(col("score").max()).drop("prompt"))
    none = pl.DataFrame(schema={"fact_no": pl.UInt32, "id": pl.String, "score": pl.Float64})
    return pl.concat([none, *parts]).group_by("fact_no", "id").agg(col("score").mean())


def _rankc(both: pl.DataFrame, scores: pl.DataFrame, seed: int) -> pl.DataFrame:
    """RankC of facts in two languages: unit, rankc. Facts that name different candidates, or of
    which fewer than two are scored in both languages, have none."""
    alike = (~col("named") & ~col("named_2")) | (col("own") == col("own_2"))
    table = both.filter(alike).join(scores, on="fact_no")
    table = table.join(scores, left_on=("fact_no_2", "id"), right_on=("fact_no", "id"), suffix="_2")
    table = table.filter(~col("named") | col("id").is_in(col("own").str.split("\n")))
    for side in ("", "_2"):
        names = ("same", f"language{side}", "id")
        drawn = table.select(names).unique()
        keys = [float(draw_key(seed, ":".join(("ties", *row)))) for row in drawn.iter_rows()]
        drawn = drawn.with_columns(pl.Series(f"tie{side}", keys, dtype=pl.Float64))
        table = table.join(drawn, on=names)
        place = pl.int_range(1, pl.len() + 1).over("unit").alias(f"rank{side}")
        table = table.sort(-col(f"score{side}"), f"tie{side}").with_columns(place)
    table = table.with_columns(n=pl.len().over("unit")).filter(col("n") > 1)
    j = np.arange(1, 1 + (table["n"].max() or 0))
    # a candidate is among the first j of both from the later of its ranks on
    weights, adds = (np.append(0, np.cumsum(x)) for x in (np.exp(1.0 - j), np.exp(1.0 - j) / j))
    last = table.select(pl.max_horizontal("rank", "rank_2")).to_series().to_numpy()
    n = table["n"].to_numpy()
    shares = pl.Series("rankc", (adds[n] - adds[last - 1]) / weights[n])
    return table.select("unit").with_columns(shares).group_by("unit").agg(col("rankc").sum())


def _heat(estimates: pl.DataFrame, metric: Metric) -> Exhibit:
    """A metric of every two languages."""
    shown = estimates.filter(metric=metric.id, of="value", over="facts")
    couple = col("group").list.first().str.split("-")
    frame = shown.select(y=couple.list.first(), x=couple.list.last(), color="value", n="n")
    units = {"color": metric.unit, "n": "count"}
    return Exhibit(metric.id.replace(".", "-"), metric.label, frame, units, "heat", metric.help)
