"""`sonde lab train`: train a small model on the text of a world, and say how it went."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from sonde.cli.console import say, training, waiting
from sonde.cli.run import command, flags_of
from sonde.core.settings import build
from sonde.lab.training.train import TrainSettings

if TYPE_CHECKING:
    from sonde.lab.training.train import Trained

Folder = Annotated[Path, typer.Argument(metavar="WORLD", help="Folder of the world.")]
Out = Annotated[
    Path,
    typer.Option("--out", "-o", help="Folder for the model; a killed training goes on there."),
]


def make(kind: type, settings: dict[str, Any], *, folder: Folder, out: Out) -> None:
    """Train a model and keep it; what the command does."""
    from sonde.lab.training.train import train
    from sonde.lab.worlds.folder import open_world

    chosen = cast(TrainSettings, build(kind, settings))
    with waiting(f"opening {folder}"):
        world = open_world(folder)
    with training(f"training a {chosen.size} {chosen.kind} model") as tick:
        found = train(world, chosen, out, world_path=folder, tick=tick)
    show(found)


def show(found: Trained) -> None:
    """Print what was trained, and how to ask it."""
    say(
        f"{found.size} {found.kind} model: {found.parameters:,} parameters, {found.steps:,} steps, "
        f"a text of {found.tokens:,} tokens in {found.settings.epochs} readings, "
        f"loss {found.loss:.3f} nats a token"
    )
    kept = [str(each.step) for each in found.checkpoints()]
    if kept:
        say(f"checkpoints after {', '.join(kept)} steps")
    say(f"model: hf:{found.path}")


train = command("lab", TrainSettings, cast(Any, make), flags_of(make))
train.__doc__ = (
    f"{inspect.getdoc(TrainSettings)}\n\n"
    "The folder is an ordinary transformers model: ask it as hf:FOLDER. The same command goes on "
    "with a training that was broken off.\n\n"
    "Example: sonde lab train worlds/0 --kind causal --size tiny -o models/0-causal"
)
