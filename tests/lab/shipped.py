"""The world and the models that come with sonde, each opened once: models that did learn."""

from __future__ import annotations

from functools import cache

from sonde.cli.lab import SHIPPED
from sonde.core.abilities import Model
from sonde.lab.training.train import Kind, Trained, open_trained
from sonde.lab.worlds.folder import open_world
from sonde.lab.worlds.world import World
from sonde.models.load import load
from sonde.models.options import LoadOptions

PLACE = SHIPPED / "world"


@cache
def the_world() -> World:
    return open_world(PLACE)


@cache
def the_model(kind: Kind) -> tuple[Trained, Model]:
    """What is told beside a model, and the model itself."""
    options = LoadOptions(device="cpu", dtype="float32")
    return open_trained(SHIPPED / kind), load(f"hf:{SHIPPED / kind}", options)
