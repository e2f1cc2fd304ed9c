"""Facts that an estimator holds to be known though no text states them, by what may cause it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from sonde.lab.evaluation.asked import Asked
from sonde.lab.evaluation.measured import Measured, mean, mean_less
from sonde.lab.worlds.truth import Bools

CAUSES: Mapping[str, str] = {
    "cue": "guessable from the name",
    "majority": "guessable as the commonest object",
    "not_guessable": "not guessable",
    "unshown": "in relations never shown",
}
"""Every untaught fact is of one of these."""


def causes(asked: Asked) -> dict[str, Bools]:
    """The untaught facts, parted by what could make an estimator hold them to be known."""
    shown = asked.shown & ~asked.taught
    return {
        "cue": shown & (asked.guess == "cue"),
        "majority": shown & (asked.guess == "majority"),
        "not_guessable": shown & (asked.guess == ""),
        "unshown": ~asked.shown & ~asked.taught,
    }


def discoveries(asked: Asked) -> Iterator[tuple[str, Measured]]:
    """Shares of untaught facts that are decided to be known, and of those decided, untaught ones.

    `false.untaught` in all and `false.CAUSE` apart, cue and majority also together as
    `false.guessable`; `false.rate.taught` and `false.rate.stored`
    are the share of facts decided to be known that are not, by each truth.
    """
    decided = asked.verdicts.decision
    of = decided.astype(np.float64)
    yield "false.untaught", mean(of, asked.relation, ~asked.taught)
    parts = causes(asked)
    for cause, where in parts.items():
        yield f"false.{cause}", mean(of, asked.relation, where)
    yield "false.guessable", mean(of, asked.relation, parts["cue"] | parts["majority"])
    for truth, known in (("taught", asked.taught), ("stored", asked.stored)):
        wrong = (~known).astype(np.float64)
        yield f"false.rate.{truth}", mean(wrong, asked.relation, decided)


def chance(asked: Asked) -> Iterator[tuple[str, Measured]]:
    """What an estimator counts in relations never shown: `unshown.counts`, beside the chance."""
    counts, by_chance = asked.verdicts.counts, asked.verdicts.chance
    where = ~asked.shown & ~asked.taught & ~np.isnan(by_chance)
    yield "unshown.counts", mean(counts, asked.relation, where)
    yield "unshown.chance", mean(by_chance, asked.relation, where)
    yield "unshown.less_chance", mean_less(counts, where, by_chance)
