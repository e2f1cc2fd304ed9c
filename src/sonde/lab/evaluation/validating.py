"""Ask every estimator about models whose knowledge is known, into a folder that goes on by itself.

OUT/MODEL/about.json           which model, which world, how it was asked
OUT/MODEL/stored.json          the facts that the model gives back in the text's own words
OUT/MODEL/ASKING/              what was made and asked; timings.jsonl says how long it took
OUT/MODEL/verdicts/NAME.json   what an estimator says, or why it says nothing
OUT/MODEL/steps/STEP/          the same for a checkpoint

MODEL is the folder's name with the beginning of its weights' hash, so that several models, and
several processes, never meet. Knows nothing of how verdicts are judged.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from polars import DataFrame, col

from sonde.core.abilities import Model
from sonde.core.errors import DataError, ModelError, RunMismatch, StoreError, UsageError
from sonde.core.facts import Dataset, Selection
from sonde.core.files import add_line, explain_os_errors, take_lock, write_whole
from sonde.lab.estimators.asking import EFFORTS, Effort, Setup
from sonde.lab.estimators.catalogue import Estimator, chosen
from sonde.lab.evaluation.judging import Trial, Verdicts
from sonde.lab.training.corpus import check_tokenizer
from sonde.lab.training.stored import recited
from sonde.lab.training.train import Trained, open_trained
from sonde.lab.worlds.folder import open_world
from sonde.lab.worlds.world import World
from sonde.models.load import load
from sonde.models.options import LoadOptions
from sonde.optimise.making import Tick
from sonde.runs.run import open_run
from sonde.store.manifest import read_timings

FORMAT = 1
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


def _quiet(what: str) -> AbstractContextManager[Tick]:
    return nullcontext(lambda done, total, how: None)


def validate(
    models: Sequence[str | Path], out: str | Path, order: Order | None = None, watch: Watch = _quiet
) -> Validated:
    """Ask every estimator that is wanted about every model; what is finished is not asked again."""
    order = order or Order()
    if not models:
        raise UsageError("name the folder of a model that 'sonde lab train' made")
    opened = [open_trained(Path(path)) for path in dict.fromkeys(map(Path, models))]
    _refuse_unfit(opened, order)
    validation = _Validation(Path(out), order, watch)
    for trained in opened:  # before anything is asked of any
        validation.world_of(trained)
    trials: list[Trial] = []
    timeline: list[Trial] = []
    for trained in opened:
        subject = validation.subject(trained)
        trials.append(validation.trial(subject, order.names))
        if order.timeline:
            timeline += validation.timeline(subject)
    return Validated(
        trials=tuple(trials), timeline=tuple(timeline), left=tuple(validation.left_out)
    )


def _refuse_unfit(opened: Sequence[Trained], order: Order) -> None:
    """Refuse an estimator that was asked for by name and fits none of the models."""
    for each in chosen(order.names) if order.names else ():
        if not any(trained.kind in each.kinds for trained in opened):
            raise UsageError(
                f"estimator {each.name!r} is for {' and '.join(each.kinds)} models; "
                f"{opened[0].path} is {opened[0].kind}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Subject:
    """A model of a world, ready to be asked, with its folder and the name that reports have."""

    name: str
    trained: Trained
    world: World
    place: Path
    model: Model
    folder: Path

    def __str__(self) -> str:
        """Its name, with the step of a checkpoint."""
        return self.name + ("" if self.trained.final else f" at step {self.trained.step:,}")


class _Validation:
    """What is asked for, where it is kept, and what had to be left out; opens each world once."""

    def __init__(self, out: Path, order: Order, watch: Watch) -> None:
        self.out, self.order, self.watch = out, order, watch
        self.options = LoadOptions(device=order.device, dtype="float32")
        self.worlds: dict[Path, World] = {}
        self.left_out: list[Left] = []

    def world_of(self, trained: Trained) -> tuple[Path, World]:
        """The folder of the world that a model was trained on, and the world."""
        named = self.order.world or trained.world_path
        if named is None:
            raise DataError(f"{trained.path} does not say where its world is; say so with --world")
        place = named.resolve()
        if not place.is_dir():
            raise DataError(
                f"{trained.path} was trained on a world in {place}, which is not there; say where "
                "it is with --world"
            )
        if place not in self.worlds:
            self.worlds[place] = open_world(place)
        world = self.worlds[place]
        if world.fingerprint != trained.world_fingerprint:
            raise DataError(
                f"{trained.path} was trained on world {trained.world_fingerprint}, and {place} is "
                f"world {world.fingerprint}; say where its own is with --world"
            )
        check_tokenizer(world, trained.path)
        return place, world

    def world_name(self, place: Path) -> str:
        """The name of a world's folder, with a number where several have the same."""
        same = [other for other in self.worlds if other.name == place.name]
        return place.name if len(same) < 2 else f"{place.name}-{same.index(place) + 1}"

    def subject(self, trained: Trained, final: _Subject | None = None) -> _Subject:
        """A model, or a checkpoint of a final one, whose folder is its own or none's yet."""
        place, world = self.world_of(trained)
        model = load(f"hf:{trained.path.resolve()}", self.options)
        name = f"{trained.path.resolve().name}-{model.identity.weights[:8]}"
        subject = _Subject(
            name=final.name if final else name,
            trained=trained,
            world=world,
            place=place,
            model=model,
            folder=final.folder / "steps" / trained.path.name if final else self.out / name,
        )
        self._claim(subject)
        return subject

    def _claim(self, subject: _Subject) -> None:
        """Say in the folder what it is for, or refuse it if it is for something else."""
        about: dict[str, Any] = {
            "weights": subject.model.identity.weights,
            "tokenizer": subject.model.identity.tokenizer,
            "world": subject.world.fingerprint,
            "effort": self.order.effort,
            "limit": self.order.limit,
            "seed": self.order.seed,
        }
        begun = load_json(subject.folder / "about.json")
        if begun is None:
            save_json(about, subject.folder / "about.json")
            return
        for key, value in about.items():
            if begun.get(key) != value:
                raise RunMismatch(
                    f"{subject.folder} was begun with {key} {begun.get(key)} and this is {value}; "
                    "name another folder with -o, or delete that one"
                )

    def timeline(self, final: _Subject) -> Iterator[Trial]:
        """The checkpoints of a model and, last, the model itself."""
        for trained in final.trained.checkpoints():
            yield self.trial(self.subject(trained, final), TIMELINE)
        yield self.trial(final, TIMELINE)

    def trial(self, subject: _Subject, names: Sequence[str]) -> Trial:
        """What the estimators that are wanted and fit say of a model, beside both truths."""
        trained = subject.trained
        fitting = (each for each in chosen(names) if trained.kind in each.kinds)
        verdicts = [self._verdicts(subject, each) for each in fitting]
        facts = self._facts(subject)  # last: several processes may ask of one model at once
        return Trial(
            world=self.world_name(subject.place),
            model=subject.name,
            kind=trained.kind,
            seed=trained.settings.seed,
            step=trained.step,
            final=trained.final,
            facts=facts,
            verdicts=tuple(said for said in verdicts if said is not None),
        )

    def _dataset(self, world: World) -> Dataset:
        """The world's test facts, or as many as are wanted of each relation."""
        limit = self.order.limit or EFFORTS[self.order.effort].limit
        return world.dataset.select(Selection(limit=limit, seed=self.order.seed))

    def _facts(self, subject: _Subject) -> DataFrame:
        """Both truths about every fact that is asked about; what is stored is measured once."""
        dataset = self._dataset(subject.world)
        asked = [fact.id for r in dataset.asked_relations() for fact in dataset.asked(r.id)]
        path = subject.folder / "stored.json"
        record = load_json(path)
        if record is None:
            began = time.perf_counter()
            with self.watch(f"{subject}: stored"):
                shares = recited(subject.world, subject.trained, subject.model, facts=asked)
            record = {
                "format": FORMAT,
                "seconds": round(time.perf_counter() - began, 3),
                "asked": len(shares),
                "facts": [fact for fact, share in shares.items() if share > 0],
            }
            save_json(record, path)
        truth = DataFrame([asdict(subject.world.truth[fact]) for fact in asked])
        return truth.with_columns(stored=col("fact").is_in(record["facts"]))

    def _verdicts(self, subject: _Subject, estimator: Estimator) -> Verdicts | None:
        """What an estimator says, which is kept too; None for a reason, which is kept instead."""
        path = subject.folder / "verdicts" / f"{estimator.name}.json"
        try:
            with self.watch(f"{subject}: {estimator.name}") as tick:
                verdicts = self._asked(subject, estimator, tick)
        except (ModelError, DataError, UsageError) as error:
            save_json({"format": FORMAT, "left_out": str(error)}, path)
            left = Left(model=str(subject), estimator=estimator.name, reason=str(error))
            log.warning("%s", left)
            self.left_out.append(left)
            return None
        save_verdicts(verdicts, path)
        return verdicts

    def _asked(self, subject: _Subject, estimator: Estimator, tick: Tick) -> Verdicts:
        """Read the answers, which are asked for unless they are there."""
        folder = subject.folder / estimator.folder
        try:
            run = open_run(folder / "run")
        except StoreError:  # not asked for, or not to the end
            with _clocked(folder):
                run = estimator.ask(self._setup(subject, tick), folder)
        sessions = read_timings(folder / "timings.jsonl")
        return Verdicts(
            estimator=estimator.name,
            frame=estimator.read(run),
            seconds=round(float(sum(session["seconds"] for session in sessions)), 3),
            prompts=run.provenance()["run"]["prompts"],
            learns=estimator.learns,
            control=estimator.control,
        )

    def _setup(self, subject: _Subject, tick: Tick) -> Setup:
        return Setup(
            reference=f"hf:{subject.trained.path.resolve()}",
            model=subject.model,
            place=str(subject.place),
            dataset=self._dataset(subject.world),
            used=subject.world.used,
            spending=EFFORTS[self.order.effort],
            options=self.options,
            tick=tick,
        )


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


def save_verdicts(verdicts: Verdicts, path: Path) -> None:
    """Keep what an estimator says, a list for each column, for whoever wants to look at it."""
    plain = {f.name: getattr(verdicts, f.name) for f in fields(verdicts) if f.name != "frame"}
    columns = verdicts.frame.rename({"fact": "facts"}).to_dict(as_series=False)
    save_json({"format": FORMAT, **plain, **columns}, path)


def save_json(values: dict[str, Any], path: Path) -> None:
    """Write JSON so that it is there whole or not at all."""
    with explain_os_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, (json.dumps(values, ensure_ascii=False) + "\n").encode())


def load_json(path: Path) -> dict[str, Any] | None:
    """Read JSON back; None where there is no such file."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(values, dict):
            raise ValueError("it holds no object")
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise StoreError(
            f"{path} does not read back ({error}); delete it, and it is made again"
        ) from None
    return values


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """While no other process writes its report: several may share a folder."""
    with explain_os_errors(folder):
        lock = take_lock(folder / ".lock")
    with lock:
        yield
