"""Runs of the same facts under several prompts, relation by relation: who is right, who answers the
commonest object of the training facts, and which facts are easy.

A fact is easy if a run that learnt from nothing but training facts answers it; the others are hard.
Knows judged facts, nothing of files or models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sonde.core.errors import UsageError
from sonde.core.facts import Dataset, Fact, Relation, commonest_objects
from sonde.core.train_test_overlap import training
from sonde.metrics.grid import Bools, Ints
from sonde.metrics.judged import Judged

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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Lesson:
    """A relation: its facts by id, and how often each object is that of a training fact; the
    commonest first."""

    relation: Relation
    facts: Mapping[str, Fact]
    trained: Mapping[str, int]

    @property
    def majority(self) -> str:
        """The commonest object of the training facts; nothing where there are none."""
        return next(iter(self.trained), "")

    def train_share(self, name: str) -> float | None:
        """The share of training facts with an object."""
        total = sum(self.trained.values())
        return self.trained.get(name, 0) / total if total else None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sheet:
    """One relation on the facts that all runs which were asked about it could judge.

    `right`, `answers` and what is `guessable` from the subject's name go by run and fact,
    `templates` by run; facts with equal `clusters` have the same subject. `easy` is None where a
    run that decides it was not asked.
    """

    lesson: Lesson
    facts: tuple[Fact, ...]
    clusters: Ints
    right: Mapping[str, Bools]
    answers: Mapping[str, tuple[str, ...]]
    guessable: Mapping[str, Bools]
    templates: Mapping[str, str]
    easy: Bools | None

    @property
    def id(self) -> str:
        """The relation's."""
        return self.lesson.relation.id

    def answered(self, run: str, name: str) -> Bools:
        """Which facts a run answers with an object."""
        return np.array([answer == name for answer in self.answers[run]], dtype=np.bool_)

    def of(self, name: str) -> Bools:
        """Which facts have an object."""
        return np.array([name in _names(fact) for fact in self.facts], dtype=np.bool_)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Learning:
    """Everything that is read: the runs, which of them decide what is easy, and the relations."""

    methods: tuple[Method, ...]
    easy: tuple[str, ...]
    sheets: tuple[Sheet, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Of the runs."""
        return tuple(method.name for method in self.methods)

    def base(self, name: str) -> str:
        """The run that another is set against: the first, of its model where names tell models."""
        model = name.partition(OF)[2]
        return next(method.name for method in self.methods if method.model == model)

    @property
    def split(self) -> tuple[Sheet, ...]:
        """The relations whose facts are told into easy and hard ones."""
        return tuple(sheet for sheet in self.sheets if sheet.easy is not None)

    def having(self, *names: str) -> tuple[Sheet, ...]:
        """The relations that some runs were all asked about."""
        return tuple(s for s in self.sheets if all(name in s.right for name in names))


def lessons(dataset: Dataset) -> dict[str, Lesson]:
    """What a dataset asks and teaches, by relation; leaked training facts teach nothing."""
    return {
        relation.id: Lesson(
            relation=relation,
            facts={fact.id: fact for fact in dataset.asked(relation.id)},
            trained=dict(commonest_objects(training(dataset, relation.id).facts)),
        )
        for relation in dataset.asked_relations()
    }


def together(
    known: Mapping[str, Lesson], more: Mapping[str, Lesson], run: str
) -> dict[str, Lesson]:
    """The lessons of several runs in one; refused where two of them tell of other facts."""
    for id, own in more.items():
        other = known.get(id)
        if other is None:
            continue
        for fact in set(own.facts) & set(other.facts):
            if _told(own.facts[fact]) != _told(other.facts[fact]):
                raise UsageError(
                    f"run {run!r} was asked other facts than the runs before it: {fact!r} is not "
                    "the same; only runs on the same facts can be compared"
                )
        if own.trained != other.trained:
            raise UsageError(
                f"run {run!r} has other training facts of {id} than the runs before it; make all "
                "runs from the same dataset"
            )
    joined = {
        id: replace(own, facts={**own.facts, **more[id].facts}) if id in more else own
        for id, own in known.items()
    }
    return {**joined, **{id: own for id, own in more.items() if id not in known}}


def learning(
    methods: Sequence[Method], known: Mapping[str, Lesson], easy: Sequence[str] = ()
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
    rows = {method.name: _rows(method.judged) for method in methods}
    sheets = (_sheet(lesson, methods, rows, easy) for lesson in known.values())
    runs = Learning(
        methods=tuple(methods),
        easy=tuple(easy),
        sheets=tuple(sheet for sheet in sheets if sheet is not None),
    )
    for name in names:
        if not runs.having(name, runs.base(name)):
            raise UsageError(
                f"{name!r} and {runs.base(name)!r} share no fact that could be judged; compare "
                "runs of the same facts ('--limit', '--relations', '--split', the seed)"
            )
    return runs


Rows = dict[str, dict[str, int]]
"""Where each judged fact stands, by relation and id."""


def _rows(judged: Judged) -> Rows:
    rows: Rows = {}
    for row, pair in enumerate(judged.grid.pair.tolist()):
        relation = judged.relations[judged.grid.relations[pair]].id
        rows.setdefault(relation, {})[judged.pairs[pair]] = row
    return rows


def _sheet(
    lesson: Lesson, methods: Sequence[Method], rows: Mapping[str, Rows], easy: Sequence[str]
) -> Sheet | None:
    id = lesson.relation.id
    asked = {m.name: m.judged for m in methods if id in rows[m.name]}
    own = {name: rows[name][id] for name in asked}
    facts = [f for key, f in lesson.facts.items() if own and all(key in r for r in own.values())]
    if not facts:
        return None
    at = {name: np.array([own[name][fact.id] for fact in facts], dtype=np.int64) for name in asked}
    right = {name: judged.grid.right[at[name]] for name, judged in asked.items()}
    decided = bool(easy) and all(name in right for name in easy)
    subjects: dict[str, int] = {}
    return Sheet(
        lesson=lesson,
        facts=tuple(facts),
        clusters=np.array([subjects.setdefault(f.subject.id, len(subjects)) for f in facts]),
        right=right,
        answers={
            name: tuple(judged.answers[a].strip() for a in judged.grid.answer[at[name]].tolist())
            for name, judged in asked.items()
        },
        guessable={
            name: np.zeros(len(facts), dtype=np.bool_)
            if judged.guessable is None
            else judged.guessable[at[name]]
            for name, judged in asked.items()
        },
        templates={name: _template(judged, id) for name, judged in asked.items()},
        easy=np.any([right[name] for name in easy], axis=0) if decided else None,
    )


def _template(judged: Judged, relation: str) -> str:
    owners = zip(judged.templates, judged.grid.template_relations.tolist(), strict=True)
    return next((t.text for t, owner in owners if judged.relations[owner].id == relation), "")


def _told(fact: Fact) -> tuple[object, ...]:
    return fact.subject.names, [entity.names for entity in fact.objects]


def _names(fact: Fact) -> set[str]:
    return {name for entity in fact.objects for name in entity.names}
