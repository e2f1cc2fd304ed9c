"""Judged prompts as columns, a row each: what every multi-prompt metric is computed from.

A `Grid` is numbers alone; a `Judged` says what they are called. Nothing here knows how prompts were
put, answered or stored.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from sonde.core.columns import Given
from sonde.core.facts import ANSWER_SLOT, SUBJECT_SLOT, Dataset, Fact, Relation, Template
from sonde.core.fingerprints import draw_key
from sonde.core.reports import Estimate
from sonde.metrics.estimates import Resampled, Sample, samples_of
from sonde.metrics.grid import Block as Block
from sonde.metrics.grid import Bools as Bools
from sonde.metrics.grid import Floats as Floats
from sonde.metrics.grid import Grid as Grid
from sonde.metrics.grid import Ints as Ints
from sonde.stats.intervals import percentile_interval, resampled_at_once

if TYPE_CHECKING:
    from polars import DataFrame, Series


def mean_over_pairs(values: Floats, grid: Grid, seed: int) -> Estimate:
    """Mean of one value per pair; nan is left out and not counted.

    The interval is the bootstrap over subjects within their relation; the relations stay.
    """
    return Resampled(grid_samples(grid, values), seed).mean_over_facts()


def grid_samples(grid: Grid, values: Floats, minus: Floats | None = None) -> dict[str, Sample]:
    """One value per pair of a grid, less `minus`, by the relation's stream; nan is left out."""
    kept = ~np.isnan(values)
    return samples_of(
        values[kept],
        grid.relations[kept],
        None if minus is None else minus[kept],
        clusters=None if grid.subjects is None else grid.subjects[kept],
        ids=grid.ids or None,
    )


def around(value: float, draws: Floats, n: int) -> Estimate:
    """An estimate with the middle 95 % of its bootstrap, which always holds the value itself."""
    low, high = percentile_interval(draws)
    return Estimate(value=value, low=min(low, value), high=max(high, value), n=n)


def stream(seed: int, name: str) -> np.random.Generator:
    """Random numbers that depend on a seed and a name alone."""
    return np.random.default_rng(draw_key(seed, name))


def resampled_in(
    name: str, columns: Sequence[Floats], seed: int, subjects: Sequence[Ints] | None = None
) -> list[Floats]:
    """Sums of columns [pairs, k] when pairs of a relation are drawn anew; [draws, k] each.

    `subjects` of the pairs of each column: pairs of one subject are drawn together, and the sums
    are scaled to the number of pairs, which differs between draws of subjects.
    """
    if subjects is None:
        return resampled_at_once(columns, lambda: stream(seed, name))
    counted = (np.column_stack([column, np.ones(len(column))]) for column in columns)
    sums = [by_subject(column, of) for column, of in zip(counted, subjects, strict=True)]
    drawn = resampled_at_once(sums, lambda: stream(seed, name))
    return [
        of[:, :-1] * (len(column) / of[:, -1:]) for of, column in zip(drawn, columns, strict=True)
    ]


def by_subject(columns: Floats, subjects: Ints) -> Floats:
    """What each subject adds to the sums of columns [facts, k]; [subjects, k]."""
    numbers, index = np.unique(subjects, return_inverse=True)
    sums = np.zeros((len(numbers), columns.shape[1]))
    np.add.at(sums, index, columns)
    return sums


AnswerKind = Literal["filled", "scored", "written"]

Says = Callable[[str, Collection[str], int], bool]
"""Whether an answer, under a template by its number, says one of some names."""

FACT_COLUMNS = (
    *("relation", "subject", "gold", "answer", "verdict"),
    *("rank", "confidence", "right", "prompts", "fact"),
)
VERDICTS = ("right", "wrong", "empty", "abstained")
OTHERS = ("abstained", "own")
COLUMNS = ("rank", "gold_logprob", "sure", "helped", "compared", "words", "guessable")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Judged:
    """The grid of a run, and per row what else was measured; None where a probe measures none.

    `relations[r]`, `pairs[p]` (the id of the pair's first fact), `templates[t]` and `answers[a]`
    say what the numbers of the grid mean; `names[p]` are the names of the pair's subject, the usual
    one first, `objects[p]` what is right for it, in words. `way`: how the model answered.
    `matches`: whether two different answers say the same; without it only equal ones do. `says`:
    whether an answer says one of some names, as the probe judges it; without it, if it is one.

    Columns, one entry per row of the grid. sure: the probability of the answer where it is one
    token (of one option among all where options were scored), else nan. rank of the best correct
    name. gold_logprob of all correct names together. helped of compared: added object
    names that were likelier than the usual one. words: how many words the answer has, nan where
    they cannot be counted.
    guessable: whether the answer can be guessed from the subject's name, by the filter of the run.
    abstained: whether a written answer that is not right says that the model does not know.
    `own` has what else tells the probe's prompts apart, such as the draw of examples.
    """

    grid: Grid
    relations: tuple[Relation, ...]
    pairs: tuple[str, ...]
    templates: tuple[Template, ...]
    answers: tuple[str, ...]
    way: AnswerKind
    sure: Floats
    names: tuple[tuple[str, ...], ...] = ()
    objects: tuple[str, ...] = ()
    matches: Callable[[str, str], bool] | None = None
    says: Says | None = None
    rank: Ints | None = None
    gold_logprob: Floats | None = None
    helped: Ints | None = None
    compared: Ints | None = None
    words: Floats | None = None
    guessable: Bools | None = None
    abstained: Bools | None = None
    own: DataFrame | None = None

    def __post_init__(self) -> None:
        for name in (*COLUMNS, *OTHERS):
            column = getattr(self, name)
            if column is not None and len(column) != len(self.grid):
                raise ValueError(f"{name} has {len(column)} entries for {len(self.grid)} prompts")

    def __repr__(self) -> str:
        sizes = f"{len(self.grid):,} prompts about {len(self.pairs):,} facts"
        return f"<Judged: {sizes}, {self.way}>"

    def asked_about(self) -> set[tuple[str, str]]:
        """The relation and the first fact of every pair that has a prompt."""
        owners = self.grid.relations
        return {(self.relations[owners[p]].id, self.pairs[p]) for p in np.unique(self.grid.pair)}

    def rows(self, chosen: Ints) -> Judged:
        """The same with some of its prompts, in the order chosen."""
        columns: dict[str, Any] = {name: getattr(self, name) for name in (*COLUMNS, *OTHERS)}
        kept: dict[str, Any] = {n: c if c is None else c[chosen] for n, c in columns.items()}
        return replace(self, grid=self.grid.rows(chosen), **kept)

    def frame(self) -> DataFrame:
        """A row for each prompt: what it asked about, what was answered, how that was judged.

        What was not measured is null. `prompt` is the template filled with the subject's name; what
        a probe puts before it is not in it.
        """
        import polars
        from polars import col

        grid = self.grid
        named: dict[str, tuple[Any, Ints]] = {
            "relation": ([r.id for r in self.relations], grid.relations[grid.pair]),
            "fact": (self.pairs, grid.pair),
            "template": ([t.id for t in self.templates], grid.template),
            "name": self._names(),
            "prompt": ([t.text for t in self.templates], grid.template),
            "answer": (self.answers, grid.answer),
        }
        texts = {
            name: polars.Series(values, dtype=polars.String).gather(numbers)
            for name, (values, numbers) in named.items()
        }
        own = {n: c for n in COLUMNS if (c := getattr(self, n)) is not None}
        if self.sure is grid.confidence:
            own.pop("sure")
        missing = np.full(len(grid), np.nan)
        measured = {"confidence": grid.confidence, "gold_logprob": missing, "rank": missing} | own
        frame = polars.DataFrame(
            {"pair": grid.pair, **texts, "right": grid.right, **measured}, nan_to_null=True
        )
        if self.own is not None:
            frame = frame.hstack(self.own)
        prompt = col("prompt").str.replace(ANSWER_SLOT, "___", literal=True)
        prompt = prompt.str.replace(SUBJECT_SLOT, col("name"), literal=True)
        rank = col("rank").cast(polars.Int64)
        order = (
            *("relation", "pair", "fact", "template", "name", "prompt"),
            *("answer", "right", "verdict", "rank", "confidence", "gold_logprob"),
        )
        return frame.with_columns(
            prompt,
            col("gold_logprob").cast(polars.Float64),
            polars.when(rank > 0).then(rank).alias("rank"),
            verdict=self.verdicts(),
        ).select(*order, polars.exclude(order))

    def facts(self) -> DataFrame:
        """A row for each pair: what is right for it, what was answered, and how its prompts did.

        Its answer is the commonest, of several the first by name, with its verdict; `right` is the
        share of its prompts, `rank` their median and `confidence` their mean.
        """
        import polars
        from polars import col

        objects = polars.Series(self.objects or [None] * len(self.pairs), dtype=polars.String)
        prompts = self.frame().with_columns(gold=objects.gather(self.grid.pair))
        verdict = col("verdict").mode().sort().first()
        counts = prompts.group_by("pair", "answer").agg(polars.len(), verdict)
        answers = counts.sort("len", "answer", descending=[True, False])
        return (
            prompts.group_by("pair", maintain_order=True)
            .agg(
                col("relation", "fact", "gold").first(),
                col("name").first().alias("subject"),
                col("right").len().alias("prompts"),
                col("right", "confidence").mean(),
                col("rank").median(),
            )
            .join(answers.unique("pair", keep="first", maintain_order=True), on="pair", how="left")
            .select(FACT_COLUMNS)
        )

    def verdicts(self) -> Series:
        """How each answer did, in a word; that nothing was said is told of written answers."""
        from polars import Series

        codes = np.where(self.grid.right, 0, 1)
        codes[self.empty] = 2
        if self.abstained is not None:
            codes[self.abstained] = 3
        return Series("verdict", VERDICTS).gather(codes)

    @property
    def empty(self) -> Bools:
        """Which of the answers were to be written and are empty."""
        if self.abstained is None:
            return np.zeros(len(self.grid), dtype=np.bool_)
        nothing = np.array([not answer for answer in self.answers], dtype=np.bool_)
        return np.asarray(nothing[self.grid.answer] & ~self.grid.right)

    def _names(self) -> tuple[list[str | None], Ints]:
        """All names of subjects one after the other, and which of them each prompt has."""
        if not self.names:
            return [None], np.zeros(len(self.grid), dtype=np.int64)
        sizes = np.array([len(names) for names in self.names])
        first = np.cumsum(sizes) - sizes
        return [name for own in self.names for name in own], first[self.grid.pair] + self.grid.name


def in_words(names: Iterable[str]) -> str:
    """Names of objects as one text."""
    return ", ".join(names)


KINDS: Mapping[str, Any] = {
    **dict.fromkeys(("pair", "template", "answer", "rank"), np.int64),
    **dict.fromkeys(("confidence", "gold_logprob"), np.float64),
    "tied": np.bool_,
}
"""What is kept of each prompt about a fact."""


class Rows:
    """Columns of judged prompts, to which some are added at a time, whatever order they come in.

    They grow in place: parts that are joined in the end would be there twice.
    """

    def __init__(self, *keys: str, kinds: Mapping[str, Any] = KINDS) -> None:
        self._keys, self._count = keys, 0
        self._columns = {name: np.empty(0, dtype=kind) for name, kind in kinds.items()}

    def add(self, columns: Mapping[str, NDArray[Any]]) -> None:
        """Some rows more."""
        start, self._count = self._count, self._count + len(columns[self._keys[0]])
        for name, column in self._columns.items():
            if len(column) < self._count:
                grown = np.empty(self._count + self._count // 2, dtype=column.dtype)
                grown[:start] = column[:start]
                self._columns[name] = column = grown
            column[start : self._count] = columns[name]

    def whole(self) -> dict[str, NDArray[Any]]:
        """Every row, once, by its keys; of those with equal ones the last. To be called once."""
        columns = {name: column[: self._count] for name, column in self._columns.items()}
        self._columns.clear()
        key = columns[self._keys[0]].astype(np.int64)
        for name in self._keys[1:]:
            key = key * (int(columns[name].max(initial=0)) + 1) + columns[name]
        if (key[1:] > key[:-1]).all():
            return columns
        order = np.argsort(key, kind="stable")
        last = np.append(np.diff(key[order]) != 0, True)[: len(order)]
        return {name: columns.pop(name)[order[last]] for name in [*columns]}


def judge_facts(
    columns: Mapping[str, NDArray[Any]],
    facts: DataFrame,
    *,
    relations: Sequence[Relation],
    owners: Ints,
    templates: Sequence[Sequence[Template]],
    answers: Sequence[str],
    way: AnswerKind,
    guessable: Bools | None = None,
) -> Judged:
    """Verdicts on facts, each asked about by its usual name, as other analyses take them.

    `columns`: pair (the fact's number), template, answer, rank, confidence, gold_logprob.
    `owners`: the number of each fact's relation; `templates` of each relation.
    """
    names: list[list[list[str]]] = facts["object_names"].to_list()
    return Judged(
        grid=Grid(
            pair=columns["pair"],
            template=columns["template"],
            answer=columns["answer"],
            confidence=columns["confidence"],
            name=np.zeros(len(columns["pair"]), dtype=np.int64),
            right=columns["rank"] == 1,
            relations=owners,
            template_relations=np.repeat(np.arange(len(templates)), [*map(len, templates)]),
        ),
        relations=tuple(relations),
        pairs=tuple(facts["fact"].to_list()),
        names=tuple((name,) for name in facts["subject"].to_list()),
        objects=tuple(in_words(own[0] for own in of) for of in names),
        templates=tuple(template for own in templates for template in own),
        answers=tuple(answers),
        way=way,
        sure=columns["confidence"],
        rank=columns["rank"],
        gold_logprob=columns["gold_logprob"],
        guessable=guessable,
    )


def judge_texts(
    prompts: DataFrame,
    *,
    relations: Sequence[Relation],
    facts: Sequence[Fact],
    relation: Ints,
    templates: Sequence[Sequence[Template]],
    says: Says | None = None,
) -> Judged:
    """Written answers as other analyses take them; nothing is known of their confidence.

    `prompts` has the columns fact, template (its place among those of its relation), said, right
    and abstained, the prompts of a fact one after the other. `relation`: the number of each fact's.
    """
    from polars import Boolean, Int64, String

    prompts = prompts.cast({"fact": Int64, "template": Int64, "said": String})
    prompts = prompts.cast({"right": Boolean, "abstained": Boolean})
    sizes = np.array([len(each) for each in templates], dtype=np.int64)
    pair, answers = prompts["fact"].to_numpy(), prompts["said"].unique().sort()
    numbers = {text: number for number, text in enumerate(answers.to_list())}
    unknown = np.full(len(pair), np.nan)
    return Judged(
        grid=Grid(
            pair=pair,
            template=(np.cumsum(sizes) - sizes)[relation[pair]] + prompts["template"].to_numpy(),
            name=np.zeros(len(pair), dtype=np.int64),
            right=prompts["right"].to_numpy(),
            answer=np.array([numbers[text] for text in prompts["said"]], dtype=np.int64),
            confidence=unknown,
            relations=relation,
            template_relations=np.repeat(np.arange(len(sizes)), sizes),
        ),
        relations=tuple(relations),
        pairs=tuple(fact.id for fact in facts),
        names=tuple((fact.subject.name,) for fact in facts),
        objects=tuple(in_words(entity.name for entity in fact.objects) for fact in facts),
        templates=tuple(template for each in templates for template in each),
        answers=tuple(answers),
        way="written",
        sure=unknown,
        says=says,
        abstained=(prompts["abstained"] & ~prompts["right"]).to_numpy(),
    )


@runtime_checkable
class Judges(Protocol):
    """A probe that can tell how every prompt did, so that its runs can be compared."""

    def judged(self, dataset: Dataset, answered: Given) -> Judged:
        """Every judged prompt, whatever order the answers come in."""
