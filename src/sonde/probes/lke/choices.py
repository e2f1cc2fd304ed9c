"""Choices between options in columns, in the dataset's order whatever they came in.

One frame for IC-LKE, EIC-LKE and the studies: which fact, how it was asked, what was chosen. Knows
facts, options and answers, nothing of prompts or tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sonde.core.columns import Given, RatedColumns, in_blocks
from sonde.core.errors import AbilityError
from sonde.core.facts import Dataset, Relation, Template, commonest_objects
from sonde.core.reports import Estimate, Metric
from sonde.metrics.estimates import Resampled, Sample
from sonde.metrics.grid import Grid
from sonde.metrics.judged import Judged
from sonde.metrics.verdicts import Verdicts, correct_options, judge_options
from sonde.probes.lke.items import Item
from sonde.prompting.sequences import Separators
from sonde.reporting.catalogue import RELATIONS

if TYPE_CHECKING:
    from polars import DataFrame, Series

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

Kept: TypeAlias = "Bools | Series"
"""Which choices count: a truth for each."""

Correct = Mapping[int, tuple[tuple[str, ...], ...]]
"""By the number of a fact, the names that count as right."""

Values = tuple[Ints, Floats]
"""Numbers of facts, and a value for each."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Asked:
    """The facts that are asked about, numbered in the dataset's order, of some relations.

    `relation` is that of each fact, by its place in `relations`; facts with the same `subject` have
    the same. `control`: whether the commonest of its options is right. `majority` is each
    relation's commonest object.
    """

    relations: tuple[Relation, ...]
    items: tuple[Item, ...]
    relation: Ints
    subject: Ints
    control: Bools
    majority: tuple[str, ...]

    @classmethod
    def of(
        cls,
        dataset: Dataset,
        relations: Sequence[Relation],
        items: Iterable[Item],
        *,
        by_id: bool = False,
    ) -> Asked:
        """Number facts and subjects, these as they come or in the order of their ids."""
        items, places = tuple(items), {r.id: i for i, r in enumerate(relations)}
        common = [commonest_objects(dataset.split_frame(r.id)) for r in relations]
        ranks = [{name: i for i, (name, _) in enumerate(objects)} for objects in common]
        relation = [places[item.fact.relation] for item in items]
        keys = [(item.fact.relation, item.fact.subject.id) for item in items]
        distinct = dict.fromkeys(sorted(keys) if by_id else keys)
        subjects = {key: number for number, key in enumerate(distinct)}
        guesses = (
            min(item.options, key=lambda name: ranks[r].get(name, len(ranks[r])))
            for item, r in zip(items, relation, strict=True)
        )
        control = [g == item.gold for g, item in zip(guesses, items, strict=True)]
        return cls(
            relations=tuple(relations),
            items=items,
            relation=np.array(relation, dtype=np.int64),
            subject=np.array([subjects[key] for key in keys], dtype=np.int64),
            control=np.array(control, dtype=np.bool_),
            majority=tuple(next(iter(names), "") for names in ranks),
        )

    @cached_property
    def _places(self) -> DataFrame:
        from polars import DataFrame

        facts = [(item.fact.relation, item.fact.id) for item in self.items]
        names = DataFrame(facts, schema=["relation", "fact"], orient="row")
        return names.with_row_index("number")

    def numbers(self, frame: DataFrame) -> Ints:
        """The number of the fact in each row of a frame with relations and facts."""
        keys = ["relation", "fact"]
        joined = frame.select(keys).join(self._places, on=keys, how="left", maintain_order="left")
        return joined["number"].to_numpy().astype(np.int64)

    @cached_property
    def _golds(self) -> Correct:
        return {i: ((item.gold,),) for i, item in enumerate(self.items)}

    @cached_property
    def _spelled(self) -> tuple[Correct, Correct] | None:
        """The options of each fact and the names of the right one, where all names are scored."""
        if not any(item.names for item in self.items):
            return None
        options = {i: (item.options,) for i, item in enumerate(self.items)}
        return options, {i: (item.names,) for i, item in enumerate(self.items)}

    def judged(self, answers: RatedColumns, fact: Ints) -> DataFrame:
        """A choice of each answer about the fact of that number."""
        from polars import DataFrame

        verdicts = self._verdicts(answers, fact)
        names = np.array([*verdicts.names, ""], dtype=object)
        return DataFrame(
            {
                "fact": fact.astype(np.int64),
                "right": verdicts.rank == 1,
                "tied": verdicts.tied,
                "sure": verdicts.confidence,
                "mass": np.exp(verdicts.gold),
                "rank": verdicts.rank.astype(np.int64),
                "chosen": names[verdicts.answer].tolist(),
            }
        )

    def _verdicts(self, answers: RatedColumns, fact: Ints) -> Verdicts:
        """The choice is between usual names; where others are scored they only add to the mass."""
        if self._spelled is None:
            return judge_options(answers, fact, self._golds)
        assert answers.options is not None
        options, names = self._spelled
        usual = correct_options(answers, fact, options)
        bounds = np.append(0, np.cumsum(usual))[answers.bounds]
        kept = summed(answers.sums()[usual], bounds, answers.options[usual], answers.names)
        gold = judge_options(answers, fact, names).gold
        return replace(judge_options(kept, fact, self._golds), gold=gold)


def summed(values: Floats, bounds: Any, options: Any, names: Sequence[str]) -> RatedColumns:
    """Options whose log-probabilities are added up already."""
    tokens = np.arange(len(values) + 1)
    return RatedColumns(bounds=bounds, tokens=tokens, logps=values, names=names, options=options)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Choices:
    """Every choice of a run: a row of `frame` each.

    Its columns: `fact` by its number, `relation` by its id, what tells how it was asked; `right`,
    `tied`, `sure` (the probability of the `chosen` option among all), `mass` and `rank` of the
    right one; `control` and how many options were `offered`.
    """

    asked: Asked
    frame: DataFrame

    @classmethod
    def of(cls, asked: Asked, judged: Iterable[DataFrame], keys: Sequence[str]) -> Choices:
        """Those that were judged; of two for the same fact and keys the later one counts."""
        import polars

        types = {"fact": polars.Int64, "right": polars.Boolean, "tied": polars.Boolean}
        types |= dict.fromkeys(("sure", "mass"), polars.Float64)
        types |= {"rank": polars.Int64, "chosen": polars.String} | dict.fromkeys(keys, polars.Null)
        empty = polars.DataFrame(schema=types)
        frame = polars.concat([empty, *judged], how="diagonal_relaxed")
        if frame.height:
            frame = frame.unique(["fact", *keys], keep="last").sort("fact", *keys)
        fact = frame["fact"].to_numpy()
        ids = np.array([r.id for r in asked.relations], dtype=object)
        offered = np.array([len(item.options) for item in asked.items], dtype=np.int64)
        columns = {
            "relation": polars.Series(ids[asked.relation[fact]].tolist(), dtype=polars.String),
            "control": asked.control[fact],
            "offered": offered[fact],
        }
        return cls(asked=asked, frame=frame.with_columns(**columns))

    def column(self, name: str) -> NDArray[Any]:
        """One of the columns."""
        return self.frame[name].to_numpy()

    def means(self, value: str = "right", kept: Kept | None = None) -> Values:
        """The mean of each fact over the choices that count."""
        facts, values = self.each(value, kept)
        distinct, index = np.unique(facts, return_inverse=True)
        means = np.bincount(index, weights=values) / np.bincount(index)
        # rounded, or equal means would seem to differ by their last digit
        return distinct, np.round(means, 12)

    def each(self, value: str = "right", kept: Kept | None = None) -> Values:
        """The value of every choice that counts."""
        frame = self.frame if kept is None else self.frame.filter(kept)
        return frame["fact"].to_numpy(), frame[value].to_numpy().astype(np.float64)

    def samples(self, own: Values, minus: Values | None = None) -> dict[str, Sample]:
        """By relation, or the difference to others on the same facts; those of a subject go
        together."""
        if minus is not None:
            common, first, second = np.intersect1d(own[0], minus[0], return_indices=True)
            own, minus = (common, own[1][first]), (common, minus[1][second])
        owners = self.asked.relation[own[0]]
        parts = ((r.id, owners == number) for number, r in enumerate(self.asked.relations))
        return {
            id: Sample(
                values=own[1][part],
                clusters=self.asked.subject[own[0][part]],
                minus=None if minus is None else minus[1][part],
            )
            for id, part in parts
        }

    def counts(self) -> dict[str, int]:
        """How much was asked."""
        return {
            "relations": self.frame["relation"].n_unique(),
            "facts": self.frame["fact"].n_unique(),
            "choices": self.frame.height,
            "options": int(self.column("offered").sum()),
            "ties": int(self.column("tied").sum()),
        }


def judge(asked: Asked, answered: Given, keys: Sequence[str]) -> Choices:
    """Judge scored options, block by block; `keys` are the columns that tell how it was asked."""

    def blocks() -> Iterable[DataFrame]:
        for block in in_blocks(answered):
            if block.kind != "scored":
                raise AbilityError("in-context estimation reads scored options, not other answers")
            yield asked.judged(block.rated, asked.numbers(block.frame)).hstack(
                block.frame.select(keys)
            )

    return Choices.of(asked, blocks(), keys)


def put(
    estimates: dict[str, Estimate],
    metric: Metric,
    samples: dict[str, Sample],
    seed: int,
    place: str = "",
    also: str = "",
) -> None:
    """Add the mean over relations, each relation's own, and, where there is `also`, that of all."""
    resampled, head = Resampled(samples, seed), f"{place}." if place else ""
    estimates[metric.at(head + RELATIONS)] = resampled.mean_over_relations()
    if also:
        estimates[metric.at(head + also)] = resampled.mean_over_facts()
    for relation in samples:
        estimates[metric.at(f"{head}relation.{relation}")] = resampled.relation(relation)


def as_judged(choices: Choices, seeds: Sequence[int], separators: Separators) -> Judged:
    """The choices as other analyses take them; every draw of examples counts as a template.

    It has the same name in every probe of this kind, so that these can be set side by side.
    """
    asked, column = choices.asked, choices.column
    before, middle, after = separators.frame
    text = f"{before}[X]{middle}[Y]{after}"
    codes: dict[str, int] = {}
    answer = [codes.setdefault(name, len(codes)) for name in choices.frame["chosen"]]
    owners, sure = asked.relation[column("fact")], column("sure")
    with np.errstate(divide="ignore"):
        gold = np.log(column("mass"))
    return Judged(
        grid=Grid(
            pair=column("fact"),
            template=owners * len(seeds) + column("seed") - seeds[0],
            name=np.zeros(len(owners), dtype=np.int64),
            right=column("right"),
            answer=np.array(answer, dtype=np.int64),
            confidence=sure,
            relations=asked.relation,
            template_relations=np.repeat(np.arange(len(asked.relations)), len(seeds)),
        ),
        relations=asked.relations,
        pairs=tuple(item.fact.id for item in asked.items),
        names=tuple((item.fact.subject.name,) for item in asked.items),
        templates=tuple(
            Template(id=f"lke-{seed}", text=text, group=f"lke-{seed}")
            for _ in asked.relations
            for seed in seeds
        ),
        answers=tuple(codes),
        way="scored",
        sure=sure,
        rank=column("rank"),
        gold=gold,
    )
