"""Figures of in-context estimation. Knows estimates and choices, nothing of prompts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sonde.core.facts import Relation
from sonde.core.reports import Curve, Curves, Estimates, Figure
from sonde.metrics.calibration import Bin
from sonde.metrics.choices import accuracy_at_over
from sonde.probes.lke.metrics import ACCURACY, BY_SEED, MAJORITY
from sonde.probes.lke.tally import Outcomes
from sonde.reporting.build.figures import calibration, distribution, dots_by_relation, strip
from sonde.reporting.build.tables import titled

GRID = (*(i / 20 for i in range(20)), 0.99)


def figures(estimates: Estimates, bins: Sequence[Bin], outcomes: Outcomes) -> Iterator[Figure]:
    """Every relation, where the model is sure, how sure it is, every draw of the examples."""
    yield dots_by_relation(
        estimates,
        outcomes.relations,
        {"model": ACCURACY, "majority control": MAJORITY},
        id="accuracy-by-relation",
        title="Accuracy of every relation beside the majority control",
        axis="accuracy",
    )
    if len(outcomes.columns):
        yield _accuracy_at(outcomes)
    confidence = "probability of the chosen option in the bin"
    yield calibration({"model": bins}, confidence=confidence, what="choices")
    yield distribution(
        outcomes.columns.sure,
        id="confidence",
        title="How sure the model is of what it chooses",
        axis="probability of the chosen option",
    )
    if len(outcomes.seeds) > 1:
        yield strip(
            ((titled(r), _by_seed(estimates, outcomes, r)) for r in outcomes.relations),
            id="seeds",
            title="Accuracy with every draw of the examples",
            axis="accuracy with one draw",
            note="One dot a seed. The facts and their options stay the same.",
        )


def _accuracy_at(outcomes: Outcomes) -> Curves:
    columns = outcomes.columns
    owners = outcomes.relation[columns.fact]
    points = [accuracy_at_over(columns.sure, columns.right, owners, level) for level in GRID]
    right = [(p.level, p.accuracy) for p in points if p.accuracy is not None]
    return Curves(
        id="accuracy-at-k",
        title="Accuracy@K: accuracy where the model is at least K sure",
        x_axis="K, the least probability of the chosen option",
        y_axis="share",
        curves=(
            Curve(name="accuracy", x=tuple(k for k, _ in right), y=tuple(a for _, a in right)),
            Curve(
                name="share of choices left", x=GRID, y=tuple(point.retained for point in points)
            ),
        ),
        note="Means over relations; the accuracy over those of which a choice is left. Where few "
        "are left it is uncertain; the table gives intervals.",
    )


def _by_seed(
    estimates: Estimates, outcomes: Outcomes, relation: Relation
) -> list[tuple[float, str]]:
    values = (
        (estimates[BY_SEED.of(s=seed).at(f"relation.{relation.id}")].value, f"seed {seed}")
        for seed in outcomes.seeds
    )
    return [(value, name) for value, name in values if value is not None]
