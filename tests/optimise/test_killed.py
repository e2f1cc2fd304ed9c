"""A killed search goes on in the middle of its relations, and ends with the same prompts."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from sonde.core.errors import StoreError
from sonde.core.facts import Dataset
from sonde.data.format import write_dataset
from sonde.optimise import state as state_module
from sonde.optimise.autoprompt import AutoPrompt
from sonde.optimise.autoprompt.search import Triggers
from sonde.optimise.making import optimise
from sonde.optimise.optiprompt import OptiPrompt
from sonde.optimise.optiprompt.vectors import Vectors
from tests.command import in_this_process

from .world import changed, dataset, facts, opened

Folders = Callable[[str], Path]
KILLED = """
import os, signal
from sonde.cli.main import main
from sonde.optimise import state

write = state.State.write

def then_killed(self, folder):
    write(self, folder)
    if self.step == 5:
        os.kill(os.getpid(), signal.SIGKILL)

state.SECONDS, state.State.write = 0.0, then_killed
main()
"""
SEARCH = AutoPrompt(iterations=9, triggers=3, batch=12, candidates=8)
TRAINING = OptiPrompt(start="manual", epochs=6, batch=6, rate=0.01)


def steps(monkeypatch: pytest.MonkeyPatch, learner: Any) -> list[int]:
    """The numbers of the steps that are taken from here on."""
    taken: list[int] = []
    whole = learner.step

    def step(self: Any, active: list[int], step: int) -> Any:
        taken.append(step)
        return whole(self, active, step)

    monkeypatch.setattr(learner, "step", step)
    return taken


def stopped(method: Any, model: Any, data: Dataset, out: Path, after: int) -> None:
    """Stop when so many steps are written down."""

    def write(self: Any, folder: Path) -> None:
        whole(self, folder)
        if self.step == after:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        whole = state_module.State.write
        patch.setattr(state_module, "SECONDS", 0.0)
        patch.setattr(state_module.State, "write", write)
        with pytest.raises(KeyboardInterrupt):
            optimise(method, model, data, out)


def made(out: Path) -> dict[str, bytes]:
    """Every file of a folder but the lock."""
    return {path.name: path.read_bytes() for path in out.iterdir() if path.name != ".lock"}


def test_a_command_killed_in_the_middle_of_a_search_ends_with_the_same_templates(
    folder: Folders,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write_dataset(dataset(), tmp_path / "facts")
    given = {"-m": f"hf:{folder('bert')}", "-d": tmp_path / "facts", "--device": "cpu"}
    given |= {"--iterations": 9, "--triggers": 3, "--batch": 12, "--candidates": 8}
    words = ["optimise", "autoprompt", *(str(word) for pair in given.items() for word in pair)]
    sonde = in_this_process(capsys)
    assert sonde(*words, "-o", tmp_path / "whole").code == 0
    command = [sys.executable, "-c", KILLED, *words, "-o", str(tmp_path / "parts")]
    ended = subprocess.run(command, capture_output=True, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert not (tmp_path / "parts" / "progress.jsonl").exists()
    taken = steps(monkeypatch, Triggers)
    assert sonde(*words, "-o", tmp_path / "parts").code == 0
    assert taken == [5, 6, 7, 8]
    assert made(tmp_path / "parts") == made(tmp_path / "whole")


@pytest.mark.parametrize(("method", "learner"), [(SEARCH, Triggers), (TRAINING, Vectors)])
def test_whatever_is_searched_goes_on_after_any_step(
    method: Any,
    learner: Any,
    folder: Folders,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = optimise(method, opened(folder("bert")), dataset(), tmp_path / "whole")
    stopped(method, opened(folder("bert")), dataset(), tmp_path / "parts", after=1)
    stopped(method, opened(folder("bert")), dataset(), tmp_path / "parts", after=7)
    taken = steps(monkeypatch, learner)
    assert optimise(method, opened(folder("bert")), dataset(), tmp_path / "parts") == whole
    assert taken[0] == 7
    assert made(tmp_path / "parts") == made(tmp_path / "whole")


def test_a_relation_goes_on_without_the_one_beside_it_that_ended(
    folder: Folders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # the one with the longer template ends first, after six steps
    data = changed(dataset(), "P36", [fact for fact in facts("P36") if fact.split != "test"][:8])
    whole = optimise(TRAINING, opened(folder("bert")), data, tmp_path / "whole")
    stopped(TRAINING, opened(folder("bert")), data, tmp_path / "parts", after=8)
    taken = steps(monkeypatch, Vectors)
    found = optimise(TRAINING, opened(folder("bert")), data, tmp_path / "parts")
    assert taken[0] == 8 and found == whole
    vectors, others = (load_file(tmp_path / n / "vectors.safetensors") for n in ("whole", "parts"))
    assert vectors.keys() == others.keys()
    for name, vector in vectors.items():
        np.testing.assert_allclose(others[name], vector, atol=1e-6)


def test_a_state_that_does_not_read_back_is_refused(folder: Folders, tmp_path: Path) -> None:
    stopped(SEARCH, opened(folder("bert")), dataset(), tmp_path / "out", after=2)
    (tmp_path / "out" / "state.safetensors").write_bytes(b"nothing")
    with pytest.raises(StoreError, match=r"does not read back .* begin anew"):
        optimise(SEARCH, opened(folder("bert")), dataset(), tmp_path / "out")
