"""Weights are safetensors that lie in the model's folder; every file that is read is hashed."""

from __future__ import annotations

import json
import os
import pickle
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from sonde.cli.lab import SHIPPED
from sonde.core.columns import one_by_one
from sonde.core.errors import ModelError
from sonde.core.prompts import Cloze
from sonde.models.load import load
from sonde.models.options import LoadOptions
from sonde.models.torch.loading.open import mean_encoder
from sonde.models.torch.loading.weight_files import weight_files
from tests import tiny
from tests.models.gguf_file import write_gguf
from tests.models.optimised import ensemble, finetuned, soft

CPU = LoadOptions(device="cpu")
INDEX = "model.safetensors.index.json"
ONE = "part-1.safetensors"
TWO = "more/part-2.safetensors"


@pytest.fixture(autouse=True)
def _no_pickles(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whatever reads pickled weights fails the test, though it be caught."""

    def refuse(path: Any, *_: Any, **__: Any) -> None:
        read.append(path)
        raise AssertionError(f"torch.load was reached with {path}")

    read: list[Any] = []
    monkeypatch.setattr(torch, "load", refuse)
    monkeypatch.setattr(torch.serialization, "load", refuse)
    yield
    assert not read


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one file of weights."""
    return tiny.llama(tmp_path_factory.mktemp("llama") / "model")


@pytest.fixture
def parts(whole: Path, tmp_path: Path) -> Path:
    """The same model with its weights in two files, one of them in a folder below."""
    folder = Path(shutil.copytree(whole, tmp_path / "parts"))
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    (folder / "more").mkdir()
    names = {name: TWO if "layers.1" in name else ONE for name in weights}
    for file in (ONE, TWO):
        own = {name: weights[name] for name in weights if names[name] == file}
        save_file(own, folder / file, metadata={"format": "pt"})
    write_index(folder, names)
    return folder


def write_index(folder: Path, weight_map: Any) -> None:
    body = {"metadata": {}, "weight_map": weight_map}
    (folder / INDEX).write_text(json.dumps(body))


def pickled(path: Path) -> None:
    path.write_bytes(pickle.dumps({"model.norm.weight": [1.0]}))


def opened(folder: Path) -> Any:
    return load(f"hf:{folder}", CPU)


def test_weights_in_several_files_are_read(parts: Path, whole: Path) -> None:
    prompts = [tiny.score("The capital of France is ", tiny.CITIES)]
    assert list(one_by_one(opened(parts).score(prompts))) == list(
        one_by_one(opened(whole).score(prompts))
    )


@pytest.mark.parametrize("file", [ONE, TWO])
def test_the_hash_is_of_every_file_that_the_index_names(parts: Path, file: str) -> None:
    before = opened(parts).identity.weights
    weights = load_file(parts / file)
    save_file({n: w + 1 for n, w in weights.items()}, parts / file, metadata={"format": "pt"})
    assert opened(parts).identity.weights != before


@pytest.mark.parametrize("name", ["part-1.bin", "part-1.pt", "PART-1.SAFETENSORS.bin", "config"])
def test_an_index_that_names_anything_but_safetensors_is_refused_unread(
    parts: Path, name: str
) -> None:
    pickled(parts / name)
    write_index(parts, {"model.norm.weight": name, "lm_head.weight": ONE})
    with pytest.raises(ModelError, match=rf"{INDEX} names '{name}', .*never reads"):
        opened(parts)


def outside(parts: Path) -> Path:
    """A sound file of weights that is not the folder's."""
    return Path(shutil.copy(parts / ONE, parts.parent / "outside.safetensors"))


def linked(parts: Path) -> str:
    (parts / "link.safetensors").symlink_to(outside(parts))
    return "link.safetensors"


ESCAPES: dict[str, Callable[[Path], str]] = {
    "above": lambda parts: f"../{outside(parts).name}",
    "around": lambda parts: f"more/../../{outside(parts).name}",
    "absolute": lambda parts: str(outside(parts)),
    "link": linked,
}


@pytest.mark.parametrize("way", ESCAPES)
def test_an_index_that_leads_out_of_the_folder_is_refused(parts: Path, way: str) -> None:
    name = ESCAPES[way](parts)
    write_index(parts, {"model.norm.weight": name, "lm_head.weight": ONE})
    with pytest.raises(ModelError) as error:
        opened(parts)
    assert f"names {name!r}, which lies outside {parts}" in str(error.value)


def test_one_file_of_weights_that_links_out_of_the_folder_is_refused_too(
    whole: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(whole, tmp_path / "model"))
    path = folder / "model.safetensors"
    path.rename(folder / "within.safetensors")
    path.symlink_to("within.safetensors")
    assert opened(folder).identity.weights
    path.unlink()
    path.symlink_to(whole / "model.safetensors")
    with pytest.raises(ModelError) as error:
        opened(folder)
    assert str(error.value) == f"{path} lies outside {folder}; copy the file into the folder"


@pytest.mark.parametrize("name", ["model.safetensors", "more.safetensors"])
def test_weights_that_are_a_named_pipe_are_refused(name: str, whole: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(whole, tmp_path / "model"))
    (folder / name).unlink(missing_ok=True)
    os.mkfifo(folder / name)
    writer = os.open(folder / name, os.O_RDWR | os.O_NONBLOCK)  # a reader does not wait for one
    os.set_blocking(writer, True)
    os.write(writer, b"no weights")
    try:
        with pytest.raises(ModelError, match=f"{name} is not a regular file"):
            weight_files(folder, {})
    finally:
        os.close(writer)


@pytest.mark.parametrize("kind", ["whole", "parts"])
def test_the_hub_keeps_its_files_elsewhere_and_links_to_them(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    parts: Path = request.getfixturevalue(kind)
    expected = opened(parts).identity.weights
    blobs = tmp_path / "hub" / "models--a--b" / "blobs"
    snapshot = blobs.parent / "snapshots" / "abc"
    blobs.mkdir(parents=True)
    for i, path in enumerate(p for p in sorted(parts.rglob("*")) if p.is_file()):
        link = snapshot / path.relative_to(parts)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(shutil.copy(path, blobs / str(i)))
    assert opened(snapshot).identity.weights == expected


@pytest.mark.parametrize(
    ("weight_map", "said"),
    [
        ({"model.norm.weight": "gone.safetensors"}, "gone.safetensors', which is not there"),
        ({"model.norm.weight": 3}, "names '3'"),
        ({"model.norm.weight": None}, "names 'None'"),
        ({"model.norm.weight": ["part-1.safetensors"]}, "names "),
        ({"model.norm.weight": "a\0.safetensors"}, "names "),
        ([ONE], "weight_map"),
        ("part-1.safetensors", "weight_map"),
        ({}, "weight_map"),
        (None, "weight_map"),
    ],
)
def test_an_index_that_names_no_files_is_refused(parts: Path, weight_map: Any, said: str) -> None:
    write_index(parts, weight_map)
    with pytest.raises(ModelError, match=rf"{INDEX}.*{said}"):
        opened(parts)


@pytest.mark.parametrize("name", ["model.safetensors", ONE])
@pytest.mark.parametrize("content", [b"", b"\x80\x04K\x01.", b"\xff" * 100])
def test_a_file_that_only_says_it_is_safetensors_is_named(
    parts: Path, name: str, content: bytes
) -> None:
    (parts / name).write_bytes(content)
    with pytest.raises(ModelError, match=f"{name} does not read as safetensors"):
        opened(parts)


@pytest.mark.parametrize("where", ["top", "text_config"])
def test_weights_that_the_config_names_are_refused(whole: Path, tmp_path: Path, where: str) -> None:
    folder = Path(shutil.copytree(whole, tmp_path / "copy"))
    pickled(folder / "adapter_model.bin")
    body = json.loads((folder / "config.json").read_text())
    named = {"transformers_weights": "adapter_model.bin"}
    body.update(named if where == "top" else {"text_config": named})
    (folder / "config.json").write_text(json.dumps(body))
    with pytest.raises(ModelError, match=r"config\.json names weights of its own"):
        opened(folder)


def test_an_adapter_is_refused(whole: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(whole, tmp_path / "copy"))
    (folder / "adapter_config.json").write_text('{"base_model_name_or_path": "/nowhere"}')
    with pytest.raises(ModelError, match=r"adapter_config\.json.* merge"):
        opened(folder)


def beside(make: Callable[[Path], Path], place: Path) -> Path:
    """A tiny model with pickled weights lying beside its own."""
    folder = make(place / "model")
    for name in ("pytorch_model.bin", "adapter_model.bin", "model.pt"):
        pickled(folder / name)
    return folder


KINDS: dict[str, Callable[[Path], str]] = {
    "hf, causal": lambda place: f"hf:{beside(tiny.llama, place)}",
    "hf, masked": lambda place: f"hf:{beside(tiny.bert, place)}",
    "hf, encoder-decoder": lambda place: f"hf:{beside(tiny.t5, place)}",
    "gguf": lambda place: f"gguf:{write_gguf(place / 'm.gguf', beside(tiny.llama, place))}",
    "soft": lambda place: f"soft:{soft(beside(tiny.bert, place), place / 'made')}",
    "finetuned": lambda place: f"finetuned:{finetuned(beside(tiny.bert, place), place / 'made')}",
    "ensemble": lambda place: f"ensemble:{ensemble(beside(tiny.bert, place), place / 'made')}",
    "random": lambda place: f"random:hf:{beside(tiny.llama, place)}",
    "random-embeddings": lambda place: f"random-embeddings:7:hf:{beside(tiny.bert, place)}",
    "lab, causal": lambda place: f"hf:{SHIPPED / 'causal'}",
    "lab, masked": lambda place: f"hf:{SHIPPED / 'masked'}",
}


@pytest.mark.parametrize("kind", KINDS)
def test_no_way_of_loading_reaches_pickled_weights(kind: str, tmp_path: Path) -> None:
    model: Any = load(KINDS[kind](tmp_path), CPU)
    if hasattr(model, "fill"):
        sentence = replace(tiny.fill("It is "), cloze=Cloze(relation="P36", subject="It"))
        assert list(one_by_one(model.fill([sentence])))
    else:
        assert list(one_by_one(model.score([tiny.score("It is ", tiny.CITIES)])))


def test_a_sentence_encoder_reads_no_pickled_weights(parts: Path, tmp_path: Path) -> None:
    folder = tiny.bert(tmp_path / "sentences")
    pickled(folder / "pytorch_model.bin")
    assert mean_encoder(folder)(["a", "b"]).shape == (2, 32)
    pickled(parts / "part-1.bin")
    write_index(parts, {"model.norm.weight": "part-1.bin"})
    with pytest.raises(ModelError, match=r"names 'part-1\.bin'"):
        mean_encoder(parts)
