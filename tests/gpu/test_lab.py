"""A model of an invented world is taught on a GPU as on the CPU."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from sonde.lab.training.train import Kind, TrainSettings, train
from sonde.lab.worlds.folder import write_world
from sonde.lab.worlds.world import make_world
from tests.lab.worlds import small

pytestmark = pytest.mark.gpu

GPU = "cuda"
SHORT = TrainSettings(size="16x1", epochs=1, batch=16, block=32, threads=1)


def taught(out: Path, settings: TrainSettings) -> dict[str, np.ndarray]:
    """The weights after a short training."""
    world = make_world(small())
    write_world(world, out / "world")
    trained = train(world, settings, out / "model", world_path=out / "world")
    found: dict[str, np.ndarray] = load_file(trained.path / "model.safetensors")
    return found


def test_a_causal_model_ends_with_the_weights_that_the_cpu_gives_it(tmp_path: Path) -> None:
    found, expected = (taught(tmp_path / d, replace(SHORT, device=d)) for d in (GPU, "cpu"))
    assert found.keys() == expected.keys()
    for name, table in found.items():
        assert np.allclose(table, expected[name], atol=5e-3), name


@pytest.mark.parametrize("kind", ["causal", "masked"])
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_both_kinds_are_taught_in_both_precisions(
    kind: Kind, precision: str, tmp_path: Path
) -> None:
    settings = replace(SHORT, kind=kind, precision=precision, device=GPU)  # type: ignore[arg-type]
    found = taught(tmp_path, settings)
    assert all(table.dtype == np.float32 and np.isfinite(table).all() for table in found.values())
