"""Each dialect gives what the same model gives here, asked of a server without HTTP."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from sonde.core.abilities import abilities
from sonde.core.costs import Cost
from sonde.models.options import LoadOptions
from sonde.models.served.dialect import Setting
from sonde.models.served.model import served_model
from sonde.models.served.tokens import read_tokens
from sonde.models.served.trials import find, tried
from sonde.models.served.vllm import Vllm
from sonde.models.torch.causal.model import CausalModel
from sonde.models.torch.loading.weights import load_folder
from sonde.runs.shards import answer
from sonde.testing import check_model
from tests import tiny as worlds
from tests.servers.agreement import DRAWN, SCORED, TRACED, WRITTEN, assert_agrees
from tests.servers.answering import Answering, Face
from tests.servers.direct import Direct
from tests.servers.sglang_face import SglangFace
from tests.servers.vllm_face import VllmFace

FACES: Mapping[str, Callable[[Answering], Face]] = {
    "plain": Face,
    "sglang": SglangFace,
    "vllm": VllmFace,
}
"""A server of each dialect."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return worlds.gpt2(tmp_path_factory.mktemp("served"))


@pytest.fixture(scope="module")
def here(folder: Path) -> CausalModel:
    return CausalModel(load_folder("hf:here", folder, LoadOptions(device="cpu"), weights="w"))


def asked(face: Face, folder: Path) -> Any:
    """A model behind a face."""
    tokens = read_tokens(str(folder), LoadOptions(), "server:here")
    channel = Direct(face)
    trial = find(channel, tokens, "")
    return served_model(trial.found("here"), trial.dialect, channel, tokens)


@pytest.mark.parametrize("name", FACES)
def test_a_dialect_is_found_and_gives_what_the_model_gives_here(
    name: str, folder: Path, here: CausalModel
) -> None:
    model = asked(FACES[name](Answering(folder, 64)), folder)
    assert model.dialect.name == name
    assert abilities(model) == {"score", "trace", "generate", "sample"}
    assert_agrees(model, here)


@pytest.mark.parametrize("name", FACES)
def test_a_served_model_keeps_to_what_every_model_does(name: str, folder: Path) -> None:
    model = asked(FACES[name](Answering(folder, 64)), folder)
    check_model(model, [*SCORED[:3], *TRACED[:1], *WRITTEN[:3], DRAWN[0]])
    assert all(not len(columns) for _, columns in model.score([]))


@pytest.mark.parametrize("name", FACES)
def test_a_plan_counts_the_requests_that_are_sent(name: str, folder: Path) -> None:
    face = FACES[name](Answering(folder, 64))
    model = asked(face, folder)
    shards = [SCORED, TRACED, WRITTEN, DRAWN, [*SCORED, *WRITTEN, *TRACED]]
    for shard, cost in zip(shards, model.estimate_costs(shards), strict=True):
        before = len(face.seen)
        list(answer(model, shard))
        total = sum(cost.costs, Cost())
        assert total.requests == len(face.seen) - before > 0
        assert total.prompts == len(shard) and total.computed > 0
        assert total.options == sum(len(getattr(p.want, "options", ())) for p in shard)


def test_a_vllm_that_tells_no_token_ids_is_not_asked_as_one(folder: Path) -> None:
    tokens = read_tokens(str(folder), LoadOptions(), "server:here")
    face = VllmFace(Answering(folder, 64), knows_ids=False)
    dialect = Vllm(Setting(model=face.served, pieces=tokens.pieces))
    trial = tried(dialect, Direct(face), tokens)
    assert not trial.can
    assert "prompt_token_ids" in trial.why["rate"]
