"""Models over several devices learn prompts as on one, or are refused where they cannot."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from accelerate import dispatch_model

from sonde.core.errors import ModelError
from sonde.data.format import write_dataset
from sonde.models.load import load
from sonde.models.options import LoadOptions
from sonde.models.torch.loading.spread import is_fetched, is_spread, settle
from sonde.optimise.autoprompt import AutoPrompt
from sonde.optimise.finetune import FineTune
from sonde.optimise.making import optimise
from sonde.optimise.optiprompt import OptiPrompt
from tests.command import in_this_process

from .world import dataset, opened

Folders = Callable[[str], Path]
SEARCH = AutoPrompt(iterations=4, triggers=3, batch=12, candidates=8)
TRAINING = OptiPrompt(epochs=2, vectors=3, batch=12)


def spread(folder: Path) -> Any:
    """A model whose parts are handed their inputs, as those on several devices are."""
    model = opened(folder)
    dispatch_model(model.model, {"": "cpu"}, main_device="cpu", force_hooks=True)
    settle(model.model)
    assert is_spread(model.model) and not is_fetched(model.model)
    return model


def on_disk(folder: Path) -> Any:
    model: Any = load(f"hf:{folder}", LoadOptions(device_map="auto", max_memory="cpu=1KB"))
    assert is_fetched(model.model)
    return model


@pytest.mark.parametrize("method", [SEARCH, TRAINING])
@pytest.mark.parametrize("kind", ["bert", "llama"])
def test_gradients_go_through_parts_that_are_spread(
    kind: str, method: Any, folder: Folders, tmp_path: Path
) -> None:
    found = optimise(method, spread(folder(kind)), dataset(), tmp_path / "spread")
    assert found == optimise(method, opened(folder(kind)), dataset(), tmp_path / "whole")


@pytest.mark.parametrize("method", [SEARCH, TRAINING, FineTune(epochs=1)])
def test_weights_on_disk_are_refused_where_gradients_need_them(
    method: Any, folder: Folders, tmp_path: Path
) -> None:
    with pytest.raises(ModelError, match=r"has weights on the CPU or on disk, .* optimise lpaqa"):
        optimise(method, on_disk(folder("bert")), dataset(), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_weights_on_several_devices_are_not_fine_tuned(folder: Folders, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="spread over several devices, and copies of its weights"):
        optimise(FineTune(epochs=1), spread(folder("bert")), dataset(), tmp_path / "out")


def test_templates_are_weighed_by_a_model_on_disk(
    folder: Folders, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_dataset(dataset(), tmp_path / "facts")
    words = ("optimise", "lpaqa", "-m", f"hf:{folder('bert')}", "-d", tmp_path / "facts")
    spread = ("--device-map", "auto", "--max-memory", "cpu=1KB")
    sonde = in_this_process(capsys)
    assert sonde(*words, *spread, "-o", tmp_path / "spread").code == 0
    assert sonde(*words, "--device", "cpu", "-o", tmp_path / "whole").code == 0
    written = [(tmp_path / n / "templates.jsonl").read_bytes() for n in ("spread", "whole")]
    assert written[0] == written[1]
