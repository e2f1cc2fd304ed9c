"""The numbers of in-context estimation. A choice is a fact with one draw of the examples."""

from __future__ import annotations

from sonde.core.reports import Metric
from sonde.reporting.build.multi_prompt.metrics import ECE, OVERCONF

CHOICES = "mean_over_choices"
"""What Accuracy@K averages over beside relations: all choices, those of several draws too."""

ACCURACY = Metric("accuracy", "accuracy", "percent", "share of facts whose object is chosen")
MAJORITY = Metric(
    "control.majority.accuracy",
    "majority",
    "percent",
    "accuracy of always choosing the commonest object among the options",
    better="",
)
ABOVE = Metric(
    "above_control.accuracy",
    "above",
    "percent",
    "accuracy minus the majority control's, fact by fact; from −1 to 1",
)
MASS = Metric("mass", "mass", "percent", "mean probability of the right option")
CONFIDENCE = Metric(
    "confidence", "sure", "percent", "mean probability of the chosen option", better=""
)
AVERAGED = (ACCURACY, MAJORITY, ABOVE, MASS, CONFIDENCE)

AT = Metric(
    "accuracy_at.{k}", "@{k}", "percent", "accuracy of the choices that are at least {k} sure"
)
RETAINED = Metric(
    "retained_at.{k}", "left @{k}", "percent", "share of choices that are at least {k} sure"
)
SURE = (AT, RETAINED)

ALL_CHOICES = (OVERCONF, ECE)

BY_SEED = Metric(
    "accuracy.seed.{s}", "seed {s}", "percent", "accuracy with the examples of seed {s}"
)
OVER_SEEDS = Metric(
    "accuracy.seeds.stdev",
    "over seeds",
    "percent",
    "standard deviation of the accuracy over draws of the examples",
    better="lower",
)
SEEDS = (BY_SEED, OVER_SEEDS)


def at_level(level: float) -> tuple[Metric, Metric]:
    """The accuracy where the model is at least so sure, and the share of choices left there."""
    return AT.of(k=f"{level:g}"), RETAINED.of(k=f"{level:g}")
