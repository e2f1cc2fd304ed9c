"""lke-shots: how many examples does in-context estimation need?

Knows no model. The same facts with the same options are asked behind one, two, five … examples,
each time with several draws of examples. methods: accuracy against the number of examples with the
spread over draws, and the fewest examples that reach 95 % of the accuracy with the most.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from sonde.core.abilities import Ability, need
from sonde.core.columns import Given
from sonde.core.errors import UsageError
from sonde.core.facts import Dataset, Relation
from sonde.core.fingerprints import draw_key
from sonde.core.prompts import Prompt
from sonde.core.reports import Curves, Estimate, Metric, Report, Table
from sonde.core.settings import setting
from sonde.probes.lke.choices import Bools, Choices, Floats
from sonde.probes.lke.items import BETWEEN_HELP, INSIDE_HELP, OPTIONS_HELP, separators
from sonde.probes.lke.metrics import ACCURACY, DEVIATION, ENOUGH, LESS, MASS, SHOTS
from sonde.probes.lke.studies.study import (
    Shown,
    Study,
    after_examples,
    shown_relations,
)
from sonde.prompting.options import MANY
from sonde.reporting.build.figures import WHISKERS, curve
from sonde.reporting.build.parts import headline, shown
from sonde.reporting.build.tables import Field, by_relation, table
from sonde.stats.draws import resampled_sums

FEW = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class LkeShots:
    """Accuracy against the number of examples, and how many are enough."""

    name: ClassVar[str] = "lke-shots"

    n: tuple[int, ...] = setting(
        (1, 2, 5, 10, 20, 50), "how many examples to show, one number after the other"
    )
    seeds: int = setting(5, "how often to draw the examples", least=1)
    options: int = setting(MANY, OPTIONS_HELP, least=2)
    inside: str = setting(" ", INSIDE_HELP)
    between: str = setting(" ", BETWEEN_HELP)
    share: float = setting(
        0.95, "the mark: this share of the accuracy with the most examples", reads=True
    )

    def __post_init__(self) -> None:
        if not self.n or min(self.n) < 1:
            raise UsageError(f"setting n takes numbers of examples from 1 on, not {self.n}")
        if not 0 < self.share <= 1:
            raise UsageError(f"setting share must be above 0 and at most 1, not {self.share:g}")
        separators(self.inside, self.between)

    def suited(self, can: frozenset[Ability]) -> Self:
        """Any model that can score options will do."""
        need(self.name, can, "score")
        return self

    def ask(self, dataset: Dataset) -> Iterator[Prompt]:
        """Draw by draw, few examples first; prompts of a relation share their beginning."""
        relations, _ = shown_relations(dataset, self.options, self.seeds)
        chosen = separators(self.inside, self.between)
        for each in relations:
            for draw in range(self.seeds):
                for n in dict.fromkeys(min(n, each.most) for n in sizes(self.n, relations)):
                    yield from after_examples(each, n, chosen, self.name, shots=n, draw=draw)

    def read(self, dataset: Dataset, answered: Given) -> Report:
        """Judge every choice and average by number of examples."""
        study = Study.of(dataset, self.options, self.seeds, answered, ("shots", "draw"))
        asked = sizes(self.n, study.shown)
        _put_numbers(study, asked, self.share)
        return Report(
            title=f"Accuracy against the number of examples on {dataset.name}",
            summary=_summary(study, asked[-1], self.share),
            metrics=SHOTS,
            estimates=study.estimates,
            counts=study.counts(),
            headlines=(
                study.headline(f"n.{asked[-1]}", f"Accuracy with {asked[-1]} examples"),
                headline(ENOUGH, label=f"Examples that reach {self.share:.0%} of it"),
            ),
            tables=shown((_size_table(study, asked), *_relation_table(study, asked, self.share))),
            figures=shown((_figure(study, asked, self.share),)),
            findings=shown(
                (
                    *_findings(study, asked, self.share),
                    *study.lacking(max(self.n), self.options),
                )
            ),
            notes=(
                f"Every number of examples is asked with the same facts, options and {self.seeds} "
                "draws of examples; more examples are those of fewer and some after them.",
                "Intervals are 95 %: a bootstrap over subjects within relations, of each fact's "
                "mean over the draws. The deviation is between the accuracies of single draws.",
                "Ties count as wrong.",
            ),
        )


def sizes(wanted: Sequence[int], relations: Sequence[Shown]) -> tuple[int, ...]:
    """The numbers of examples that some relation reaches; larger ones become the largest there is.

    >>> sizes((1, 5, 50), [])
    (1, 5, 50)
    """
    most = max((each.most for each in relations), default=max(wanted))
    return tuple(sorted({min(n, most) for n in wanted}))


def _behind(choices: Choices, n: int) -> Bools:
    """Which choices are behind n examples, or behind all that their relation has."""
    shots, owners = choices.column("shots"), choices.asked.relation[choices.column("fact")]
    most = np.zeros(len(choices.asked.relations), dtype=np.int64)
    np.maximum.at(most, owners, shots)
    return np.asarray(shots == np.minimum(n, most[owners]))


def _put_numbers(study: Study, asked: Sequence[int], share: float) -> None:
    behind = {f"n.{n}": _behind(study.choices, n) for n in asked}
    study.put_varied(behind, f"n.{asked[-1]}", LESS)
    curves = dict(_resampled(study, list(behind.values())))
    facts = np.bincount(study.choices.asked.relation)
    every = np.mean(list(curves.values()), axis=0)
    study.estimates[ENOUGH.at()] = enough(every, asked, share, int(facts.sum()))
    for own, (relation, accuracies) in zip(facts, curves.items(), strict=True):
        mark = enough(accuracies, asked, share, int(own))
        study.estimates[ENOUGH.at(f"relation.{relation}")] = mark


def _resampled(study: Study, behind: Sequence[Bools]) -> Iterator[tuple[str, Floats]]:
    """By relation [1 + draws, sizes]: accuracies as they are, then with subjects drawn anew.

    All numbers of examples have the same subjects.
    """
    asked = study.choices.asked
    means = [study.choices.means("right", kept) for kept in behind]
    facts, values = means[0][0], [own for _, own in means]
    for number, relation in enumerate(asked.relations):
        part = asked.relation[facts] == number
        _, index = np.unique(asked.subject[facts[part]], return_inverse=True)
        sums = [np.bincount(index, weights=column[part]) for column in values]
        rows = np.column_stack([*sums, np.bincount(index)]).astype(np.float64)
        rng = np.random.default_rng(draw_key(study.seed, relation.id))
        totals = np.vstack([rows.sum(axis=0), resampled_sums(rows, rng)])
        yield relation.id, totals[:, :-1] / totals[:, -1:]


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


def _summary(study: Study, last: int, share: float) -> str:
    accuracy, mark = study.value(ACCURACY, f"n.{last}"), study.estimates[ENOUGH.at()].value
    if accuracy is None:
        return "No fact could be asked."
    first = f"With {last} examples the model chooses the right option for {accuracy:.1%} of facts"
    return (
        f"{first}." if mark is None else f"{first}; {share:.0%} of that is reached with {mark:.0f}."
    )


def _size_table(study: Study, asked: Sequence[int]) -> Table:
    fields: list[Metric | Field[int]] = [
        Field("examples", lambda n: n, "count"),
        ACCURACY.named("accuracy", "mean over relations, facts and draws"),
        DEVIATION.without_interval(),
        LESS.named(f"less than {asked[-1]}"),
        MASS.detail(),
    ]
    return table(
        asked,
        fields,
        lambda n, metric: study.at(metric, f"n.{n}"),
        id="by-examples",
        title="By number of examples",
    )


def _relation_table(study: Study, asked: Sequence[int], share: float) -> Iterator[Table]:
    if len(study.relations) < 2:
        return
    last, most = asked[-1], {each.relation.id: each.most for each in study.shown}
    fields: list[Metric | Field[Relation]] = [
        Field("examples", lambda r: min(most[r.id], last), "count", "the most there are to show"),
        ACCURACY.under(f"n.{last}").named("accuracy", "with the most examples"),
        Field(
            "enough",
            lambda r: study.estimates[ENOUGH.at(f"relation.{r.id}")],
            "number",
            f"examples that reach {share:.0%}",
        ),
    ]
    yield by_relation(study.estimates, study.relations, fields)


def _figure(study: Study, asked: Sequence[int], share: float) -> Curves:
    """The mean, and beside it each relation where these are few."""
    mark, by_size = study.estimates[ENOUGH.at()].value, {n: ACCURACY.under(f"n.{n}") for n in asked}
    return Curves(
        id="accuracy-by-examples",
        title="Accuracy against the number of examples",
        x_axis="examples",
        y_axis="accuracy",
        curves=tuple(
            curve(name, ((float(n), study.estimates[m.at(over)]) for n, m in by_size.items()))
            for over, name in study.series(FEW).items()
        ),
        x_kind="number",
        marks=((f"{share:.0%} with {mark:.0f}", mark),) if mark is not None else (),
        note=f"{WHISKERS} The dashed line: the fewest examples that reach {share:.0%} of the "
        "accuracy with the most.",
    )


def _findings(study: Study, asked: Sequence[int], share: float) -> Iterator[str]:
    mark, last = study.estimates[ENOUGH.at()], asked[-1]
    if mark.value is None:
        yield f"With {last} examples nothing is right, so that no number of them is enough."
    else:
        ends = f" (for other facts {mark.low:.0f} to {mark.high:.0f})" if mark.high else ""
        yield (
            f"{share:.0%} of the accuracy with {last} examples is reached with "
            f"{mark.value:.0f}{ends}."
        )
    first, end = (study.value(DEVIATION, f"n.{n}") for n in (asked[0], last))
    if first is not None and end is not None and len(asked) > 1:
        yield (
            f"Which examples are drawn moves the accuracy by {100 * first:.1f} points (standard "
            f"deviation) with {asked[0]}, by {100 * end:.1f} with {last}."
        )


COMPONENT = LkeShots
