"""What the numbers of in-context estimation mean, in sentences. Knows estimates and counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sonde.core.reports import Estimate
from sonde.core.words import above_zero, against_control, listed, trust
from sonde.probes.lke.items import Census
from sonde.probes.lke.numbers import ABOVE
from sonde.probes.lke.tally import Outcomes

Estimates = Mapping[str, Estimate]


def findings(
    estimates: Estimates, census: Census, outcomes: Outcomes, wanted: int, options: int
) -> Iterator[str]:
    """One sentence for each thing that was measured, and for each that had to be left out."""
    found = _sentences(estimates, census, outcomes, wanted, options)
    return (sentence for sentence in found if sentence)


def _sentences(
    estimates: Estimates, census: Census, outcomes: Outcomes, wanted: int, options: int
) -> Iterator[str]:
    yield from _control(estimates, outcomes)
    yield trust(estimates["overconf"])
    yield from _seeds(estimates, outcomes)
    yield from _smaller(census, wanted, options)
    yield from _left_out(census)
    ties = int(outcomes.columns.tied.sum())
    if ties:
        yield f"{_choices(ties)} have several likeliest options; they count as wrong."


def _control(estimates: Estimates, outcomes: Outcomes) -> Iterator[str]:
    yield against_control("Accuracy", estimates[f"{ABOVE}.mean_over_relations"])
    rows = [(r, estimates[f"{ABOVE}.relation.{r.id}"]) for r in outcomes.relations]
    measured = [(r, e) for r, e in rows if e.value is not None]
    unclear = [f"{r.id} {r.label}" for r, e in measured if not above_zero(e)]
    if len(measured) > 1 and unclear:
        yield (
            f"The model is clearly above the control on {len(measured) - len(unclear)} of "
            f"{len(measured)} relations. It is not on: {listed(unclear)}."
        )


def _seeds(estimates: Estimates, outcomes: Outcomes) -> Iterator[str]:
    spread = estimates["accuracy.seeds.stdev.mean_over_relations"]
    if spread.value is None:
        return
    values = [
        estimates[f"accuracy.seed.{seed}.mean_over_relations"].value or 0.0
        for seed in outcomes.seeds
    ]
    yield (
        f"Over {len(values)} draws of the examples the accuracy is {min(values):.1%} to "
        f"{max(values):.1%} (standard deviation {100 * spread.value:.1f} points)."
    )


def _smaller(census: Census, wanted: int, options: int) -> Iterator[str]:
    below = census.relations_below(wanted)
    if below:
        most = max(census.examples[id] for id in below)
        least = min(census.examples[id] for id in below)
        found = f"{most}" if least == most else f"{least} to {most}"
        yield (
            f"{_relations(len(below))} fewer training facts than the {wanted} asked for; {found} "
            f"were used: {listed(below)}."
        )
    yield census.few_options(options)


def _left_out(census: Census) -> Iterator[str]:
    if census.without_training:
        yield (
            f"{_relations(len(census.without_training))} no training facts and were not asked: "
            f"{listed(census.without_training)}."
        )
    if census.without_options:
        yield f"{_facts(census.without_options)} only one option and were not asked about."
    if census.no_examples:
        yield (
            f"{_facts(census.no_examples)} no example but one about the same subject, and were "
            "not asked about."
        )
    if census.correct_after_all:
        yield (
            f"{census.correct_after_all:,} options that the dataset calls wrong are right for "
            "their subject after all; they were dropped."
        )


def _relations(count: int) -> str:
    return "1 relation has" if count == 1 else f"{count:,} relations have"


def _facts(count: int) -> str:
    return "1 fact has" if count == 1 else f"{count:,} facts have"


def _choices(count: int) -> str:
    return "1 choice" if count == 1 else f"{count:,} choices"
