"""What the studies of choices share: the same facts and options in every way of asking.

Knows facts, options and choices, nothing of what a study varies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sonde.core.columns import Given
from sonde.core.facts import Dataset, Fact, Relation
from sonde.core.prompts import Key, Prompt, Score, Want
from sonde.core.reports import Estimate, Headline, Metric
from sonde.metrics.estimates import Sample, p_value, spread_of
from sonde.probes.lke import choices
from sonde.probes.lke.choices import Asked, Choices, Kept
from sonde.probes.lke.items import Census, Item, OptionPool, refuse_nothing
from sonde.probes.lke.metrics import ABOVE, ACCURACY, DEVIATION, MAJORITY, MASS
from sonde.prompting.sequences import TRAIN, Line, Separators, asked, drawn, examples, line_of
from sonde.reporting.build.parts import headline
from sonde.reporting.build.tables import titled
from sonde.reporting.catalogue import RELATIONS

LISTED = 8
COMMONEST = "always the commonest option"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """The facts of a relation with their options, and its training facts in each draw's order."""

    relation: Relation
    items: tuple[Item, ...]
    draws: tuple[tuple[Line, ...], ...]

    @property
    def most(self) -> int:
        """How many examples there are to show."""
        return len(self.draws[0])

    def lines(self, item: Item, n: int, draw: int = 0) -> tuple[Line, ...]:
        """The examples of a draw that stand before a fact."""
        return examples(self.draws[draw], item.fact.subject, n)


def shown_relations(dataset: Dataset, options: int, draws: int) -> tuple[list[Shown], Census]:
    """Every relation with something to ask and something to show; refuses where none has."""
    census, kept, first = Census(), [], dataset.selection.seed
    for relation in dataset.asked_relations():
        # read once: a fact with its wrong options is long
        facts = [fact for fact in dataset.facts(relation.id) if fact.split == TRAIN]
        if not facts:
            census.without_training.append(relation.id)
            continue
        orders = (drawn(facts, first + draw) for draw in range(draws))
        lines = tuple(tuple(map(line_of, order)) for order in orders)
        items = tuple(OptionPool(dataset, relation.id, options).items(census))
        if items:
            kept.append(Shown(relation=relation, items=items, draws=lines))
    if not kept:
        refuse_nothing(dataset, census)
    return kept, census


def after_examples(
    shown: Shown, n: int, written: Separators, template: str, **own: Any
) -> Iterator[Prompt]:
    """Every fact of a relation behind n examples of a draw, its options to be scored."""
    for item in shown.items:
        lines = shown.lines(item, n, own.get("draw", 0))
        prefix = asked(lines, item.fact.subject.name, written)
        yield prompt(item.fact, prefix, Score(options=item.options), template, **own)


def prompt(
    fact: Fact, prefix: str, want: Want, template: str, suffix: str = "", **own: Any
) -> Prompt:
    """A prompt about a fact; `own` tells how it is asked."""
    key = Key(fact=fact.id, relation=fact.relation, template=template, subject=fact.subject.name)
    return Prompt(key=key, prefix=prefix, suffix=suffix, want=want, own=own)


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """What a study asked, what was chosen, and the numbers so far.

    A number stands under a metric and a place, such as `n.5`.
    """

    dataset: Dataset
    shown: Sequence[Shown]
    census: Census
    choices: Choices
    estimates: dict[str, Estimate] = field(default_factory=dict)

    @classmethod
    def of(
        cls, dataset: Dataset, options: int, draws: int, answered: Given, keys: Sequence[str]
    ) -> Study:
        """Judge all that was scored."""
        shown, census = shown_relations(dataset, options, draws)
        found = choices.judge(asked_of(dataset, shown), answered, keys)
        return cls(dataset=dataset, shown=shown, census=census, choices=found)

    @property
    def seed(self) -> int:
        """Of the draws of intervals and tests."""
        return self.dataset.selection.seed

    @property
    def relations(self) -> tuple[Relation, ...]:
        """Those that were asked."""
        return self.choices.asked.relations

    def samples(
        self, kept: Kept, less: Kept | None = None, value: str = "right"
    ) -> dict[str, Sample]:
        """The mean of each fact over the choices kept, less that over others."""
        minus = None if less is None else self.choices.means(value, less)
        return self.choices.samples(self.choices.means(value, kept), minus)

    def put(
        self, metric: Metric, place: str, kept: Kept, less: Kept | None = None, value: str = "right"
    ) -> None:
        """Add a number over the choices kept, or its difference to that over others."""
        samples = self.samples(kept, less, value)
        choices.put(self.estimates, metric, samples, self.seed, place)

    def put_varied(self, kept: Mapping[str, Kept], reference: str, difference: Metric) -> None:
        """Add what is told of each place of what a study varies, and how it differs from one."""
        for place, own in kept.items():
            self.put(ACCURACY, place, own)
            self.put(MASS, place, own, value="mass")
            self.put_deviation(place, own)
            if place != reference:
                self.put(difference, place, own, less=kept[reference])
        self.put_control(kept[reference])

    def headline(self, place: str, label: str) -> Headline:
        """The accuracy at a place beside the control."""
        return headline(
            ACCURACY.under(place).named(label),
            RELATIONS,
            control=MAJORITY,
            above=ABOVE,
            control_label=COMMONEST,
        )

    def put_control(self, kept: Kept) -> None:
        """Add what always choosing the commonest option reaches, and how far above it some are."""
        right, control = (self.choices.means(value, kept) for value in ("right", "control"))
        for metric, pair in ((MAJORITY, (control, None)), (ABOVE, (right, control))):
            choices.put(self.estimates, metric, self.choices.samples(*pair), self.seed)

    def put_deviation(self, place: str, kept: Kept) -> None:
        """Add how far the accuracies of single draws lie apart."""
        from polars import mean

        by_relation = self.choices.frame.filter(kept).group_by("draw", "relation")
        means = by_relation.agg(mean("right")).group_by("draw").agg(mean("right"))["right"]
        self.estimates[DEVIATION.at(place)] = spread_of(means.sort().to_list())

    def at(self, metric: Metric, place: str) -> Estimate | None:
        """A number at a place: its mean over relations, else the only one there is."""
        mean = self.estimates.get(metric.at(f"{place}.{RELATIONS}"))
        return self.estimates.get(metric.at(place)) if mean is None else mean

    def value(self, metric: Metric, place: str) -> float | None:
        """The same without its interval."""
        estimate = self.at(metric, place)
        return estimate.value if estimate else None

    def p(self, kept: Kept, less: Kept, name: str) -> float:
        """Of the difference in accuracy between some choices and others, by a stream of a name."""
        return p_value(self.samples(kept, less), self.seed, name)

    def series(self, few: int) -> dict[str, str]:
        """What a figure shows: the mean over relations, and each relation where these are few.

        Names of series by how the names of their estimates end.
        """
        mean = {RELATIONS: "mean over relations" if len(self.relations) > 1 else "accuracy"}
        some = self.relations if 1 < len(self.relations) <= few else ()
        return mean | {f"relation.{r.id}": titled(r) for r in some}

    def counts(self) -> dict[str, int]:
        """What every study of choices counts."""
        return {
            "relations": len(self.shown),
            "facts": len(self.choices.asked.items),
            "prompts": self.choices.frame.height,
            "ties": int(self.choices.frame["tied"].sum()),
            "relations_without_training": len(self.census.without_training),
            "facts_fewer_options": self.census.fewer_options,
            "facts_without_options": self.census.without_options,
        }

    def lacking(self, wanted: int, options: int) -> Iterator[str]:
        """What there was less of than was asked for."""
        if short := {s.relation.id: s.most for s in self.shown if s.most < wanted}:
            yield f"Fewer than {wanted} training facts to show: {numbered(short)}."
        yield self.census.few_options(options)
        if self.census.without_training:
            names = ", ".join(self.census.without_training[:LISTED])
            yield f"Left out, having no training facts to show: {names}."


def asked_of(dataset: Dataset, shown: Sequence[Shown]) -> Asked:
    """The facts of some relations, numbered."""
    items = (item for s in shown for item in s.items)
    return Asked.of(dataset, [s.relation for s in shown], items, by_id=True)


def numbered(numbers: Mapping[str, int]) -> str:
    """Some relations with a number each, the first few of them.

    >>> numbered({"P36": 50, "P30": 12})
    'P36 50, P30 12'
    """
    words = ", ".join(f"{id} {number}" for id, number in list(numbers.items())[:LISTED])
    more = len(numbers) - LISTED
    return f"{words} and {more} more relations" if more > 0 else words
