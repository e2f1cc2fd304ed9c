"""lke-shots: how many examples does in-context estimation need?

Knows no model. The same facts with the same options are asked behind one, two, five … examples,
each time with several draws of examples. Numbers: accuracy against the number of examples with the
spread over draws, and the fewest examples that reach 95 % of the accuracy with the most.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sonde.core.abilities import needs
from sonde.core.columns import Given
from sonde.core.components import setting
from sonde.core.errors import UsageError
from sonde.core.facts import Dataset, Relation
from sonde.core.fingerprints import draw_key
from sonde.core.prompts import Prompt
from sonde.core.reports import Curves, Estimate, Metric, Report, Table
from sonde.metrics.judged import Judged
from sonde.metrics.verdicts import Floats
from sonde.former.lke.asking import BETWEEN_HELP, INSIDE_HELP, OPTIONS_HELP, Asked, separators_of
from sonde.former.lke.choices import Choices, judge, worded
from sonde.former.lke.metrics import ACCURACY, DEVIATION, VARIED, accuracy_headline
from sonde.prompting.options import MANY
from sonde.prompting.sequences import separated
from sonde.reporting.build.figures import WHISKERS, curve
from sonde.reporting.build.parts import headline, shown
from sonde.reporting.build.tables import Field, by_relation
from sonde.stats.intervals import resampled_rates

LESS = Metric(
    "less",
    "less",
    "points",
    sentence="accuracy minus that with the most examples, fact by fact",
    better="",
)
ENOUGH = Metric(
    "enough",
    "enough",
    "count",
    "the fewest examples that reach a share of the accuracy with the most",
    better="",
)
METRICS = (*VARIED, LESS, ENOUGH)

FEW = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class LkeShots:
    """Accuracy against the number of examples, and how many are enough."""

    name: ClassVar[str] = "lke-shots"

    n: tuple[int, ...] = setting(
        (1, 2, 5, 10, 20, 50), "how many examples to show, one number after the other"
    )
    seeds: int = setting(5, "how often to draw the examples", min=1)
    options: int = setting(MANY, OPTIONS_HELP, min=2)
    inside: str = setting("space", INSIDE_HELP)
    between: str = setting("space", BETWEEN_HELP)
    share: float = setting(
        0.95, "the mark: this share of the accuracy with the most examples", analysis_only=True
    )

    def __post_init__(self) -> None:
        if not self.n or min(self.n) < 1:
            raise UsageError(f"setting n takes numbers of examples from 1 on, not {self.n}")
        if not 0 < self.share <= 1:
            raise UsageError(f"setting share must be above 0 and at most 1, not {self.share:g}")
        separated(self.inside, self.between)

    suited = needs("score")

    def ask(self, dataset: Dataset) -> Iterator[Prompt]:
        """Draw by draw, few examples first; prompts of a relation share their beginning."""
        asked = self._asked(dataset)
        for each in asked.shown:
            chosen = separated(self.inside, self.between, each.relation.language)
            for draw, _ in enumerate(each.draws):
                for n in dict.fromkeys(min(n, each.most) for n in sizes(self.n, asked)):
                    own = {"shots": n, "draw": draw}
                    yield from each.scored(n, chosen, self.name, own, draw)

    def judged(self, dataset: Dataset, answered: Given) -> Judged:
        """Every choice, each number of examples in each draw as a template."""
        return self._choices(dataset, answered).judged

    def read(self, dataset: Dataset, answered: Given) -> Report:
        """Judge every choice and average by number of examples."""
        choices = self._choices(dataset, answered)
        asked = sizes(self.n, choices.asked)
        _measure(choices, asked, self.share)
        last = asked[-1]
        return Report(
            title=f"Accuracy against the number of examples on {dataset.name}",
            summary=_summary(choices, last, self.share),
            metrics=METRICS,
            estimates=choices.estimates,
            counts=choices.counts(),
            headlines=(
                accuracy_headline(f"n.{last}", f"Accuracy with {last} examples"),
                headline(ENOUGH, label=f"Examples that reach {self.share:.0%} of it"),
            ),
            tables=shown(
                choices.by_way(
                    Field("examples", int, "count"),
                    {str(n): f"n.{n}" for n in asked},
                    LESS.named(f"less than {last}"),
                    id="by-examples",
                    title="By number of examples",
                ),
                _relation_table(choices, last, self.share),
            ),
            figures=shown(_figure(choices, asked, self.share)),
            findings=shown(*_findings(choices, asked, self.share), *choices.asked.sentences()),
            notes=(
                f"Every number of examples is asked with the same facts, options and {self.seeds} "
                "draws of examples; more examples are those of fewer and some after them.",
                "Intervals are 95 %: a bootstrap over subjects within relations, of each fact's "
                "mean over the draws. The deviation is between the accuracies of single draws.",
                "Ties count as wrong.",
            ),
            judged=choices.judged,
        )

    def _asked(self, dataset: Dataset) -> Asked:
        return Asked.of(dataset, max(self.n), self.options, self.seeds)

    def _choices(self, dataset: Dataset, answered: Given) -> Choices:
        chosen = separators_of(dataset, self.inside, self.between)
        template = worded("shots-{shots}-draw-{draw}", chosen)
        return judge(self._asked(dataset), answered, ("shots", "draw"), template)


def sizes(wanted: Sequence[int], asked: Asked) -> tuple[int, ...]:
    """The numbers of examples that some relation reaches; larger ones become the largest."""
    most = max(each.most for each in asked.shown if each.items)
    return tuple(sorted({min(n, most) for n in wanted}))


def _measure(choices: Choices, asked: Sequence[int], share: float) -> None:
    """Add every number: of each number of examples, and how many are enough."""
    from polars import col

    estimates, by = choices.estimates, choices.by_fact.by
    shots, most = choices.frame.select("shots", most=col("shots").max().over("relation"))
    # a relation that has fewer shows all that it has
    behind = {f"n.{n}": shots == most.clip(upper_bound=n) for n in asked}
    choices.vary(behind, f"n.{asked[-1]}", LESS)
    means = np.column_stack([choices.by_fact.values("right", kept) for kept in behind.values()])
    curves = []
    for number, id in enumerate(by.ids):
        part = by.relation == number
        mark = Estimate.not_measured()
        if part.any():
            rng = np.random.default_rng(draw_key(by.seed, id))
            curves.append(resampled_rates(means[part], by.subject[part], rng))
            mark = enough(curves[-1], asked, share, int(part.sum()))
        estimates[ENOUGH.at(f"relation.{id}")] = mark
    estimates[ENOUGH.at()] = enough(np.mean(curves, axis=0), asked, share, len(means))


def enough(curves: Floats, asked: Sequence[int], share: float, facts: int) -> Estimate:
    """The smallest number of examples that reaches a share of the accuracy with the most.

    Its interval: the same number in the curves of subjects drawn anew, which follow the first.
    """
    value = first_reaching(curves[0], asked, share)
    others = (first_reaching(curve, asked, share) for curve in curves[1:])
    marks = [mark for mark in others if mark is not None]
    if value is None or not marks:
        return Estimate.not_measured()
    low, high = np.quantile(marks, [0.025, 0.975], method="inverted_cdf").tolist()
    return Estimate(value=value, low=min(low, value), high=max(high, value), n=facts)


def first_reaching(curve: Floats, asked: Sequence[int], share: float) -> float | None:
    """The smallest number of examples with enough accuracy; None where there is none at all."""
    if not curve[-1] > 0:
        return None
    # rounding must not keep out an accuracy that is exactly the share
    reached = curve >= share * curve[-1] - 1e-12
    return float(asked[int(np.argmax(reached))])


def _summary(choices: Choices, last: int, share: float) -> str:
    accuracy, mark = choices.value(ACCURACY, f"n.{last}"), choices.estimates[ENOUGH.at()].value
    first = f"With {last} examples the model chooses the right option for {accuracy:.1%} of facts"
    return (
        f"{first}." if mark is None else f"{first}; {share:.0%} of that is reached with {mark:.0f}."
    )


def _relation_table(choices: Choices, last: int, share: float) -> Table | None:
    relations = choices.asked.relations
    if len(relations) < 2:
        return None
    most = {each.relation.id: min(each.most, last) for each in choices.asked.shown}
    fields: list[Metric | Field[Relation]] = [
        Field("examples", lambda r: most[r.id], "count", "the most there are to show"),
        ACCURACY.under(f"n.{last}").named("accuracy", "with the most examples"),
        Field(
            "enough",
            lambda r: choices.estimates[ENOUGH.at(f"relation.{r.id}")],
            "number",
            f"examples that reach {share:.0%}",
        ),
    ]
    return by_relation(choices.estimates, relations, fields)


def _figure(choices: Choices, asked: Sequence[int], share: float) -> Curves:
    """The mean, and beside it each relation where these are few."""
    estimates, mark = choices.estimates, choices.estimates[ENOUGH.at()].value
    by_size = {float(n): ACCURACY.under(f"n.{n}") for n in asked}
    return Curves(
        id="accuracy-by-examples",
        title="Accuracy against the number of examples",
        x_axis="examples",
        y_axis="accuracy",
        curves=tuple(
            curve(name, ((n, estimates[metric.at(over)]) for n, metric in by_size.items()))
            for over, name in choices.series(FEW).items()
        ),
        x_kind="number",
        marks=((f"{share:.0%} with {mark:.0f}", mark),) if mark is not None else (),
        note=f"{WHISKERS} The dashed line: the fewest examples that reach {share:.0%} of the "
        "accuracy with the most.",
    )


def _findings(choices: Choices, asked: Sequence[int], share: float) -> Iterator[str]:
    mark, last = choices.estimates[ENOUGH.at()], asked[-1]
    if mark.value is None:
        yield f"With {last} examples nothing is right, so that no number of them is enough."
    else:
        ends = f" (for other facts {mark.low:.0f} to {mark.high:.0f})" if mark.high else ""
        yield (
            f"{share:.0%} of the accuracy with {last} examples is reached with "
            f"{mark.value:.0f}{ends}."
        )
    first, end = (choices.value(DEVIATION, f"n.{n}") for n in (asked[0], last))
    if not np.isnan(first + end) and len(asked) > 1:
        yield (
            f"Which examples are drawn moves the accuracy by {100 * first:.1f} points (standard "
            f"deviation) with {asked[0]}, by {100 * end:.1f} with {last}."
        )


COMPONENT = LkeShots
