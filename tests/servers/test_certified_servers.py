"""A model behind a real server is certified beside the folder that it is served from."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import count
from math import sin
from pathlib import Path
from typing import Any

import pytest

from sonde import api, open_run
from sonde.core.errors import CertificateError
from sonde.data.format import open_dataset
from sonde.models.options import LoadOptions
from sonde.probes.lama import Lama
from sonde.reports.terminal import as_text
from sonde.runs.run import run as ask
from tests import tiny
from tests.command import Done, Sonde, in_this_process
from tests.data.loopback import Reply
from tests.servers.answering import Answering, Face, serving
from tests.servers.llama import started, write_model
from tests.servers.vllm_face import VllmFace
from tests.written import many_shards

NOT_COMPARED = "The numbers of another program were not compared with those of the model."
ASKED = ("--relations", "P36", "--limit", "1")


@pytest.fixture
def sonde(capsys: pytest.CaptureFixture[str]) -> Sonde:
    return in_this_process(capsys)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SONDE_CACHE", str(tmp_path / "cache"))
    few = api.dataset("atlas", relations=("P36", "P30", "P17", "P19", "P103", "P20", "P27", "P37"))
    monkeypatch.setattr("sonde.runs.certifying.fixed_facts", lambda: few)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.llama(tmp_path_factory.mktemp("served") / "model")


def changed(by: Callable[[float], float]) -> Callable[[str, Any, Reply], Reply]:
    """A server that changes every log-probability on its way out."""

    def change(path: str, _body: Any, reply: Reply) -> Reply:
        if "completions" not in path or reply.status != 200:
            return reply
        found = json.loads(reply.body)
        for choice in found["choices"]:
            if logprobs := choice["logprobs"]:
                values = logprobs["token_logprobs"]
                logprobs["token_logprobs"] = [None if x is None else by(x) for x in values]
                for place in logprobs.get("top_logprobs", ()):
                    place.update({text: by(x) for text, x in place.items()})
        return Reply(body=json.dumps(found), headers=reply.headers)

    return change


def plain(done: Done) -> str:
    """What was printed, however its lines were broken."""
    return " ".join(done.out.split())


def certified(run: Path) -> bool:
    """Whether a run's report shows a certificate that its model is equal."""
    return "Certificate: equal" in as_text(open_run(run).report())


def doctor(sonde: Sonde, address: str, folder: Path, *words: object) -> Done:
    model = ("-m", f"server:{address}/v1", "--tokenizer", folder)
    return sonde("doctor", *model, "--against", f"hf:{folder}", *ASKED, *words)


def run(sonde: Sonde, address: str, folder: Path, out: Path, *words: object) -> Done:
    model = ("-m", f"server:{address}/v1", "--tokenizer", folder)
    return sonde("run", "lama", *model, *ASKED, "-o", out, "--no-html", *words)


def test_a_sound_server_is_equal_and_its_runs_say_so_wherever_it_listens(
    sonde: Sonde, folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    answering = Answering(folder)
    with serving(Face(answering)) as address:
        assert NOT_COMPARED in plain(run(sonde, address, folder, tmp_path / "none"))
        assert "No certificate: what another program computes" in caplog.text
        done = doctor(sonde, address, folder)
    assert done.code == 0 and "but for rounding" in plain(done)
    with serving(Face(answering)) as address:
        shown = run(sonde, address, folder, tmp_path / "run")
    assert shown.code == 0 and certified(tmp_path / "run")
    with serving(Face(answering)) as address:
        late = run(sonde, address, folder, tmp_path / "none")
    assert late.code == 0 and certified(tmp_path / "none"), "nothing was prompted again"


def test_a_certified_server_can_be_asked_by_workers(
    sonde: Sonde, folder: Path, tmp_path: Path
) -> None:
    with serving(Face(Answering(folder))) as address:
        assert doctor(sonde, address, folder).code == 0
        shown = run(sonde, address, folder, tmp_path / "run", "--on", "local:1")
    assert shown.code == 0 and certified(tmp_path / "run")


def test_a_server_that_was_started_with_another_model_loses_its_certificate(
    sonde: Sonde, folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with serving(Face(Answering(folder))) as address:
        done = doctor(sonde, address, folder, "-o", tmp_path / "c.json")
    assert done.code == 0
    near = tiny.spoiled(tiny.llama(tmp_path / "near"), "q_proj", lambda tensor: tensor * 1.02)
    with serving(Face(Answering(near))) as address:
        shown = run(sonde, address, folder, tmp_path / "run")
        model = ("-m", f"server:{address}/v1", "--tokenizer", folder)
        given = sonde("run", "lama", *model, *ASKED, "--certificate", tmp_path / "c.json")
    assert "gives other numbers than when it was certified" in caplog.text
    assert NOT_COMPARED in plain(shown)
    given.refused(4, "gives other numbers than when it was certified")


@pytest.mark.parametrize("on", ["", "local:1"])
@pytest.mark.parametrize("lost", [False, True])
def test_a_server_that_comes_back_with_other_numbers_than_certified_ends_the_run(
    sonde: Sonde, folder: Path, tmp_path: Path, lost: bool, on: str
) -> None:
    """In half precision, by less than tells another model: only the certificate's prompt tells."""
    face, half = VllmFace(Answering(folder)), Answering(folder)
    half.model.half().float()
    data = open_dataset(many_shards(tmp_path / "d", facts=12, objects=16))

    def restarted(path: str, body: Any, reply: Reply) -> Reply:
        if not any("subject 11" in face.answering.tokenizer.decode(ids) for ids in prompts(body)):
            return reply
        face.change, face.answering = None, half
        return Reply(body='{"choices": [', reset=True) if lost else reply

    load, out = LoadOptions(tokenizer=str(folder)), tmp_path / "run"
    with serving(face) as address:
        assert doctor(sonde, address, folder).code == 0
        face.change = restarted
        with pytest.raises(CertificateError, match="gives other numbers than when it was certif"):
            ask(
                Lama(answer="score"),
                f"server:{address}",
                data,
                out,
                on=on,
                load=load,
                shard_weight=64,
            )
        assert face.change is None
        kept = len(list(out.glob("shards/*.parquet")))
        assert kept < 3, "nothing of the shard that was under way"
        with pytest.raises(CertificateError, match="gives other numbers than when it was certif"):
            ask(Lama(answer="score"), f"server:{address}", data, out, load=load, shard_weight=64)


def prompts(body: Any) -> list[Any]:
    """What a server was asked."""
    return body.get("prompt", []) if isinstance(body, dict) else []


@pytest.mark.parametrize(
    ("by", "verdict", "reason"),
    [
        (lambda logp: logp - 0.019 * abs(sin(1e4 * logp)), "other numerics", "0.019 nats"),
        (lambda logp: logp / 0.8, "broken", "temperature of 0.80"),
        (lambda logp: logp * 0.1 - 1, "broken", "temperature of 10.00"),
    ],
    ids=["noise", "temperature", "flat"],
)
def test_a_server_that_changes_its_numbers_is_found_out(
    sonde: Sonde,
    folder: Path,
    by: Callable[[float], float],
    verdict: str,
    reason: str,
) -> None:
    with serving(Face(Answering(folder), change=changed(by))) as address:
        done = doctor(sonde, address, folder, "--json")
    found = json.loads(done.out)["certificate"]
    assert found["verdict"] == verdict and reason in " ".join(found["reasons"])
    assert done.code == (4 if verdict == "broken" else 0)


def test_numbers_that_depend_on_the_order_of_questions_are_told_by_the_certificate(
    sonde: Sonde, folder: Path
) -> None:
    """Every third number is 0.004 nats lower; a run cannot see it, since each reply is sound."""
    asked = count()
    moved = changed(lambda logp: logp - 0.004 * (next(asked) % 3 == 0))
    with serving(Face(Answering(folder), change=moved)) as address:
        done = doctor(sonde, address, folder, "--json")
    found = json.loads(done.out)["certificate"]
    said = " ".join(found["reasons"])
    assert found["verdict"] == "other numerics"
    done.refused(4, "1 fault (asked again)")
    assert "asked backwards, it gives a token up to 0.004 nats more or less" in said


def test_llama_cpps_own_server_is_equal_to_the_folder(sonde: Sonde, tmp_path: Path) -> None:
    plain_folder, path = write_model(tmp_path)
    server = started(path)
    model = ("-m", f"server:{server.listening_address}", "--tokenizer", plain_folder)
    done = sonde("doctor", *model, "--against", f"hf:{plain_folder}", *ASKED, "--json")
    found = json.loads(done.out)["certificate"]
    assert (found["verdict"], found["against"]["differ"]) == ("equal", 0)
    beside = sonde("doctor", *model, "--against", f"gguf:{path}", *ASKED, "--json")
    assert json.loads(beside.out)["certificate"]["verdict"] == "equal"
