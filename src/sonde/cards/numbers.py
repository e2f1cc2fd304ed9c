"""The numbers of a data card, over all relations and of each, with their intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from sonde.cards.relations import Described
from sonde.core.reports import Estimate, Metric
from sonde.metrics.estimates import RELATIONS, ByFact
from sonde.metrics.judged import Floats


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
    """Every estimate by its name. Shares have intervals, by subjects drawn anew within relations;
    what describes the answers as they are has none."""
    facts = _facts(relations, seed)
    columns = {
        metric.id: (np.concatenate([column(d) for d in relations]), None)
        for metric, column in COLUMNS.items()
    }
    estimates: dict[str, Estimate] = {}
    for id, resampled in facts.together(columns).items():
        estimates |= resampled.means(id, facts.ids)
        for language, ids in by_language(relations).items():
            name = f"{id}.language.{language}"
            estimates[name] = resampled.mean_over_relations(ids)
    return estimates | _spread(relations)


def by_language(relations: Sequence[Described]) -> dict[str, list[str]]:
    """The ids of the relations of each language that some name, in order of the alphabet."""
    named = sorted({d.relation.language for d in relations} - {""})
    return {n: [d.relation.id for d in relations if d.relation.language == n] for n in named}


def _facts(relations: Sequence[Described], seed: int) -> ByFact:
    sizes = [len(d.subjects) for d in relations]
    subjects = [np.unique(d.subjects, return_inverse=True)[1] for d in relations]
    return ByFact.of(
        (d.relation for d in relations),
        np.repeat(np.arange(len(relations)), sizes),
        np.concatenate(subjects).astype(np.int64),
        seed,
    )


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
