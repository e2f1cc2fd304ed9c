"""BEAR's numbers and report: estimates, tables and the figure. Knows outcomes, no prompts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sonde.core.facts import Dataset, Relation
from sonde.core.reports import Estimate, Estimates, Metric, Report, Table
from sonde.core.scores import Normalise
from sonde.core.words import against_control, counted
from sonde.metrics.estimates import FACTS, RELATIONS, ByFact, Resampled
from sonde.metrics.judged import Judged, around
from sonde.former.bear.judge import Outcomes
from sonde.reporting.build.figures import dots_by_relation
from sonde.reporting.build.parts import above_on_relations, headline, shown
from sonde.reporting.build.tables import Field, browse, by_place, by_relation, drawn, titled
from sonde.stats.intervals import Floats

ACCURACY = Metric(
    "accuracy",
    "accuracy",
    "percent",
    "share of a fact's sentences whose likeliest answer is right, averaged over facts",
)
MRR = Metric("mrr", "MRR", "number", "mean of 1/rank of the right answer")
SPREAD = Metric(
    "template_spread",
    "between templates",
    "percent",
    "standard deviation of the accuracies of the first, second, … template",
    better="lower",
)
MAJORITY, ABOVE = ACCURACY.controlled()

METRICS = (ACCURACY, MRR, SPREAD, MAJORITY, ABOVE)

SHOWN = 50_000
FEW = 5
"""Templates that have a column each in the table of relations."""


def build_report(
    dataset: Dataset, outcomes: Outcomes, *, score: str, normalise: Normalise
) -> Report:
    """Everything that is reported about some outcomes."""
    relations, judged = dataset.asked_relations(), outcomes.judged
    templates = range(1, int(outcomes.places.max(initial=-1)) + 2)
    estimates = _estimates(relations, outcomes, templates, dataset.selection.seed)
    return Report(
        title=f"BEAR on {dataset.name}",
        summary=_summary(estimates, judged),
        metrics=METRICS,
        estimates=estimates,
        counts={
            "asked": len(np.unique(judged.grid.pair)),
            "sentences": len(judged.grid),
            "ties": outcomes.ties,
        },
        headlines=(
            headline(ACCURACY, FACTS, control=MAJORITY, above=ABOVE),
            headline(ACCURACY, RELATIONS, control=MAJORITY, above=ABOVE),
            headline(MRR, FACTS),
            headline(SPREAD),
        ),
        tables=shown(
            _template_table(estimates, templates),
            _relation_table(dataset, relations, estimates, templates),
            _fact_table(judged, relations, dataset.selection.seed),
        ),
        figures=shown(
            dots_by_relation(
                estimates,
                relations,
                {"model": ACCURACY, "majority control": MAJORITY},
                id="accuracy-by-relation",
                title="Accuracy on every relation beside the majority control",
                axis="accuracy",
            ),
        ),
        findings=shown(
            against_control("Overall accuracy", estimates[ABOVE.at(FACTS)]),
            above_on_relations(estimates, ABOVE, relations),
        ),
        notes=_notes(score, normalise),
        judged=judged,
    )


def _estimates(
    relations: Sequence[Relation], outcomes: Outcomes, templates: Sequence[int], seed: int
) -> dict[str, Estimate]:
    grid = outcomes.judged.grid
    by_fact = ByFact.of(relations, grid.relations, outcomes.subjects, seed)
    numbers = _values(outcomes, templates)
    together = by_fact.together({metric.id: columns for metric, columns in numbers.items()})
    estimates: dict[str, Estimate] = {}
    for id, resampled in together.items():
        estimates |= resampled.means(id, by_fact.ids)
    estimates[SPREAD.at()] = _spread([together[of_template(n).id] for n in templates])
    return estimates


def _spread(templates: Sequence[Resampled]) -> Estimate:
    """How far templates lie apart; the interval is over other facts, drawn alike for all."""
    if len(templates) < 2:
        return Estimate.not_measured()
    means = [template.mean_over_facts() for template in templates]
    draws = [template.draws_over_facts() for template in templates]
    value = float(np.std([mean.value or 0.0 for mean in means], ddof=1))
    return around(value, np.std(draws, axis=0, ddof=1), means[0].n)


def _values(
    outcomes: Outcomes, templates: Sequence[int]
) -> dict[Metric, tuple[Floats, Floats | None]]:
    """A value for each fact, and what is taken from it, by metric; nan where it was not asked."""
    judged = outcomes.judged
    assert judged.rank is not None
    right, number = judged.grid.right.astype(np.float64), outcomes.places[judged.grid.template]
    reciprocal = np.where(judged.rank > 0, 1 / np.maximum(judged.rank, 1), 0.0)
    accuracy = _mean(judged, right)
    majority = np.where(np.isnan(accuracy), np.nan, outcomes.by_majority.astype(np.float64))
    return {
        ACCURACY: (accuracy, None),
        MRR: (_mean(judged, reciprocal), None),
        MAJORITY: (majority, None),
        ABOVE: (accuracy, majority),
        **{of_template(n): (_mean(judged, right, number == n - 1), None) for n in templates},
    }


def _mean(judged: Judged, values: Floats, of: np.ndarray | None = None) -> Floats:
    """The mean of some values of each fact's sentences."""
    kept = np.ones(len(values), dtype=np.bool_) if of is None else of
    owners, size = judged.grid.pair[kept], len(judged.pairs)
    with np.errstate(invalid="ignore"):
        sums = np.bincount(owners, weights=values[kept], minlength=size)
        return np.asarray(sums / np.bincount(owners, minlength=size), dtype=np.float64)


def of_template(number: int) -> Metric:
    """The accuracy of the first, second, … template of each relation."""
    return ACCURACY.under(f"template.{number}").named(f"template {number}")


def _summary(estimates: Estimates, judged: Judged) -> str:
    value, control = estimates[ACCURACY.at(FACTS)].value, estimates[MAJORITY.at(FACTS)].value
    if value is None or control is None:
        return "No sentence was asked: no relation has a template."
    facts = len(np.unique(judged.grid.pair))
    return (
        f"The likeliest sentence has the right answer {value:.1%} of the time "
        f"({counted(facts, 'fact', 'facts')}, {len(judged.grid):,} sentences with a gap); "
        f"always answering the commonest object gives {control:.1%}."
    )


def _template_table(estimates: Estimates, templates: Sequence[int]) -> Table:
    places: Mapping[str, str] = {
        **{f"template {number}": f"template.{number}.{FACTS}" for number in templates},
        "all": FACTS,
    }
    return by_place(
        estimates,
        places,
        [ACCURACY],
        head="sentences",
        id="by-template",
        title="By template",
        note="Each is averaged over the facts of all relations that have such a template.",
    )


def _relation_table(
    dataset: Dataset, relations: Sequence[Relation], estimates: Estimates, templates: Sequence[int]
) -> Table:
    space = Field[Relation](
        "answers",
        lambda r: len(dataset.object_names(r.id)),
        "count",
        help="how many answers there are to choose from",
    )
    apart = [of_template(n).detail() for n in templates] if len(templates) <= FEW else []
    return by_relation(
        estimates, relations, [space, ACCURACY, MAJORITY, ABOVE, MRR.detail(), *apart]
    )


def _fact_table(judged: Judged, relations: Sequence[Relation], seed: int) -> Table:
    titles = {relation.id: titled(relation) for relation in relations}
    facts = judged.facts()
    chosen = facts[drawn(facts["fact"].to_list(), seed, SHOWN)]
    rows = chosen.with_columns(relation=chosen["relation"].replace_strict(titles)).rename(
        {"gold": "correct"}
    )
    fields: list[Field[object] | str] = [
        *("relation", "subject", "correct"),
        Field("answer", help="the commonest over the templates"),
        Field("right", kind="percent", help="share of the templates under which it is right"),
        Field("rank", kind="number", help="median rank of the right answer; 1 is best"),
    ]
    return browse(rows, fields, id="facts", title="Facts", total=facts.height)


def _notes(score: str, normalise: Normalise) -> tuple[str, ...]:
    counted = {
        "sentence": "all tokens of the sentence, with the punctuation that closes it",
        "answer": "the tokens from the answer on (of masked models, those of the answer)",
    }
    added = "their mean log-probability" if normalise == "tokens" else "their log-probability"
    return (
        f"Answers of a relation are compared by {counted[score]}: {added}. Sentences begin with a "
        "capital. Ties count as wrong.",
        "Mean over facts is the score that lm-pub-quiz gives a dataset.",
        "Intervals are 95 %: a bootstrap over subjects within relations, Wilson's for a share of "
        "independent facts.",
    )
