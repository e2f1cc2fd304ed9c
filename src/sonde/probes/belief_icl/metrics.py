"""The numbers of BELIEF-ICL: those of every multi-prompt probe, and of written answers."""

from __future__ import annotations

from sonde.core.reports import Metric
from sonde.reporting.build.multi_prompt.metrics import BY_TEMPLATE, ONE_WORD
from sonde.reporting.build.multi_prompt.metrics import METRICS as MULTI_PROMPT

LONGEST = 5
"""Overconf by length goes up to answers of so many tokens, as in the paper."""

BY_LENGTH = tuple(
    Metric(
        f"overconf.tokens.{tokens}",
        tokens,
        "percent",
        "Overconf of answers of so many tokens, from their probability",
        better="nearer 0",
    )
    for tokens in (*map(str, range(1, LONGEST + 1)), f"1-{LONGEST}")
)
WITHIN = Metric(
    f"within_{LONGEST}_tokens",
    f"1 to {LONGEST} tokens",
    "percent",
    f"share of answers of 1 to {LONGEST} tokens",
    better="",
)

WRITTEN = (ONE_WORD, *BY_LENGTH, WITHIN, *BY_TEMPLATE)
"""Over everything only."""

METRICS = (*MULTI_PROMPT, *WRITTEN)
