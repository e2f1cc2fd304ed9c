"""vLLM itself, from an environment of its own whose Python SONDE_VLLM_PYTHON names.

SONDE_VLLM_PYTHON=.venv-vllm/bin/python python -m pytest -m slow tests/servers/test_real_vllm.py
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sonde import model
from sonde.core.columns import one_by_one
from sonde.models.load import load
from sonde.models.options import LoadOptions
from sonde.models.served.model import served_model
from sonde.models.served.plain import Plain
from tests.models.test_vllm_dialect import ASKED, EXCHANGES
from tests.servers.agreement import DRAWN, SCORED, TRACED, WRITTEN, rows

PYTHON = os.environ.get("SONDE_VLLM_PYTHON", "")
ROOT = Path(__file__).parents[2]
FAR = 2e-4
"""Nats that a token may lie from where transformers has it, in float32."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PYTHON, reason="SONDE_VLLM_PYTHON names no Python with vLLM"),
]

ENGINE = """
import json, sys
from sonde import model
from tests.servers.agreement import SCORED, WRITTEN, rows

if __name__ == "__main__":
    subject = model(sys.argv[1])
    scored = [answer.logps for answer in rows(subject.score(SCORED), SCORED)]
    texts = [answer.text for answer in rows(subject.generate(WRITTEN), WRITTEN)]
    identity = subject.identity
    found = {"scored": scored, "texts": texts, "weights": identity.weights, "dtype": identity.dtype}
    print(json.dumps({**found, "details": dict(identity.details)}))
"""


@pytest.fixture(scope="module")
def here() -> Any:
    return model("smollm2", device="cpu", dtype="float32")


@pytest.fixture(scope="module")
def folder(here: Any) -> str:
    return str(here.loaded.tokenizer.name_or_path)


@pytest.fixture(scope="module")
def there(folder: str) -> Iterator[Any]:
    from benchmarks.served import serving  # it brings much with it

    with serving(folder, 32, python=PYTHON) as url:
        yield load(f"server:{url}", LoadOptions(tokenizer=folder, bos="never"))


def logps(subject: Any) -> Any:
    return [answer.logps for answer in rows(subject.score(SCORED), SCORED)]


def assert_near(one: Any, other: Any, far: float) -> None:
    for mine, yours in zip(one, other, strict=True):
        for left, right in zip(mine, yours, strict=True):
            np.testing.assert_allclose(left, right, atol=far)


def test_a_server_gives_what_transformers_gives(there: Any, here: Any) -> None:
    assert there.dialect.name == "vllm"
    assert_near(logps(there), logps(here), FAR)
    ours, theirs = rows(here.trace(TRACED), TRACED), rows(there.trace(TRACED), TRACED)
    assert_near([a.logps for a in theirs], [a.logps for a in ours], FAR)
    ours, theirs = rows(here.generate(WRITTEN), WRITTEN), rows(there.generate(WRITTEN), WRITTEN)
    assert [(a.text, a.finished) for a in theirs] == [(a.text, a.finished) for a in ours]
    assert_near([[a.logps] for a in theirs], [[a.logps] for a in ours], FAR)
    drawn = rows(there.sample(DRAWN), DRAWN)
    assert [sum(each.counts) for each in drawn] == [40, 40]
    assert drawn == rows(there.sample(DRAWN), DRAWN)


def test_nodes_whole_texts_and_echo_agree(there: Any) -> None:
    def by(dialect: Any, kind: Any) -> Any:
        found = replace(there.found, can=frozenset({kind}))
        return logps(served_model(found, dialect, there.transport, there.tokens))

    nodes, whole = by(there.dialect, "next"), by(there.dialect, "rate")
    assert_near(nodes, whole, 1e-6)
    assert_near(by(Plain(there.dialect.setting), "rate"), whole, 1e-6)


def test_the_server_still_answers_in_the_form_that_was_recorded(there: Any) -> None:
    model_name = there.dialect.setting.model
    requests = [r for asks in ASKED for r in there.dialect.requests(asks)]
    assert len(requests) == len(EXCHANGES)
    for request, known in zip(requests, EXCHANGES, strict=True):
        assert dict(request.body) | {"model": "smollm2"} == known["body"]
        ((_, reply),) = there.transport.send([request], lambda _, reply: reply, lambda _: ())
        theirs = there.dialect.read(request, reply)
        ours = there.dialect.read(request, known["reply"])
        for one, other in zip(theirs, ours, strict=True):
            if isinstance(one, np.ndarray):
                np.testing.assert_allclose(one, other, atol=FAR)
    assert model_name == "smollm2"


def in_process(folder: str) -> str:
    return f"vllm:{folder}?enforce_eager=true&max_model_len=512"


def with_vllm(*words: str) -> str:
    """What a program says that runs in vLLM's environment and finds this tree."""
    usual = {"VLLM_CPU_KVCACHE_SPACE": "1", "HF_HUB_OFFLINE": "1"}
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    env = {**usual, **os.environ, "PYTHONPATH": paths}
    return subprocess.run(
        [PYTHON, *words], env=env, stdout=subprocess.PIPE, text=True, check=True
    ).stdout


def test_the_engine_in_process_gives_what_transformers_gives(
    folder: str, here: Any, tmp_path: Path
) -> None:
    script = tmp_path / "engine.py"
    script.write_text(ENGINE)
    found = json.loads(with_vllm(str(script), in_process(folder)).splitlines()[-1])
    assert_near(found["scored"], logps(here), FAR)
    assert found["texts"] == [a.text for _, a in sorted(one_by_one(here.generate(WRITTEN)))]
    assert found["dtype"] == "float32" and found["details"]["device"] == "cpu"
    assert found["weights"]


def test_the_engine_in_process_is_certified_as_equal(folder: str) -> None:
    asked = ("-m", "sonde", "doctor", "-m", in_process(folder), "--against", f"hf:{folder}")
    said = with_vllm(*asked, "--device", "cpu", "--dtype", "float32")
    assert "equal" in said, said
