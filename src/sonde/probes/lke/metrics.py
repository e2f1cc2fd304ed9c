"""The numbers of in-context estimation, and which column of which judged rows they are means of.

A choice is a fact with one draw of the examples. Knows nothing of how rows are judged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from sonde.core.reports import Headline, Metric
from sonde.reporting.build.multi_prompt.metrics import ECE, OVERCONF
from sonde.reporting.build.parts import headline
from sonde.reporting.catalogue import RELATIONS

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
MEANS = (
    Mean(ACCURACY),
    Mean(MAJORITY, "control"),
    Mean(ABOVE, minus="control"),
    Mean(MASS, "mass"),
    Mean(CONFIDENCE, "confidence"),
)

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


# Of the studies: `accuracy`, `mass` and those that compare ways of asking stand before the way,
# as in `accuracy.n.5.mean_over_relations`.

COMMONEST = "always the commonest option"

DEVIATION = Metric(
    "deviation",
    "deviation",
    "percent",
    "standard deviation between the accuracies of single draws of examples",
    better="lower",
)
LESS = Metric(
    "less",
    "less",
    "percent",
    "accuracy minus that with the most examples, fact by fact",
    better="",
)
ENOUGH = Metric(
    "enough",
    "enough",
    "count",
    "the fewest examples that reach a share of the accuracy with the most",
    better="",
)
SHOTS = (ACCURACY, MASS, LESS, DEVIATION, ENOUGH, MAJORITY, ABOVE)

ABOVE_FIRST = Metric(
    "above_first",
    "above the first",
    "percent",
    "accuracy minus that with the first separators, fact by fact",
    better="",
)
SEPARATORS = (ACCURACY, MASS, ABOVE_FIRST, DEVIATION, MAJORITY, ABOVE)

AHEAD = Metric(
    "ahead",
    "in-context ahead",
    "percent",
    "in-context minus this, fact by fact; written answers are held against written",
    better="",
)
SHARE_AHEAD = Metric(
    "share_ahead",
    "relations ahead",
    "percent",
    "share of relations in which in-context is ahead",
    better="",
)
BETWEEN = DEVIATION.named("deviation", "standard deviation between relations")
BASELINES = (ACCURACY, AHEAD, SHARE_AHEAD, BETWEEN, MAJORITY, ABOVE)

LIKELY = Metric("likely", "likely", "percent", "share of objects with a probability above one half")
CLEAN = Metric("probability.clean", "as it is", "percent", "mean probability in the clean sequence")
CHANGED = Metric(
    "probability.changed", "changed", "percent", "mean probability in the changed sequence"
)
EFFECT = Metric("effect", "effect", "percent", "changed minus clean, place by place", better="")
LOG_EFFECT = Metric(
    "log_effect",
    "log effect",
    "number",
    "the same of log-probabilities, in nats: it also counts facts that are unlikely",
    better="",
)
AFTER_1 = EFFECT.under("after_1").named("effect 1 after")
NEIGHBOURS = EFFECT.under("neighbours").named("effect on all that follow")
USUALLY = Metric(
    "control.frequency.likely",
    "usual",
    "percent",
    "share of objects that fill more than half of the sequence",
    better="",
)
USUAL = Metric(
    "control.frequency.probability",
    "usual",
    "percent",
    "mean share of the sequence that has the same object",
    better="",
)
ABOVE_USUALLY = Metric("above_control.likely", "above", "percent", "the difference of the two")
ABOVE_USUAL = Metric(
    "above_control.probability", "above", "percent", "probability minus that share"
)
SEQUENCE = (LIKELY, USUALLY, ABOVE_USUALLY, CLEAN, USUAL, ABOVE_USUAL, CHANGED, EFFECT, LOG_EFFECT)


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
