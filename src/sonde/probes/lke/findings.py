"""What the numbers of in-context estimation mean, in sentences. Knows estimates and counts."""

from __future__ import annotations

from collections.abc import Iterator

from sonde.core.reports import Estimates
from sonde.core.words import against_control, listed, trust
from sonde.probes.lke.items import Census
from sonde.probes.lke.metrics import ABOVE, BY_SEED, OVER_SEEDS
from sonde.probes.lke.tally import Outcomes
from sonde.reporting.build.multi_prompt.metrics import OVERCONF
from sonde.reporting.build.parts import above_on_relations
from sonde.reporting.catalogue import RELATIONS


def findings(
    estimates: Estimates, census: Census, outcomes: Outcomes, wanted: int, options: int
) -> Iterator[str]:
    """A sentence for each thing that was measured, or that had to be left out; some are empty."""
    yield against_control("Accuracy", estimates[ABOVE.at(RELATIONS)])
    if len(outcomes.relations) > 1:
        clear = above_on_relations(estimates, ABOVE, outcomes.relations, most=8)
        yield "" if clear.endswith("every relation.") else clear
    yield trust(estimates[OVERCONF.id])
    yield from _seeds(estimates, outcomes)
    yield from _smaller(census, wanted, options)
    yield from _left_out(census)
    ties = int(outcomes.columns.tied.sum())
    if ties:
        yield f"{_choices(ties)} have several likeliest options; they count as wrong."


def _seeds(estimates: Estimates, outcomes: Outcomes) -> Iterator[str]:
    spread = estimates[OVER_SEEDS.at(RELATIONS)]
    if spread.value is None:
        return
    values = [estimates[BY_SEED.of(s=seed).at(RELATIONS)].value or 0.0 for seed in outcomes.seeds]
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
