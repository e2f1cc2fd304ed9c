"""Training: what is read, that it can be broken off, and what a folder says afterwards."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sonde.core.errors import ModelError, RunMismatch, StoreError, UsageError
from sonde.lab.training.corpus import (
    IGNORED,
    PAD,
    Blocks,
    Corpus,
    MaskedSentences,
    make_tokenizer,
    tokenised,
)
from sonde.lab.training.train import STATE, Kind, Trained, TrainSettings, open_trained, train
from sonde.lab.worlds.folder import write_world
from sonde.lab.worlds.world import World, make_world

from .worlds import small

SHORT = TrainSettings(size="16x1", epochs=2, batch=16, block=32, checkpoints=2, threads=1)
KILLED = """
import os, signal, sys
from pathlib import Path
from sonde.lab.worlds.folder import open_world
from sonde.lab.training.train import TrainSettings, train
world, out, settings = Path(sys.argv[1]), Path(sys.argv[2]), eval(sys.argv[3])
def tick(done, total, how):
    if done == 5:
        os.kill(os.getpid(), signal.SIGKILL)
train(open_world(world), settings, out, world_path=world, tick=tick, every=0)
"""


class Broken(Exception):
    """Stands for whatever ends a process."""


@pytest.fixture(scope="module")
def world() -> World:
    return make_world(small())


@pytest.fixture(scope="module")
def folder(world: World, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("worlds") / "world"
    write_world(world, path)
    return path


@pytest.fixture(scope="module")
def calm(world: World, folder: Path) -> Trained:
    """A causal model that was trained in peace."""
    return train(world, SHORT, folder.parent / "calm", world_path=folder)


def files(path: Path) -> dict[str, bytes]:
    return {str(f.relative_to(path)): f.read_bytes() for f in path.rglob("*") if f.is_file()}


def break_off(world: World, settings: TrainSettings, path: Path, at: int, folder: Path) -> None:
    def tick(done: int, total: int, how: str) -> None:
        if done == at:
            raise Broken

    with pytest.raises(Broken):
        train(world, settings, path, world_path=folder, tick=tick, every=0)


@pytest.mark.parametrize("kind", ["causal", "masked"])
def test_a_training_that_is_broken_off_ends_with_the_same_bytes(
    world: World, folder: Path, kind: Kind
) -> None:
    settings = replace(SHORT, kind=kind, epochs=1)
    one, other = folder.parent / f"one-{kind}", folder.parent / f"other-{kind}"
    train(world, settings, one, world_path=folder)
    break_off(world, settings, other, 3, folder)
    with pytest.raises(ModelError, match="was broken off; run the same 'sonde lab train' again"):
        open_trained(other)
    train(world, settings, other, world_path=folder)
    assert files(other) == files(one)


def test_a_training_that_is_killed_ends_with_the_same_bytes(
    world: World, folder: Path, calm: Trained
) -> None:
    out = folder.parent / "killed"
    words = [sys.executable, "-c", KILLED, str(folder), str(out), repr(SHORT)]
    assert subprocess.run(words).returncode == -signal.SIGKILL
    assert (out / STATE).exists()
    train(world, SHORT, out, world_path=folder)
    assert files(out) == files(calm.path)


@pytest.mark.slow
def test_a_training_that_is_interrupted_says_how_to_go_on(tmp_path: Path, folder: Path) -> None:
    out = tmp_path / "model"
    command = [str(Path(sys.executable).with_name("sonde")), "lab", "train", str(folder)]
    command += ["--size", "16x1", "--epochs", "500", "--threads", "1", "-o", str(out)]
    running = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    while not out.exists():
        assert running.poll() is None
        time.sleep(0.01)
    time.sleep(1)
    running.send_signal(signal.SIGINT)
    assert "run the same command again to go on" in running.communicate(timeout=60)[1]
    assert running.returncode == 130


def test_the_folder_says_what_the_model_is(calm: Trained, world: World, folder: Path) -> None:
    assert (calm.kind, calm.settings.size, calm.settings.lists) == ("causal", "16x1", 0.3)
    assert calm.final and calm.step == calm.steps
    assert calm.world_fingerprint == world.fingerprint
    assert calm.world_path == folder
    assert not (calm.path / STATE).exists()
    record = json.loads((calm.path / "lab.json").read_text())
    assert record["history"][-1] == [calm.steps, calm.loss]
    assert record["history"][0][1] > calm.loss
    assert {"sonde", "torch", "transformers"} <= record["versions"].keys()


def test_checkpoints_are_models_of_their_own(calm: Trained, folder: Path) -> None:
    kept = calm.checkpoints()
    assert [each.step for each in kept] == [calm.steps // 4, calm.steps // 2]
    assert not any(each.final for each in kept)
    assert {each.world_path for each in kept} == {folder}
    assert len({calm.weights, *(each.weights for each in kept)}) == 3


def test_what_is_trained_is_not_trained_again(calm: Trained, world: World) -> None:
    def tick(done: int, total: int, how: str) -> None:
        raise AssertionError

    assert train(world, SHORT, calm.path, tick=tick) == calm


def test_another_training_in_the_folder_is_refused(calm: Trained, world: World) -> None:
    with pytest.raises(RunMismatch, match="trained with epochs 2, not 3"):
        train(world, replace(SHORT, epochs=3), calm.path)
    with pytest.raises(RunMismatch, match="model of another world"):
        train(make_world(small(seed=1)), SHORT, calm.path)


def test_a_training_does_not_change_its_device(world: World, folder: Path, tmp_path: Path) -> None:
    break_off(world, SHORT, tmp_path / "model", 1, folder)
    record = json.loads((tmp_path / "model/lab.json").read_text())
    record["settings"]["device"] = "cuda"
    (tmp_path / "model/lab.json").write_text(json.dumps(record))
    with pytest.raises(RunMismatch, match="begun on cuda and cannot go on on cpu"):
        train(world, SHORT, tmp_path / "model")


def test_a_folder_of_something_else_is_left_alone(world: World, tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("mine")
    with pytest.raises(StoreError, match="holds no model of a world"):
        train(world, SHORT, tmp_path)
    with pytest.raises(ModelError, match=r"no lab\.json; make one"):
        open_trained(tmp_path)


def test_a_damaged_state_is_refused(world: World, folder: Path, tmp_path: Path) -> None:
    break_off(world, SHORT, tmp_path / "model", 2, folder)
    state = tmp_path / "model" / STATE
    data = bytearray(state.read_bytes())
    data[-1] ^= 1
    state.write_bytes(data)
    with pytest.raises(StoreError, match="is damaged"):
        train(world, SHORT, tmp_path / "model")


@pytest.mark.parametrize("content", [b"{", b"[]", b"\xff", b"[" * 99999])
def test_a_record_that_is_no_record_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "lab.json").write_bytes(content)
    with pytest.raises(ModelError, match=r"lab\.json cannot be read .*train the model anew"):
        open_trained(tmp_path)


@pytest.mark.parametrize(
    "change",
    [{"format": 0}, {"world": []}, {"settings": 3}, {"settings": {"a": 1}}, {"world": {"path": 1}}],
)
def test_a_record_of_another_form_is_refused(
    calm: Trained, tmp_path: Path, change: dict[str, Any]
) -> None:
    record = json.loads((calm.path / "lab.json").read_text())
    for body in (record | change, change):
        (tmp_path / "lab.json").write_text(json.dumps(body))
        with pytest.raises(ModelError, match="not of this version"):
            open_trained(tmp_path)


def test_a_loss_that_is_no_number_ends_training(world: World, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"no longer a finite number; use a smaller --rate"):
        train(world, replace(SHORT, rate=1e30), tmp_path / "model")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"size": "huge"}, "unknown size 'huge'"),
        ({"size": "20x2"}, "multiple of 16"),
        ({"lists": 1.5}, "lists must be between"),
        ({"rate": -1.0}, "rate must be"),
        ({"block": 1024}, "block must be at most 512"),
    ],
)
def test_contradictory_settings_are_refused(change: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        replace(SHORT, **change)  # type: ignore[arg-type]


def test_a_world_without_text_is_refused(world: World) -> None:
    with pytest.raises(UsageError, match="no text to learn from"):
        tokenised([], make_tokenizer(world.words(), "causal"))


LENGTHS = np.array([3, 5, 4, 7, 3, 6, 5])
CORPUS = Corpus(
    ids=np.arange(100, 133, dtype=np.uint16),
    starts=np.cumsum(LENGTHS) - LENGTHS,
    lengths=LENGTHS,
)


def test_each_reading_holds_every_token_once_in_an_order_of_its_own() -> None:
    blocks = Blocks(CORPUS, TrainSettings(block=8, batch=2), "cpu")
    assert blocks.each == 3
    readings = []
    for epoch in range(2):
        steps = [blocks.step(epoch * blocks.each + i) for i in range(blocks.each)]
        ids = [int(id) for found, _ in steps for id in found.flatten() if id != PAD]
        assert Counter(ids) == Counter(CORPUS.ids.tolist())
        readings.append(ids)
        for found, labels in steps:
            assert labels[:, :-1].ne(IGNORED).eq(found[:, 1:] != PAD).all()
            assert labels[labels != IGNORED].eq(found[:, 1:][found[:, 1:] != PAD]).all()
    assert readings[0] != readings[1]


def test_every_sentence_has_a_masked_word_and_none_where_it_opens_or_ends() -> None:
    holes = MaskedSentences(CORPUS, TrainSettings(mask=0.2, batch=3), "cpu", 4)
    met: Counter[int] = Counter()
    for step in range(4 * holes.each):
        found, labels = holes.step(step)
        at = labels != IGNORED
        assert at.any(1).all()
        assert (found[at] == 4).all()
        whole = found.where(~at, labels)
        met.update(int(id) for id in whole.flatten() if id != PAD)
        hidden = set(labels[at].tolist())
        edges = {*(CORPUS.starts + 100), *(CORPUS.starts + CORPUS.lengths + 99)}
        assert not hidden & edges
    assert met == Counter(dict.fromkeys(range(100, 133), 4))


def test_the_same_step_masks_the_same_words() -> None:
    settings = TrainSettings(mask=0.5, batch=3)
    one, other = (MaskedSentences(CORPUS, settings, "cpu", 4) for _ in "ab")
    one.step(0)
    assert one.step(4)[0].equal(other.step(4)[0])
