"""Models over several devices, or partly on disk: they answer as on one, and say where they are."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sonde import api
from sonde.core.errors import MissingExtra, ModelError, UsageError
from sonde.doctor.diagnose import weights
from sonde.models import options as model_options
from sonde.models.load import attributor, examiner, load
from sonde.models.options import LoadOptions
from sonde.models.torch.loading.spread import recordable
from tests import tiny
from tests.pretended import asked, parts

MAKERS = {**tiny.CAUSAL, **tiny.MASKED, **tiny.SEQ2SEQ}


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SONDE_CACHE", str(tmp_path / "cache"))


def near(one: Any, other: Any) -> bool:
    """Whether two answers are the same but for rounding."""
    if isinstance(one, float):
        return bool(abs(one - other) < 1e-4)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(near, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(near(one[key], other[key]) for key in one)
    return bool(one == other)


@pytest.mark.parametrize("kind", MAKERS)
def test_a_model_partly_on_disk_answers_as_one_in_memory(kind: str, tmp_path: Path) -> None:
    folder = MAKERS[kind](tmp_path / kind)
    whole: Any = load(f"hf:{folder}", LoadOptions(device="cpu"))
    room = (folder / "model.safetensors").stat().st_size * 3 // 4000
    part: Any = load(f"hf:{folder}", LoadOptions(device_map="auto", max_memory=f"cpu={room}KB"))
    assert "disk" in part.identity.details["weights on"]
    assert part.identity.details["scoring"] == whole.identity.details["scoring"]
    assert near(asked(part), asked(whole))


def test_layers_on_two_devices_answer_as_on_one(tmp_path: Path) -> None:
    """Real numbers on pretended devices, whose tensors refuse to meet, in a process of its own."""
    whole = {}
    for kind in ("llama", "gemma3", "bert", "t5"):
        model: Any = load(f"hf:{MAKERS[kind](tmp_path / kind)}", LoadOptions(device="cpu"))
        whole[kind] = {"scoring": model.identity.details["scoring"], **asked(model)}
    (tmp_path / "cache").rename(tmp_path.with_name("cache of another test"))
    command = [sys.executable, "-m", "tests.pretended", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert set(found["llama"]["rows"]) == {"score", "generate", "sample"}
    assert [kind for kind in whole if not near(found[kind], whole[kind])] == []


def test_all_of_a_model_may_be_on_disk(tmp_path: Path) -> None:
    folder = tiny.llama(tmp_path / "llama")
    options = LoadOptions(device_map=str(write(tmp_path / "map.json", {"": "disk"})))
    model: Any = load(f"hf:{folder}", options)
    assert model.identity.details["weights on"] == "disk 100%"
    assert model.loaded.device == "cpu"
    assert not recordable(model.model)
    shown = examiner(model)
    assert shown is not None
    assert near(asked(model), asked(load(f"hf:{folder}", LoadOptions(device="cpu"))))
    [finding] = weights(model.identity)
    assert (finding.check, finding.verdict) == ("placement", "warning")


def test_the_doctor_finds_a_broken_weight_that_is_on_disk(tmp_path: Path) -> None:
    folder = tiny.spoiled(tiny.llama(tmp_path / "llama"), "layers.1.mlp", tiny.one_nan)
    options = LoadOptions(device_map=str(write(tmp_path / "map.json", {"": "disk"})))
    shown: Any = examiner(load(f"hf:{folder}", options))
    [damaged] = shown.tokens.limits.damaged
    assert "layers.1.mlp" in damaged


def test_a_map_may_be_a_file(tmp_path: Path) -> None:
    folder = tiny.llama(tmp_path / "llama")
    whole: Any = load(f"hf:{folder}", LoadOptions(device="cpu"))
    places = {part: "disk" if part.endswith(".1") else "cpu" for part in parts(whole.model)}
    model: Any = api.model(f"hf:{folder}", device_map=str(write(tmp_path / "map.json", places)))
    assert "disk" in model.identity.details["weights on"]
    assert near(asked(model), asked(whole))


def write(path: Path, found: Any) -> Path:
    path.write_text(json.dumps(found))
    return path


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"device_map": "autoo"}, "'autoo' is unknown; use auto, balanced"),
        ({"device_map": "auto", "device": "cpu"}, "both say where a model's weights go"),
        ({"max_memory": "0=1GiB"}, "add --device-map auto"),
        ({"device_map": "auto", "max_memory": "0=much"}, "not DEVICE=SIZE: '0=much'"),
        ({"device_map": "auto", "max_memory": "gpu=1GiB"}, "a GPU's number or cpu"),
    ],
)
def test_options_that_cannot_be_are_refused_whatever_the_model(
    options: dict[str, str], said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        api.model("control:majority", **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("places", "said"),
    [
        ({"model.layers.0": "cpu", "model.layers.1": "disk"}, "cannot be followed: .*parameters"),
        ({"": "gpu"}, "puts '' on 'gpu'; a device is the number of a GPU, cpu or disk"),
        ({"": 99}, "puts '' on GPU 99, and there are"),
        ({"": True}, "puts '' on True"),
        ({"model": "disk", "lm_head": "cpu"}, "share a weight, so put both on one device"),
    ],
)
def test_a_map_that_cannot_be_followed_is_refused_in_a_sentence(
    tmp_path: Path, places: dict[str, Any], said: str
) -> None:
    folder = tiny.llama(tmp_path / "llama", tie_word_embeddings=True)
    path = write(tmp_path / "map.json", places)
    with pytest.raises(UsageError, match=said) as caught:
        load(f"hf:{folder}", LoadOptions(device_map=str(path)))
    assert "\n" not in str(caught.value)


def test_a_map_that_is_no_json_is_refused(tmp_path: Path) -> None:
    folder = tiny.llama(tmp_path / "llama")
    with pytest.raises(ModelError, match=r"nowhere\.json cannot be read"):
        load(f"hf:{folder}", LoadOptions(device_map=str(tmp_path / "nowhere.json")))


def test_a_missing_accelerate_is_named_with_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tiny.llama(tmp_path / "llama")
    monkeypatch.setattr(
        model_options, "find_spec", lambda name: None if name == "accelerate" else name
    )
    with pytest.raises(MissingExtra, match="--device-map needs accelerate; run: pip install"):
        load(f"hf:{folder}", LoadOptions(device_map="auto"))


def test_weights_on_disk_are_not_drawn_anew(tmp_path: Path) -> None:
    folder = tiny.llama(tmp_path / "llama")
    options = LoadOptions(device_map="auto", max_memory="cpu=50KB")
    with pytest.raises(ModelError, match="not all in memory and cannot be drawn anew"):
        load(f"random:hf:{folder}", options)


@pytest.mark.parametrize("kind", ["llama", "t5"])
def test_gradients_go_through_weights_that_are_on_disk(kind: str, tmp_path: Path) -> None:
    pytest.importorskip("captum", reason="needs the extra sonde[attribute]")
    folder = MAKERS[kind](tmp_path / kind)
    places = LoadOptions(device_map=str(write(tmp_path / "map.json", {"": "disk"})))
    found = [
        attributor(load(f"hf:{folder}", options)).attribute(
            "The capital of France is ", "Paris", steps=20, most=20, tolerance=1.0
        )
        for options in (LoadOptions(device="cpu"), places)
    ]
    assert found[0].weights == pytest.approx(found[1].weights, abs=1e-4)


def test_controls_have_no_weights_to_spread() -> None:
    data = api.dataset("atlas", limit=1)
    assert (
        "weights on"
        not in api.model("control:majority", data=data, device_map="auto").identity.details
    )
