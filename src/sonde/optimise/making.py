"""The frame that every method of making templates runs in: facts, folder, one relation after other.

A method is a frozen dataclass, its fields the settings. It never sees a test fact. Knows no torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol, cast

from sonde.core.abilities import Model
from sonde.core.components import Components
from sonde.core.facts import Dataset, Relation, Template
from sonde.core.repeats import refuse_repeats
from sonde.optimise import MODULES
from sonde.optimise.facts import Task, tasks
from sonde.optimise.folder import Folder, head

Tick = Callable[[int, int, str], None]
"""Tells how far things are: so much is done, so much there is in all, and how it goes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What a method made for one relation; no template if it could make none, and then `problem`.

    `before` and `after` are the shares of dev facts answered correctly, None where not measured.
    `counts` says what was used and left out, `vectors` are those of a soft prompt by marker.
    `problem` also tells of training that broke off; what was best until then is kept.
    """

    relation: str
    templates: tuple[Template, ...] = ()
    before: float | None = None
    after: float | None = None
    epochs: float = 0.0
    counts: Mapping[str, int] = field(default_factory=dict)
    problem: str = ""
    vectors: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What a method is given: a model, each relation's training facts, a folder for large files.

    `vocabulary` are the answers a masked model may give, None for all.
    """

    model: Model
    tasks: Sequence[Task]
    vocabulary: tuple[str, ...] | None
    folder: Path
    seed: int
    tick: Tick


class Method(Protocol):
    """A way of making templates."""

    name: ClassVar[str]

    def refuse(self, model: Model) -> None:
        """Raise AbilityError where the model cannot be used."""

    def make(self, job: Job) -> Iterator[Made]:
        """What is made for each relation, in any order, each as soon as it is finished.

        A relation's result depends on its own facts, the settings and the seed alone.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What a user asks for: which relations, how many training facts at most, with which seed.

    `drop_leaked`: leave training facts out that are also test facts, instead of refusing them.
    """

    relations: tuple[str, ...] = ()
    limit: int | None = None
    seed: int = 0
    drop_leaked: bool = False


def methods() -> Mapping[str, type]:
    """Every method by name."""
    return Components(MODULES, "sonde.optimisers")


def optimise(
    method: Method,
    model: Model,
    dataset: Dataset,
    path: Path,
    *,
    reference: str = "",
    order: Order | None = None,
    tick: Tick = lambda done, total, how: None,
) -> list[Made]:
    """Make templates for each relation and keep them in a folder; goes on where it stopped.

    `reference` is how the model can be loaded again. Gives every relation's result, in the
    dataset's order, those that an earlier call finished among them.
    """
    order = order or Order()
    method.refuse(model)
    chosen = chosen_relations(dataset, order.relations)
    refuse_repeats(dataset, chosen)
    given = tasks(dataset, chosen, limit=order.limit, seed=order.seed, drop=order.drop_leaked)
    ids = [relation.id for relation in chosen]
    folder = Folder(path)
    with folder.writing(
        head(
            method=method.name,
            settings=asdict(cast(Any, method)),
            order=asdict(order),
            model=model.identity,
            reference=reference or model.identity.name,
            dataset=dataset,
            relations=ids,
        )
    ):
        done = {row["relation"] for row in folder.progress()}
        open_tasks = [task for task in given if task.relation.id not in done]
        for task in open_tasks:
            if not task.train:
                folder.add(Made(relation=task.relation.id, counts=task.counts, problem=EMPTY))
        job = Job(
            model=model,
            tasks=[task for task in open_tasks if task.train],
            vocabulary=dataset.vocabulary,
            folder=path,
            seed=order.seed,
            tick=tick,
        )
        if job.tasks:
            for made in method.make(job):
                folder.add(made)
        folder.finish()
    return [read_back(row) for row in folder.rows()]


EMPTY = "it has no training facts"


def chosen_relations(dataset: Dataset, names: Sequence[str]) -> tuple[Relation, ...]:
    """The relations that are asked for; all of them if none is named."""
    if not names:
        return dataset.relations
    return tuple(dataset.relation(name) for name in dict.fromkeys(names))


def read_back(row: Mapping[str, Any]) -> Made:
    """A relation's result as the folder keeps it, without its vectors."""
    templates = tuple(Template(**template) for template in row["templates"])
    return Made(**{**row, "templates": templates})
