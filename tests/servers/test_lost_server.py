"""A run that loses its server stops with a sentence and goes on later; another model is noticed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from transformers import AutoTokenizer

from sonde.core.errors import EndpointError, ServerError
from sonde.core.facts import Dataset
from sonde.data.format import open_dataset
from sonde.models.load import load
from sonde.models.options import LoadOptions
from sonde.probes.lama import Lama
from sonde.runs.run import run
from tests import tiny as worlds
from tests.command import files, process, ran
from tests.data.loopback import Reply
from tests.servers.agreement import SCORED, WRITTEN
from tests.servers.answering import Answering, Face, serving
from tests.servers.odd_faces import Deaf
from tests.servers.sglang_face import SglangFace
from tests.servers.vllm_face import VllmFace
from tests.written import many_shards

WEIGHT = 64
"""Four prompts of sixteen options in a shard."""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return open_dataset(many_shards(tmp_path_factory.mktemp("data") / "d", facts=12, objects=16))


def opened(address: str, folder: Path) -> Any:
    """A model behind a server that is not waited for."""
    hasty = LoadOptions(tokenizer=str(folder), server_wait=0.2, server_backoff=0.01)
    return load(f"server:{address}", hasty)


def ask(address: str, folder: Path, data: Dataset, out: Path, tick: Any = None) -> None:
    model = opened(address, folder)
    run(Lama(answer="score"), model, data, out, progress=tick, shard_weight=WEIGHT)


def shards(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(out.glob("shards/*.parquet"))}


def once(act: Callable[[], None]) -> Any:
    """Acts when half of a run is done, once."""
    left = [act]

    def tick(done: float, total: int) -> None:
        if left and done > total / 2:
            left.pop()()

    return tick


def test_a_run_that_lost_its_server_goes_on_and_ends_with_the_same_bytes(
    folder: Path, data: Dataset, tmp_path: Path
) -> None:
    face = Face(Answering(folder, 64))
    with serving(face) as address:
        ask(address, folder, data, tmp_path / "calm")
    with ExitStack() as stack:
        address = stack.enter_context(serving(face))
        with pytest.raises(EndpointError) as lost:
            ask(address, folder, data, tmp_path / "lost", once(stack.close))
    assert "was not back in 0.2 s; run the same command again" in str(lost.value)
    calm, kept = shards(tmp_path / "calm"), shards(tmp_path / "lost")
    assert 0 < len(kept) < len(calm) and kept.items() <= calm.items()
    with serving(face) as address:  # at another address
        ask(address, folder, data, tmp_path / "lost")
    assert shards(tmp_path / "lost") == calm


def test_the_command_stops_in_a_sentence_and_goes_on_to_the_same_bytes(
    folder: Path, tmp_path: Path
) -> None:
    """As a user has it: three shards, the server killed over the last, once one is written."""
    data = many_shards(tmp_path / "d", facts=9)
    face = VllmFace(Answering(folder, 64))
    killed = threading.Event()

    def words(address: str, out: str) -> tuple[object, ...]:
        model = ("-m", f"server:{address}", "--tokenizer", folder)
        hasty = ("--server-wait", "0.2", "--server-backoff", "0.01")
        return ("run", "lama", *model, *hasty, "-d", data, "-o", tmp_path / out, "--no-html")

    def dying(path: str, body: dict[str, Any], reply: Reply) -> Reply:
        asked = body.get("prompt", [[]])
        if not any("subject 8" in face.answering.tokenizer.decode(ids) for ids in asked):
            return reply
        while not shards(tmp_path / "lost"):  # they are written while others are asked
            time.sleep(0.01)
        killed.set()
        return Reply(body="", hang=True)

    with serving(face) as address:
        ran(*words(address, "calm"))
    face.change = dying
    with ThreadPoolExecutor(1) as pool:
        with serving(face) as address:
            running = pool.submit(process, *words(address, "lost"))
            while not (killed.wait(0.1) or running.done()):
                pass
        said = running.result().refused(4, "was not back in 0.2 s; run the same command again")
    assert "error: http://127.0.0.1:" in said
    calm, kept = shards(tmp_path / "calm"), shards(tmp_path / "lost")
    assert 0 < len(kept) < len(calm) == 3 and kept.items() < calm.items()
    face.change = None
    with serving(face) as address:
        assert process(*words(address, "lost")).code == 0
    assert files(tmp_path / "lost") == files(tmp_path / "calm")


def much_like(folder: Path, made: Path) -> Path:
    """The same model, its attention a little sharper, as after some steps of training."""
    return worlds.spoiled(Path(copytree(folder, made)), "c_attn.weight", lambda t: t * 1.1)


@pytest.mark.parametrize("kind", [Face, VllmFace, SglangFace])
@pytest.mark.parametrize("near", [False, True])
def test_another_model_at_the_same_address_is_noticed(
    folder: Path, data: Dataset, tmp_path: Path, near: bool, kind: type[Face]
) -> None:
    made = much_like(folder, tmp_path / "o") if near else worlds.gpt2(tmp_path / "o", seed=1)
    other = Answering(made, 64)
    with ExitStack() as stack, ExitStack() as later:
        address = stack.enter_context(serving(kind(Answering(folder, 64))))

        def restart() -> None:
            stack.close()
            later.enter_context(serving(kind(other), int(address.rpartition(":")[2])))

        with pytest.raises(ServerError) as told:
            ask(address, folder, data, tmp_path / "run", once(restart))
    assert "another model has come up" in str(told.value)
    assert len(shards(tmp_path / "run")) < 3  # nothing of the shard that was under way


@pytest.mark.parametrize("kind", [Face, VllmFace, SglangFace])
def test_another_tokenizer_at_the_same_address_is_noticed(
    folder: Path, tmp_path: Path, kind: type[Face]
) -> None:
    """The same weights, so that numbers of tokens are the same and only their texts are not."""
    other = Answering(folder, 64)
    other.tokenizer = AutoTokenizer.from_pretrained(worlds.renumbered(worlds.gpt2(tmp_path)))
    face = kind(Answering(folder, 64))
    with serving(face) as address:
        model = opened(address, folder)
        assert len(list(model.score(SCORED[:1]))) == 1
        face.answering = other
        told = "another tokenizer has come up|does not answer as before|which is '.*' here"
        with pytest.raises((ServerError, EndpointError), match=told):
            list(model.generate(WRITTEN[:1]))


def test_another_model_that_only_writes_is_noticed(folder: Path, tmp_path: Path) -> None:
    other = Answering(worlds.gpt2(tmp_path / "other", seed=1), 64)
    with ExitStack() as stack, ExitStack() as later:
        address = stack.enter_context(serving(Deaf(Answering(folder, 64))))
        model = opened(address, folder)
        assert len(list(model.generate(WRITTEN[:2]))) == 2
        stack.close()
        later.enter_context(serving(Deaf(other), int(address.rpartition(":")[2])))
        with pytest.raises(ServerError, match="another model has come up"):
            list(model.generate(WRITTEN[2:4]))
