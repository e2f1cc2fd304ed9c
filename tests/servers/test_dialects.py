"""Each dialect gives what the same model gives here, asked of a server without HTTP."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from sonde.core.abilities import abilities
from sonde.core.costs import Cost
from sonde.core.prompts import Generate
from sonde.models.options import LoadOptions
from sonde.models.served.dialect import Setting
from sonde.models.served.model import served_model
from sonde.models.served.reading import Text
from sonde.models.served.tokens import read_tokens
from sonde.models.served.trials import find, tried
from sonde.models.served.vllm import Vllm
from sonde.models.torch.causal.model import CausalModel
from sonde.models.torch.loading.weights import load_folder
from sonde.runs.shards import answer
from sonde.testing import check_model
from tests.servers.agreement import DRAWN, SCORED, TRACED, WRITTEN, assert_agrees, write
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
def here(folder: Path) -> CausalModel:
    return CausalModel(load_folder("hf:here", folder, LoadOptions(device="cpu"), weights="w"))


def asked(face: Face, folder: Path) -> Any:
    """A model behind a face."""
    tokens = read_tokens(str(folder), LoadOptions(), "server:here")
    transport = Direct(face)
    trial = find(transport, tokens, "")
    return served_model(trial.found("here"), trial.dialect, transport, tokens)


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


NAMES = ("Ω", "Zürich", "Москва", "東京", "naïve", "Łódź", "France", "Oslo", "Curie", "1867")


def test_written_tokens_that_are_parts_of_characters_keep_their_numbers(folder: Path) -> None:
    """A plain server tells the texts of tokens only, and � for a part of a character."""
    made = CausalModel(load_folder("hf:here", folder, LoadOptions(device="cpu"), weights="w"))
    there = asked(Face(Answering(folder, 64)), folder)
    untils = ("", "\n", "a", "e")
    prompts = [write(f"{name} is", Generate(most=8, until=u)) for name in NAMES for u in untils]
    theirs, ours = dict(there.generate(prompts)), dict(made.generate(prompts))
    assert any("\ufffd" in answer.text for answer in ours.values())
    for i in range(len(prompts)):
        one, two = theirs[i], ours[i]
        assert one.finished == two.finished
        assert one.text == two.text or ("<|" in two.text and "\ufffd" in two.text)
        assert one.logps == pytest.approx(two.logps, abs=1e-5)
        assert (one.end_logp is None) == (two.end_logp is None)
        assert one.end_logp is None or one.end_logp == pytest.approx(two.end_logp, abs=1e-5)


def test_long_texts_that_are_read_throughout_are_not_asked_node_by_node(folder: Path) -> None:
    model = asked(VllmFace(Answering(folder, 64)), folder)
    long = [Text(ids=tuple(range(k, k + 300)), reads=tuple(range(1, 300))) for k in range(40)]
    assert len(model.reading(long).owners) == 40
