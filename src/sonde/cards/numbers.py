"""The numbers of a data card, over all relations and of each, with their intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import polars as pl

from sonde.cards.relations import Described
from sonde.core.reports import Estimate, Metric
from sonde.evaluation import estimate as engine
from sonde.evaluation.stats import Floats
from sonde.evaluation.tables import Results
from sonde.reports.legacy import FACTS, RELATIONS


def _share(id: str, label: str, sentence: str) -> Metric:
    return Metric(id, label, "percent", sentence, better="")


CHANCE = _share("chance", "chance", "an answer drawn from the answer space is right")
MAJORITY = _share(
    "majority",
    "commonest",
    "the commonest object of the facts asked about, or of a fact's own options, is right",
)
PRIOR = _share("class_prior", "class prior", "the commonest object of the training facts is right")
BAYES = _share(
    "naive_bayes", "naive Bayes", "what the words of the subject's name suggest is right"
)
IN_NAME = _share("object_in_subject", "in the name", "the object's name stands in the subject's")
EASY = _share(
    "easy", "any of them", "right by class prior or naive Bayes, or the object is in the name"
)
SEEN = _share("also_in_training", "fact seen", "the same names stand in train or dev")
SUBJECT_SEEN = _share(
    "subject_in_training", "subject seen", "the subject's name stands in train or dev"
)
DOUBLED = _share(
    "near_duplicate", "near-duplicate", "another fact has the same object and a name alike"
)
PROMPTED = _share(
    "answer_in_prompt", "in the prompt", "the answer stands in what templates take from the fact"
)
ENTROPY = Metric("entropy", "entropy", "number", "of the objects asked about, in bits", better="")
EFFECTIVE = Metric(
    "effective_answers",
    "effective",
    "number",
    "as many answers that come equally often have the same entropy",
    better="",
)
EVENNESS = _share(
    "evenness", "evenness", "entropy as a share of that of an answer space used evenly"
)

GUESSED = (CHANCE, MAJORITY, PRIOR, BAYES, IN_NAME, EASY)
LEAKED = (SEEN, SUBJECT_SEEN, PROMPTED, DOUBLED)
SPREAD = (ENTROPY, EFFECTIVE, EVENNESS)
METRICS = (*GUESSED, *LEAKED, *SPREAD)

COLUMNS: Mapping[Metric, Callable[[Described], Floats]] = {
    CHANCE: lambda d: d.guesses.chance,
    MAJORITY: lambda d: d.guesses.majority,
    PRIOR: lambda d: d.guesses.prior,
    BAYES: lambda d: d.guesses.bayes,
    IN_NAME: lambda d: d.guesses.in_name,
    EASY: lambda d: d.guesses.easy,
    SEEN: lambda d: d.seen,
    SUBJECT_SEEN: lambda d: d.subject_seen,
    PROMPTED: lambda d: d.prompted,
    DOUBLED: lambda d: d.doubled,
}
"""What each share is the mean of."""


def numbers(relations: Sequence[Described], seed: int = 0) -> dict[str, Estimate]:
    """Every estimate by its name. Shares have intervals, by subjects resampled within relations;
    numbers that describe the answers have none."""
    languages = by_language(relations)
    columns = {m.id: np.concatenate([of(d) for d in relations]) for m, of in COLUMNS.items()}
    subjects = [np.unique(d.subjects, return_inverse=True)[1] for d in relations]
    rows = pl.DataFrame(
        {
            "relation": [d.relation.id for d in relations for _ in d.subjects],
            "language": [d.relation.language or None for d in relations for _ in d.subjects],
            "cluster": np.concatenate(subjects).astype(np.int64),
            **columns,
        },
        {"relation": pl.String, "language": pl.String, "cluster": pl.Int64}
        | dict.fromkeys(columns, pl.Float64),
    )
    names = [f"{id}.{over}" for id in columns for over in (RELATIONS, FACTS)]
    names += [f"{id}.relation.{d.relation.id}" for id in columns for d in relations]
    names += [f"{id}.language.{language}" for id in columns for language in languages]
    estimates = dict.fromkeys(names, Estimate.not_measured())
    if not rows.is_empty():
        metrics = [
            engine.Metric(id, num=pl.col(id).fill_nan(None).mean(), label=id) for id in columns
        ]
        found = engine.estimate(
            Results.of(rows), metrics, groups=("relation", "language"), seed=seed
        )
        for line in found.filter(pl.col("value").is_not_null()).iter_rows(named=True):
            place = ".".join([*line["group_by"], *line["group"]]) or f"mean_over_{line['over']}"
            if line["group_by"] and line["over"] == "facts":
                continue
            low, high = line["low"], line["high"]
            value = Estimate(value=line["value"], low=low, high=high, n=line["n"])
            estimates[f"{line['metric']}.{place}"] = value
    return estimates | _spread(relations)


def by_language(relations: Sequence[Described]) -> dict[str, list[str]]:
    """The ids of the relations of each language that some name, in order of the alphabet."""
    named = sorted({d.relation.language for d in relations} - {""})
    return {n: [d.relation.id for d in relations if d.relation.language == n] for n in named}


def _spread(relations: Sequence[Described]) -> dict[str, Estimate]:
    asked = [d for d in relations if d.subjects]
    measures: dict[Metric, Callable[[Described], float | None]] = {
        ENTROPY: lambda d: d.spread.entropy,
        EFFECTIVE: lambda d: d.spread.effective,
        EVENNESS: lambda d: d.spread.evenness,
    }
    estimates = {}
    for metric, measure in measures.items():
        values = {d.relation.id: measure(d) for d in asked}
        known = [value for value in values.values() if value is not None]
        mean = sum(known) / len(known) if known else None
        estimates[metric.at(RELATIONS)] = _plain(mean, sum(len(d.subjects) for d in asked))
        for d in relations:
            value = values.get(d.relation.id)
            estimates[metric.at(f"relation.{d.relation.id}")] = _plain(value, len(d.subjects))
    return estimates


def _plain(value: float | None, n: int) -> Estimate:
    """A number that describes what is there, without an interval."""
    return Estimate(value=value, low=None, high=None, n=0 if value is None else n)
