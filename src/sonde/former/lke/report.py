"""The report of in-context estimation, from its choices. Knows nothing of prompts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sonde.core.facts import Relation
from sonde.core.reports import (
    Curve,
    Curves,
    Estimate,
    Estimates,
    Figure,
    Headline,
    Metric,
    Report,
    Table,
)
from sonde.core.words import against_control, counted, trust
from sonde.metrics.accuracy import accuracy_at_over
from sonde.metrics.calibration import Bin, Strata, calibration
from sonde.metrics.estimates import FACTS, RELATIONS, spread_of
from sonde.former.lke.asking import Asked
from sonde.former.lke.choices import Choices
from sonde.former.lke.metrics import (
    ABOVE,
    ACCURACY,
    ALL_CHOICES,
    AT,
    AVERAGED,
    BY_SEED,
    CHOICES,
    CONFIDENCE,
    MAJORITY,
    MASS,
    MEANS,
    OVER_SEEDS,
    RETAINED,
    Mean,
    at_level,
)
from sonde.reporting.build import figures as build
from sonde.reporting.build.multi_prompt.numbers import ECE, OVERCONF
from sonde.reporting.build.parts import above_on_relations, headline, shown
from sonde.reporting.build.tables import Field, browse, by_relation, drawn, table, titled

SHOWN = 50_000
ENDS = 90
"""How many characters of a prompt are shown at its beginning and at its end."""
GRID = (*(i / 20 for i in range(20)), 0.99)

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How a run is read: what it was called, how much it asked for, and which levels count.

    `separators` is their name; `seeds` are those of the draws of examples. `prefixes` is one
    prompt of each relation, to be shown with `blank` behind it; `counts` and `tables` are further
    ones.
    """

    name: str
    levels: tuple[float, ...]
    separators: str
    seeds: Sequence[int]
    prefixes: Mapping[str, str]
    blank: str = "___"
    notes: tuple[str, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    tables: tuple[Table, ...] = ()

    @property
    def several(self) -> bool:
        """Whether the examples were drawn more than once."""
        return len(self.seeds) > 1

    @property
    def first_level(self) -> tuple[float, ...]:
        """The level for the top of the page: the lowest from 0.5 on, else the highest there is."""
        high = [level for level in self.levels if level >= 0.5]
        return tuple(sorted(high)[:1] or sorted(self.levels)[-1:])


def build_report(choices: Choices, reading: Reading) -> Report:
    """Everything that is reported about some choices."""
    asked, estimates = choices.asked, choices.estimates
    bins = _measure(choices, reading)
    return Report(
        title=f"{reading.name} on {asked.dataset.name}",
        summary=_summary(choices),
        metrics=(
            *(*AVERAGED, *ALL_CHOICES, OVER_SEEDS),
            *(metric for level in reading.levels for metric in at_level(level)),
            *(BY_SEED.of(s=seed) for seed in reading.seeds),
        ),
        estimates=estimates,
        counts={**choices.counts("choices"), **reading.counts},
        headlines=tuple(_headlines(reading)),
        tables=shown(
            _relation_table(choices, reading),
            _level_table(estimates, asked.relations, reading.levels),
            *reading.tables,
            _prompt_table(asked, reading),
            _fact_table(choices, reading.several),
        ),
        figures=shown(*_figures(choices, bins, reading)),
        findings=shown(*_findings(choices, reading)),
        notes=(*reading.notes, *NOTES),
        judged=choices.judged,
    )


def _measure(choices: Choices, reading: Reading) -> tuple[Bin, ...]:
    """Add every number; the bins behind the calibration figure."""
    estimates, each, frame = choices.estimates, choices.by_choice, choices.frame
    choices.put(*MEANS, also=FACTS)
    for level in reading.levels:
        at, left = at_level(level)
        sure = frame["confidence"] >= level
        rows = replace(each, frame=frame.with_columns(sure=sure))
        estimates.update(rows.estimates((Mean(at, kept=sure), Mean(left, "sure")), also=CHOICES))
    for seed in reading.seeds:
        estimates.update(each.estimates([Mean(BY_SEED.of(s=seed), kept=frame["seed"] == seed)]))
    for over in (RELATIONS, *(f"relation.{r.id}" for r in choices.asked.relations)):
        values = (estimates[BY_SEED.of(s=s).at(over)].value for s in reading.seeds)
        estimates[OVER_SEEDS.at(over)] = spread_of([v for v in values if v is not None])
    confidence, right, pair = (frame[n].to_numpy() for n in ("confidence", "right", "pair"))
    facts, ids = choices.asked.facts, [relation.id for relation in choices.asked.relations]
    strata = Strata(facts["owner"].to_numpy(), facts["subject"].to_numpy(), ids)
    calibrated = calibration(confidence, right, pair, seed=each.by.seed, strata=strata)
    unknown = Estimate.not_measured()
    estimates[OVERCONF.at()] = calibrated.overconf if calibrated else unknown
    estimates[ECE.at()] = calibrated.ece if calibrated else unknown
    return calibrated.bins if calibrated else ()


def _summary(choices: Choices) -> str:
    value, control = (choices.estimates[m.at(RELATIONS)].value for m in (ACCURACY, MAJORITY))
    counts, offered = choices.counts(), sorted({*choices.frame["offered"]})
    over = f", averaged over {counts['relations']} relations" if counts["relations"] > 1 else ""
    options = " to ".join(map(str, dict.fromkeys((offered[0], offered[-1]))))
    return (
        f"The right option is the likeliest for {value:.1%} of facts{over} "
        f"({counted(counts['facts'], 'fact', 'facts')}, {options} options each); always choosing "
        f"the commonest object gives {control:.1%}."
    )


def _headlines(reading: Reading) -> Iterator[Headline]:
    for over in (RELATIONS, FACTS):
        yield headline(ACCURACY.named("Accuracy"), over, control=MAJORITY, above=ABOVE)
    yield headline(MASS.named("Probability of the right option"), RELATIONS)
    for level in reading.first_level:
        accuracy, retained = at_level(level)
        words = f"Accuracy@{level:g}: where at least so sure"
        yield headline(accuracy.named(words), RELATIONS)
        words = f"Share of choices at least {level:g} sure"
        yield headline(retained.named(words), RELATIONS)
    if reading.several:
        label = "Standard deviation of the accuracy over seeds"
        yield headline(OVER_SEEDS, RELATIONS, label=label)


def _relation_table(choices: Choices, reading: Reading) -> Table:
    from polars import mean

    asked, examples = choices.asked, choices.asked.examples
    offered = dict(choices.frame.group_by("relation").agg(mean("offered")).iter_rows())
    details = [CONFIDENCE, *([OVER_SEEDS] if reading.several else [])]
    details += [metric for level in reading.first_level for metric in at_level(level)]
    fields: list[Metric | Field[Relation]] = [
        *(ACCURACY, MAJORITY, ABOVE, MASS),
        *(metric.detail() for metric in details),
        Field(
            "examples",
            lambda r: examples.get(r.id, 0),
            "count",
            f"of {asked.n} asked for",
            detail={*examples.values()} <= {asked.n},  # then it says nothing new
        ),
        Field(
            "options", lambda r: offered.get(r.id), "number", f"mean, of {asked.options} asked for"
        ),
        Field("commonest object", lambda r: next(iter(asked.commonest[r.id]), ""), detail=True),
    ]
    return by_relation(choices.estimates, asked.relations, fields)


def _level_table(
    estimates: Estimates, relations: Sequence[Relation], levels: tuple[float, ...]
) -> Table:
    def left(level: float) -> int:
        retained = at_level(level)[1]
        return sum(bool(estimates[retained.at(f"relation.{r.id}")].value) for r in relations)

    def pooled(level: float) -> Estimate:
        return estimates[at_level(level)[0].at(CHOICES)]

    fields: list[Metric | Field[float]] = [
        Field("at least K sure", lambda k: f"{k:g}"),
        AT.named("accuracy", "mean over relations with choices left"),
        RETAINED.named("share left", "choices left, mean over relations"),
        Field("relations", left, "count", "of which a choice is left"),
        Field("pooled", pooled, "percent", "accuracy of all choices left together"),
    ]
    return table(
        levels,
        fields,
        lambda level, metric: estimates[metric.of(k=f"{level:g}").at(RELATIONS)],
        id="accuracy-at-k",
        title="Accuracy@K: where the model is sure",
        note="Sure is the probability of the chosen option among the options. A relation of which "
        "no choice is left has no accuracy and is not in the mean.",
    )


def _prompt_table(asked: Asked, reading: Reading) -> Table:
    def ends(relation: Relation) -> str:
        prompt = reading.prefixes[relation.id]
        if len(prompt) > 2 * ENDS:
            prompt = f"{prompt[:ENDS].rstrip()} … {prompt[-ENDS:].lstrip()}"
        return f"{prompt}{reading.blank}"

    fields: list[Field[Relation]] = [
        Field("relation", titled),
        Field("examples", lambda r: asked.examples[r.id], "count"),
        Field("prompt", ends, help="its beginning and its end"),
    ]
    prompted = [r for r in asked.relations if r.id in reading.prefixes]
    return browse(prompted, fields, id="prompts", title="A prompt of each relation")


def _fact_table(choices: Choices, several: bool) -> Table:
    frame, titles = choices.frame, {r.id: titled(r) for r in choices.asked.relations}
    seeds = [Field[Row]("seed", kind="count", help="of the draw of examples")] if several else []
    fields: list[Field[Row]] = [
        Field("relation", lambda row: titles[row["relation"]]),
        Field("subject", lambda row: row["name"]),
        *seeds,
        Field("right", lambda row: row["object"], help="the fact's own object"),
        Field("chosen", lambda row: row["answer"], help="the likeliest of the options"),
        Field("sure", lambda row: row["confidence"], "percent", "probability of the chosen option"),
        Field("mass", kind="percent", help="probability of the right option"),
        Field("rank", kind="count", help="of the right option; 1 is best"),
        Field("options", lambda row: row["offered"], "count"),
        Field("verdict", _verdict, "verdict"),
    ]
    rows = frame[
        drawn(frame["fact"].to_list(), choices.asked.dataset.selection.seed, SHOWN)
    ].iter_rows(named=True)
    return browse(rows, fields, id="facts", title="Facts", total=frame.height, what="choices")


def _verdict(row: Row) -> str:
    return "right" if row["right"] else "tied" if row["tied"] else "wrong"


def _figures(choices: Choices, bins: tuple[Bin, ...], reading: Reading) -> Iterator[Figure]:
    estimates, relations = choices.estimates, choices.asked.relations
    yield build.dots_by_relation(
        estimates,
        relations,
        {"model": ACCURACY, "majority control": MAJORITY},
        id="accuracy-by-relation",
        title="Accuracy of every relation beside the majority control",
        axis="accuracy",
    )
    yield _accuracy_at(choices)
    confidence = "probability of the chosen option"
    yield build.calibration({"model": bins}, confidence=f"{confidence} in the bin", what="choices")
    yield build.distribution(
        choices.frame["confidence"].to_numpy(),
        id="confidence",
        title="How sure the model is of what it chooses",
        axis=confidence,
    )
    if reading.several:
        values = {
            titled(r): [
                (value, f"seed {s}")
                for s in reading.seeds
                if (value := estimates[BY_SEED.of(s=s).at(f"relation.{r.id}")].value) is not None
            ]
            for r in relations
        }
        yield build.strip(
            values.items(),
            id="seeds",
            title="Accuracy with every draw of the examples",
            axis="accuracy with one draw",
            note="One dot a seed. The facts and their options stay the same.",
        )


def _accuracy_at(choices: Choices) -> Curves:
    frame = choices.frame
    sure, right, owner = (frame[name].to_numpy() for name in ("confidence", "right", "owner"))
    points = [accuracy_at_over(sure, right, owner, level) for level in GRID]
    accuracies = [(p.level, p.accuracy) for p in points if p.accuracy is not None]
    return Curves(
        id="accuracy-at-k",
        title="Accuracy@K: accuracy where the model is at least K sure",
        x_axis="K, the least probability of the chosen option",
        y_axis="share",
        curves=(
            Curve(
                name="accuracy",
                x=tuple(k for k, _ in accuracies),
                y=tuple(share for _, share in accuracies),
            ),
            Curve(name="share of choices left", x=GRID, y=tuple(p.retained for p in points)),
        ),
        note="Means over relations; the accuracy over those of which a choice is left. Where few "
        "are left it is uncertain; the table gives intervals.",
    )


def _findings(choices: Choices, reading: Reading) -> Iterator[str]:
    estimates, relations = choices.estimates, choices.asked.relations
    yield against_control("Accuracy", estimates[ABOVE.at(RELATIONS)])
    if len(relations) > 1:
        yield above_on_relations(estimates, ABOVE, relations)
    yield trust(estimates[OVERCONF.at()])
    yield (
        f"Accuracy may depend on the separators. This run used {reading.separators} only; "
        "'sonde run lke-separators' compares several pairs on the same facts."
    )
    spread = estimates[OVER_SEEDS.at(RELATIONS)].value
    if spread is not None:
        values = [estimates[BY_SEED.of(s=s).at(RELATIONS)].value or 0.0 for s in reading.seeds]
        yield (
            f"Over {len(values)} draws of the examples the accuracy is {min(values):.1%} to "
            f"{max(values):.1%} (standard deviation {100 * spread:.1f} points)."
        )
    yield from choices.asked.sentences()
    if ties := choices.counts()["ties"]:
        several = counted(ties, "choice has", "choices have")
        yield f"{several} several likeliest options; they count as wrong."


NOTES = (
    "The probability of an option is the product of its tokens' probabilities, whatever its "
    "length, and is renormalised over the options. Ties for the first place count as wrong.",
    "The majority control chooses the option that is commonest among the objects of the split "
    "that is asked about.",
    "Intervals are 95 %. Within one relation: Wilson's for a share, Newcombe's for the paired "
    "difference to the control, a bootstrap over subjects where a subject has several facts or "
    "several draws. Averages: a bootstrap over subjects within relations.",
)
