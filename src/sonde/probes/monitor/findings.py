"""What MONITOR's numbers mean, in sentences. Knows estimates and counts."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sonde.core.reports import Estimates
from sonde.core.words import against_control, listed, sided
from sonde.metrics.distance import IRD, PFD
from sonde.probes.monitor.ask import Settings
from sonde.probes.monitor.judge import Outcomes
from sonde.probes.monitor.metrics import ABOVE, BASE, COPIED, DIFFERENCE, MAX, MIN, of_all
from sonde.reporting.build.tables import titled
from sonde.reporting.catalogue import RELATIONS

FEW = 10


def findings(estimates: Estimates, outcomes: Outcomes, settings: Settings) -> Iterator[str]:
    """A sentence for each thing that was measured, or that had to be left out; some are empty."""
    yield from _moved(estimates)
    yield from _spread(estimates)
    yield against_control("Accuracy over prompts", estimates[of_all(ABOVE).at(RELATIONS)])
    yield from _copied(estimates)
    yield from _anchors(outcomes, settings)
    yield from _left_out(outcomes)


def _moved(estimates: Estimates) -> Iterator[str]:
    pfd, ird = (estimates[metric.at(RELATIONS)].value for metric in (PFD, IRD))
    if pfd is None or ird is None:
        return
    which = sided(
        estimates[DIFFERENCE.at(RELATIONS)],
        "more by wrong names",
        "more by other frames",
        "about as much by either",
    )
    yield (
        f"The probability of a right answer moves by {pfd:.3f} in other frames and by {ird:.3f} "
        f"after wrong names: {which}."
    )


def _spread(estimates: Estimates) -> Iterator[str]:
    low, high, base = (estimates[of_all(metric).at(RELATIONS)].value for metric in (MIN, MAX, BASE))
    if low is None or high is None or base is None:
        return
    yield (
        f"Accuracy is {low:.1%} with the worst prompt of each relation and {high:.1%} with the "
        f"best; the base frame gives {base:.1%}."
    )


def _copied(estimates: Estimates) -> Iterator[str]:
    share = estimates[COPIED.at(RELATIONS)].value
    if share is not None and share > 0:
        yield f"After a wrong name the model repeats it in {share:.1%} of its answers."


def _anchors(outcomes: Outcomes, settings: Settings) -> Iterator[str]:
    known = outcomes.monitored
    valid = known.valid[known.rule]
    share = float(valid.mean()) if len(valid) else 0.0
    if share < 0.5:
        hint = ""
        if settings.frame == "plain" or not settings.shots:
            hint = " Small models give more with frame=qa and a few shots."
        some = f"Only {int(valid.sum()):,} of {len(valid):,} facts have a valid anchor"
        yield (
            f"{some}, so MONITOR speaks of these alone.{hint}"
            if valid.any()
            else f"None of {len(valid):,} facts has a valid anchor.{hint}"
        )
    counted = known.counted()
    none, few = [], []
    for number, relation in enumerate(known.relations):
        own = int((counted & (known.relation == number)).sum())
        if not own:
            none.append(titled(relation))
        elif own < FEW:
            few.append(f"{titled(relation)} ({own})")
    if none:
        yield f"Without a valid anchor, and not measured: {listed(none)}."
    if few:
        yield f"Fewer than {FEW} anchors, so little can be said of: {listed(few)}."


def _left_out(outcomes: Outcomes) -> Iterator[str]:
    census, known = outcomes.census, outcomes.monitored
    if census.without_frames:
        yield f"No question to ask, left out: {listed(census.without_frames)}."
    if census.one_frame:
        yield (
            f"A single frame, so PFD there is the effect of the right name alone: "
            f"{listed(census.one_frame)}."
        )
    if census.held:
        yield f"{_facts(census.held)} held back to serve as examples; all others were asked about."
    if census.few_shots:
        yield f"{_facts(census.few_shots)} asked with fewer examples than set, for want of facts."
    if census.without_wrong:
        valid = int((known.valid[known.rule] & ~known.counted()).sum())
        yield (
            f"{_facts(census.without_wrong)} left without a wrong name; MONITOR leaves out "
            f"{valid:,} of them that have a valid anchor."
        )
    if census.correct_after_all:
        yield (
            f"{census.correct_after_all:,} names that the dataset calls wrong are right for their "
            "subject after all; they were dropped."
        )
    if census.uneven:
        yield f"{_facts(census.uneven)} left out: their object is cut into tokens differently."
    counts = {len(own) for own in known.frames}
    if len(counts) > 1:
        sizes = np.array([len(own) for own in known.frames])
        yield f"Relations have {sizes.min()} to {sizes.max()} frames; each counts its own."


def _facts(count: int) -> str:
    return "1 fact was" if count == 1 else f"{count:,} facts were"
