"""Parts of a report that every multi-prompt probe has: estimates, tables, figures, findings.

Knows judged prompts as a grid, and what relations and templates are called; nothing of how the
prompts were put or answered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

import numpy as np

from sonde.core.facts import Relation, Template
from sonde.core.reports import Estimate, Figure, Headline, Table
from sonde.metrics.accuracy import (
    Fluctuation,
    acc_at_1,
    fluctuation,
    template_accuracies,
    template_summary,
)
from sonde.metrics.calibration import Calibration, calibration
from sonde.metrics.consistency import consist as by_equal_answers
from sonde.metrics.coverage import coverage
from sonde.metrics.estimates import Resampled, Sample
from sonde.metrics.grid import Bools, Floats, Grid, Ints
from sonde.reporting.build.multi_prompt.figures import (
    calibration_curve,
    coverage_bars,
    fluctuation_histogram,
    template_strip,
)
from sonde.reporting.build.multi_prompt.findings import findings
from sonde.reporting.build.multi_prompt.tables import (
    bin_table,
    coverage_table,
    relation_table,
    summary_table,
)

Draw = Literal["relation", "pair"]

DRAWS = 50_000
CONTROL = "control.majority.acc_at_1"
ABOVE = "above_control.acc_at_1"

Consist = Callable[[Grid], Estimate]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sections:
    """What a probe adds its own to: `Report(estimates={**s.estimates, …}, tables=(*s.tables, …))`.

    The first headline is Acc@1, beside its control where one was given.
    """

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
) -> Sections:
    """Everything that follows from judged prompts alone.

    `relations[r]` and `templates[t]` say what the numbers of the grid's `relations` and `template`
    mean (only ids, labels, texts and sources are read). `draw` is the fluctuation of the headline,
    the histogram and the table of relations; the estimates have both kinds. `majority[p]`: whether
    the relation's commonest object is right for pair p, the control of the accuracy; without it
    there is no control. `consist` takes part of the grid, its pairs counted anew and its answers
    as they were; by default answers of the same number agree. Rows whose confidence is nan are
    left out of the calibration. What cannot be measured is `Estimate.not_measured()`, never 0.

    Estimates: `acc_at_1`, `control.majority.acc_at_1`, `above_control.acc_at_1`,
    `template_accuracy.min|max|mean`, `fluctuation.relation|pair.range|stdev|closed_form`,
    `consist`, `overconf`, `ece`, `coverage.average|average_best_name|maximum|oracle`; each of
    them also for one relation, as `acc_at_1.relation.P36`. Counts: `relations`, `pairs`,
    `templates`, `prompts`, `prompts_with_confidence`. Tables: `summary`, `by-relation`,
    `calibration`, `coverage`. Figures: `fluctuation`, `calibration`, `templates`, `coverage`;
    those that have nothing to show are left out.
    """
    judge = _Judge(draws=draws, seed=seed, consist=consist or partial(by_equal_answers, seed=seed))
    whole = judge(_whole(grid, majority))
    parts = {r: judge(part) for r, part in _by_relation(grid, majority).items()}
    estimates = dict(whole.estimates)
    for number, relation in enumerate(relations):
        of_one = parts.get(number, _NOTHING).estimates
        found = {name: of_one.get(name, Estimate.not_measured()) for name in whole.estimates}
        estimates |= {f"{name}.relation.{relation.id}": e for name, e in found.items()}
    sizes = {r: part.sizes for r, part in parts.items()}
    bins = whole.calibration.bins if whole.calibration else ()
    drawn = whole.fluctuations.get(draw)
    asked = [(relations[r], r) for r in sorted(parts)]
    figures = (
        fluctuation_histogram(drawn, draw),
        calibration_curve(bins),
        template_strip(asked, templates, template_accuracies(grid), grid.template_relations),
        coverage_bars(asked, estimates),
    )
    return Sections(
        estimates=estimates,
        counts=_counts(grid, len(parts)),
        headlines=_headlines(draw, majority is not None),
        tables=(
            summary_table(whole.estimates, draw),
            relation_table(relations, sizes, estimates, draw),
            bin_table(bins),
            coverage_table(whole.estimates),
        ),
        figures=tuple(figure for figure in figures if figure is not None),
        findings=findings(whole.estimates, draw),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """Some rows of the grid with the control of their pairs, all counted anew from 0."""

    grid: Grid
    majority: Bools | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judged:
    """The numbers of a part; `sizes` are its pairs, templates and prompts."""

    estimates: dict[str, Estimate]
    fluctuations: Mapping[Draw, Fluctuation] = field(default_factory=dict)
    calibration: Calibration | None = None
    sizes: tuple[int, int, int] = (0, 0, 0)


_NOTHING = _Judged(estimates={})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judge:
    """Computes every number of a part in the same way."""

    draws: int
    seed: int
    consist: Consist

    def __call__(self, part: _Part) -> _Judged:
        grid = part.grid
        if not len(grid):
            return _Judged(estimates=dict.fromkeys(_names(part), Estimate.not_measured()))
        drawn = {d: fluctuation(grid, d, self.draws, self.seed) for d in _draws()}
        fluctuations = {d: f for d, f in drawn.items() if f is not None}
        calibrated = _calibrated(grid, self.seed)
        estimates = {
            **self._accuracy(part),
            **_fluctuation_estimates(drawn, len(grid.relations)),
            "consist": self.consist(grid),
            "overconf": calibrated.overconf if calibrated else Estimate.not_measured(),
            "ece": calibrated.ece if calibrated else Estimate.not_measured(),
            **self._coverage(grid),
        }
        return _Judged(
            estimates=estimates,
            fluctuations=fluctuations,
            calibration=calibrated,
            sizes=(len(grid.relations), len(grid.template_relations), len(grid)),
        )

    def _accuracy(self, part: _Part) -> dict[str, Estimate]:
        worst, best, mean = template_summary(part.grid, self.seed)
        return {
            "acc_at_1": acc_at_1(part.grid, self.seed),
            **_control(part, self.seed),
            "template_accuracy.min": worst,
            "template_accuracy.max": best,
            "template_accuracy.mean": mean,
        }

    def _coverage(self, grid: Grid) -> dict[str, Estimate]:
        found = coverage(grid, self.seed)
        return {
            "coverage.average": found.average,
            "coverage.average_best_name": found.average_best_name,
            "coverage.maximum": found.maximum,
            "coverage.oracle": found.oracle,
        }


def _draws() -> tuple[Draw, Draw]:
    return ("relation", "pair")


def _names(part: _Part) -> list[str]:
    control = [CONTROL, ABOVE] if part.majority is not None else []
    kinds = ("range", "stdev", "closed_form")
    return [
        "acc_at_1",
        *control,
        *(f"template_accuracy.{kind}" for kind in ("min", "max", "mean")),
        *(f"fluctuation.{draw}.{kind}" for draw in _draws() for kind in kinds),
        "consist",
        "overconf",
        "ece",
        *(f"coverage.{k}" for k in ("average", "average_best_name", "maximum", "oracle")),
    ]


def _fluctuation_estimates(
    drawn: Mapping[Draw, Fluctuation | None], pairs: int
) -> dict[str, Estimate]:
    found: dict[str, Estimate] = {}
    for draw, fluctuates in drawn.items():
        name = f"fluctuation.{draw}"
        if fluctuates is None:
            missing = Estimate.not_measured()
            found |= {f"{name}.{kind}": missing for kind in ("range", "stdev", "closed_form")}
            continue
        exact = Estimate(value=fluctuates.closed_form, low=None, high=None, n=pairs)
        found[f"{name}.range"] = fluctuates.range
        found[f"{name}.stdev"] = fluctuates.stdev
        found[f"{name}.closed_form"] = exact
    return found


def _calibrated(grid: Grid, seed: int) -> Calibration | None:
    known = ~np.isnan(grid.confidence)
    return calibration(grid.confidence[known], grid.right[known], grid.pair[known], seed=seed)


def _control(part: _Part, seed: int) -> dict[str, Estimate]:
    """The accuracy of the commonest object, and how far the model is above it, pair by pair."""
    if part.majority is None:
        return {}
    grid, pairs = part.grid, len(part.grid.relations)
    asked = np.bincount(grid.pair, minlength=pairs)
    shares: Floats = np.bincount(grid.pair, weights=grid.right, minlength=pairs) / asked
    control = part.majority.astype(np.float64)
    own: list[Ints] = [np.flatnonzero(grid.relations == r) for r in np.unique(grid.relations)]
    alone = {str(r): Sample(values=control[i], clusters=i) for r, i in enumerate(own)}
    above = {
        str(r): Sample(values=shares[i], clusters=i, minus=control[i]) for r, i in enumerate(own)
    }
    return {
        CONTROL: Resampled(alone, seed).mean_over_facts(),
        ABOVE: Resampled(above, seed).mean_over_facts(),
    }


def _whole(grid: Grid, majority: Bools | None) -> _Part:
    """The grid without pairs and templates that no prompt asks about."""
    pairs, pair = np.unique(grid.pair, return_inverse=True)
    templates, template = np.unique(grid.template, return_inverse=True)
    kept = Grid(
        pair=pair.astype(np.int64),
        template=template.astype(np.int64),
        name=grid.name,
        right=grid.right,
        answer=grid.answer,
        confidence=grid.confidence,
        relations=grid.relations[pairs],
        template_relations=grid.template_relations[templates],
    )
    return _Part(grid=kept, majority=None if majority is None else majority[pairs])


def _by_relation(grid: Grid, majority: Bools | None) -> dict[int, _Part]:
    """The rows of each relation that has any."""
    own = grid.relations[grid.pair]
    return {int(r): _whole(grid.rows(own == r), majority) for r in np.unique(own)}


def _counts(grid: Grid, relations: int) -> dict[str, int]:
    return {
        "relations": relations,
        "pairs": len(np.unique(grid.pair)),
        "templates": len(np.unique(grid.template)),
        "prompts": len(grid),
        "prompts_with_confidence": int((~np.isnan(grid.confidence)).sum()),
    }


def _headlines(draw: Draw, controlled: bool) -> tuple[Headline, ...]:
    label = "Acc@1, mean over pairs of the share of right prompts"
    first = Headline(label=label, estimate="acc_at_1")
    if controlled:
        first = Headline(
            label=label,
            estimate="acc_at_1",
            control=CONTROL,
            control_label="always the commonest object",
            difference=ABOVE,
        )
    what = "a template per relation" if draw == "relation" else "a prompt per pair"
    return (
        first,
        Headline(
            label=f"Fluctuation, range over draws of {what}",
            estimate=f"fluctuation.{draw}.range",
        ),
        Headline(label="Consist, agreement of a pair's prompts", estimate="consist"),
        Headline(label="Overconf, confidence minus accuracy", estimate="overconf"),
        Headline(label="Oracle, pairs with some right prompt", estimate="coverage.oracle"),
    )
