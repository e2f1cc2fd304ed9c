"""Ask every estimator about models whose knowledge is known, into a folder that goes on by itself.

OUT/MODEL/about.json           which model, which world, how it was asked
OUT/MODEL/stored.json          the facts that the model gives back in the text's own words
OUT/MODEL/ASKING/              what was made and asked; made.json says how long it took
OUT/MODEL/verdicts/NAME.json   what an estimator says, or why it says nothing
OUT/MODEL/steps/STEP/          the same for a checkpoint

MODEL is the folder's name with the beginning of its weights' hash, so that several models, and
several processes, never meet. Knows nothing of how verdicts are judged.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from sonde.core.abilities import Model
from sonde.core.errors import DataError, ModelError, RunMismatch, StoreError, UsageError
from sonde.core.facts import Dataset, Selection
from sonde.lab.estimators.asking import EFFORTS, Effort, Setup
from sonde.lab.estimators.catalogue import Asking, Estimator, chosen
from sonde.lab.evaluation.verdicts import (
    FORMAT,
    load_json,
    load_verdicts,
    save_json,
    save_reason,
    save_verdicts,
)
from sonde.lab.training.stored import stored
from sonde.lab.training.train import Trained, open_trained
from sonde.lab.worlds.folder import open_world
from sonde.lab.worlds.truth import Known, Trial, Verdicts
from sonde.lab.worlds.world import World
from sonde.models.load import load
from sonde.models.options import LoadOptions
from sonde.optimise.making import Tick
from sonde.runs.run import Run, open_run
from sonde.store.files import add_line, explain_os_errors
from sonde.store.timings import read_timings

TIMELINE = ("lama", "belief-oracle", "ic-lke")
"""What is asked of every checkpoint: estimators that take a moment."""

log = logging.getLogger(__name__)

Watch = Callable[[str], AbstractContextManager[Tick]]
"""Shows how something of this name goes on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What a user asks for; `world` is where the models' world is, if not where it was."""

    effort: Effort = "quick"
    names: tuple[str, ...] = ()
    limit: int | None = None
    seed: int = 0
    world: Path | None = None
    timeline: bool = False
    device: str = "auto"

    def __post_init__(self) -> None:
        if self.effort not in EFFORTS:
            raise UsageError(f"no effort {self.effort!r}; known: {', '.join(EFFORTS)}")
        if self.limit is not None and self.limit < 1:
            raise UsageError(f"limit must be at least 1, not {self.limit}")
        if self.seed < 0:
            raise UsageError(f"seed must not be negative, found {self.seed}")
        chosen(self.names)


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """An estimator that could not be asked about a model, and why."""

    model: str
    estimator: str
    reason: str

    def __str__(self) -> str:
        return f"{self.estimator} is left out for {self.model}: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Validated:
    """One trial for each model, those of checkpoints, and what had to be left out."""

    trials: tuple[Trial, ...]
    timeline: tuple[Trial, ...] = ()
    left: tuple[Left, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A model of a world, ready to be asked, with its folder and the names that reports have."""

    name: str
    world_name: str
    trained: Trained
    world: World
    place: Path
    model: Model
    folder: Path


def _quiet(what: str) -> AbstractContextManager[Tick]:
    return nullcontext(lambda done, total, how: None)


def validate(
    models: Sequence[str | Path], out: str | Path, order: Order | None = None, watch: Watch = _quiet
) -> Validated:
    """Ask every estimator that is wanted about every model; what is finished is not asked again."""
    order, out = order or Order(), Path(out)
    if not models:
        raise UsageError("name the folder of a model that 'sonde lab train' made")
    opened = [open_trained(Path(path)) for path in dict.fromkeys(map(Path, models))]
    _refuse_unfit(opened, order)
    worlds = _Worlds(order.world)
    for trained in opened:  # before anything is asked of any
        worlds.of(trained)
    trials: list[Trial] = []
    timeline: list[Trial] = []
    left: list[Left] = []
    for trained in opened:
        subject = _subject(trained, worlds, out, order)
        trials.append(_trial(subject, fitting(order.names, trained), order, watch, left))
        if order.timeline:
            timeline += _timeline(subject, worlds, order, watch, left)
    return Validated(trials=tuple(trials), timeline=tuple(timeline), left=tuple(left))


def fitting(names: Sequence[str], trained: Trained) -> tuple[Estimator, ...]:
    """The estimators that are wanted and fit the model's kind."""
    return tuple(each for each in chosen(names) if trained.kind in each.kinds)


class _Worlds:
    """Opens each world once, and only for models that were trained on it."""

    def __init__(self, elsewhere: Path | None) -> None:
        self._elsewhere = elsewhere
        self._opened: dict[Path, World] = {}

    def of(self, trained: Trained) -> tuple[Path, World]:
        """The world of a model, and its folder."""
        from sonde.lab.training.tokens import check_tokenizer

        named = self._elsewhere or trained.world_path
        if named is None:
            raise DataError(f"{trained.path} does not say where its world is; say so with --world")
        place = named.resolve()
        if not place.is_dir():
            raise DataError(
                f"{trained.path} was trained on a world in {place}, which is not there; say where "
                "it is with --world"
            )
        if place not in self._opened:
            self._opened[place] = open_world(place)
        world = self._opened[place]
        if world.fingerprint != trained.world_fingerprint:
            raise DataError(
                f"{trained.path} was trained on world {trained.world_fingerprint}, and {place} is "
                f"world {world.fingerprint}; say where its own is with --world"
            )
        check_tokenizer(world, trained.path)
        return place, world

    def name(self, place: Path) -> str:
        """The name of a world's folder, with a number where several have the same."""
        same = [other for other in self._opened if other.name == place.name]
        return place.name if len(same) < 2 else f"{place.name}-{same.index(place) + 1}"


def _refuse_unfit(opened: Sequence[Trained], order: Order) -> None:
    """Refuse an estimator that was asked for by name and fits none of the models."""
    for each in chosen(order.names) if order.names else ():
        if not any(trained.kind in each.kinds for trained in opened):
            raise UsageError(
                f"estimator {each.name!r} is for {' and '.join(each.kinds)} models; "
                f"{opened[0].path} is {opened[0].kind}"
            )


def _subject(
    trained: Trained, worlds: _Worlds, out: Path, order: Order, folder: Path | None = None
) -> Subject:
    place, world = worlds.of(trained)
    options = LoadOptions(device=order.device, dtype="float32")
    model = load(f"hf:{trained.path.resolve()}", options)
    name = f"{trained.path.resolve().name}-{model.identity.weights[:8]}"
    subject = Subject(
        name=name,
        world_name=worlds.name(place),
        trained=trained,
        world=world,
        place=place,
        model=model,
        folder=folder or out / name,
    )
    _claim(subject, order)
    return subject


def _claim(subject: Subject, order: Order) -> None:
    """Say in the folder what it is for, or refuse it if it is for something else."""
    path = subject.folder / "about.json"
    about: dict[str, Any] = {
        "weights": subject.model.identity.weights,
        "tokenizer": subject.model.identity.tokenizer,
        "world": subject.world.fingerprint,
        "effort": order.effort,
        "limit": order.limit,
        "seed": order.seed,
    }
    found = load_json(path)
    if found is None:
        save_json(about, path)
        return
    for key, value in about.items():
        if found.get(key) != value:
            raise RunMismatch(
                f"{subject.folder} was begun with {key} {found.get(key)} and this is {value}; "
                "name another folder with -o, or delete that one"
            )


def _timeline(
    final: Subject, worlds: _Worlds, order: Order, watch: Watch, left: list[Left]
) -> Iterator[Trial]:
    """The checkpoints of a model and, last, the model itself."""
    for trained in final.trained.checkpoints():
        folder = final.folder / "steps" / trained.path.name
        subject = _subject(trained, worlds, folder, order, folder)
        subject = replace(subject, name=final.name)
        yield _trial(subject, fitting(TIMELINE, trained), order, watch, left)
    yield _trial(final, fitting(TIMELINE, final.trained), order, watch, left)


def _trial(
    subject: Subject,
    wanted: Sequence[Estimator],
    order: Order,
    watch: Watch,
    left: list[Left],
) -> Trial:
    trained = subject.trained
    known = _known(subject, order, watch)
    verdicts = [_verdicts(subject, each, order, watch, left) for each in wanted]
    return Trial(
        world=subject.world_name,
        model=subject.name,
        kind=trained.kind,
        seed=trained.seed,
        step=trained.step,
        final=trained.final,
        known=known,
        verdicts=tuple(found for found in verdicts if found is not None),
    )


def _known(subject: Subject, order: Order, watch: Watch) -> tuple[Known, ...]:
    """Both truths about every fact that is asked about; what is stored is measured once."""
    dataset = asked_of(subject.world, order)
    asked = [fact.id for r in dataset.asked_relations() for fact in dataset.asked(r.id)]
    path = subject.folder / "stored.json"
    found = load_json(path)
    if found is None:
        began = time.perf_counter()
        with watch(f"{_told(subject)}: stored"):
            held = stored(subject.world, subject.trained, subject.model, facts=asked)
        found = {
            "format": FORMAT,
            "seconds": round(time.perf_counter() - began, 3),
            "asked": len(held),
            "facts": [fact for fact, there in held.items() if there],
        }
        save_json(found, path)
    there = frozenset(found["facts"])
    truth = subject.world.truth
    return tuple(Known(taught=truth[fact], stored=fact in there) for fact in asked)


def _verdicts(
    subject: Subject, estimator: Estimator, order: Order, watch: Watch, left: list[Left]
) -> Verdicts | None:
    """What an estimator says, as it was kept or asked now; None for a reason, which is kept too."""
    path = subject.folder / "verdicts" / f"{estimator.name}.json"
    if (kept := load_verdicts(path)) is not None:
        return kept
    try:
        with watch(f"{_told(subject)}: {estimator.name}") as tick:
            found = _made(subject, estimator, order, tick)
    except (ModelError, DataError, UsageError) as error:
        save_reason(str(error), path)
        one = Left(model=_told(subject), estimator=estimator.name, reason=str(error))
        log.warning("%s", one)
        left.append(one)
        return None
    save_verdicts(found, path)
    return found


def _made(subject: Subject, estimator: Estimator, order: Order, tick: Tick) -> Verdicts:
    spending = EFFORTS[order.effort]
    setup = Setup(
        reference=f"hf:{subject.trained.path.resolve()}",
        model=subject.model,
        place=str(subject.place),
        dataset=asked_of(subject.world, order),
        used=subject.world.used,
        spending=spending,
        options=LoadOptions(device=order.device, dtype="float32"),
        tick=tick,
    )
    run, record = asked(setup, estimator.asking, subject.folder / estimator.asking.name)
    columns = estimator.read(run)
    return Verdicts(
        estimator=estimator.name,
        **{field.name: getattr(columns, field.name) for field in fields(columns)},
        seconds=float(record["seconds"]),
        prompts=int(record["prompts"]),
        learns=estimator.learns,
        control=estimator.control,
    )


def asked_of(world: World, order: Order) -> Dataset:
    """The world's test facts, or as many as are wanted of each relation."""
    limit = order.limit or EFFORTS[order.effort].limit
    return world.dataset.select(Selection(limit=limit, seed=order.seed))


def asked(setup: Setup, asking: Asking, folder: Path) -> tuple[Run, Mapping[str, Any]]:
    """Put the questions, or open the answers; with the seconds that it took when it was done.

    Seconds are those of all sessions that it took; to open what is finished adds none.
    """
    record = load_json(folder / "made.json")
    if record is not None:
        try:
            return open_run(folder / "run"), record
        except StoreError:
            pass  # the answers are gone: they are asked for again
    with _clocked(folder):
        run = asking.ask(setup, folder)
    if record is None:
        prompts = run.provenance()["run"]["prompts"]
        record = {"format": FORMAT, "seconds": _seconds(folder), "prompts": prompts}
        save_json(record, folder / "made.json")
    return run, record


@contextmanager
def _clocked(folder: Path) -> Iterator[None]:
    """Note in the folder how long something took, even if it was broken off."""
    with explain_os_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()
    try:
        yield
    finally:
        line = json.dumps({"seconds": round(time.perf_counter() - began, 3)})
        with explain_os_errors(folder):
            add_line(folder / "timings.jsonl", line)


def _seconds(folder: Path) -> float:
    return round(
        float(sum(entry["seconds"] for entry in read_timings(folder / "timings.jsonl"))), 3
    )


def _told(subject: Subject) -> str:
    """A model's name, with the step of a checkpoint."""
    step = "" if subject.trained.final else f" at step {subject.trained.step:,}"
    return subject.name + step
