"""Train a small model on the text of a world, into a folder that any tool can open.

Knows settings, folders and what is written beside a model; the weights are moved in `steps`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

from sonde.core.components import setting
from sonde.core.errors import ModelError, RunMismatch, StoreError, UsageError, nearest
from sonde.core.files import write_whole
from sonde.lab.worlds.world import World
from sonde.models.options import needs, read_json

Kind = Literal["causal", "masked"]

FORMAT = 1
RECORD = "lab.json"
STATE = "training.state"
CHECKPOINTS = "checkpoints"
NUMBERS = ("step", "steps", "tokens", "parameters", "loss", "weights")
"""What a record holds of a model, beside its settings and its world."""

SIZES: Mapping[str, tuple[int, int]] = {
    "tiny": (128, 3),
    "small": (256, 4),
    "medium": (512, 6),
    "base": (768, 12),
}
"""Width and layers."""

EPOCHS: Mapping[Kind, int] = {"causal": 15, "masked": 30}
BATCH: Mapping[Kind, int] = {"causal": 4, "masked": 128}
RATE: Mapping[Kind, float] = {"causal": 0.003, "masked": 0.002}
"""Of the width of `tiny` and below; a wider model learns in smaller steps."""

CONTEXT: Mapping[Kind, int] = {"causal": 512, "masked": 128}
"""The most tokens that a model takes."""

Tick = Callable[[int, int, str], None]
"""Told the steps that are done, how many there are, and how it goes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainSettings:
    """Train a small model on the text of a world."""

    name: ClassVar[str] = "train"

    kind: Kind = setting(
        "causal", "causal (reads from left to right) or masked (fills masked positions)."
    )
    size: str = setting("tiny", "tiny, small, medium or base; or WIDTHxLAYERS, such as 192x4.")
    lists: float = setting(
        0.3, "Share of the mentions that stand in lists of facts; a masked model reads none."
    )
    epochs: int = setting(0, "How often the text is read; 0: 15 times causal, 30 masked.", min=0)
    rate: float = setting(
        0.0, "Learning rate at its highest; 0: 0.003 causal, 0.002 masked, less in wider models."
    )
    batch: int = setting(
        0, "Blocks or sentences a step; 0: 4 blocks, 128 sentences. A GPU wants more.", min=0
    )
    block: int = setting(256, "Tokens of a block, in which a causal model reads texts.", min=2)
    mask: float = setting(0.2, "Share of the words that a masked model has to fill in.")
    warmup: float = setting(0.05, "Share of the steps in which the learning rate rises.")
    decay: float = setting(0.01, "Weight decay.")
    seed: int = setting(0, "Seed of first weights, order and masked words.")
    checkpoints: int = setting(
        0, "Models kept on the way, each after twice the steps of the one before.", min=0
    )
    precision: Literal["float32", "bfloat16"] = setting(
        "float32", "Of the sums on a GPU; weights are float32."
    )
    device: str = setting("auto", "auto, cpu or cuda.")
    threads: int = setting(2, "Threads on a CPU; their number moves the last digits.", min=1)

    def __post_init__(self) -> None:
        shape(self.size)
        for name, low, high in (("lists", 0.0, 1.0), ("mask", 0.01, 0.9), ("warmup", 0.0, 1.0)):
            value = getattr(self, name)
            if not low <= value <= high:
                raise UsageError(f"{name} must be between {low} and {high}, not {value}")
        if not 0 <= self.rate < float("inf"):
            raise UsageError(f"rate must be a number from 0 on, not {self.rate}")
        if self.block > CONTEXT["causal"]:
            raise UsageError(f"block must be at most {CONTEXT['causal']}, not {self.block}")

    def settled(self) -> TrainSettings:
        """With what is left to the kind of model filled in."""
        return replace(
            self,
            lists=self.lists if self.kind == "causal" else 0.0,
            epochs=self.epochs or EPOCHS[self.kind],
            rate=self.rate or RATE[self.kind] * min(1.0, SIZES["tiny"][0] / shape(self.size)[0]),
            batch=self.batch or BATCH[self.kind],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """A model that was trained on a world, or one of its checkpoints.

    step: training steps behind it, of `steps`. loss: mean over the last steps, in nats a token.
    """

    path: Path
    settings: TrainSettings
    step: int
    steps: int
    tokens: int
    parameters: int
    loss: float
    weights: str
    world_path: Path | None
    world_fingerprint: str

    @property
    def kind(self) -> Kind:
        """Causal or masked."""
        return self.settings.kind

    @property
    def final(self) -> bool:
        """Whether its training is over."""
        return self.step == self.steps

    def checkpoints(self) -> tuple[Trained, ...]:
        """The models that were kept on the way, the earliest first."""
        return tuple(map(open_trained, sorted((self.path / CHECKPOINTS).glob("step-*"))))


def train(
    world: World,
    settings: TrainSettings,
    path: Path,
    *,
    world_path: Path | None = None,
    tick: Tick | None = None,
    every: float = 20.0,
) -> Trained:
    """Train a model into a folder; a folder with part of the same training is gone on with.

    `every`: seconds between two savings of what a killed training goes on from.
    """
    settings = settings.settled()
    begun = _begun(world, settings, path)
    if begun is not None and begun["complete"]:
        return open_trained(path)
    needs("training", "torch", "transformers")
    from sonde.lab.training.steps import Training

    training = Training(world, settings, path, every=every, tick=tick or (lambda *_: None))
    # what was begun on one device would end as neither's: its sums are rounded otherwise
    was = begun and begun["settings"].get("device")
    if was and was != training.device:
        raise RunMismatch(
            f"the training of {path} was begun on {was} and cannot go on on {training.device}; use "
            f"--device {was}, or another folder with -o"
        )
    path.mkdir(parents=True, exist_ok=True)
    about = {
        "format": FORMAT,
        "kind": settings.kind,
        "size": settings.size,
        "world": {
            "fingerprint": world.fingerprint,
            "path": None if world_path is None else os.path.relpath(world_path, path),
        },
        "settings": asdict(training.settings),
    }
    if begun is None:
        write_record(path, {**about, "complete": False})
    training.run(about)
    return open_trained(path)


def open_trained(path: Path) -> Trained:
    """The model of a folder that `train` filled."""
    record = _read(path)
    if record is None:
        raise ModelError(
            f"{path} holds no model of a world: it has no {RECORD}; make one with "
            "'sonde lab train WORLD -o MODEL'"
        )
    if not record["complete"]:
        raise ModelError(
            f"the training of {path} was broken off; run the same 'sonde lab train' again to go on"
        )
    try:
        where = record["world"]["path"]
        return Trained(
            path=path,
            settings=TrainSettings(**record["settings"]),
            world_path=None if where is None else Path(os.path.normpath(path / where)),
            world_fingerprint=record["world"]["fingerprint"],
            **{name: record[name] for name in NUMBERS},
        )
    except (KeyError, TypeError):
        raise _unknown(path) from None


def shape(size: str) -> tuple[int, int]:
    """Width and layers of a size.

    >>> shape("tiny"), shape("192x4")
    ((128, 3), (192, 4))
    """
    if size in SIZES:
        return SIZES[size]
    numbers = re.fullmatch(r"(\d+)x(\d+)", size)
    if not numbers:
        hint = nearest(size, SIZES)
        raise UsageError(f"unknown size {size!r}; {hint}; or give WIDTHxLAYERS, such as 192x4")
    width, layers = map(int, numbers.groups())
    if width < 16 or width % 16 or not layers:
        raise UsageError(f"size {size!r}: the width must be a multiple of 16, the layers above 0")
    return width, layers


def kept_steps(steps: int, checkpoints: int) -> tuple[int, ...]:
    """After which steps a model is kept: half of all, half of that, and so on; rising.

    >>> kept_steps(1000, 3)
    (125, 250, 500)
    """
    halves = (steps // 2**k for k in range(checkpoints, 0, -1))
    return tuple(dict.fromkeys(step for step in halves if step))


def write_record(folder: Path, record: Mapping[str, Any]) -> None:
    """Write what is told beside a model."""
    text = json.dumps(record, indent=1, ensure_ascii=False) + "\n"
    write_whole(folder / RECORD, text.encode())


def _begun(world: World, settings: TrainSettings, path: Path) -> dict[str, Any] | None:
    """What a folder says of a training in it; refused if it is another one."""
    record = _read(path)
    if record is None:
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise StoreError(
                f"{path} is there and holds no model of a world; give another folder with -o"
            )
        return None
    if record["world"].get("fingerprint") != world.fingerprint:
        raise RunMismatch(f"{path} holds a model of another world; give another folder with -o")
    loose = ("device", "threads")  # these are chosen anew on another machine
    was, now = record["settings"], asdict(settings)
    other = [name for name in now if name not in loose and was.get(name) != now[name]]
    if other:
        name = other[0]
        raise RunMismatch(
            f"{path} holds a model trained with {name} {was.get(name)}, not {now[name]}; give "
            "another folder with -o"
        )
    return record


def _read(path: Path) -> dict[str, Any] | None:
    if not (path / RECORD).exists():
        return None
    record = read_json(path / RECORD, "train the model anew")
    parts = (record.get("world"), record.get("settings"))
    known = record.get("format") == FORMAT and "complete" in record
    if not known or not all(isinstance(part, dict) for part in parts):
        raise _unknown(path)
    return record


def _unknown(path: Path) -> ModelError:
    return ModelError(f"{path / RECORD} is not of this version of sonde; train the model anew")
