"""Runs of the same facts under several prompts, in one frame: who is right, who answers the
commonest object of the training facts, and which facts are easy.

A fact is easy if a run that learnt from nothing but training facts answers it; the others are hard.
Knows judged facts, nothing of files or models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from sonde.core.errors import UsageError
from sonde.core.facts import Dataset, Relation, commonest_objects
from sonde.core.train_test_overlap import training
from sonde.metrics.estimates import ByFact
from sonde.metrics.judged import Floats, Judged

if TYPE_CHECKING:
    from polars import DataFrame

OF = "@"
"""Stands between a method and a model in a run's name: optiprompt@bert."""

TAUGHT = ("naive Bayes", "a fine-tuned random model", "fine-tuned random embeddings")
"""What can know the training facts alone: what one of these answers is easy."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Method:
    """A run: a way to ask a model. One that is `counting` reads no prompt.

    `taught`: which of TAUGHT the model is, if any. `uhn`: which facts the run calls guessable.
    """

    name: str
    judged: Judged
    counting: bool = False
    taught: str = ""
    uhn: str = "string"

    @property
    def model(self) -> str:
        """The model that the name tells, if it tells one."""
        return self.name.partition(OF)[2]

    def template(self, relation: str) -> str:
        """How it asks about a relation."""
        judged = self.judged
        owners = zip(judged.templates, judged.grid.template_relations.tolist(), strict=True)
        return next((t.text for t, owner in owners if judged.relations[owner].id == relation), "")

    def answers(self) -> DataFrame:
        """A row for each judged fact: relation, fact, and `right`, `answer` and `guessable` (from
        the subject's name), each with the name of the run behind it."""
        from polars import col, lit

        frame = self.judged.frame()
        guessable = col("guessable") if "guessable" in frame.columns else lit(False)
        return frame.select(
            "relation",
            "fact",
            col("right").alias(f"right {self.name}"),
            col("answer").str.strip_chars().alias(f"answer {self.name}"),
            guessable.alias(f"guessable {self.name}"),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Lesson:
    """A relation: its facts as a dataset's frame has them, and how often each object is that of a
    training fact; the commonest first."""

    relation: Relation
    facts: DataFrame
    trained: Mapping[str, int]

    @property
    def majority(self) -> str:
        """The commonest object of the training facts; nothing where there are none."""
        return next(iter(self.trained), "")

    def train_share(self, name: str) -> float | None:
        """The share of training facts with an object."""
        total = sum(self.trained.values())
        return self.trained.get(name, 0) / total if total else None

    def rows(self) -> DataFrame:
        """The facts with all names of their objects, the commonest training object, null where
        there is none, and whether they have it."""
        from polars import String, col, element, lit, when

        names = col("object_names").list.eval(element().explode())
        majority = lit(self.majority or None, String)
        return self.facts.select(
            *("relation", "fact", "subject_id", "subject"),
            names=names,
            majority=majority,
            has_majority=when(majority.is_not_null()).then(names.list.contains(majority)),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Learning:
    """Everything that is read: the runs, which of them decide what is easy, and the relations.

    `frame` has a row for each fact that all runs which were asked about its relation could judge:
    the columns of `Lesson.rows`, of every run those of `Method.answers` and whether it answers the
    `majority`, null where it was not asked about the relation, and whether the fact is `easy`, null
    where a run that decides it was not asked.
    """

    methods: tuple[Method, ...]
    easy: tuple[str, ...]
    lessons: Mapping[str, Lesson]
    frame: DataFrame

    @property
    def names(self) -> tuple[str, ...]:
        """Of the runs."""
        return tuple(method.name for method in self.methods)

    def base(self, name: str) -> str:
        """The run that another is set against: the first, of its model where names tell models."""
        model = name.partition(OF)[2]
        return next(method.name for method in self.methods if method.model == model)

    @property
    def split(self) -> DataFrame:
        """The facts that are told into easy and hard ones."""
        return self.frame.drop_nulls("easy")

    def having(self, *names: str) -> list[str]:
        """The relations that some runs were all asked about."""
        asked = self.frame.drop_nulls([f"right {name}" for name in names])
        return asked["relation"].unique(maintain_order=True).to_list()

    def column(self, name: str) -> Floats:
        """What is true of each fact, 1 or 0; nan where it is not known."""
        return self.frame[name].cast(float).to_numpy()


def by_fact(frame: DataFrame, seed: int) -> ByFact:
    """The facts of a frame by relation and subject, for means with intervals."""
    relations, subjects = dict[str, int](), frame["subject_id"].rank("dense").to_numpy()
    return ByFact(
        relation=np.array([relations.setdefault(r, len(relations)) for r in frame["relation"]]),
        subject=subjects.astype(np.int64),
        ids=tuple(relations),
        seed=seed,
    )


def lessons_of(dataset: Dataset) -> dict[str, Lesson]:
    """What a dataset asks and teaches, by relation; leaked training facts teach nothing."""
    return {
        relation.id: Lesson(
            relation=relation,
            facts=dataset.asked_frame(relation.id),
            trained=dict(commonest_objects(training(dataset, relation.id).facts)),
        )
        for relation in dataset.asked_relations()
    }


def together(
    first: Mapping[str, Lesson], more: Mapping[str, Lesson], run: str
) -> dict[str, Lesson]:
    """The lessons of several runs in one; refused where two of them tell of other facts."""
    joined = {**more, **first}
    for id in first.keys() & more.keys():
        joined[id] = _joined(first[id], more[id], run)
    return {id: joined[id] for id in (*first, *more)}


def _joined(first: Lesson, second: Lesson, run: str) -> Lesson:
    import polars
    from polars import col

    columns = ("subject_names", "object_names")
    differ = polars.any_horizontal(col(name) != col(f"{name}_right") for name in columns)
    others = second.facts.join(first.facts, on="fact").filter(differ)
    if len(others):
        raise UsageError(
            f"run {run!r} was asked other facts than the runs before it: {others['fact'][0]!r} is "
            "not the same; only runs on the same facts can be compared"
        )
    if first.trained != second.trained:
        raise UsageError(
            f"run {run!r} has other training facts of {first.relation.id} than the runs before it; "
            "make all runs from the same dataset"
        )
    facts = polars.concat([first.facts, second.facts]).unique("fact", maintain_order=True)
    return replace(first, facts=facts)


def learning(
    methods: Sequence[Method], lessons: Mapping[str, Lesson], easy: Sequence[str] = ()
) -> Learning:
    """The runs on the facts that they share; refuses runs that share none with the first.

    Without `easy`, the runs that are taught by training facts alone decide what is easy.
    """
    easy = easy or [method.name for method in methods if method.taught]
    names = [method.name for method in methods]
    if len(set(names)) < len(names):
        raise UsageError(f"two runs have the same name: {', '.join(names)}")
    if strangers := [name for name in easy if name not in names]:
        raise UsageError(f"no run is called {strangers[0]!r}; runs: {', '.join(names)}")
    frame = _shared(methods, lessons, easy)
    asked = frame["relation"].unique(maintain_order=True)
    runs = Learning(
        methods=tuple(methods),
        easy=tuple(easy),
        lessons={id: lessons[id] for id in asked},
        frame=frame,
    )
    for name in names:
        if not runs.having(name, runs.base(name)):
            raise UsageError(
                f"{name!r} and {runs.base(name)!r} share no fact that could be judged; compare "
                "runs of the same facts ('--limit', '--relations', '--split', the seed)"
            )
    return runs


def _shared(
    methods: Sequence[Method], lessons: Mapping[str, Lesson], easy: Sequence[str]
) -> DataFrame:
    """The facts that every run judged which was asked about their relation."""
    import polars
    from polars import all_horizontal, any_horizontal, col, lit, when

    frame = polars.concat([lesson.rows() for lesson in lessons.values()])
    for method in methods:
        frame = frame.join(
            method.answers(), on=("relation", "fact"), how="left", maintain_order="left"
        )
    judged = [col(f"right {method.name}").is_not_null() for method in methods]
    in_all = all_horizontal(there | ~there.any().over("relation") for there in judged)
    deciding = [col(f"right {name}") for name in easy] or [lit(None, polars.Boolean)]
    decided = all_horizontal(right.is_not_null() for right in deciding)
    majorities = {
        f"majority {method.name}": col(f"answer {method.name}") == col("majority")
        for method in methods
    }
    return frame.filter(in_all & any_horizontal(judged)).with_columns(
        **majorities, easy=when(decided).then(any_horizontal(deciding))
    )
