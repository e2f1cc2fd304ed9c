"""A run's judged prompts together with what their numbers are called, for analyses across runs.

Knows facts and numbers, nothing of how prompts were put, answered or stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

import numpy as np

from sonde.core.columns import Given
from sonde.core.facts import ANSWER_SLOT, SUBJECT_SLOT, Dataset, Fact, Relation, Template
from sonde.metrics.grid import Bools, Floats, Grid, Ints

if TYPE_CHECKING:
    from polars import DataFrame

Way = Literal["filled", "scored", "written"]

COLUMNS = ("rank", "gold", "sure", "helped", "compared", "words", "guessable")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Judged:
    """The grid of a run, and per row what else was measured; None where a probe measures none.

    `relations[r]`, `pairs[p]` (the id of the pair's first fact), `templates[t]` and `answers[a]`
    say what the numbers of the grid mean; `names[p]` are the names of the pair's subject, the usual
    one first. `way`: how the model answered. `matches`: whether two different answers say the same;
    without it only equal ones do.

    Columns, one entry per row of the grid. sure: the probability of the answer where it is one
    token (of one option among all where options were scored), else nan. rank of the best correct
    name. gold: the log-probability of all correct names together. helped of compared: added object
    names that were likelier than the usual one. words: how many words the answer has, nan where
    they cannot be counted.
    guessable: whether the answer can be guessed from the subject's name, by the filter of the run.
    `own` has what else tells the probe's prompts apart, such as the draw of examples.
    """

    grid: Grid
    relations: tuple[Relation, ...]
    pairs: tuple[str, ...]
    templates: tuple[Template, ...]
    answers: tuple[str, ...]
    way: Way
    sure: Floats
    names: tuple[tuple[str, ...], ...] = ()
    matches: Callable[[str, str], bool] | None = None
    rank: Ints | None = None
    gold: Floats | None = None
    helped: Ints | None = None
    compared: Ints | None = None
    words: Floats | None = None
    guessable: Bools | None = None
    own: DataFrame | None = None

    def __post_init__(self) -> None:
        for name in (*COLUMNS, "own"):
            column = getattr(self, name)
            if column is not None and len(column) != len(self.grid):
                raise ValueError(f"{name} has {len(column)} entries for {len(self.grid)} prompts")

    def rows(self, chosen: Ints) -> Judged:
        """The same with some of its prompts, in the order chosen."""
        columns: dict[str, Any] = {name: getattr(self, name) for name in (*COLUMNS, "own")}
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
        measured = {"confidence": grid.confidence, "gold": missing, "rank": missing} | own
        frame = polars.DataFrame(
            {"pair": grid.pair, **texts, "right": grid.right, **measured}, nan_to_null=True
        )
        if self.own is not None:
            frame = frame.hstack(self.own)
        prompt = col("prompt").str.replace(ANSWER_SLOT, "___", literal=True)
        prompt = prompt.str.replace(SUBJECT_SLOT, col("name"), literal=True)
        rank = col("rank").cast(polars.Int64)
        order = "relation pair fact template name prompt answer right rank confidence gold".split()
        return frame.select(*order, polars.exclude(order)).with_columns(
            prompt, polars.when(rank > 0).then(rank).alias("rank")
        )

    def facts(self) -> DataFrame:
        """A row for each pair: over its prompts, how many are right and how sure the answers are.

        Its answer is the commonest, of several the first by name.
        """
        from polars import col

        prompts = self.frame()
        counts = prompts.group_by("pair", "answer").len().sort("answer")
        answers = counts.sort("len", descending=True, maintain_order=True)
        return (
            prompts.group_by("pair", maintain_order=True)
            .agg(
                col("relation", "fact").first(),
                col("name").first().alias("subject"),
                col("right").len().alias("prompts"),
                col("right", "confidence").mean(),
            )
            .join(answers.unique("pair", keep="first", maintain_order=True), on="pair", how="left")
            .drop("pair", "len")
        )

    def _names(self) -> tuple[list[str | None], Ints]:
        """All names of subjects one after the other, and which of them each prompt has."""
        if not self.names:
            return [None], np.zeros(len(self.grid), dtype=np.int64)
        sizes = np.array([len(names) for names in self.names])
        first = np.cumsum(sizes) - sizes
        return [name for own in self.names for name in own], first[self.grid.pair] + self.grid.name


def judge_texts(
    prompts: DataFrame,
    *,
    relations: Sequence[Relation],
    facts: Sequence[Fact],
    relation: Ints,
    templates: Sequence[Sequence[Template]],
) -> Judged:
    """Written answers as other analyses take them; nothing is known of their confidence.

    `prompts` has the columns fact, template (its place among those of its relation), said and
    right, the prompts of a fact one after the other. `relation`: the number of each fact's.
    """
    from polars import Boolean, Int64, String

    prompts = prompts.cast({"fact": Int64, "template": Int64, "said": String, "right": Boolean})
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
        templates=tuple(template for each in templates for template in each),
        answers=tuple(answers),
        way="written",
        sure=unknown,
    )


@runtime_checkable
class Judges(Protocol):
    """A probe that can tell how every prompt did, so that its runs can be compared."""

    def judged(self, dataset: Dataset, answered: Given) -> Judged:
        """Every judged prompt, whatever order the answers come in."""
