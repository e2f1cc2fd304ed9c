"""`vllm:FOLDER`: the engine in this process, asked and checked as the server is."""

from __future__ import annotations

from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from sonde.core.abilities import abilities, deciding
from sonde.core.errors import MissingExtra, ModelError, ServerError, UsageError
from sonde.models.load import load
from sonde.models.options import LoadOptions
from sonde.models.served.asks import Rate
from sonde.models.served.dialect import Malformed
from sonde.models.served.transport import Untaken
from sonde.models.torch.causal.model import CausalModel
from sonde.models.torch.loading.weights import load_folder
from tests import tiny as worlds
from tests.servers.agreement import SCORED, assert_agrees
from tests.servers.vllm_library import installed


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return worlds.gpt2(tmp_path_factory.mktemp("vllm"))


@pytest.fixture
def there(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    installed(monkeypatch)
    return load(f"vllm:{folder}?max_model_len=65")


def test_the_engine_gives_what_the_model_gives_here(there: Any, folder: Path) -> None:
    here = CausalModel(load_folder("hf:here", folder, LoadOptions(device="cpu"), weights="w"))
    assert abilities(there) == {"score", "trace", "generate", "sample"}
    assert_agrees(there, here)


def test_the_model_is_known_by_its_files_and_settings(there: Any, folder: Path) -> None:
    identity = there.identity
    assert identity.name == f"vllm:{folder}?max_model_len=65"
    assert identity.weights == load(f"hf:{folder}").identity.weights
    assert (identity.architecture, identity.dtype) == ("GPT2LMHeadModel (vLLM)", "float32")
    assert identity.details["device"] == "cpu"
    assert identity.details["context"] == "64 tokens"
    assert identity.details["server version"] == "vLLM 0.32.0"


def test_settings_that_may_change_numbers_make_another_model(
    there: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def decides(model: Any) -> dict[str, Any]:
        return deciding(asdict(model.identity))

    installed(monkeypatch)
    roomy = load(f"vllm:{folder}?max_model_len=65&gpu_memory_utilization=0.5")
    other = load(f"vllm:{folder}?max_model_len=65&kv_cache_dtype=fp8")
    assert decides(roomy) == decides(there)
    assert decides(other) != decides(there)
    assert other.identity.architecture == 'GPT2LMHeadModel (vLLM, kv_cache_dtype="fp8")'


def test_requests_go_into_the_engine_together(there: Any) -> None:
    calls = there.transport.engine.calls
    before = len(calls)
    list(there.score(SCORED))
    assert len(calls) == before + 1


def test_a_prompt_that_the_engine_refuses_is_named(there: Any) -> None:
    long = Rate(tuple(range(80)), 1)
    requests = there.dialect.requests([Rate((1, 2, 3), 1), long, Rate((4, 5), 1)])
    with pytest.raises(Untaken, match="maximum context length is 65") as untaken:
        list(there.transport.send(requests, there.dialect.read, there.divided))
    assert untaken.value.request.asks == [long]


def test_what_the_engine_should_not_give_is_refused(there: Any) -> None:
    def refuse(*_: object) -> None:
        raise Malformed("it has no numbers")

    requests = there.dialect.requests([Rate((1, 2, 3), 1)])
    with pytest.raises(ServerError, match="vLLM gives what cannot be taken: it has no numbers"):
        list(there.transport.send(requests, refuse, there.divided))


def test_a_setting_that_vllm_does_not_have_is_a_sentence(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(monkeypatch)
    with pytest.raises(ModelError, match=r"vLLM cannot load vllm:.*unexpected keyword.*nonsense"):
        load(f"vllm:{folder}?nonsense=1")


@pytest.mark.parametrize(
    ("rest", "said"),
    [
        ("", "needs a folder or a hub id"),
        ("./missing", "missing is not a folder"),
        ("gpt2?max_model_len", "write NAME=VALUE"),
        ("gpt2?=3", "write NAME=VALUE"),
        ("gpt2?dtype=float16", "use --dtype"),
    ],
)
def test_a_name_that_cannot_be_loaded_is_refused_at_once(rest: str, said: str) -> None:
    with pytest.raises((ModelError, UsageError), match=said):
        load(f"vllm:{rest}")


@pytest.mark.skipif(find_spec("vllm") is not None, reason="vLLM is installed here")
def test_where_vllm_is_not_installed_what_to_install_is_said(folder: Path) -> None:
    with pytest.raises(MissingExtra, match=r"needs vllm; run: pip install 'sonde\[vllm\]'"):
        load(f"vllm:{folder}")
