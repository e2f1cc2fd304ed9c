"""The report of in-context estimation: headlines, tables, findings. Knows choices, no prompts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from sonde.core.facts import Dataset, Fact, Relation
from sonde.core.reports import Estimate, Estimates, Headline, Metric, Report, Table
from sonde.probes.lke import metrics
from sonde.probes.lke.figures import figures
from sonde.probes.lke.findings import findings
from sonde.probes.lke.items import Census
from sonde.probes.lke.metrics import ABOVE, ACCURACY, CONFIDENCE, MAJORITY, MASS, at_level
from sonde.probes.lke.numbers import measure
from sonde.probes.lke.tally import Outcomes
from sonde.reporting.build.parts import headline, shown
from sonde.reporting.build.tables import Field, browse, by_relation, drawn, table, titled
from sonde.reporting.catalogue import FACTS, RELATIONS

SHOWN = 50_000
ENDS = 90
"""How many characters of a prompt are shown at its beginning and at its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How a run is read: what it was called, how much it asked for, and which levels count.

    `prefixes` is one prompt of each relation, to be shown with `blank` behind it; `tables` are
    further ones.
    """

    name: str
    wanted: int
    options: int
    levels: tuple[float, ...]
    prefixes: Mapping[str, str]
    blank: str = "___"
    notes: tuple[str, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    tables: tuple[Table, ...] = ()


def build_report(dataset: Dataset, census: Census, outcomes: Outcomes, reading: Reading) -> Report:
    """Everything that is reported about some choices."""
    seed = dataset.selection.seed
    numbers = measure(outcomes, reading.levels, seed)
    estimates = numbers.estimates
    return Report(
        title=f"{reading.name} on {dataset.name}",
        summary=_summary(estimates, outcomes, reading),
        metrics=_metrics(outcomes, reading),
        estimates=estimates,
        counts={
            **dataset.notes,
            **_counts(outcomes),
            **reading.counts,
            **census.counts(reading.wanted),
        },
        headlines=tuple(_headlines(reading, len(outcomes.seeds) > 1)),
        tables=shown(
            (
                _relation_table(estimates, census, outcomes, reading),
                _level_table(estimates, outcomes, reading),
                *reading.tables,
                _prompt_table(census, outcomes, reading),
                _fact_table(outcomes, seed),
            )
        ),
        figures=shown(figures(estimates, numbers.bins, outcomes)),
        findings=shown(findings(estimates, census, outcomes, reading.wanted, reading.options)),
        notes=(*reading.notes, *_notes()),
    )


def _metrics(outcomes: Outcomes, reading: Reading) -> tuple[Metric, ...]:
    return (
        *metrics.AVERAGED,
        *(metric for level in reading.levels for metric in at_level(level)),
        *metrics.ALL_CHOICES,
        *(metrics.BY_SEED.of(s=seed) for seed in outcomes.seeds),
        metrics.OVER_SEEDS,
    )


def _summary(estimates: Estimates, outcomes: Outcomes, reading: Reading) -> str:
    value, control = (estimates[m.at(RELATIONS)].value for m in (ACCURACY, MAJORITY))
    if value is None or control is None:
        return "No fact could be asked about."
    facts = len(np.unique(outcomes.columns.fact))
    relations = len(np.unique(outcomes.relation[outcomes.columns.fact]))
    over = f", averaged over {relations} relations" if relations > 1 else ""
    return (
        f"The right option is the likeliest for {value:.1%} of facts{over} ({facts:,} facts, "
        f"{_options(outcomes)}); always choosing the commonest object gives {control:.1%}."
    )


def _options(outcomes: Outcomes) -> str:
    low, high = int(outcomes.columns.offered.min()), int(outcomes.columns.offered.max())
    return f"{high} options each" if low == high else f"{low} to {high} options each"


def _counts(outcomes: Outcomes) -> dict[str, int]:
    columns = outcomes.columns
    return {
        "relations": len(np.unique(outcomes.relation[columns.fact])),
        "facts": len(np.unique(columns.fact)),
        "choices": len(columns),
        "options": int(columns.offered.sum()),
        "ties": int(columns.tied.sum()),
    }


def _headlines(reading: Reading, several: bool) -> Iterator[Headline]:
    for over in (RELATIONS, FACTS):
        yield headline(ACCURACY.named("Accuracy"), over, control=MAJORITY, above=ABOVE)
    yield headline(MASS.named("Probability of the right option"), RELATIONS)
    for level in _shown_first(reading.levels):
        accuracy, retained = at_level(level)
        yield headline(accuracy.named(f"Accuracy@{level:g}: where at least so sure"), RELATIONS)
        yield headline(retained.named(f"Share of choices at least {level:g} sure"), RELATIONS)
    if several:
        label = "Standard deviation of the accuracy over seeds"
        yield headline(metrics.OVER_SEEDS, RELATIONS, label=label)


def _shown_first(levels: tuple[float, ...]) -> tuple[float, ...]:
    """One level for the top of the page: the lowest from 0.5 on, else the highest there is."""
    return (min((k for k in levels if k >= 0.5), default=max(levels)),) if levels else ()


def _relation_table(
    estimates: Estimates, census: Census, outcomes: Outcomes, reading: Reading
) -> Table:
    numbers = {relation.id: number for number, relation in enumerate(outcomes.relations)}
    levels = (m.detail() for k in _shown_first(reading.levels) for m in at_level(k))
    several = [metrics.OVER_SEEDS.detail()] if len(outcomes.seeds) > 1 else []
    whole = set(census.examples.values()) <= {reading.wanted}  # then it says nothing new

    def offered(relation: Relation) -> float | None:
        own = outcomes.of(numbers[relation.id])
        return float(own.offered.mean()) if len(own) else None

    return by_relation(
        estimates,
        outcomes.relations,
        [
            *(ACCURACY, MAJORITY, ABOVE, MASS, CONFIDENCE.detail(), *several, *levels),
            Field(
                "examples",
                lambda r: census.examples.get(r.id, 0),
                "count",
                f"of {reading.wanted} asked for",
                whole,
            ),
            Field("options", offered, "number", f"mean, of {reading.options} asked for"),
            Field("commonest object", lambda r: outcomes.majority[numbers[r.id]], detail=True),
        ],
    )


def _level_table(estimates: Estimates, outcomes: Outcomes, reading: Reading) -> Table:
    def left(level: float) -> int:
        retained = at_level(level)[1]
        shares = (estimates[retained.at(f"relation.{r.id}")].value for r in outcomes.relations)
        return sum(bool(share) for share in shares)

    def of(level: float, which: int, over: str) -> Estimate:
        return estimates[at_level(level)[which].at(over)]

    fields: list[Field[float]] = [
        Field("at least K sure", lambda k: f"{k:g}"),
        Field(
            "accuracy",
            lambda k: of(k, 0, RELATIONS),
            "percent",
            "mean over relations with choices left",
        ),
        Field(
            "share left",
            lambda k: of(k, 1, RELATIONS),
            "percent",
            "choices left, mean over relations",
        ),
        Field("relations", left, "count", "of which a choice is left"),
        Field(
            "pooled",
            lambda k: of(k, 0, "mean_over_choices"),
            "percent",
            "accuracy of all choices left together",
        ),
    ]
    return table(
        reading.levels,
        fields,
        id="accuracy-at-k",
        title="Accuracy@K: where the model is sure",
        note="Sure is the probability of the chosen option among the options. A relation of which "
        "no choice is left has no accuracy and is not in the mean.",
    )


def _prompt_table(census: Census, outcomes: Outcomes, reading: Reading) -> Table:
    prefixes = reading.prefixes
    fields: list[Field[Relation]] = [
        Field("relation", titled),
        Field("examples", lambda r: census.examples[r.id], "count"),
        Field(
            "prompt",
            lambda r: _shortened(prefixes[r.id], reading.blank),
            help="its beginning and its end",
        ),
    ]
    rows = [r for r in outcomes.relations if r.id in prefixes and r.id in census.examples]
    return browse(rows, fields, id="prompts", title="A prompt of each relation")


def _shortened(prompt: str, blank: str) -> str:
    if len(prompt) <= 2 * ENDS:
        return f"{prompt}{blank}"
    return f"{prompt[:ENDS].rstrip()} … {prompt[-ENDS:].lstrip()}{blank}"


def _fact_table(outcomes: Outcomes, seed: int) -> Table:
    columns = outcomes.columns
    numbers: list[int] = columns.fact.tolist()

    def fact(i: int) -> Fact:
        return outcomes.facts[numbers[i]]

    draw = Field[int](
        "seed", lambda i: outcomes.seeds[int(columns.turn[i])], "count", "of the draw of examples"
    )
    fields: list[Field[int]] = [
        Field("relation", lambda i: titled(outcomes.relations[int(outcomes.relation[numbers[i]])])),
        Field("subject", lambda i: fact(i).subject.name),
        *([draw] if len(outcomes.seeds) > 1 else []),
        Field(
            "right",
            lambda i: outcomes.facts[numbers[i]].objects[0].name,
            help="the fact's own object",
        ),
        Field("chosen", lambda i: columns.chosen[i], help="the likeliest of the options"),
        Field(
            "sure", lambda i: float(columns.sure[i]), "percent", "probability of the chosen option"
        ),
        Field(
            "mass", lambda i: float(columns.mass[i]), "percent", "probability of the right option"
        ),
        Field("rank", lambda i: int(columns.rank[i]), "count", "of the right option; 1 is best"),
        Field("options", lambda i: int(columns.offered[i]), "count"),
        Field("verdict", lambda i: _verdict(outcomes, i), "verdict"),
    ]
    kept = drawn([fact(i).id for i in range(len(numbers))], seed, SHOWN)
    total = len(columns)
    return browse(kept, fields, id="facts", title="Facts", total=total, what="choices")


def _verdict(outcomes: Outcomes, i: int) -> str:
    columns = outcomes.columns
    return "right" if columns.right[i] else "tied" if columns.tied[i] else "wrong"


def _notes() -> tuple[str, ...]:
    return (
        "The probability of an option is the product of its tokens' probabilities, whatever its "
        "length, and is renormalised over the options. Ties for the first place count as wrong.",
        "The majority control chooses the option that is commonest among the objects of the split "
        "that is asked about.",
        "Intervals are 95 %. Within one relation: Wilson's for a share, Newcombe's for the paired "
        "difference to the control, a bootstrap over subjects where a subject has several facts or "
        "several draws. Averages: a bootstrap over subjects within relations.",
    )
