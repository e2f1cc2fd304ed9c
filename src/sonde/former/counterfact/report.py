"""CounterFact's numbers and report: three scores, their magnitudes and harmonic mean.

Knows outcomes, no prompts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from sonde.core.facts import Dataset
from sonde.core.reports import Estimate, Estimates, Headline, Metric, Report, Table
from sonde.core.words import against_control, counted, in_points, sided, written
from sonde.metrics.estimates import FACTS, RELATIONS, ByFact, Resampled, hold_together
from sonde.metrics.judged import around
from sonde.former.counterfact.judge import ROLES, Outcomes, Role
from sonde.reporting.build.figures import dots_by_relation
from sonde.reporting.build.parts import headline, shown
from sonde.reporting.build.tables import Field, browse, by_relation, drawn, table, titled
from sonde.stats.intervals import Floats

CHANCE = 0.5
SHOWN = 50_000

EFFICACY = Metric(
    "efficacy", "efficacy", "percent", "share of cases with the expected object likelier"
)
PARAPHRASE = Metric(
    "paraphrase",
    "paraphrase",
    "percent",
    "the same after a case's other prompts, its mean over them",
)
NEIGHBOURS = Metric(
    "neighbourhood",
    "neighbourhood",
    "percent",
    "the same of a case's neighbours, whose own object is to be likelier than the new one",
)
SCORE = Metric("score", "score", "percent", "harmonic mean of the three scores")
SCORES: Mapping[Role, Metric] = {
    "efficacy": EFFICACY,
    "paraphrase": PARAPHRASE,
    "neighbourhood": NEIGHBOURS,
}
MAGNITUDES: Mapping[Role, Metric] = {
    role: Metric(
        f"{role}_magnitude",
        f"{metric.label} magnitude",
        "points",
        f"probability of the expected object minus that of the other, mean as for {metric.label}",
    )
    for role, metric in SCORES.items()
}
ABOVE: Mapping[Role, Metric] = {
    role: Metric(
        f"above_chance.{role}",
        f"{metric.label} above chance",
        "points",
        f"{metric.label} score minus 50 %, which either of two objects has by chance",
    )
    for role, metric in SCORES.items()
}
MAJORITY: Mapping[Role, Metric] = {
    role: Metric(
        f"control.majority.{role}",
        f"{metric.label}, majority",
        "percent",
        f"{metric.label} score of always choosing the commoner of the two objects",
        better="",
    )
    for role, metric in SCORES.items()
}
ABOVE_MAJORITY: Mapping[Role, Metric] = {
    role: Metric(
        f"above_control.{role}",
        f"{metric.label} above majority",
        "points",
        f"{metric.label} score minus the majority control's, paired by case",
    )
    for role, metric in SCORES.items()
}
LOSS = Metric(
    "paraphrase_less_efficacy",
    "paraphrase − efficacy",
    "points",
    "paraphrase score minus efficacy, paired by case",
)
UNNAMED = Metric(
    "efficacy_unnamed",
    "efficacy, answer not in the prompt",
    "percent",
    "efficacy over the cases whose own prompt does not hold the name of what is true",
)
METRICS = (
    *(*SCORES.values(), SCORE, *MAGNITUDES.values(), *ABOVE.values()),
    *(*MAJORITY.values(), *ABOVE_MAJORITY.values(), LOSS, UNNAMED),
)
LOOKS = (*ABOVE.values(), *ABOVE_MAJORITY.values())
COMMONER = "always the commoner of the two"

ASKED: Mapping[Role, str] = {
    "efficacy": "the case's own prompt",
    "paraphrase": "its other prompts",
    "neighbourhood": "prompts about its neighbours",
}


def build_report(dataset: Dataset, outcomes: Outcomes, *, edited: bool) -> Report:
    """Everything that is reported about some outcomes."""
    estimates = measure(outcomes, dataset.selection.seed)
    relations = outcomes.relations
    columns = [*SCORES.values(), SCORE, *(metric.detail() for metric in MAGNITUDES.values())]
    return Report(
        title=f"CounterFact on {dataset.name}",
        summary=_summary(estimates, edited),
        metrics=METRICS,
        estimates=estimates,
        counts=_counts(outcomes),
        headlines=tuple(_headlines(estimates)),
        tables=shown(
            _score_table(estimates),
            by_relation(estimates, relations, columns) if len(relations) > 1 else None,
            _prompt_table(dataset, outcomes),
        ),
        figures=shown(
            dots_by_relation(
                estimates,
                relations,
                {metric.label: metric for metric in SCORES.values()},
                id="scores-by-relation",
                title="The three scores of every relation",
                axis="share of cases",
                note=f"Chance is {CHANCE:.0%}. Whiskers are 95 % intervals.",
            ),
        ),
        findings=shown(*_findings(estimates)),
        notes=tuple(_notes(dataset, outcomes, edited)),
        judged=outcomes.judged(),
    )


def _headlines(estimates: Estimates) -> Iterator[Headline]:
    for role, metric in SCORES.items():
        if estimates[metric.at(FACTS)].value is not None:
            yield headline(
                metric,
                FACTS,
                label=metric.label,
                control=MAJORITY[role],
                above=ABOVE_MAJORITY[role],
                control_label=COMMONER,
            )
    if estimates[SCORE.at(FACTS)].value is not None:
        yield headline(SCORE, FACTS, label=SCORE.label)


def measure(outcomes: Outcomes, seed: int) -> dict[str, Estimate]:
    """Every number, over cases, over relations and by relation; a case has one value of each."""
    facts = outcomes.facts
    by_case = ByFact.of(
        outcomes.relations,
        outcomes.owners(),
        facts["subject_id"].rank("dense").to_numpy().astype(np.int64),
        seed,
    )
    right = {role: outcomes.by_case(role, "right") for role in ROLES}
    numbers: dict[str, tuple[Floats, Floats | None]] = {
        SCORES[role].id: (values, None) for role, values in right.items()
    }
    chance = np.full(facts.height, CHANCE)
    for role in ROLES:
        numbers[MAGNITUDES[role].id] = outcomes.by_case(role, "difference"), None
        numbers[ABOVE[role].id] = right[role], chance
        guessed = outcomes.by_case(role, "guessed")
        numbers[MAJORITY[role].id] = guessed, None
        numbers[ABOVE_MAJORITY[role].id] = right[role], guessed
    told = outcomes.by_case("efficacy", "named") > 0
    numbers[UNNAMED.id] = np.where(told, np.nan, right["efficacy"]), None
    numbers[LOSS.id] = right["paraphrase"], right["efficacy"]
    made = by_case.together(numbers)
    estimates: dict[str, Estimate] = {}
    for id, resampled in made.items():
        estimates |= resampled.means(id, by_case.ids)
    return estimates | dict(_harmonic([made[metric.id] for metric in SCORES.values()], by_case.ids))


def _harmonic(
    scores: list[Resampled], relations: tuple[str, ...]
) -> Iterator[tuple[str, Estimate]]:
    """The harmonic mean of the scores at every place; not measured where one of them is not."""
    alike = [dict.fromkeys(of.samples, 1.0) for of in scores]
    sized = [{name: float(len(s.values)) for name, s in of.samples.items()} for of in scores]
    yield SCORE.at(RELATIONS), _harmonic_mean(scores, alike)
    yield SCORE.at(FACTS), _harmonic_mean(scores, sized)
    for name in relations:
        one = [{name: 1.0} if name in of.samples else {} for of in scores]
        yield SCORE.at(f"relation.{name}"), _harmonic_mean(scores, one)


def _harmonic_mean(scores: list[Resampled], weights: list[dict[str, float]]) -> Estimate:
    """Of the weighted means of some relations; its interval is the bootstrap over subjects."""
    if not all(weights):
        return Estimate.not_measured()
    values, draws = [], []
    for of, own in zip(scores, weights, strict=True):
        total = sum(own.values())
        parts = [(of.samples[name], of.draws(name), weight / total) for name, weight in own.items()]
        values.append(sum(sample.values.mean() * share for sample, _, share in parts))
        draws.append(sum(drawn * share for _, drawn, share in parts))
    n = sum(len(scores[0].samples[name].values) for name in weights[0])
    return around(float(harmonic(np.array(values))), harmonic(np.array(draws)), n)


def harmonic(values: Floats) -> Floats:
    """The harmonic mean along the first axis; 0 where one of the values is.

    >>> float(harmonic(np.array([1.0, 0.5, 0.25]))), float(harmonic(np.array([1.0, 0.0, 0.5])))
    (0.42857142857142855, 0.0)
    """
    with np.errstate(divide="ignore"):
        return np.asarray(len(values) / (1 / values).sum(axis=0))


def _score_table(estimates: Estimates) -> Table:
    fields: list[Field[Role]] = [
        Field("score", lambda role: SCORES[role].label),
        Field("asked", lambda role: ASKED[role]),
        Field(
            "share right",
            lambda role: estimates[SCORES[role].at(FACTS)],
            "percent",
            "share of cases with the expected object likelier",
        ),
        Field(
            "majority",
            lambda role: estimates[MAJORITY[role].at(FACTS)],
            "percent",
            "share of always choosing the commoner of the two objects",
        ),
        Field(
            "above",
            lambda role: estimates[ABOVE_MAJORITY[role].at(FACTS)],
            "points",
            "share right minus that of the majority control, paired by case",
        ),
        Field(
            "magnitude",
            lambda role: estimates[MAGNITUDES[role].at(FACTS)],
            "points",
            "difference of the two probabilities",
        ),
    ]
    return table(ROLES, fields, id="scores", title="Scores")


def _prompt_table(dataset: Dataset, outcomes: Outcomes) -> Table:
    import polars
    from polars import col

    prompts, facts = outcomes.prompts, outcomes.facts
    titles = {relation.id: titled(relation) for relation in outcomes.relations}
    kept = prompts[drawn(prompts["text"].to_list(), dataset.selection.seed, SHOWN)]
    own = facts[kept["fact"].to_numpy()]
    rows = kept.select(
        relation=own["relation"].replace_strict(titles),
        case=own["case"],
        asked="role",
        prompt="text",
        true=own["true"],
        new=own["new"],
        **{"P(true)": col("true").exp(), "P(new)": col("new").exp()},
        verdict=polars.when("right").then(polars.lit("right")).otherwise(polars.lit("wrong")),
    )
    fields: list[Field[object] | str] = [
        *("relation", "case", "asked", "prompt", "true", "new"),
        Field("P(true)", kind="percent", help="probability of what is true after the prompt"),
        Field("P(new)", kind="percent", help="probability of the new object after the prompt"),
        Field("verdict", kind="verdict"),
    ]
    total = prompts.height
    return browse(rows, fields, id="prompts", title="Prompts", total=total, what="prompts")


def _summary(estimates: Estimates, edited: bool) -> str:
    own, score = estimates[EFFICACY.at(FACTS)], estimates[SCORE.at(FACTS)]
    what = "The new object" if edited else "What is true"
    said = f"{what} is the likelier of two objects in {own.value or 0:.1%} of {own.n:,} cases"
    if score.value is None:
        return f"{said}."
    return f"{said}; the harmonic mean of the three scores is {score.value:.1%}."


def _counts(outcomes: Outcomes) -> dict[str, int]:
    roles = outcomes.prompts["role"]
    return {
        "cases": int((outcomes.facts["case"] == outcomes.facts["fact"]).sum()),
        "neighbours": int((outcomes.facts["case"] != outcomes.facts["fact"]).sum()),
        **{f"{role}_prompts": int((roles == role).sum()) for role in ROLES},
        "cases_with_the_answer_in_the_prompt": int(
            (outcomes.prompts["named"] & (roles == "efficacy")).sum()
        ),
        "ties": int((outcomes.prompts["ahead"] == 0).sum()),
        "new_objects_drawn": outcomes.drawn,
        "facts_without_a_new_object": outcomes.without,
    }


def _findings(estimates: Estimates) -> Iterator[str]:
    looks = hold_together([estimates[metric.at(FACTS)] for metric in LOOKS])
    found = dict(zip(LOOKS, looks, strict=True))
    for role, metric in SCORES.items():
        chance = found[ABOVE[role]]
        if chance.value is not None:
            word = sided(chance, "above", "below", "not distinguishable from")
            yield f"The {metric.label} score is {word} chance (50 %): {in_points(chance)}."
            yield against_control(f"The {metric.label} score", found[ABOVE_MAJORITY[role]])
    unnamed, own = estimates[UNNAMED.at(FACTS)], estimates[EFFICACY.at(FACTS)]
    if unnamed.value is not None and unnamed.n < own.n:
        held = counted(own.n - unnamed.n, "case", "cases")
        yield (
            f"The own prompts of {held} name what is true; without these efficacy is "
            f"{written(unnamed, '.1%')}."
        )
    lost = estimates[LOSS.at(FACTS)]
    if lost.value is not None:
        word = sided(lost, "above", "below", "not distinguishable from")
        yield f"The paraphrase score is {word} efficacy: {in_points(lost)}."


def _notes(dataset: Dataset, outcomes: Outcomes, edited: bool) -> Iterator[str]:
    expected = "the new object, as after an edit" if edited else "what is true"
    yield (
        f"After a case's own prompts {expected} is to be the likelier of two objects, after those "
        "of neighbours what is true of them. Ties count as wrong; chance is 50 %. The majority "
        "control chooses the object that more facts of the relation have; of equal ones the first "
        "by name."
    )
    if outcomes.drawn:
        told = counted(outcomes.drawn, "case names", "cases name")
        yield f"{told} no wrong object: the new one is drawn from those of the relation."
    elif dataset.card.description:
        yield dataset.card.description
    yield (
        "A case has one value of each score, the mean over its prompts. Intervals are 95 %: a "
        "bootstrap over the subjects of cases within relations, of the harmonic mean too; within "
        "one relation Wilson's where no subject has two cases."
    )
