"""The profile's estimate against what lab models have stored, over worlds with known truth.

The seeds and settings below were written down before the first estimate was made. Train the models
(`--train FOLDER`, some hours on two cores, minutes on a GPU), then run the profile on each of them.
"""

from pathlib import Path
from typing import Any, cast

from sonde.lab.training.train import TrainSettings, train
from sonde.lab.worlds.folder import open_world, write_world
from sonde.lab.worlds.settings import WorldSettings
from sonde.lab.worlds.world import make_world

# world: its settings, and the sizes of the causal and the masked model
WORLDS = {
    "w201": (WorldSettings(seed=201, skew=1.0, cues=0.3), "tiny", "tiny"),
    "w202": (WorldSettings(seed=202), "tiny", "tiny"),
    "w203": (
        WorldSettings(seed=203, skew=0.5, unshown=0, ladder=(2, 5, 10, 20, 50)),
        "tiny",
        "tiny",
    ),
    "w204": (WorldSettings(seed=204, skew=1.0, ladder=(0, 1, 2, 5)), "tiny", "tiny"),
    "w205": (WorldSettings(seed=205, skew=1.0, cues=0.3, ladder=(0, 2, 10, 50)), "small", "tiny"),
    "w206": (
        WorldSettings(seed=206, cues=0.3, unshown=0, ladder=(1, 5, 20, 100)),
        "small",
        "small",
    ),
}
EPOCHS = {"causal": (1, 4, 7, 10, 15), "masked": (3, 10, 16, 22, 30)}  # amounts of training
TRAINING_SEED = 7


def names() -> list[str]:
    """The models: world, kind and epochs."""
    return [f"{w}-{kind}-{n}" for w in WORLDS for kind, all_ in EPOCHS.items() for n in all_]


def train_models(folder: Path, chosen: list[str], device: str = "auto") -> None:
    """Train some of the models into FOLDER; finished ones are kept."""
    for name in chosen:
        world_name, kind, epochs = name.split("-")
        settings, causal, masked = WORLDS[world_name]
        path = folder / "worlds" / world_name
        if not path.exists():
            write_world(make_world(settings), path)
        size = causal if kind == "causal" else masked
        training = TrainSettings(
            kind=cast(Any, kind), size=size, epochs=int(epochs), seed=TRAINING_SEED, device=device
        )
        train(open_world(path), training, folder / "models" / name, world_path=path)


if __name__ == "__main__":
    import argparse

    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--train", type=Path, metavar="FOLDER", required=True)
    options.add_argument("--models", nargs="*", default=names())
    options.add_argument("--device", default="auto")
    chosen = options.parse_args()
    train_models(chosen.train, chosen.models, chosen.device)
