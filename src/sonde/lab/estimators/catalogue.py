"""Every estimator of what a model knows, by name: how it is asked, how its answers are read.

Prompts are put by the ordinary public probe and judged by it (`run.results`); from there every fact
gets a score, a decision, what it counts, and chance. Chance is exact: the same answers held against
the objects of every other fact of the relation. Knows no truth: what an estimator says is compared
with it elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

import numpy as np
import polars
from polars import DataFrame, Expr, Series, col

from sonde.answers import MaskScores
from sonde.bridge import as_answers
from sonde.core.errors import UsageError, nearest
from sonde.core.facts import Dataset
from sonde.lab.estimators.asking import (
    MODEL,
    RANDOM,
    RANDOM_EMBEDDINGS,
    UNUSED,
    Ask,
    ask_control,
    ask_optimised,
    ask_probe,
)
from sonde.lab.training.train import Kind
from sonde.prompting.matching import PLAIN, clean_answer, is_contained, lemmatize
from sonde.runs.run import Run

Read = Callable[[Run], DataFrame]
"""What the answers of a run say of each fact; columns as `Verdicts` has them."""

BOTH: tuple[Kind, ...] = ("causal", "masked")
CAUSAL: tuple[Kind, ...] = ("causal",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimator:
    """A way to tell which facts a model knows.

    says: what its score and its decision are, in a line. kinds: the models it fits. ask: puts the
    questions, once whoever reads the answers; `folder` is where they are kept. learns: it is
    trained on other facts, or counts them. control: it is what estimators are held against.
    """

    name: str
    says: str
    kinds: tuple[Kind, ...]
    folder: str
    ask: Ask
    read: Read
    learns: bool = False
    control: bool = False


def estimators() -> dict[str, Estimator]:
    """Every estimator by name, in the order they are shown."""
    return {each.name: each for each in ALL}


def chosen(names: Iterable[str]) -> tuple[Estimator, ...]:
    """The estimators of these names, all of them if there are none; refuses an unknown one."""
    known, wanted = estimators(), dict.fromkeys(names)
    for name in wanted:
        if name not in known:
            raise UsageError(f"no estimator called {name!r}; {nearest(name, known)}")
    return tuple(each for each in ALL if not wanted or each.name in wanted)


STAYS = 0.5
"""MONITOR's distance up to which an answer counts as known: its probability moves less than it
stays."""

DIGITS = 10
"""Of a log-probability: scores that differ by less are equal, in whichever order they were added up
and whatever the last digit of a machine's exp."""

AVERAGE, LIKELY, LIKELIEST = col("right").mean(), col("likely").mean(), col("likely").max()
"""Scores: the share of a fact's prompts answered right, how likely its object is on average, or in
the prompt where it is likeliest."""


def read_judged(
    run: Run, score: Expr = LIKELY, *, any: bool = False, best: bool = False, first: bool = False
) -> DataFrame:
    """What the probe's own grades say of each fact: known if most of its prompts are correct.

    any: one correct prompt is enough. best: only the template that answers most facts of the
    relation counts. first: a fact's first object alone is correct.
    """
    results = run.results()
    names = ("relation", "fact_no", "fact", "answer", "correct", "gold_logprob", "template_no")
    rows = results.table([*names, "alias_no", "answer_mode"]).collect()
    modes = set(rows["answer_mode"].cast(polars.String))
    prompts = rows.select(
        "fact",
        "gold_logprob",
        col("relation", "answer").cast(polars.String),
        pair="fact_no",
        right="correct",
        number="template_no",
        usual=col("alias_no") == 0,
        mass=polars.lit(0.0),
    )
    if modes == {"fill"}:
        prompts = prompts.drop("mass").join(_masses(run), on="fact", how="left")
    # among the answers allowed; where these have no probability at all, the object has none
    share = (col("gold_logprob") - col("mass")).fill_null(-np.inf).fill_nan(-np.inf)
    prompts = prompts.with_columns(likely=share.clip(upper_bound=0.0).round(DIGITS).exp())
    if best:
        prompts = _in_best_template(prompts.filter("usual"))
    names_of = right_names(run.dataset(), first=first)
    return read_prompts(prompts, names_of, score, any, modes == {"generate"})


def read_prompts(
    prompts: DataFrame, names: DataFrame, score: Expr, any: bool = False, written: bool = False
) -> DataFrame:
    """A row for each fact: fact, score, decision, counts, chance.

    prompts: a row each, with relation, pair, fact, answer, right, and what `score` is made of.
    names: relation, fact and each name that is right for it. written: answers are texts.
    """
    counts = col("right").any().cast(float) if any else AVERAGE
    facts = prompts.group_by("pair", "fact").agg(score=score, counts=counts).sort("pair")
    return facts.join(
        by_chance(prompts, names, any=any, written=written), on="fact", maintain_order="left"
    ).select("fact", "score", (col("counts") > 0.5).alias("decision"), "counts", "chance")


def by_chance(
    prompts: DataFrame, names: DataFrame, *, any: bool = False, written: bool = False
) -> DataFrame:
    """For each fact, how often its answers would be right for another fact of its relation.

    The mean over the other facts of the share of its prompts whose answer gives an object of the
    other fact, or of whether any does; 0 for a fact that stands alone. A tie for the first place,
    which probes count as wrong, is not looked for.
    """
    said = prompts.group_by("relation", "fact", "answer").len("times")
    facts = said.group_by("relation", "fact").agg(prompts=col("times").sum())
    others = facts.with_columns(others=polars.len().over("relation") - 1)
    names = names.join(facts, on="fact", how="semi")
    hits = (_written(said, names) if written else names.rename({"name": "answer"})).unique()
    of_others = said.join(hits, on=["relation", "answer"], suffix="_hit").filter(
        col("fact") != col("fact_hit")
    )
    shares = of_others.group_by("fact", "fact_hit").agg(col("times").sum())
    share = polars.len() if any else (col("times") / col("prompts")).sum()
    sums = shares.join(others, on="fact").group_by("fact").agg(sum=share)
    chance = (col("sum") / col("others")).fill_null(0.0)
    return others.join(sums, on="fact", how="left").select("fact", chance=chance)


def right_names(dataset: Dataset, *, first: bool = False) -> DataFrame:
    """What is right for each fact that is asked about: relation, fact, name, a row for each name.

    `first`: the usual name of its first object alone.
    """
    rows = [
        (relation.id, fact.id, name)
        for relation in dataset.asked_relations()
        for fact in dataset.asked(relation.id)
        for entity in fact.objects[: 1 if first else None]
        for name in entity.names[: 1 if first else None]
    ]
    return DataFrame(rows, schema=["relation", "fact", "name"], orient="row")


def _written(said: DataFrame, names: DataFrame) -> DataFrame:
    """Which facts each written answer, in lower case as the probe keeps it, holds a name of."""
    answers = said.select("relation", "answer").unique()
    pairs = answers.join(names.select("relation", "name").unique(), on="relation")
    right = [
        is_contained(lemmatize(name, PLAIN), answer)
        for name, answer in pairs.select("name", "answer").iter_rows()
    ]
    held = pairs.filter(polars.Series(right, dtype=polars.Boolean))
    return held.join(names, on=["relation", "name"]).select("relation", "fact", "answer")


def _masses(run: Run) -> DataFrame:
    """The log-probability of all allowed answers together, by fact; of several prompts the last's:
    only LAMA allows fewer answers than there are tokens, and it has one prompt per fact."""
    batches = (as_answers(block) for block in run.answers())
    masses = [
        batch.frame.select("fact", mass=polars.lit(batch.result.allowed_logprob, polars.Float64))
        for batch in batches
        if isinstance(batch.result, MaskScores)
    ]
    return polars.concat(masses).unique("fact", keep="last")


def _in_best_template(prompts: DataFrame) -> DataFrame:
    """The prompts in the template of each relation with the highest accuracy; the first of some."""
    accuracy = prompts.group_by("relation", "number").agg(col("right").mean()).sort("number")
    best = accuracy.sort("right", descending=True, maintain_order=True)
    return prompts.join(
        best.unique("relation", keep="first"), on=["relation", "number"], how="semi"
    )


def read_anchor(run: Run) -> DataFrame:
    """MONITOR's anchor: how likely the object is after its own name, and whether it is answered.

    Chance is how often a wrong name is answered after itself: the anchor holds the object's name,
    so that of another object must be in the same place to compare.
    """
    facts = _monitored(run)
    return _monitor_frame(facts, facts["anchor"], facts["valid"])


def read_distance(run: Run) -> DataFrame:
    """How little the object's probability moves: 1 minus MONITOR's distance; 0 without an anchor.

    Chance is how often a wrong name is answered after itself and to more than half of the uncued
    questions: the probabilities of wrong names are not computed.
    """
    facts = _monitored(run)
    one, two, three = run.manifest.probe["reading"]["alphas"]
    pfd, ird = (facts[name].fill_null(np.nan).to_numpy() for name in ("pfd", "ird"))
    distance = np.sqrt(one * pfd**2 + two * ird**2 + three * pfd * ird)
    counted = facts["counted"].to_numpy()
    score = np.clip(np.where(counted, 1 - distance, 0.0), 0.0, 1.0)
    known = counted & (np.nan_to_num(distance, nan=1.0) <= STAYS)
    return _monitor_frame(facts, Series(score), Series(known), bare=True)


def _monitored(run: Run) -> DataFrame:
    """A row per fact: its anchor, distances, answers to uncued questions, and to wrong cues."""
    columns = ("fact_no", "fact", "template_no", "cue", "object", "answer")
    numbers = ("probability", "distance", "valid", "counted")
    rows = (
        run.results()
        .table([*columns, *numbers])
        .with_columns(col("cue", "object", "answer").cast(polars.String))
    )
    cue = col("cue")
    misled = (cue == "wrong") & (col("template_no") == 1)
    return (
        rows.group_by("fact_no", "fact", maintain_order=True)
        .agg(
            col("valid", "counted").first(),
            anchor=col("probability").filter(cue == "right").first(),
            pfd=col("distance").filter(cue == "none").mean(),
            ird=col("distance").filter(misled).mean(),
            uncued=col("answer").filter(cue == "none"),
            wrong=col("object").filter(misled),
            misled=col("answer").filter(misled),
        )
        .collect()
    )


def _monitor_frame(
    facts: DataFrame, score: Series, known: Series, *, bare: bool = False
) -> DataFrame:
    """Chance is how often a wrong name is answered after itself; `bare`: and mostly without it."""
    chances = []
    for wrong, misled, uncued in facts.select("wrong", "misled", "uncued").iter_rows():
        hits = [
            clean_answer(name) == text and (not bare or uncued.count(text) > len(uncued) / 2)
            for name, text in zip(wrong, misled, strict=True)
        ]
        chances.append(sum(hits) / max(1, len(hits)))
    return DataFrame(
        {
            "fact": facts["fact"],
            "score": score,
            "decision": known,
            "counts": known.cast(polars.Float64),
            "chance": Series(chances, dtype=polars.Float64),
        }
    )


OBJECT = "probability of the object among the answers allowed; known if it is the likeliest"
SHARE = "which is also what counts; known if over half"

FIRST = partial(read_judged, first=True)
AVERAGED = partial(read_judged, score=AVERAGE)
ORACLE = partial(read_judged, score=LIKELIEST, any=True)

PROBES: tuple[tuple[str, str, Read, tuple[Kind, ...], str], ...] = (
    ("lama", "lama", read_judged, BOTH, f"the first template: {OBJECT}"),
    ("lama-unused", UNUSED, read_judged, BOTH, f"a template that the text never uses: {OBJECT}"),
    ("belief-average", "belief", AVERAGED, BOTH, f"share of prompts answered right, {SHARE}"),
    ("belief-max", "belief", partial(read_judged, best=True), BOTH,
     "the template that answers most facts of the relation: probability of the object; known if "
     "it is the likeliest"),
    ("belief-oracle", "belief", ORACLE, BOTH,
     "highest probability of the object in any prompt; known if any prompt is answered right"),
    ("belief-icl", "belief-icl", AVERAGED, CAUSAL,
     f"share of prompts answered right in writing after examples, {SHARE}"),
    ("ic-lke", "ic-lke", FIRST, CAUSAL,
     "probability of the object among the options after a list of other facts; known if it is the "
     "likeliest"),
    ("eic-lke", "eic-lke", FIRST, CAUSAL,
     "probability of the object among the options inside a list of other facts; known if it is "
     "the likeliest"),
    ("monitor-anchor", "monitor", read_anchor, CAUSAL,
     "probability of the object after its own name; known if it is answered there"),
    ("monitor-distance", "monitor", read_distance, CAUSAL,
     "1 less how far the object's probability moves from its anchor, 0 without a valid one; known "
     f"if it moves at most {STAYS:g}"),
)  # fmt: skip
"""Name, probe, how it is read, for which models, and what it says."""

FREE, WEIGHTS = "optiprompt-free", "the same on random weights"
LEARNERS: tuple[tuple[str, str, str, str, str, str], ...] = (
    ("optiprompt", "optiprompt", "soft", MODEL, "", "vectors trained on other facts"),
    (FREE, "optiprompt", "soft", MODEL, FREE,
     "vectors from a random start, trained fast on other facts"),
    ("autoprompt", "autoprompt", "", MODEL, "", "tokens searched on other facts"),
    ("lpaqa", "lpaqa", "ensemble", MODEL, "",
     "templates averaged with weights tuned on other facts"),
    ("finetune", "finetune", "finetuned", MODEL, "", "tuned on other facts"),
    ("class-prior", "", "", "", "", "share of the object among other facts"),
    ("naive-bayes", "", "", "", "", "words of the name among other facts"),
    ("optiprompt-random", "optiprompt", "soft", RANDOM, "", WEIGHTS),
    ("optiprompt-random-embeddings", "optiprompt", "soft", RANDOM_EMBEDDINGS, "",
     "the same on random embeddings"),
    (f"{FREE}-random", "optiprompt", "soft", RANDOM, FREE, WEIGHTS),
    ("autoprompt-random", "autoprompt", "", RANDOM, "", WEIGHTS),
    ("lpaqa-random", "lpaqa", "ensemble", RANDOM, "", WEIGHTS),
    ("finetune-random", "finetune", "finetuned", RANDOM, "", WEIGHTS),
)  # fmt: skip
"""What learns from other facts: name, method, what opens what it made, for which weights, variant
of its settings, and how. Without a method it counts facts; it, and other weights, are controls."""


def _probe(name: str, probe: str, read: Read, kinds: tuple[Kind, ...], says: str) -> Estimator:
    ask = partial(ask_probe, probe=probe)
    return Estimator(name=name, says=says, kinds=kinds, folder=probe, ask=ask, read=read)


def _learner(name: str, method: str, scheme: str, of: str, variant: str, how: str) -> Estimator:
    made = partial(ask_optimised, method=method, scheme=scheme, of=of, variant=variant)
    return Estimator(
        name=name,
        says=f"{how}: {OBJECT}",
        kinds=BOTH,
        folder=name,
        ask=made if method else partial(ask_control, control=name),
        read=read_judged,
        learns=True,
        control=of != MODEL,
    )


ALL = (*(_probe(*row) for row in PROBES), *(_learner(*row) for row in LEARNERS))
