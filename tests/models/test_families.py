"""The table of models: bundled, and the user's own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sonde.core.errors import DataError
from sonde.models.families import BUNDLED, describe, model_table, plain, read_table

# Models of the papers as the hub calls them, with their parameters as the paper has them
SIZES = {
    # OptiPrompt, table 6
    "google-bert/bert-base-cased": 110e6,
    "google-bert/bert-large-cased": 330e6,
    "FacebookAI/roberta-large": 330e6,
    "albert/albert-xxlarge-v1": 235e6,
    # BELIEF, appendix F and table 15; BELIEF-ICL, table 1
    "google-bert/bert-base-uncased": 110e6,
    "google-bert/bert-large-uncased": 336e6,
    "google-bert/bert-large-uncased-whole-word-masking": 336e6,
    "albert/albert-base-v2": 11.8e6,
    "tftransformers/albert-xxlarge-v2": 223e6,
    "meta-llama/Llama-2-7B": 7e9,
    "meta-llama/Llama-2-13B": 13e9,
    "meta-llama/Llama-2-70B": 70e9,
    "meta-llama/Meta-Llama-3-8B": 8e9,
    "meta-llama/Meta-Llama-3-70B": 70e9,
    "microsoft/Phi-3-mini-4k-instruct": 3.8e9,
    "microsoft/Phi-3-small-8k-instruct": 7e9,
    "microsoft/Phi-3-medium-4k-instruct": 14e9,
    # MONITOR, table 2; it does not say which Vicuna and which WizardLM
    "bigscience/bloomz-560m": 0.56e9,
    "bigscience/bloomz-1b1": 1.1e9,
    "facebook/galactica-1.3b": 1.3e9,
    "facebook/opt-2.7b": 2.7e9,
    "bigscience/bloomz-3b": 3e9,
    "lmsys/vicuna-7b-v1.3": 7e9,
    "bigscience/bloomz-7b1": 7.1e9,
    "google/flan-t5-xxl": 11e9,
    "lmsys/vicuna-13b-v1.3": 13e9,
    "WizardLM/WizardLM-13B-V1.0": 13e9,
    "WizardLM/WizardLM-13B-V1.1": 13e9,
    "WizardLM/WizardLM-13B-V1.2": 13e9,
    "google/flan-ul2": 20e9,
    "upstage/llama-30b-instruct-2048": 30e9,
}

# IC-LKE, table 6: 49 models, their sizes only in their names
IC_LKE = """
mistralai/Mixtral-8x7B-v0.1 NousResearch/Nous-Hermes-2-Mixtral-8x7B-SFT
NousResearch/Nous-Hermes-2-Mixtral-8x7B-DPO mistralai/Mistral-7B-v0.1
mistralai/Mistral-7B-Instruct-v0.1 teknium/OpenHermes-2.5-Mistral-7B
meta-llama/Llama-2-70b-hf meta-llama/Llama-2-70b-chat-hf meta-llama/Llama-2-13b-hf
meta-llama/Llama-2-13b-chat-hf lmsys/vicuna-13b-v1.5 meta-llama/Llama-2-7b-hf
meta-llama/Llama-2-7b-chat-hf lmsys/vicuna-7b-v1.5 google/gemma-7b google/gemma-7b-it
google/gemma-2b google/gemma-2b-it huggyllama/llama-65b huggyllama/llama-30b huggyllama/llama-13b
lmsys/vicuna-13b-v1.3 huggyllama/llama-7b lmsys/vicuna-7b-v1.3 tiiuae/falcon-7b
tiiuae/falcon-7b-instruct mosaicml/mpt-7b EleutherAI/gpt-neox-20b facebook/opt-30b facebook/opt-13b
facebook/opt-6.7b facebook/opt-2.7b facebook/opt-1.3b facebook/opt-350m facebook/opt-125m
EleutherAI/gpt-j-6b EleutherAI/pythia-12b EleutherAI/pythia-6.9b EleutherAI/pythia-2.8b
EleutherAI/pythia-1.4b EleutherAI/pythia-1b EleutherAI/pythia-410m EleutherAI/pythia-160m
EleutherAI/pythia-70m bigscience/bloom-7b1 bigscience/bloom-3b bigscience/bloom-1b7
bigscience/bloom-1b1 bigscience/bloom-560m
""".split()


@pytest.fixture(autouse=True)
def _no_table_of_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("SONDE_MODELS", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.mark.parametrize("name", ["smollm2", "hf:x/SmolLM2-135M-Instruct", "gguf:./SmolLM2.gguf"])
def test_a_model_is_found_however_a_run_names_it(name: str) -> None:
    found = describe(name)
    assert found and (found.family, found.stage) == ("smollm2", "fine-tuned")


def test_an_unknown_model_is_none() -> None:
    assert describe("hf:somebody/something") is None


@pytest.mark.parametrize("name", [*SIZES, *IC_LKE])
def test_every_model_of_the_papers_is_known_with_corpus_and_size(name: str) -> None:
    found = describe(f"hf:{name}")
    assert found and found.corpus and found.size
    assert found.size == pytest.approx(SIZES.get(name, found.size), rel=0.1)


def test_every_bundled_entry_says_where_it_was_read() -> None:
    assert len(IC_LKE) == 49
    assert all(model.source and model.corpus for model in model_table().values())


def test_the_page_names_every_model_that_was_written_from_memory() -> None:
    page = (Path(__file__).parents[2] / "docs" / "models.md").read_text()
    (said,) = (part for part in page.split("\n\n") if part.startswith("**From memory**"))
    remembered = {m.name for m in model_table().values() if m.source == "memory"}
    assert set(re.findall(r"`([^`]+)`", said)) == remembered


def test_bundled_fine_tuned_models_name_a_base_of_their_family() -> None:
    table = model_table()
    for model in table.values():
        base = table.get(plain(model.base)) if model.base else None
        assert bool(base) == bool(model.base), model
        assert base is None or (base.family, base.stage) == (model.family, "base"), model


def test_a_fine_tuned_model_has_the_corpus_of_its_base(tmp_path: Path) -> None:
    own = tmp_path / "models.toml"
    own.write_text('[[model]]\nname = "mine"\nfamily = "gpt2"\nbase = "gpt2"\n')
    table = model_table(own)
    assert table["mine"].corpus == table["gpt2"].corpus != ""


def test_no_model_is_described_twice() -> None:
    assert BUNDLED.read_text().count("[[model]]") == len(read_table(BUNDLED))


def test_the_users_own_table_wins(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    own = tmp_path / "config" / "sonde" / "models.toml"
    own.parent.mkdir(parents=True)
    own.write_text('[[model]]\nname = "gpt2"\nfamily = "mine"\nsize = 7\n')
    found = describe("gpt2")
    assert found and (found.family, found.size) == ("mine", 7)
    other = tmp_path / "other.toml"
    other.write_text('[[model]]\nname = "gpt2"\nfamily = "other"\n')
    monkeypatch.setenv("SONDE_MODELS", str(other))
    found = describe("gpt2")
    assert found and (found.family, found.size) == ("other", None)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[model]\n", "TOML"),
        ('[[model]]\nname = "a"\n', "'family'"),
        ('[[model]]\nname = "a"\nfamily = "b"\nsise = 1\n', "unknown field 'sise'"),
        ('[[model]]\nname = "a"\nfamily = "b"\nsize = "7B"\n', "'size'"),
        ('[[model]]\nname = "a"\nfamily = "b"\nstage = "chat"\n', "base, fine-tuned"),
        ('[[model]]\nname = "a"\nfamily = "b"\nbase = 3\n', "'base'"),
        ('[[model]]\nname = "a"\nfamily = "b"\nsource = "hearsay"\n', "paper, public, memory"),
        ("a = " + "[" * 99999, "TOML"),
        ('model = "a"\n', "[[model]]"),
    ],
)
def test_a_bad_table_is_refused_clearly(
    text: str, said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "models.toml"
    path.write_text(text)
    monkeypatch.setenv("SONDE_MODELS", str(path))
    with pytest.raises(DataError) as error:
        model_table()
    assert said in str(error.value) and str(path) in str(error.value)


def test_a_table_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SONDE_MODELS", "/nowhere/models.toml")
    with pytest.raises(DataError, match="missing"):
        model_table()
