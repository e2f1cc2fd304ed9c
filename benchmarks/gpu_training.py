"""Benchmark: a step of training on a GPU, recorded as a CUDA graph and as it is.

The lab's models in the shapes of its world of 48,000 facts (bfloat16), and, with `--model` and
`--data`, fine-tuning for all relations of a dataset side by side in batches of two (float32).
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import sonde
from benchmarks.common import Result, parser, tell
from sonde.lab.training.steps import Training, steady
from sonde.lab.training.train import Kind, TrainSettings
from sonde.lab.worlds.settings import WorldSettings
from sonde.lab.worlds.world import World, make_world
from sonde.models.load import load
from sonde.models.options import LoadOptions
from sonde.models.torch import recorded
from sonde.optimise.finetune import FineTune
from sonde.optimise.making import Order, optimise

BATCH: dict[Kind, int] = {"causal": 64, "masked": 2048}
WARM = 100
NEVER = 10**9


def main() -> None:
    """Measure and tell."""
    options = parser(__doc__ or "")
    options.add_argument("--steps", type=int, default=200)
    options.add_argument("--subjects", type=int, default=12000)
    options.add_argument("--size", default="small")
    options.add_argument("--model", default="", help="of fine-tuning, such as hf:FOLDER")
    options.add_argument("--data", default="", help="of fine-tuning, such as lama:FOLDER")
    options.add_argument("--limit", type=int, default=60)
    chosen = options.parse_args()
    rows, apart = [], []
    world = many_subjects(chosen.subjects)
    for kind in BATCH:
        took, losses = zip(
            *(lab(world, kind, chosen, record) for record in (False, True)), strict=True
        )
        rows.append(row(f"lab, {kind}", took))
        apart.append(f"{kind} {losses[0]:.4f} and {losses[1]:.4f}")
        print(rows[-1], apart[-1], flush=True)
    if chosen.model:
        rows.append(row("fine-tuning", [tuning(chosen, record) for record in (False, True)]))
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "a CPU"
    result = Result(
        name="gpu_training",
        title="A step of training, recorded and as it is",
        columns=("what", "as it is, ms", "recorded, ms", "ratio"),
        rows=tuple(rows),
        findings=(device, f"mean loss as it is and recorded: {', '.join(apart)}"),
    )
    tell(result, write=chosen.write)


def row(what: str, took: Any) -> tuple[str, ...]:
    """Both times, in milliseconds, and how many times faster the second is."""
    plain, fast = took
    return what, f"{plain * 1000:.2f}", f"{fast * 1000:.2f}", f"{plain / fast:.2f}"


def many_subjects(count: int) -> World:
    """A world with the words of the large one and less text."""
    relations: dict[str, Any] = {"one_one": 8, "many_one": 24, "many_many": 8, "unshown": 4}
    names: dict[str, Any] = {"subjects": count, "objects": 100, "words": 700, "families": 80}
    return make_world(WorldSettings(seed=0, facts=max(count // 40, 20), **relations, **names))


def lab(world: World, kind: Kind, chosen: Any, record: bool) -> tuple[float, float]:
    """Seconds a step of the lab's training, and the mean loss."""
    settings = TrainSettings(
        kind=kind, size=chosen.size, batch=BATCH[kind], epochs=1000, precision="bfloat16"
    ).settled()
    with tempfile.TemporaryDirectory() as folder, steady(settings):
        training = Training(world, settings, Path(folder), every=NEVER, tick=lambda *_: None)
        training.moved.records &= record

        def steps(count: int) -> None:
            for _ in range(count):
                training._step()

        steps(WARM)
        took = timed(lambda: steps(chosen.steps)) / chosen.steps
        return took, float(training.total) / (WARM + chosen.steps)


def tuning(chosen: Any, record: bool) -> float:
    """Seconds a step of fine-tuning: what four more epochs take, dev facts looked at included."""
    recorded.FIRST = 2 if record else NEVER
    model = load(chosen.model, LoadOptions(dtype="float32"))
    data = sonde.dataset(chosen.data)

    def trained(epochs: int) -> float:
        method = FineTune(epochs=epochs, keep="nothing")
        order = Order(limit=chosen.limit, drop_leaked=True)
        with tempfile.TemporaryDirectory() as folder:
            return timed(lambda: optimise(method, model, data, Path(folder) / "out", order=order))

    _, short, long = (trained(epochs) for epochs in (1, 1, 5))
    return (long - short) / float(4 * -(-chosen.limit // 2))


def timed(run: Callable[[], Any]) -> float:
    """Seconds that something takes, until the device has finished it."""
    cuda: Any = torch.cuda
    wait: Callable[[], None] = cuda.synchronize if cuda.is_available() else (lambda: None)
    wait()
    began = time.perf_counter()
    run()
    wait()
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
