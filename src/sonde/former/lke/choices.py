"""Choices between options as one judged frame, and the means of its columns.

IC-LKE, EIC-LKE and the studies share it: which fact, how it was asked, what was chosen, in the
dataset's order whatever the answers came in. Knows facts, options and answers, nothing of prompts
or tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from sonde.core.columns import Given, in_blocks
from sonde.core.errors import AbilityError, DataError
from sonde.core.facts import Relation, Template
from sonde.core.rated import RatedColumns
from sonde.core.reports import Estimate, Metric, Table
from sonde.metrics.estimates import RELATIONS, ByFact, Resampled, p_value, spread_of
from sonde.metrics.judged import Grid, Judged
from sonde.metrics.verdicts import Floats, Ints, Verdicts, correct_options, judge_options
from sonde.former.lke.asking import Asked
from sonde.former.lke.metrics import ACCURACY, DEVIATION, MASS, Kept, Mean, varied
from sonde.prompting.sequences import Separators
from sonde.reporting.build.tables import Field, Fields, table, titled

if TYPE_CHECKING:
    from polars import DataFrame


Way = Mapping[str, Any]
"""How something was asked: the relation and the keys of a row by name."""

Worded = Callable[[Way], Template]
"""A way of asking as a template."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Rows:
    """Judged rows to be averaged one by one, or first those of each unit, such as a fact.

    Units have an `owner`, the number of their relation, and a `subject`, their cluster; a row has
    the number of its unit as `pair`. The name of a mean over relations ends in `over`.
    """

    frame: DataFrame
    relations: Sequence[Relation]
    seed: int
    units: DataFrame | None = None
    over: str = RELATIONS

    @cached_property
    def by(self) -> ByFact:
        """The relation and the cluster of what is averaged."""
        units = self.frame if self.units is None else self.units
        owners, subjects = units["owner"].to_numpy(), units["subject"].to_numpy()
        return ByFact.of(self.relations, owners, subjects, self.seed)

    def values(self, value: str, kept: Kept | None = None) -> Floats:
        """What is averaged; nan where nothing is kept."""
        column: Floats = self.frame[value].cast(float).to_numpy()
        if kept is not None:
            column = np.where(kept, column, np.nan)
        if self.units is None:
            return column
        there, size = ~np.isnan(column), self.units.height
        pair = self.frame["pair"].to_numpy()[there]
        sums = np.bincount(pair, weights=column[there], minlength=size)
        with np.errstate(invalid="ignore"):
            means = sums / np.bincount(pair, minlength=size)
        # rounded, or equal means would seem to differ by their last digit
        return np.round(means, 12)

    def resampled(self, mean: Mean) -> Resampled:
        """The values behind a mean, by relation."""
        minus = None
        if mean.minus or mean.less is not None:
            other = mean.kept if mean.less is None else mean.less
            minus = self.values(mean.minus or mean.value, other)
        return self.by.resampled(self.values(mean.value, mean.kept), minus)

    def estimates(self, means: Iterable[Mean], also: str = "") -> Iterator[tuple[str, Estimate]]:
        """Every mean over relations, of each relation, and over all where `also` names that."""
        for mean in means:
            resampled = self.resampled(mean)
            yield mean.metric.at(self.over), resampled.mean_over_relations()
            if also:
                yield mean.metric.at(also), resampled.mean_over_facts()
            for id in self.by.ids if mean.each else ():
                yield mean.metric.at(f"relation.{id}"), resampled.relation(id)


Correct = Mapping[int, tuple[tuple[str, ...], ...]]
"""By the number of a fact, the names that count as right."""


class Judging:
    """Judges answers about facts that are numbered; what the facts are stands beside each."""

    def __init__(self, asked: Asked) -> None:
        self.facts = asked.facts
        items = dict(enumerate(asked.items))
        self._golds: Correct = {i: ((item.gold,),) for i, item in items.items()}
        self._options: Correct = {i: (item.options,) for i, item in items.items()}
        self._names: Correct = {i: (item.names,) for i, item in items.items() if item.names}

    def about(self, frame: DataFrame) -> DataFrame:
        """The rows of a frame with relations and facts, and what is known of each fact."""
        return frame.join(self.facts, on=["relation", "fact"], how="left", maintain_order="left")

    def choices(self, rows: DataFrame, answers: RatedColumns) -> DataFrame:
        """Some rows with what was chosen: `answer`, `right`, `tied`, `confidence`, `rank` and the
        log-probability of the right option, `gold_logprob`, with its probability, `mass`."""
        from polars import Series

        verdicts = self._verdicts(answers, rows["pair"].to_numpy())
        names = np.array([*verdicts.names, ""], dtype=object)
        return rows.with_columns(
            answer=Series(names[verdicts.answer].tolist()),
            right=Series(verdicts.rank == 1),
            tied=Series(verdicts.tied),
            confidence=Series(verdicts.confidence),
            rank=Series(verdicts.rank.astype(np.int64)),
            gold_logprob=Series(verdicts.gold_logprob),
            mass=Series(np.exp(verdicts.gold_logprob)),
        )

    def _verdicts(self, answers: RatedColumns, pair: Ints) -> Verdicts:
        """The choice is between usual names; where others are scored they only add to the mass."""
        if not self._names:
            return judge_options(answers, pair, self._golds)
        assert answers.options is not None
        usual = correct_options(answers, pair, self._options)
        bounds = np.append(0, np.cumsum(usual))[answers.bounds]
        kept = summed(answers.sums()[usual], bounds, answers.options[usual], answers.names)
        gold = judge_options(answers, pair, self._names).gold_logprob
        return replace(judge_options(kept, pair, self._golds), gold_logprob=gold)


def summed(values: Floats, bounds: Any, options: Any, names: Sequence[str]) -> RatedColumns:
    """Options whose log-probabilities are added up already."""
    tokens = np.arange(len(values) + 1)
    return RatedColumns(bounds=bounds, tokens=tokens, logps=values, names=names, options=options)


@dataclass(frozen=True, kw_only=True, eq=False)
class Choices:
    """Every choice of a run, and the numbers so far.

    A row of `frame` is a choice: the columns of `Asked.facts` and `Judging.choices`, and `keys`,
    those that tell how it was asked; `template` tells the same as a template.
    """

    asked: Asked
    keys: Sequence[str]
    template: Worded
    frame: DataFrame
    estimates: dict[str, Estimate] = field(default_factory=dict)

    @classmethod
    def of(
        cls, asked: Asked, parts: Iterable[DataFrame], keys: Sequence[str], template: Worded
    ) -> Choices:
        """Those that were judged; of two for the same fact and keys the later one counts."""
        frame = gathered(parts).unique(["pair", *keys], keep="last").sort("pair", *keys)
        return cls(asked=asked, keys=keys, template=template, frame=frame)

    @cached_property
    def by_choice(self) -> Rows:
        """Every choice for itself; those of a subject are a cluster."""
        seed = self.asked.dataset.selection.seed
        return Rows(frame=self.frame, relations=self.asked.relations, seed=seed)

    @cached_property
    def by_fact(self) -> Rows:
        """The choices of each fact together."""
        return replace(self.by_choice, units=self.asked.facts)

    def put(self, *means: Mean, also: str = "") -> None:
        """Add numbers that average facts."""
        self.estimates.update(self.by_fact.estimates(means, also))

    def p(self, kept: Kept, less: Kept, name: str) -> float:
        """Of the difference in accuracy between some choices and others, by a stream of a name."""
        resampled = self.by_fact.resampled(Mean(ACCURACY, kept=kept, less=less))
        return p_value(resampled.samples, resampled.seed, name)

    def vary(self, ways: Mapping[str, Kept], reference: str, difference: Metric) -> None:
        """Add what is told of each way of asking, by its place, and how it differs from one."""
        from polars import mean

        self.put(*varied(ways, reference, difference))
        for place, kept in ways.items():
            by_relation = self.frame.filter(kept).group_by("draw", "relation").agg(mean("right"))
            draws = by_relation.group_by("draw").agg(mean("right"))["right"]
            self.estimates[DEVIATION.at(place)] = spread_of(draws.sort().to_list())

    def at(self, metric: Metric, place: str) -> Estimate | None:
        """A number at a place: its mean over relations, else the only one there is."""
        mean = self.estimates.get(metric.at(f"{place}.{RELATIONS}"))
        return self.estimates.get(metric.at(place)) if mean is None else mean

    def value(self, metric: Metric, place: str) -> float:
        """The same without its interval; nan where it was not measured."""
        estimate = self.at(metric, place)
        return np.nan if estimate is None or estimate.value is None else estimate.value

    def by_way(
        self,
        head: Field[str],
        places: Mapping[str, str],
        difference: Metric,
        *more: Field[str],
        id: str,
        title: str,
    ) -> Table:
        """What is told of each way of asking that a study varies, found by its place."""
        accuracy = ACCURACY.named("accuracy", "mean over relations, facts and draws")
        deviation, mass = DEVIATION.without_interval(), MASS.detail()
        fields: Fields[str] = [head, accuracy, deviation, difference, mass, *more]
        return table(places, fields, lambda way, m: self.at(m, places[way]), id=id, title=title)

    def series(self, few: int) -> dict[str, str]:
        """What a figure shows: the mean over relations, and each relation where these are few.

        Names of series by how the names of their estimates end.
        """
        relations = self.asked.relations
        mean = {RELATIONS: "mean over relations" if len(relations) > 1 else "accuracy"}
        some = relations if 1 < len(relations) <= few else ()
        return mean | {f"relation.{r.id}": titled(r) for r in some}

    def counts(self, rows: str = "prompts") -> dict[str, int]:
        """How much was asked, and what there was too little of; `rows`: what a row is called."""
        scored = self.frame["rank"].is_not_null()
        return {
            "relations": self.frame["relation"].n_unique(),
            "facts": self.frame["pair"].n_unique(),
            rows: self.frame.height,
            "options": int(self.frame["offered"].filter(scored).sum()),
            "ties": int(self.frame["tied"].sum()),
            **self.asked.counts(),
        }

    @cached_property
    def judged(self) -> Judged:
        """Every choice as other analyses take it; each way of asking is a template."""
        relations = self.asked.relations
        return as_judged(self.frame, self.asked.facts, relations, self.keys, self.template)


def gathered(parts: Iterable[DataFrame]) -> DataFrame:
    """What was judged, block by block, in one frame; refuses where there is nothing."""
    from polars import concat

    blocks = list(parts)
    if not blocks:
        raise no_answers()
    return concat(blocks, how="diagonal_relaxed")


def no_answers() -> DataError:
    """The refusal to read a run without answers."""
    return DataError(
        "there are no answers to read: no prompt of the run was answered yet, or not all that "
        "belong to a fact; 'sonde run' with the same settings and folder goes on with it"
    )


def judge(asked: Asked, answered: Given, keys: Sequence[str], template: Worded) -> Choices:
    """Judge scored options, block by block; `keys` are the columns that tell how it was asked."""
    judging = Judging(asked)

    def blocks() -> Iterator[DataFrame]:
        for block in in_blocks(answered):
            if block.kind != "scored":
                raise AbilityError("in-context estimation reads scored options, not other answers")
            rows = judging.about(block.frame.select("relation", "fact", *keys))
            yield judging.choices(rows, block.rated)

    return Choices.of(asked, blocks(), keys, template)


def as_judged(
    frame: DataFrame,
    facts: DataFrame,
    relations: tuple[Relation, ...],
    keys: Sequence[str],
    template: Worded,
) -> Judged:
    """Judged rows as other analyses take them, with their keys.

    Each way of asking in a relation, which the keys tell, counts as a template of it.
    """
    keyed = frame.select("relation", "owner", *keys)
    ways = keyed.unique(maintain_order=True).with_row_index("way")
    way = keyed.join(ways, on=keyed.columns, how="left", maintain_order="left")["way"]
    answers = {name: code for code, name in enumerate(frame["answer"].unique(maintain_order=True))}
    confidence = frame["confidence"].cast(float).to_numpy()
    return Judged(
        grid=Grid(
            pair=frame["pair"].to_numpy(),
            template=way.to_numpy().astype(np.int64),
            name=np.zeros(frame.height, dtype=np.int64),
            right=frame["right"].to_numpy(),
            answer=np.array([answers[name] for name in frame["answer"]], dtype=np.int64),
            confidence=confidence,
            relations=facts["owner"].to_numpy(),
            template_relations=ways["owner"].to_numpy(),
        ),
        relations=relations,
        pairs=tuple(facts["fact"]),
        names=tuple((name,) for name in facts["name"]),
        objects=tuple(facts["object"]),
        templates=tuple(template(row) for row in ways.iter_rows(named=True)),
        answers=tuple(answers),
        way="scored",
        sure=confidence,
        rank=frame["rank"].fill_null(0).to_numpy(),
        gold_logprob=frame["gold_logprob"].cast(float).to_numpy(),
        abstained=(
            frame["abstained"].fill_null(value=False).to_numpy() if "abstained" in frame else None
        ),
        own=frame.select(key for key in keys if key != "template"),
    )


def worded(id: str, separators: Callable[[Way], Separators]) -> Worded:
    """Ways of asking as templates: the keys in an id, and how a fact is written behind examples."""

    def template(way: Way) -> Template:
        before, middle, after = separators(way).frame
        name = id.format(**way)
        return Template(id=name, text=f"{before}[X]{middle}[Y]{after}", group=name)

    return template
