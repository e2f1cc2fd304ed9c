"""However a model's folder is broken, one error names the file and says what to do."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sonde.cli.main import main
from sonde.core.errors import ModelError
from sonde.models.load import load
from sonde.models.options import LoadOptions
from sonde.models.torch.loading.open import mean_encoder
from tests import tiny
from tests.models.gguf_file import write_gguf
from tests.models.optimised import ensemble, made, soft

CPU = LoadOptions(device="cpu")
AGAIN = "fetch or save the model again"
BROKEN = {
    "a list": b"[]",
    "a number": b"3",
    "nothing": b"null",
    "empty": b"",
    "cut short": b'{"a": ',
    "not UTF-8": b'{"a": "\xe9"}',
    "UTF-16": '{"a": 1}'.encode("utf-16"),
    "binary": bytes(range(256)),
    "zeros": b"\0" * 99,
    "deep": b'{"a":' * 99999 + b"1" + b"}" * 99999,
    "deep list": b"[" * 99999 + b"]" * 99999,
    "a huge number": b'{"vocab_size": ' + b"9" * 5000 + b"}",
}
FILES = ("config", "tokenizer", "tokenizer_config", "special_tokens_map", "generation_config")


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A folder of each kind of model."""
    place = tmp_path_factory.mktemp("sound")
    makes: tuple[Callable[[Path], Path], ...] = (tiny.llama, tiny.bert, tiny.t5)
    return {make.__name__: make(place / make.__name__) for make in makes}


@pytest.fixture
def copy(sound: dict[str, Path], tmp_path: Path) -> Callable[[str], Path]:
    """A copy that a test may spoil."""
    return lambda kind: Path(shutil.copytree(sound[kind], tmp_path / kind))


def refused(reference: str, *parts: str) -> str:
    """What is said when a model is refused, which has these parts."""
    with pytest.raises(ModelError) as error:
        load(reference, CPU)
    for part in parts:
        assert part in str(error.value), error.value
    return str(error.value)


@pytest.mark.parametrize("content", BROKEN)
@pytest.mark.parametrize("name", FILES)
def test_a_broken_json_file_is_named(copy: Callable[[str], Path], name: str, content: str) -> None:
    folder = copy("llama")
    (folder / f"{name}.json").write_bytes(BROKEN[content])
    refused(f"hf:{folder}", f"{folder / name}.json cannot be read as a JSON object (", "); ")


def test_the_command_ends_with_a_message_and_not_a_stack_trace(
    copy: Callable[[str], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = copy("bert")
    (folder / "config.json").write_bytes(BROKEN["deep"])
    assert main(["run", "lama", "-m", f"hf:{folder}", "-o", str(tmp_path / "out")]) == 4
    said = " ".join(capsys.readouterr().err.split())
    assert said.startswith("error: ") and "nested too deeply" in said


def spoil(path: Path, *where: str, value: Any) -> None:
    """Set a value somewhere in a JSON file."""
    body = at = json.loads(path.read_text())
    for key in where[:-1]:
        at = at[key]
    at[where[-1]] = value
    path.write_text(json.dumps(body))


@pytest.mark.parametrize(
    ("kind", "file", "where", "value", "said"),
    [
        ("llama", "config", ("architectures",), 1, "names no architecture"),
        ("llama", "config", ("architectures",), "LlamaForCausalLM", "names no architecture"),
        ("llama", "config", ("architectures",), [None], "['None']"),
        ("llama", "config", ("num_hidden_layers",), 10**9, "num_hidden_layers is 1,000,000,000"),
        ("llama", "config", ("num_labels",), 10**9, "num_labels is 1,000,000,000"),
        ("llama", "config", ("vocab_size",), "many", AGAIN),
        ("llama", "config", ("max_position_embeddings",), [1], AGAIN),
        ("llama", "tokenizer", ("model",), {}, AGAIN),
        ("llama", "tokenizer_config", ("model_max_length",), "x", AGAIN),
        ("bert", "tokenizer", ("model", "vocab"), {}, "[UNK]"),
        ("t5", "config", ("relative_attention_max_distance",), 0, AGAIN),
        ("t5", "generation_config", ("decoder_start_token_id",), "x", "decoder_start_token_id is"),
        (
            "t5",
            "generation_config",
            ("decoder_start_token_id",),
            -1,
            "decoder_start_token_id is -1",
        ),
        ("t5", "generation_config", ("decoder_start_token_id",), 10**6, "is 1000000"),
        ("t5", "generation_config", ("decoder_start_token_id",), [0], "is [0]"),
    ],
)
def test_a_value_that_cannot_be_is_refused_when_the_model_is_opened(
    copy: Callable[[str], Path], kind: str, file: str, where: tuple[str, ...], value: Any, said: str
) -> None:
    folder = copy(kind)
    spoil(folder / f"{file}.json", *where, value=value)
    refused(f"hf:{folder}", said)


@pytest.mark.parametrize("value", [["x"], {"a": 1}, "x", [[0]]])
def test_texts_that_end_with_no_token_are_refused(copy: Callable[[str], Path], value: Any) -> None:
    folder = copy("llama")
    spoil(folder / "generation_config.json", "eos_token_id", value=value)
    with pytest.raises(ModelError, match=r"eos_token_id is .* not the number of a token"):
        load(f"hf:{folder}", CPU)


def test_a_broken_sentence_encoder_is_refused(copy: Callable[[str], Path]) -> None:
    folder = copy("bert")
    (folder / "tokenizer.json").write_text("[]")
    with pytest.raises(ModelError, match=r"tokenizer\.json cannot be read"):
        mean_encoder(folder)


def test_a_plain_copy_of_a_gguf_file_that_was_damaged_says_so(
    sound: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SONDE_CACHE", str(tmp_path / "cache"))
    reference = f"gguf:{write_gguf(tmp_path / 'm.gguf', sound['llama'])}"
    load(reference, CPU)
    (plain,) = (tmp_path / "cache" / "gguf").iterdir()
    (plain / "sonde.json").write_text("[]")
    refused(reference, "sonde.json cannot be read", f"delete {plain}, and it is made again")


@pytest.mark.parametrize("scheme", ["soft", "finetuned", "ensemble"])
@pytest.mark.parametrize("content", BROKEN)
def test_a_broken_manifest_is_named(tmp_path: Path, scheme: str, content: str) -> None:
    (tmp_path / "manifest.json").write_bytes(BROKEN[content])
    refused(
        f"{scheme}:{tmp_path}", "manifest.json cannot be read as a JSON object", "sonde optimise"
    )


@pytest.mark.parametrize("model", [None, [], "hf:x", {}, {"reference": "hf:x", "weights": 1}])
def test_a_manifest_that_names_no_model_is_refused(tmp_path: Path, model: Any) -> None:
    (tmp_path / "manifest.json").write_text(json.dumps({"method": "optiprompt", "model": model}))
    refused(f"soft:{tmp_path}", f"{tmp_path / 'manifest.json'} does not say", "sonde optimise")


@pytest.mark.parametrize("line", [b"3", b"[]", b"\xff", b"[" * 99999, b'{"id": 1}'])
def test_broken_templates_of_an_ensemble_are_named(
    sound: dict[str, Path], tmp_path: Path, line: bytes
) -> None:
    folder = ensemble(sound["bert"], tmp_path / "made")
    (folder / "templates.jsonl").write_bytes(line)
    refused(f"ensemble:{folder}", f"{folder / 'templates.jsonl'} does not read back")


def test_broken_vectors_are_named(sound: dict[str, Path], tmp_path: Path) -> None:
    folder = soft(sound["bert"], tmp_path / "made")
    (folder / "vectors.safetensors").write_bytes(b"\xff" * 99)
    refused(f"soft:{folder}", "vectors.safetensors does not read back")


@pytest.mark.parametrize("content", BROKEN)
def test_a_broken_table_of_answers_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / "answers.json").write_bytes(BROKEN[content])
    refused(f"scripted:{tmp_path / 'answers.json'}", "answers.json")


@pytest.mark.parametrize(
    "reference", ["soft:{}", "random:soft:{}", "random-embeddings:3:soft:{}", "soft:{}@soft:{}"]
)
def test_a_model_that_is_made_from_itself_is_refused(tmp_path: Path, reference: str) -> None:
    folder = made(tmp_path / "made", "optiprompt", reference.replace("{}", str(tmp_path / "made")))
    said = refused(f"soft:{folder}", "leads back to itself", f"soft:{folder} → ", "hf:FOLDER")
    assert len(said) < 2000


def test_models_that_are_made_from_each_other_are_refused(tmp_path: Path) -> None:
    made(tmp_path / "a", "optiprompt", f"finetuned:{tmp_path / 'b'}")
    made(tmp_path / "b", "finetune", f"ensemble:{tmp_path / 'c'}")
    made(tmp_path / "c", "lpaqa", f"random:soft:{tmp_path / 'a'}")
    for reference in (f"soft:{tmp_path / 'a'}", f"finetuned:{tmp_path / 'b'}"):
        refused(reference, "leads back to itself")


def test_models_within_models_without_end_are_refused() -> None:
    refused("random:" * 2000 + "hf:x", "models within each other")
