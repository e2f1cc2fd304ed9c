"""What a GPU is trained with gives what a CPU is trained with."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from sonde.lab.training.corpus import MaskedSentences, make_tokenizer, tokenised
from sonde.lab.training.steps import CAUSAL, Training, keep, loss_of, new_model, unwaiting_loss
from sonde.lab.training.train import TrainSettings
from sonde.lab.worlds.settings import WorldSettings
from sonde.lab.worlds.text import documents
from sonde.lab.worlds.world import World, make_world
from sonde.models.torch.recorded import Recorded
from tests.played import play

SMALL = TrainSettings(size="32x2", epochs=1, device="cpu", threads=1)


@pytest.fixture(scope="module")
def world() -> World:
    return make_world(WorldSettings(seed=3, facts=20, subjects=60, objects=5, words=40, families=8))


def grads(model: Any, loss: Any) -> list[Any]:
    """The gradient by every weight that has one."""
    model.zero_grad()
    loss.backward()
    return [p.grad.clone() for p in model.parameters() if p.grad is not None]


@pytest.mark.parametrize("share", [0.2, 0.9])
def test_the_loss_in_fixed_shapes_is_that_at_the_masked_words(world: World, share: float) -> None:
    settings = replace(SMALL, kind="masked", mask=share, batch=16).settled()
    tokenizer = make_tokenizer(world.words(), "masked", "en")
    corpus = tokenised((d.text for d in documents(world)), tokenizer)
    mask = tokenizer.token_to_id("[MASK]")
    assert mask is not None
    sentences = MaskedSentences(corpus, settings, "cpu", mask)
    model = new_model(settings, tokenizer)
    for step in range(4):
        ids, labels = sentences.step(step)
        plain = loss_of(model, settings, ids, labels)
        fixed = unwaiting_loss(model, share, ids, labels)
        assert fixed.item() == pytest.approx(plain.item(), abs=1e-5)
        pairs = zip(grads(model, plain), grads(model, fixed), strict=True)
        assert all(torch.allclose(one, other, atol=1e-6) for one, other in pairs)


def test_attention_without_a_mask_is_the_models_own_and_is_not_kept(
    world: World, tmp_path: Path
) -> None:
    settings = replace(SMALL, kind="causal").settled()
    tokenizer = make_tokenizer(world.words(), "causal", "en")
    model = new_model(settings, tokenizer)
    ids = torch.arange(40).reshape(2, 20) + 5
    plain = model(input_ids=ids, use_cache=False).logits
    keep(model, tokenizer, "causal", tmp_path / "plain")
    model.set_attn_implementation(CAUSAL)
    assert torch.allclose(model(input_ids=ids, use_cache=False).logits, plain, atol=1e-6)
    keep(model, tokenizer, "causal", tmp_path / "other")
    one, other = (
        json.loads((tmp_path / n / "config.json").read_text()) for n in ("plain", "other")
    )
    assert one == other


@pytest.mark.parametrize("kind", ["causal", "masked"])
def test_a_step_that_is_tried_both_ways_is_taken_once(
    kind: Any, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = replace(SMALL, kind=kind, batch=8).settled()
    ends = []
    for name in ("plain", "tried"):
        path = tmp_path / name
        path.mkdir()
        training = Training(world, settings, path, every=1e9, tick=lambda *_: None)
        if name == "tried":
            play(monkeypatch)
            training.moved.records = True
        training.run({"world": {"path": None}})
        ends.append([p.detach().clone() for p in training.model.parameters()])
    assert training.moved.agreed and training.moved.records
    assert all(torch.equal(one, other) for one, other in zip(*ends, strict=True))


@pytest.mark.gpu
@pytest.mark.parametrize("kind", ["causal", "masked"])
def test_a_recorded_training_is_the_plain_one(kind: Any, world: World, tmp_path: Path) -> None:
    """Also where batches have several shapes, and where a training goes on from its state."""
    settings = replace(SMALL, kind=kind, device="cuda", batch=8, epochs=3).settled()
    about = {"world": {"path": None}}
    ends = []
    for name in ("plain", "recorded"):
        path = tmp_path / name
        path.mkdir()
        training = Training(world, settings, path, every=1e9, tick=lambda *_: None)
        training.moved.records = name == "recorded"
        training.run(about)
        assert training.moved.records == (name == "recorded") == bool(training.moved.graphs)
        ends.append([p.detach().clone() for p in training.model.parameters()])
    pairs = zip(*ends, strict=True)
    assert all(torch.allclose(one, other, atol=1e-3) for one, other in pairs)


@pytest.mark.gpu
def test_a_step_that_waits_for_the_gpu_is_taken_as_it_is() -> None:
    total = torch.zeros(3, device="cuda")

    def step(values: Any) -> None:
        if float(values[0]) > 0:
            total.add_(values)

    recorded = Recorded("cuda")
    for n in range(5):
        recorded(step, lambda: [[total]], torch.full((3,), float(n + 1), device="cuda"))
    assert not recorded.records and total.tolist() == [15.0] * 3
