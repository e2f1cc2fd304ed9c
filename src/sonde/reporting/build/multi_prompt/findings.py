"""What the numbers of a multi-prompt probe mean, in sentences. Knows estimates alone."""

from __future__ import annotations

from collections.abc import Mapping

from sonde.core.reports import Estimate
from sonde.core.words import against_control, trust

NOTHING = Estimate.not_measured()


def findings(estimates: Mapping[str, Estimate], draw: str) -> tuple[str, ...]:
    """One sentence for each thing that was measured."""
    found = (
        against_control("Acc@1", estimates.get("above_control.acc_at_1", NOTHING)),
        _wording(estimates, draw),
        _agreement(estimates),
        trust(estimates["overconf"]),
        _reach(estimates),
    )
    return tuple(sentence for sentence in found if sentence)


def _wording(estimates: Mapping[str, Estimate], draw: str) -> str:
    spread, stdev = estimates[f"fluctuation.{draw}.range"], estimates[f"fluctuation.{draw}.stdev"]
    low, high = estimates["template_accuracy.min"], estimates["template_accuracy.max"]
    if spread.value is None or stdev.value is None:
        return (
            "How far the accuracy moves with the wording was not measured: no relation has two "
            "templates."
        )
    ends = ""
    if low.value is not None and high.value is not None:
        ends = (
            f"; with the worst templates it is {low.value:.1%}, with the best ones {high.value:.1%}"
        )
    return (
        f"Which prompts are drawn moves the accuracy by up to {100 * spread.value:.1f} points "
        f"(standard deviation {100 * stdev.value:.1f}){ends}."
    )


def _agreement(estimates: Mapping[str, Estimate]) -> str:
    consist = estimates["consist"]
    if consist.value is None:
        return "Agreement between prompts was not measured: no pair was asked twice."
    return (
        f"Two prompts about the same pair get the same answer {consist.value:.1%} of the time, "
        "right or wrong."
    )


def _reach(estimates: Mapping[str, Estimate]) -> str:
    average, most = estimates["coverage.average"], estimates["coverage.maximum"]
    oracle = estimates["coverage.oracle"]
    if average.value is None or most.value is None or oracle.value is None:
        return ""
    return (
        f"A prompt chosen at random is right for {average.value:.1%} of the pairs, each relation's "
        f"best template for {most.value:.1%}, some prompt for {oracle.value:.1%}."
    )
