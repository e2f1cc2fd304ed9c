"""Parts of a report that every multi-prompt probe has: estimates, tables, figures, findings.

Knows judged prompts as a grid, and what relations and templates are called; nothing of how the
prompts were put or answered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np

from sonde.core.facts import Relation, Template
from sonde.core.reports import Bars, Estimate, Estimates, Figure, Headline, Histogram, Strip, Table
from sonde.core.words import against_control, trust
from sonde.metrics.accuracy import Fluctuation, template_accuracies
from sonde.metrics.calibration import Bin
from sonde.metrics.judged import Bools, Floats, Grid, Ints
from sonde.reporting.build.figures import bars, calibration, distribution, strip
from sonde.reporting.build.multi_prompt.numbers import (
    ABOVE,
    ACC,
    AVERAGE,
    BEST,
    CONSIST,
    COVERAGE,
    DRAWN,
    ECE,
    MAJORITY,
    MAXIMUM,
    MEAN,
    METRICS,
    ORACLE,
    OVERCONF,
    WORST,
    Consist,
    Numbers,
    fluctuation,
    measure,
)
from sonde.reporting.build.multi_prompt.numbers import Draw as Draw
from sonde.reporting.build.parts import headline, shown
from sonde.reporting.build.tables import Field, listing, table, titled
from sonde.reporting.build.tables import by_relation as relation_rows

DRAWS = 50_000
BINS = 40
NOTHING = Estimate.not_measured()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sections:
    """What a probe adds its own to: `Report(estimates={**s.estimates, …}, tables=(*s.tables, …))`.

    The first headline is Acc@1, beside its control where one was given. `numbers` has those of
    each relation that `further` brought, too.
    """

    numbers: Numbers
    estimates: dict[str, Estimate]
    counts: dict[str, int]
    headlines: tuple[Headline, ...]
    tables: tuple[Table, ...]
    figures: tuple[Figure, ...]
    findings: tuple[str, ...]


def sections(
    grid: Grid,
    *,
    relations: Sequence[Relation],
    templates: Sequence[Template],
    draw: Draw = "relation",
    draws: int = DRAWS,
    seed: int = 0,
    majority: Bools | None = None,
    consist: Consist | None = None,
    further: Mapping[str, Floats] | None = None,
) -> Sections:
    """Everything that follows from judged prompts alone.

    `relations[r]` and `templates[t]` say what the numbers of the grid's `relations` and `template`
    mean (only ids, labels, texts and sources are read). `draw` is the fluctuation of the headline,
    the histogram and the table of relations; the estimates have both kinds. `majority[p]`: whether
    the relation's commonest object is right for pair p, the control of the accuracy; without it
    there is no control. `consist` takes part of the grid; by default answers of the same number
    agree. `further` numbers of the probe by their ids, a value for each pair or nan: their means
    over all pairs are among the estimates. Rows whose confidence is nan are
    left out of the calibration. What cannot be measured is `Estimate.not_measured()`, never 0.

    Estimates: `METRICS`, each also for one relation, as `acc_at_1.relation.P36`. Parts that have
    nothing to show are left out.
    """
    more = further or {}
    numbers = measure(grid, majority, draws=draws, seed=seed, consist=consist, further=more)
    estimates = _estimates(relations, numbers, controlled=majority is not None)
    estimates |= {id: numbers.overall[id] for id in more}
    asked = [(relations[r], r) for r in sorted(numbers.relations)]
    return Sections(
        numbers=numbers,
        estimates=estimates,
        counts=_counts(grid, len(asked)),
        headlines=_headlines(draw, majority is not None),
        tables=shown(
            _summary_table(estimates, draw),
            _relation_table(relations, numbers, estimates, draw),
            _bin_table(numbers.bins),
            _coverage_table(estimates),
        ),
        figures=shown(
            _fluctuation_histogram(numbers.fluctuations.get(draw), draw),
            calibration({"model": numbers.bins}),
            _template_strip(asked, templates, template_accuracies(grid), grid),
            _coverage_bars([relation for relation, _ in asked], estimates),
        ),
        findings=shown(*_findings(estimates, draw)),
    )


def _estimates(
    relations: Sequence[Relation], numbers: Numbers, *, controlled: bool
) -> dict[str, Estimate]:
    """Every metric over all and in each relation; what a relation lacks was not measured."""
    ids = [m.id for m in METRICS if controlled or m not in (MAJORITY, ABOVE)]
    estimates = {id: numbers.overall.get(id, NOTHING) for id in ids}
    for r, relation in enumerate(relations):
        named = numbers.relations.get(r, {})
        estimates |= {f"{id}.relation.{relation.id}": named.get(id, NOTHING) for id in ids}
    return estimates


def _counts(grid: Grid, relations: int) -> dict[str, int]:
    return {
        "relations": relations,
        "pairs": sum(len(block.pairs) for block in grid.blocks),
        "templates": sum(len(block.templates) for block in grid.blocks),
        "prompts": len(grid),
        "prompts_with_confidence": int((~np.isnan(grid.confidence)).sum()),
    }


def _headlines(draw: Draw, controlled: bool) -> tuple[Headline, ...]:
    spread, *_ = fluctuation(draw)
    control, above = (MAJORITY, ABOVE) if controlled else (None, None)
    return (
        headline(
            ACC.named("Acc@1, mean over pairs of the share of right prompts"),
            control=control,
            above=above,
        ),
        headline(spread.named(f"Fluctuation, range over draws of {DRAWN[draw]}")),
        headline(CONSIST.named("Consist, agreement of a pair's prompts")),
        headline(OVERCONF.named("Overconf, confidence minus accuracy")),
        headline(ORACLE.named("Oracle, pairs with some right prompt")),
    )


def _summary_table(estimates: Estimates, draw: Draw) -> Table:
    """The headline numbers, one a row."""
    spread, stdev, _ = fluctuation(draw)
    return listing(
        estimates,
        [ACC, WORST, BEST, MEAN, spread, stdev, CONSIST, OVERCONF, ECE],
        id="summary",
        title="In short",
        note="A dash means not measured: there was nothing to compare or to average.",
    )


def _relation_table(
    relations: Sequence[Relation], numbers: Numbers, estimates: Estimates, draw: Draw
) -> Table:
    """One row per relation; those without a judged prompt have dashes."""
    nothing = (0, 0, 0)
    sizes = {relation.id: numbers.sizes.get(r, nothing) for r, relation in enumerate(relations)}
    spread, stdev, _ = fluctuation(draw)

    def size(title: str, i: int, help: str, detail: bool = False) -> Field[Relation]:
        return Field(title, lambda relation: sizes[relation.id][i], "count", help, detail)

    return relation_rows(
        estimates,
        relations,
        [
            size("pairs", 0, "subjects asked about"),
            size("templates", 1, "wordings asked with", detail=True),
            size("prompts", 2, "names of the subjects times templates", detail=True),
            ACC,
            WORST.named("worst").detail(),
            BEST.named("best").detail(),
            MEAN.named("mean").detail(),
            spread.named("range").detail(),
            stdev.named("stdev").detail(),
            CONSIST,
            OVERCONF,
        ],
    )


def _bin_table(bins: Sequence[Bin]) -> Table:
    """The bins behind Overconf and ECE, from the least to the most confident prompts."""
    rows = [
        {"bin": i, "from": b.low, "to": b.high, "confidence": b.confidence, "accuracy": b.accuracy,
         "difference": b.confidence - b.accuracy, "prompts": b.n}
        for i, b in enumerate(bins, 1)
    ]  # fmt: skip
    fields: list[Field[dict[str, float]]] = [
        Field("bin", kind="count", help="1 holds the least confident prompts"),
        Field("from", kind="percent", help="lowest confidence in the bin"),
        Field("to", kind="percent", help="highest confidence in the bin"),
        Field("confidence", kind="percent", help="mean confidence"),
        Field("accuracy", kind="percent", help="share of right answers"),
        Field("difference", kind="percent", help="confidence minus accuracy"),
        Field("prompts", kind="count", help="bins differ by at most one prompt"),
    ]
    title = "Confidence and accuracy in ten equal bins"
    return table(rows, fields, id="calibration", title=title)


def _coverage_table(estimates: Estimates) -> Table:
    """How many pairs are reached by one prompt, by the best ones, by any."""
    return listing(
        estimates,
        COVERAGE,
        head="coverage",
        value="pairs",
        id="coverage",
        title="Coverage: pairs answered right",
    )


def _fluctuation_histogram(drawn: Fluctuation | None, draw: Draw) -> Histogram | None:
    """How the accuracy spreads over the draws, with its ends and its mean marked."""
    if drawn is None:
        return None
    values = drawn.draws
    low, mean, high = float(values.min()), float(values.mean()), float(values.max())
    what = (
        "one template per relation and one name per pair"
        if draw == "relation"
        else "one prompt per pair"
    )
    return distribution(
        values,
        id="fluctuation",
        title=f"Accuracy over {len(values):,} draws of {what}",
        axis="accuracy of a draw",
        edges=_edges(low, high, drawn.range.n),
        marks={"lowest": low, "mean": mean, "highest": high},
        note=f"Range {100 * (high - low):.1f} points; standard deviation "
        f"{100 * float(values.std()):.2f} points, {100 * drawn.closed_form:.2f} in closed form.",
    )


def _edges(low: float, high: float, pairs: int) -> Floats:
    """Edges between the accuracies that so many pairs can have, the same number in each bin."""
    first, last = round(low * pairs), round(high * pairs)
    step = max(1, ceil((last - first + 1) / BINS))
    bins = ceil((last - first + 1) / step)
    edges = (first - 0.5 + step * np.arange(bins + 1)) / pairs
    return np.asarray(np.clip(edges, 0.0, 1.0), dtype=np.float64)  # no accuracy lies outside


def _template_strip(
    asked: Sequence[tuple[Relation, int]],
    templates: Sequence[Template],
    accuracies: Floats,
    grid: Grid,
) -> Strip:
    """The accuracy of each template, one row a relation, those with the widest spread first."""
    rows = []
    for relation, number in asked:
        owned: Ints = np.flatnonzero((grid.template_relations == number) & ~np.isnan(accuracies))
        values = accuracies[owned]
        dots = [
            (value, templates[t].text, templates[t].source)
            for t, value in zip(owned.tolist(), values.tolist(), strict=True)
        ]
        rows.append((float(np.ptp(values)) if dots else 0.0, titled(relation), dots))
    rows.sort(key=lambda row: (-row[0], row[1]))
    return strip(
        [(label, dots) for _, label, dots in rows],
        id="templates",
        title="Accuracy of every template",
        axis="accuracy of the template",
        note="Relations whose templates differ the most stand first.",
    )


def _coverage_bars(asked: Sequence[Relation], estimates: Estimates) -> Bars:
    """Pairs answered right by one prompt, by the best templates, by any prompt."""
    several = {titled(r): f"relation.{r.id}" for r in asked} if len(asked) > 1 else {}
    return bars(
        estimates,
        {"all pairs": "", **several},
        {metric.label: metric for metric in COVERAGE},
        id="coverage",
        title="Coverage: pairs answered right",
        axis="share of pairs",
        note="Average: a prompt chosen at random. Maximum: each relation's best template. Oracle: "
        "any prompt. Whiskers are 95 % intervals.",
    )


def _findings(estimates: Estimates, draw: Draw) -> tuple[str, ...]:
    """What the numbers mean; an empty sentence where there is nothing to say."""
    return (
        against_control(ACC.label, estimates.get(ABOVE.id, NOTHING)),
        _wording(estimates, draw),
        _agreement(estimates),
        trust(estimates[OVERCONF.id]),
        _reach(estimates),
    )


def _wording(estimates: Estimates, draw: Draw) -> str:
    spread, stdev = (estimates[metric.id].value for metric in fluctuation(draw)[:2])
    low, high = estimates[WORST.id].value, estimates[BEST.id].value
    if spread is None or stdev is None:
        return (
            "How far the accuracy moves with the wording was not measured: no relation has two "
            "templates."
        )
    ends = ""
    if low is not None and high is not None:
        ends = f"; with the worst templates it is {low:.1%}, with the best ones {high:.1%}"
    return (
        f"Which prompts are drawn moves the accuracy by up to {100 * spread:.1f} points "
        f"(standard deviation {100 * stdev:.1f}){ends}."
    )


def _agreement(estimates: Estimates) -> str:
    value = estimates[CONSIST.id].value
    if value is None:
        return "Agreement between prompts was not measured: no pair was asked twice."
    return (
        f"Two prompts about the same pair get the same answer {value:.1%} of the time, "
        "right or wrong."
    )


def _reach(estimates: Estimates) -> str:
    average, most, some = (estimates[m.id].value for m in (AVERAGE, MAXIMUM, ORACLE))
    if average is None or most is None or some is None:
        return ""
    return (
        f"A prompt chosen at random is right for {average:.1%} of the pairs, each relation's "
        f"best template for {most:.1%}, some prompt for {some:.1%}."
    )
