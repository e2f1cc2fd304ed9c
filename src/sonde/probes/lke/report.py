"""The report of in-context estimation: headlines, tables, findings. Knows choices, no prompts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from sonde.core.facts import Dataset
from sonde.core.fingerprints import draw_key
from sonde.core.reports import Cell, Column, Estimate, Headline, Report, Table
from sonde.probes.lke.figures import figures
from sonde.probes.lke.findings import findings
from sonde.probes.lke.items import Census
from sonde.probes.lke.numbers import ABOVE, CONTROL, level_names, measure
from sonde.probes.lke.tally import Outcomes

SHOWN = 50_000
ENDS = 90
"""How many characters of a prompt are shown at its beginning and at its end."""

Estimates = Mapping[str, Estimate]

METRICS = (
    (
        "accuracy",
        Column(title="accuracy", kind="percent", help="share of facts whose object is chosen"),
    ),
    (
        CONTROL,
        Column(
            title="majority",
            kind="percent",
            help="accuracy of always choosing the commonest object among the options",
        ),
    ),
    (ABOVE, Column(title="above", kind="percent", help="accuracy minus the majority control's")),
    ("mass", Column(title="mass", kind="percent", help="mean probability of the right option")),
    (
        "confidence",
        Column(
            title="sure", kind="percent", help="mean probability of the chosen option", detail=True
        ),
    ),
    (
        "accuracy.seeds.stdev",
        Column(
            title="over seeds",
            kind="percent",
            help="standard deviation of the accuracy over draws of the examples",
            detail=True,
        ),
    ),
)
"""What the table of relations shows, by the name of the estimate; the last for several draws."""


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
        estimates=estimates,
        counts={
            **dataset.notes,
            **_counts(outcomes),
            **reading.counts,
            **census.counts(reading.wanted),
        },
        headlines=tuple(_headlines(reading, len(outcomes.seeds) > 1)),
        tables=(
            _relation_table(estimates, census, outcomes, reading),
            _level_table(estimates, outcomes, reading),
            *reading.tables,
            _prompt_table(census, outcomes, reading),
            _fact_table(outcomes, seed),
        ),
        figures=figures(estimates, numbers.bins, outcomes),
        findings=tuple(findings(estimates, census, outcomes, reading.wanted, reading.options)),
        notes=(*reading.notes, *_notes()),
    )


def _summary(estimates: Estimates, outcomes: Outcomes, reading: Reading) -> str:
    value = estimates["accuracy.mean_over_relations"].value
    control = estimates[f"{CONTROL}.mean_over_relations"].value
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
    for over, words in (
        ("mean_over_relations", "mean over relations"),
        ("mean_over_facts", "mean over facts"),
    ):
        yield Headline(
            label=f"Accuracy, {words}",
            estimate=f"accuracy.{over}",
            control=f"{CONTROL}.{over}",
            control_label="always the commonest object",
            difference=f"{ABOVE}.{over}",
        )
    yield Headline(
        label="Probability of the right option, mean over relations",
        estimate="mass.mean_over_relations",
    )
    for level, accuracy, retained in level_names(_shown_first(reading.levels)):
        yield Headline(
            label=f"Accuracy@{level:g}: where at least so sure, mean over relations",
            estimate=f"{accuracy}.mean_over_relations",
        )
        yield Headline(
            label=f"Share of choices at least {level:g} sure, mean over relations",
            estimate=f"{retained}.mean_over_relations",
        )
    if several:
        yield Headline(
            label="Standard deviation of the accuracy over seeds",
            estimate="accuracy.seeds.stdev.mean_over_relations",
        )


def _shown_first(levels: tuple[float, ...]) -> tuple[float, ...]:
    """One level for the top of the page: the lowest from 0.5 on, else the highest there is."""
    return (min((k for k in levels if k >= 0.5), default=max(levels)),) if levels else ()


def _relation_table(
    estimates: Estimates, census: Census, outcomes: Outcomes, reading: Reading
) -> Table:
    shown = [*(METRICS if len(outcomes.seeds) > 1 else METRICS[:-1]), *_level_columns(reading)]
    rows: list[tuple[Cell, ...]] = []
    for number, relation in enumerate(outcomes.relations):
        own = outcomes.of(number)
        cells = [estimates[f"{name}.relation.{relation.id}"] for name, _ in shown]
        offered = float(own.offered.mean()) if len(own) else None
        known = (census.examples.get(relation.id, 0), offered, outcomes.majority[number])
        rows.append((relation.id, relation.label, *cells, *known))
    whole = set(census.examples.values()) <= {reading.wanted}  # then it says nothing new
    return Table(
        id="by-relation",
        title="By relation",
        columns=(
            Column(title="relation"),
            Column(title="label"),
            *(column for _, column in shown),
            Column(
                title="examples", kind="count", help=f"of {reading.wanted} asked for", detail=whole
            ),
            Column(title="options", kind="number", help=f"mean, of {reading.options} asked for"),
            Column(title="commonest object", detail=True),
        ),
        rows=tuple(rows),
    )


def _level_columns(reading: Reading) -> Iterator[tuple[str, Column]]:
    for level, accuracy, retained in level_names(_shown_first(reading.levels)):
        help = f"accuracy of the choices that are at least {level:g} sure"
        yield accuracy, Column(title=f"@{level:g}", kind="percent", help=help, detail=True)
        help = f"share of choices that are at least {level:g} sure"
        yield retained, Column(title=f"left @{level:g}", kind="percent", help=help, detail=True)


def _level_table(estimates: Estimates, outcomes: Outcomes, reading: Reading) -> Table:
    def left(retained: str) -> int:
        found = (estimates[f"{retained}.relation.{r.id}"].value for r in outcomes.relations)
        return sum(bool(share) for share in found)

    return Table(
        id="accuracy-at-k",
        title="Accuracy@K: where the model is sure",
        columns=(
            Column(title="at least K sure"),
            Column(title="accuracy", kind="percent", help="mean over relations with choices left"),
            Column(title="share left", kind="percent", help="choices left, mean over relations"),
            Column(title="relations", kind="count", help="of which a choice is left"),
            Column(title="pooled", kind="percent", help="accuracy of all choices left together"),
        ),
        rows=tuple(
            (
                f"{level:g}",
                estimates[f"{accuracy}.mean_over_relations"],
                estimates[f"{retained}.mean_over_relations"],
                left(retained),
                estimates[f"{accuracy}.mean_over_choices"],
            )
            for level, accuracy, retained in level_names(reading.levels)
        ),
        note="Sure is the probability of the chosen option among the options. A relation of which "
        "no choice is left has no accuracy and is not in the mean.",
    )


def _prompt_table(census: Census, outcomes: Outcomes, reading: Reading) -> Table:
    return Table(
        id="prompts",
        title="A prompt of each relation",
        columns=(
            Column(title="relation"),
            Column(title="examples", kind="count"),
            Column(title="prompt", help="its beginning and its end"),
        ),
        rows=tuple(
            (
                f"{r.id} {r.label}",
                census.examples[r.id],
                _shortened(reading.prefixes[r.id], reading.blank),
            )
            for r in outcomes.relations
            if r.id in reading.prefixes and r.id in census.examples
        ),
        browsable=True,
    )


def _shortened(prompt: str, blank: str) -> str:
    if len(prompt) <= 2 * ENDS:
        return f"{prompt}{blank}"
    return f"{prompt[:ENDS].rstrip()} … {prompt[-ENDS:].lstrip()}{blank}"


def _fact_table(outcomes: Outcomes, seed: int) -> Table:
    columns = outcomes.columns
    kept = _drawn(outcomes, seed)
    several = len(outcomes.seeds) > 1
    head = [
        Column(title="relation"),
        Column(title="subject"),
        Column(title="right", help="the fact's own object"),
        Column(title="chosen", help="the likeliest of the options"),
        Column(title="sure", kind="percent", help="probability of the chosen option"),
        Column(title="mass", kind="percent", help="probability of the right option"),
        Column(title="rank", kind="count", help="of the right option; 1 is best"),
        Column(title="options", kind="count"),
        Column(title="verdict", kind="verdict"),
    ]
    if several:
        head.insert(2, Column(title="seed", kind="count", help="of the draw of examples"))
    note = "" if len(kept) == len(columns) else _left_out(len(kept), len(columns))
    return Table(
        id="facts",
        title="Facts",
        columns=tuple(head),
        rows=tuple(_fact_row(outcomes, i, several) for i in kept),
        note=note,
        browsable=True,
    )


def _left_out(shown: int, choices: int) -> str:
    return f"{shown:,} of the {choices:,} choices, drawn by the seed; every number counts them all."


def _drawn(outcomes: Outcomes, seed: int) -> list[int]:
    """The choices to show: all, or as many as can be shown."""
    places = range(len(outcomes.columns))
    if len(places) <= SHOWN:
        return list(places)
    keys = [draw_key(seed, outcomes.facts[i].id) for i in outcomes.columns.fact.tolist()]
    return sorted(sorted(places, key=lambda i: (keys[i], i))[:SHOWN])


def _fact_row(outcomes: Outcomes, i: int, several: bool) -> tuple[Cell, ...]:
    columns = outcomes.columns
    number = int(columns.fact[i])
    fact, relation = outcomes.facts[number], outcomes.relations[int(outcomes.relation[number])]
    verdict = "right" if columns.right[i] else "tied" if columns.tied[i] else "wrong"
    return (
        f"{relation.id} {relation.label}",
        fact.subject.name,
        *((outcomes.seeds[int(columns.turn[i])],) if several else ()),
        fact.objects[0].name,
        columns.chosen[i],
        float(columns.sure[i]),
        float(columns.mass[i]),
        int(columns.rank[i]),
        int(columns.offered[i]),
        verdict,
    )


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
