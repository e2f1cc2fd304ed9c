"""The numbers of in-context estimation, and which column of which judged rows they are means of.

A choice is a fact with one draw of the examples. Knows nothing of how rows are judged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from sonde.core.reports import Headline, Metric
from sonde.metrics.estimates import RELATIONS
from sonde.reporting.build.multi_prompt.numbers import ECE, OVERCONF
from sonde.reporting.build.parts import headline
from sonde.reporting.catalogue import shares

if TYPE_CHECKING:
    from polars import Series

Kept: TypeAlias = "Series"
"""Which rows count: a truth for each."""


class Mean(NamedTuple):
    """A number of a report: the mean of a column over the rows that are kept.

    With `minus`, another column, or `less`, other rows, it is the mean of the difference on the
    same facts. `each`: also of every relation.
    """

    metric: Metric
    value: str = "right"
    kept: Kept | None = None
    minus: str = ""
    less: Kept | None = None
    each: bool = True


CHOICES = "mean_over_choices"
"""What Accuracy@K averages over beside relations: all choices, those of several draws too."""

ACCURACY, MASS, CONFIDENCE = shares(
    ("accuracy", "accuracy", "share of facts whose object is chosen", "higher"),
    ("mass", "mass", "mean probability of the right option", "higher"),
    ("confidence", "sure", "mean probability of the chosen option", ""),
)
MAJORITY, ABOVE = ACCURACY.controlled(
    "always choosing the commonest object among the options",
    "fact by fact; from −1 to 1",
)
AVERAGED = (ACCURACY, MAJORITY, ABOVE, MASS, CONFIDENCE)
MEANS = (
    Mean(ACCURACY),
    Mean(MAJORITY, "control"),
    Mean(ABOVE, minus="control"),
    Mean(MASS, "mass"),
    Mean(CONFIDENCE, "confidence"),
)

SURE = AT, RETAINED = shares(
    ("accuracy_at.{k}", "@{k}", "accuracy of the choices that are at least {k} sure", "higher"),
    ("retained_at.{k}", "left @{k}", "share of choices that are at least {k} sure", "higher"),
)
ALL_CHOICES = (OVERCONF, ECE)
SEEDS = BY_SEED, OVER_SEEDS = shares(
    ("accuracy.seed.{s}", "seed {s}", "accuracy with the examples of seed {s}", "higher"),
    (
        "accuracy.seeds.stdev",
        "over seeds",
        "standard deviation of the accuracy over draws of the examples",
        "lower",
    ),
)


def at_level(level: float) -> tuple[Metric, Metric]:
    """The accuracy where the model is at least so sure, and the share of choices left there."""
    return AT.of(k=f"{level:g}"), RETAINED.of(k=f"{level:g}")


# Of the studies: `accuracy`, `mass` and those that compare ways of asking stand before the way,
# as in `accuracy.n.5.mean_over_relations`.

COMMONEST = "always the commonest option"

DEVIATION = Metric(
    "deviation",
    "deviation",
    sentence="standard deviation between the accuracies of single draws of examples",
    better="lower",
)
VARIED = (ACCURACY, MASS, DEVIATION, MAJORITY, ABOVE)


def beside_control(kept: Kept) -> tuple[Mean, Mean]:
    """What always choosing the commonest option reaches, and how far above it some choices are."""
    return Mean(MAJORITY, "control", kept), Mean(ABOVE, kept=kept, minus="control")


def varied(ways: Mapping[str, Kept], reference: str, difference: Metric) -> Iterator[Mean]:
    """What is told of the choices at each place of what a study varies, and against one of them."""
    for place, kept in ways.items():
        yield Mean(ACCURACY.under(place), kept=kept)
        yield Mean(MASS.under(place), "mass", kept)
        if place != reference:
            yield Mean(difference.under(place), kept=kept, less=ways[reference])
    yield from beside_control(ways[reference])


def accuracy_headline(place: str, label: str) -> Headline:
    """The accuracy at a place beside the control."""
    return headline(
        ACCURACY.under(place).named(label),
        RELATIONS,
        control=MAJORITY,
        above=ABOVE,
        control_label=COMMONEST,
    )
