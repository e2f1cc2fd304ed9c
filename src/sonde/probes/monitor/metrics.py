"""The numbers that MONITOR reports."""

from __future__ import annotations

from sonde.core.reports import Metric
from sonde.metrics.distance import ANCHOR, IRD, MONITOR, PFD, RULES, SOLID_ANCHORS

DIFFERENCE = Metric(
    "ird_minus_pfd", "IRD minus PFD", "number", "their difference, fact by fact", better=""
)
ANCHOR_RATE = Metric(
    "anchor_rate.{rule}", "anchors, {rule}", "percent", "share of facts with an anchor valid so"
)
COPIED = Metric(
    "copied_wrong_name",
    "copied",
    "percent",
    "share of answers after a wrong name that repeat it",
    better="lower",
)

AVG = Metric("{part}.{group}.avg", "avg", "percent", "mean accuracy over prompts")
MAX = Metric("{part}.{group}.max", "max", "percent", "of the best prompt")
MIN = Metric("{part}.{group}.min", "min", "percent", "of the worst prompt")
STDEV = Metric("{part}.{group}.stdev", "stdev", "percent", "over prompts", better="lower")
BASE = Metric("{part}.{group}.base", "base", "percent", "of the base frame")
MAJORITY = Metric(
    "{part}.{group}.majority", "majority", "percent", "always the commonest object", better=""
)
ABOVE = Metric("{part}.{group}.above", "above", "percent", "avg minus majority; from −1 to 1")

OVER_PROMPTS = (AVG, MAX, MIN, STDEV, BASE, MAJORITY, ABOVE)

METRICS = (
    *(MONITOR, PFD, IRD, DIFFERENCE, ANCHOR, SOLID_ANCHORS),
    *(ANCHOR_RATE.of(rule=rule) for rule in RULES),
    COPIED,
    *OVER_PROMPTS,
)


def of_all(metric: Metric) -> Metric:
    """An accuracy over prompts, of all facts."""
    return metric.of(part="accuracy", group="all")
