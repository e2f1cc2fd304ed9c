"""The same facts in several languages: what is known in each, and how alike answers are.

Facts of two languages are the same if their relations are (`canonical_id`), their subjects and
their splits; of several facts of a subject, also their objects. A fact's first answer is the most
frequent one of its prompts, and the fact is known if that is correct.

RankC compares how N candidates are ranked in two languages: Σ w_j · s_j over the ranks j, where s_j
is the share of the first j of one that is among the first j of the other, and the weights
w_j = e^(N−j) / Σ e^(N−k). A candidate is a thing, not a name: in a prompt it has the best score of
its names, and of several prompts about a fact the mean.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import permutations
from typing import Any

import numpy as np
import polars as pl
from polars import col

from sonde.answers import Answers, MaskScores, OptionScores
from sonde.core.errors import MissingExtra
from sonde.core.fact_frames import entities, names_options
from sonde.core.facts import NAME_PARTS, Dataset, Relation
from sonde.core.fingerprints import draw_key
from sonde.evaluation.estimate import Group, Metric, estimate
from sonde.evaluation.judge import compared, numbered
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
    """ESTIMATES of each language, and of each two: by "language" and "other".

    `answers` are read again, as RankC needs the score of every candidate. Nothing comes of data
    without a relation in two languages.
    """
    relations = [r for r in data.asked_relations() if r.same and r.language]
    if len({relation.same for relation in relations}) == len(relations):
        return pl.DataFrame(schema=ESTIMATES), []
    things = pl.concat(_things(data, relation) for relation in relations)
    units = _units(results, data, relations, things)
    scores = _candidates(results, things, answers)
    about = (col("same").alias("relation"), col("subject_id").rank("dense").alias("cluster"))
    parts = [units.select(*about, "language", "accuracy")]
    spoken = units["language"].unique(maintain_order=True).to_list()
    for first, second in permutations(spoken, 2):
        one, other = (units.filter(col("language") == code) for code in (first, second))
        both = one.join(other, on="unit", suffix="_2", maintain_order="left")
        columns = {"other": col("language_2"), "only": col("known") & ~col("known_2")}
        if spoken.index(first) < spoken.index(second):
            both = both.join(_rankc(both, scores, data.selection.seed), on="unit", **LEFT)
            agrees = (col("thing") == col("thing_2")).fill_null(False)
            columns |= {"rankc": col("rankc"), "agrees": agrees}
            columns |= {"first": col("accuracy"), "second": col("accuracy_2")}
        parts.append(both.select(*about, "language", **columns))
    couples = Group(("language", "other"), tuple(metric.id for metric in COUPLES))
    groups = [Group("language", (ACCURACY.id,)), couples]
    rows = Results.of(pl.concat(parts, how="diagonal"))
    estimates = estimate(rows, [ACCURACY, *COUPLES], groups=groups, seed=seed)
    estimates = estimates.filter(col("group_by").list.len() > 0)
    return estimates, [_heat(estimates, metric) for metric in COUPLES[:3]]


def _things(data: Dataset, relation: Relation) -> pl.DataFrame:
    """Every name of everything that may be answered: relation, id, name."""
    answers = [(entity.id, name) for entity in relation.answers for name in entity.names]
    parts = [pl.DataFrame(answers, {"id": pl.String, "name": pl.String}, orient="row")]
    for kind in ("object", "wrong"):
        named = entities(data.frame(relation.id).lazy(), of=kind).explode(f"{kind}_names")
        parts.append(named.select(id=f"{kind}_ids", name=f"{kind}_names").collect())
    names = pl.concat(parts).drop_nulls().unique(maintain_order=True)
    return names.select(pl.lit(relation.id).alias("relation"), "id", "name")


def _units(
    results: Results, data: Dataset, relations: Sequence[Relation], things: pl.DataFrame
) -> pl.DataFrame:
    """Graded facts with the number that each has in all languages, and with their first answer.

    `thing` is the identifier of what the first answer names; null if it is nothing known.
    `candidates` are identifiers, one per line, `named` if the fact names them itself.
    """
    rows = results.table(["fact_no", "answer", "correct", "answer_mode"])
    rows = rows.with_columns(col("answer").cast(pl.String))
    answers = rows.group_by("fact_no", "answer").agg(n=pl.len(), known=col("correct").mean() >= 0.5)
    answers = answers.sort("n", "answer", descending=[True, False]).unique("fact_no", keep="first")
    written = (col("answer_mode") == "generate").any()
    accuracy = rows.group_by("fact_no").agg(accuracy=col("correct").mean(), written=written)
    frames = []
    for relation in relations:
        named = names_options(data.asked_frame(relation.id))
        known = things.filter(col("relation") == relation.id)["id"].unique().sort()
        candidates = (
            pl.concat_list("object_ids", "wrong_ids").list.unique().list.sort().list.join("\n")
        )
        candidates = candidates if named else pl.lit("\n".join(known))
        ids = col("object_ids").list.sort().list.join("\n")
        frame = data.frame(relation.id).with_columns(
            candidates=candidates, ids=ids, named=pl.lit(named)
        )
        frames.append(
            frame.select(*FACT, "object_ids", "object_names", "ids", "candidates", "named")
        )
    subject = ("same", "split", "subject_id")
    several = pl.struct("fact").len().over("language", *subject).max().over(subject) > 1
    key = (*subject, "objects")
    facts = results.facts.with_columns(col("relation").cast(pl.String), same="canonical_id")
    facts = facts.select("fact_no", *FACT, "language", *subject)
    facts = facts.join(pl.concat(frames), on=FACT, maintain_order="left")
    for table in (accuracy, answers):
        facts = facts.join(table.collect(), on="fact_no", maintain_order="left")
    facts = facts.with_columns(objects=pl.when(several).then("ids").otherwise(pl.lit("")))
    facts = facts.with_columns(again=col("fact").cum_count().over("language", *key))
    units = facts.with_columns(unit=pl.struct(*key, "again").rank("dense"))
    named_things = pl.Series(_named(units, data, relations, things), dtype=pl.String)
    return units.with_columns(thing=named_things)


def _named(
    units: pl.DataFrame, data: Dataset, relations: Sequence[Relation], things: pl.DataFrame
) -> Iterator[str | None]:
    """What each first answer names. A correct one names a correct object of the subject."""
    plain: dict[str, Callable[[str], str]] = {}
    every: dict[tuple[str, str], str] = {}
    correct: dict[tuple[str, str], list[tuple[str, str]]] = {}
    written = bool(units["written"].any())
    for relation in relations:
        plain[relation.id] = _lemmas(relation.language) if written else str.casefold
        objects = data.frame(relation.id).select("subject_id", "object_ids", "object_names")
        exploded = objects.explode("object_ids", "object_names").explode("object_names")
        for subject, id, name in exploded.iter_rows():
            correct.setdefault((relation.id, subject), []).append((name, id))
    # a name of several things is the first of them
    first = things.sort("id").unique(("relation", "name"), keep="first", maintain_order=True)
    for relation_id, id, name in first.iter_rows():
        every[relation_id, plain[relation_id](name)] = id
    columns = ("relation", "subject_id", "answer", "known", "object_ids", "object_names")
    for relation_id, subject, answer, known, ids, names in units.select(columns).iter_rows():
        usual = [(name, id) for id, each in zip(ids, names, strict=True) for name in each]
        pairs = [*correct[relation_id, subject], *usual] if known else []
        objects_by_name = {plain[relation_id](name): id for name, id in pairs}
        text = plain[relation_id]((answer or "").strip())
        # the longest name in a text; else the only object
        held = (
            objects_by_name[name]
            for name in sorted(objects_by_name, key=len, reverse=True)
            if within(name, text)
        )
        only = pairs[0][1] if len({*objects_by_name.values()}) == 1 else None
        yield objects_by_name.get(text) or every.get((relation_id, text)) or next(held, only)


def _lemmas(language: str) -> Callable[[str], str]:
    """How generated texts of a language are compared; as they are if its segmenter is missing."""
    chosen = language_of(OWN, language)
    try:
        check_language(chosen)
    except MissingExtra:
        chosen = PLAIN
    return partial(normal, language=chosen)


def _candidates(results: Results, things: pl.DataFrame, answers: Iterable[Answers]) -> pl.DataFrame:
    """The mean score of every candidate of every fact: fact_no, id, score."""
    normalize: Any = getattr(results.probe, "normalize", "none")
    parts = [pl.DataFrame(schema={"fact_no": pl.UInt32, "id": pl.String, "score": pl.Float64})]
    for batch in answers:
        result, request = batch.result, batch.batch.request
        prompts, _ = numbered(batch, results.facts)
        if isinstance(result, OptionScores):
            names = [name for i in batch.batch.options_ids() for name in batch.batch.options[i]]
            owners, values = result.logprobs.owners, compared(result, normalize)
        elif isinstance(result, MaskScores) and isinstance(request, FillMask):
            names = [*request.targets] * len(batch)
            owners = np.repeat(np.arange(len(batch)), len(request.targets))
            values = np.where(result.target_ranks > 0, result.target_logprobs, np.nan).ravel()
        else:
            continue
        prompts = prompts.filter(~col("template").str.starts_with(NAME_PARTS))
        columns = {"prompt": owners, "name": names, "score": values}
        scores = pl.DataFrame(columns).filter(col("score").is_not_nan())
        scores = scores.cast({"prompt": pl.UInt32, "score": pl.Float64})
        scores = scores.join(prompts.select("prompt", "relation", "fact_no"), on="prompt")
        best = scores.join(things, on=("relation", "name")).group_by("prompt", "fact_no", "id")
        parts.append(best.agg(col("score").max()).drop("prompt"))
    return pl.concat(parts).group_by("fact_no", "id").agg(col("score").mean())


def _rankc(both: pl.DataFrame, scores: pl.DataFrame, seed: int) -> pl.DataFrame:
    """RankC of facts in two languages: unit, rankc. Facts that name different candidates, or of
    which fewer than two are scored in both languages, have none."""
    alike = (~col("named") & ~col("named_2")) | (col("candidates") == col("candidates_2"))
    table = both.filter(alike).join(scores, on="fact_no")
    table = table.join(scores, left_on=("fact_no_2", "id"), right_on=("fact_no", "id"), suffix="_2")
    table = table.filter(~col("named") | col("id").is_in(col("candidates").str.split("\n")))
    for side in ("", "_2"):
        names = ("same", f"language{side}", "id")
        drawn = table.select(names).unique()
        keys = [float(draw_key(seed, ":".join(("ties", *row)))) for row in drawn.iter_rows()]
        drawn = drawn.with_columns(pl.Series(f"tie{side}", keys, dtype=pl.Float64))
        table = table.join(drawn, on=names)
        place = pl.int_range(1, pl.len() + 1).over("unit").alias(f"rank{side}")
        table = table.sort(-col(f"score{side}"), f"tie{side}").with_columns(place)
    table = table.with_columns(n=pl.len().over("unit")).filter(col("n") > 1)
    n = table["n"].to_numpy()
    j = np.arange(1, 1 + n.max(initial=0))
    # a candidate is among the first j of both from the later of its ranks on
    weights, adds = (np.append(0, np.cumsum(x)) for x in (np.exp(1.0 - j), np.exp(1.0 - j) / j))
    last = table.select(pl.max_horizontal("rank", "rank_2")).to_series().to_numpy()
    shares = pl.Series("rankc", (adds[n] - adds[last - 1]) / weights[n])
    return table.select("unit").with_columns(shares).group_by("unit").agg(col("rankc").sum())


def _heat(estimates: pl.DataFrame, metric: Metric) -> Exhibit:
    """A metric of every two languages."""
    shown = estimates.filter(metric=metric.id, of="value", over="facts")
    first, second = col("group").list.first(), col("group").list.last()
    frame = shown.select(y=first, x=second, color="value", n="n")
    units = {"color": metric.unit, "n": "count"}
    return Exhibit(metric.id.replace(".", "-"), metric.label, frame, units, "heat", metric.help)
