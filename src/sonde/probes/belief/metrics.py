"""The numbers that BELIEF reports: those of every multi-prompt probe, and its own."""

from __future__ import annotations

from sonde.core.reports import Metric
from sonde.reporting.build.multi_prompt import metrics as multi_prompt

SINGLE = Metric(
    "single_prompt.acc_at_1",
    "LAMA",
    "percent",
    "accuracy with LAMA's own template and the usual name, on UHN facts",
)
BIAS_SINGLE = Metric(
    "bias.single",
    "bias level, single prompt",
    "number",
    "of a template asked about nothing; 0: even over the candidates, 1: one only",
    better="lower",
)
BIAS_MULTI = Metric(
    "bias.multi",
    "bias level, all prompts",
    "number",
    "the same, of the average of a relation's templates",
    better="lower",
)

BY_RELATION = (*multi_prompt.METRICS, SINGLE, BIAS_SINGLE, BIAS_MULTI)
"""Over everything and in each relation."""

METRICS = (*BY_RELATION, *multi_prompt.OVERALL)
