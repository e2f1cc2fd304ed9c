"""The frame that every method of making templates runs in: facts, folder, one relation after other.

A method is a frozen dataclass, its fields the settings. It never sees a test fact: of each relation
it gets training facts to learn from and dev facts to choose by. Knows no torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Protocol

from sonde.core.abilities import Model
from sonde.core.components import Components
from sonde.core.errors import AbilityError, DataError, ModelError, UsageError
from sonde.core.fact_frames import refuse_repeats
from sonde.core.facts import Dataset, Fact, Relation, Template
from sonde.core.fingerprints import draw_key
from sonde.core.train_test_overlap import leaked
from sonde.optimise import MODULES
from sonde.optimise.folder import Folder, head

HELD_OUT = 5  # one in so many training facts, where a relation has none for development
SHOWN = 3  # test facts named when training facts are refused
EMPTY = "it has no training facts"

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
class Task:
    """A relation with the facts to train on and those to choose by; `counts` of what was left."""

    relation: Relation
    train: tuple[Fact, ...]
    dev: tuple[Fact, ...]
    counts: Mapping[str, int] = field(default_factory=dict)


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
    given = tasks(dataset, chosen, order)
    folder, ids = Folder(path), [relation.id for relation in chosen]
    reference = reference or model.identity.name
    with folder.writing(head(method, order, model.identity, reference, dataset, ids)):
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


def chosen_relations(dataset: Dataset, names: Sequence[str]) -> tuple[Relation, ...]:
    """The relations that are asked for; all of them if none is named."""
    if not names:
        return dataset.relations
    return tuple(dataset.relation(name) for name in dict.fromkeys(names))


def read_back(row: Mapping[str, Any]) -> Made:
    """A relation's result as the folder keeps it, without its vectors."""
    templates = tuple(Template(**template) for template in row["templates"])
    return Made(**{**row, "templates": templates})


def tasks(dataset: Dataset, relations: Sequence[Relation], order: Order) -> list[Task]:
    """The facts of each relation; training facts that are test facts are refused or dropped."""
    overlap = {relation.id: leaked(dataset, relation.id) for relation in relations}
    if not order.drop_leaked and any(overlap.values()):
        raise DataError(overlap_told(dataset, overlap))
    if not any(f.split == "train" for r in relations for f in dataset.facts(r.id)):
        raise DataError(
            f"dataset {dataset.name!r} has no facts of split 'train' for the relations asked for; "
            "there is nothing to learn from"
        )
    return [task_of(dataset, relation, overlap[relation.id], order) for relation in relations]


def task_of(dataset: Dataset, relation: Relation, left_out: frozenset[str], order: Order) -> Task:
    """The facts of one relation, without those left out."""
    usable = [fact for fact in dataset.facts(relation.id) if fact.id not in left_out]
    train = [fact for fact in usable if fact.split == "train"]
    dev = [fact for fact in usable if fact.split == "dev"]
    held_out = 0
    if not dev and len(train) > 1:
        dev = drawn(train, max(len(train) // HELD_OUT, 1), order.seed)
        chosen = {fact.id for fact in dev}
        train = [fact for fact in train if fact.id not in chosen]
        held_out = len(dev)
    if order.limit is not None:
        train, dev = (drawn(facts, order.limit, order.seed) for facts in (train, dev))
    counts = {"leaked": len(left_out), "held_out": held_out}
    return Task(relation=relation, train=tuple(train), dev=tuple(dev), counts=counts)


def drawn(facts: list[Fact], count: int, seed: int) -> list[Fact]:
    """At most so many of the facts, drawn each by its own name, in their own order."""
    ordered = sorted(facts, key=lambda fact: draw_key(seed, fact.id))
    ids = {fact.id for fact in ordered[:count]}
    return [fact for fact in facts if fact.id in ids]


def overlap_told(dataset: Dataset, overlap: Mapping[str, frozenset[str]]) -> str:
    """Say which training facts are test facts too."""
    facts = (
        f"{relation} {fact.split}: {fact.subject.name} – {fact.objects[0].name}"
        for relation, ids in overlap.items()
        for fact in (dataset.facts(relation) if ids else ())
        if fact.id in ids
    )
    shown = list(islice(facts, SHOWN))
    total = sum(map(len, overlap.values()))
    listed = "; ".join(shown) + ("; …" if total > len(shown) else "")
    return (
        f"{total} facts of {dataset.name!r} to learn from are test facts too ({listed}); leave "
        "them out with --drop-leaked, which says how many, or mend the dataset"
    )


def refuse_without_gradients(model: Model, cannot: str) -> None:
    """Refuse a model without gradients to follow: it has no weights, or not here, or two texts."""
    if not hasattr(model, "loaded"):
        raise AbilityError(
            f"{model.identity.name} has no weights and no gradients, so {cannot}; use a masked or "
            "causal model, such as hf:FOLDER"
        )
    from sonde.models.torch.loading.spread import is_fetched
    from sonde.models.torch.soft import refuse_unsuited

    refuse_unsuited(model)
    if is_fetched(model.loaded.model):
        raise ModelError(
            f"{model.identity.name} has weights on the CPU or on disk, and gradients need all of "
            f"them on the device at once, so {cannot}; spread it over GPUs that hold it, or use "
            "'sonde optimise lpaqa', which needs no gradients"
        )


def refuse_schedule(rate: float, warmup: float = 0.0) -> None:
    """Refuse a learning rate or a warm-up that means nothing."""
    if not 0 <= warmup <= 1:
        raise UsageError(f"setting warmup must be between 0 and 1, not {warmup}")
    if not rate > 0:
        raise UsageError(f"setting rate must be above 0, not {rate}")
