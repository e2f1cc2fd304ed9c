"""A folder is loaded as what it is, or refused with a reason; it never runs code of its own."""

from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from sonde.core.columns import one_by_one
from sonde.core.errors import AbilityError, ModelError, PromptError, UsageError
from sonde.models.load import load
from sonde.models.options import LoadOptions
from sonde.models.torch.causal.model import CausalModel
from sonde.models.torch.masked.model import MaskedModel
from tests import tiny


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.llama(tmp_path_factory.mktemp("llama") / "model")


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.bert(tmp_path_factory.mktemp("bert") / "model")


@pytest.fixture
def copy(llama: Path, tmp_path: Path) -> Path:
    """A copy of the causal model that a test may spoil."""
    return Path(shutil.copytree(llama, tmp_path / "copy"))


def causal(folder: Path, **options: Any) -> CausalModel:
    model = load(f"hf:{folder}", LoadOptions(device="cpu", **options))
    assert isinstance(model, CausalModel)
    return model


def masked(folder: Path) -> MaskedModel:
    model = load(f"hf:{folder}", LoadOptions(device="cpu"))
    assert isinstance(model, MaskedModel)
    return model


def change(path: Path, **values: Any) -> None:
    """Set fields of a JSON file; None takes a field away."""
    body = {**json.loads(path.read_text()), **values}
    path.write_text(json.dumps({k: v for k, v in body.items() if v is not None}))


@pytest.mark.parametrize("kind", [*tiny.CAUSAL, *tiny.MASKED])
def test_the_config_says_what_kind_of_model_it_is(kind: str, tmp_path: Path) -> None:
    folder = {**tiny.CAUSAL, **tiny.MASKED}[kind](tmp_path)
    assert isinstance(load(f"hf:{folder}"), CausalModel if kind in tiny.CAUSAL else MaskedModel)


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "weights.pth"])
def test_pickled_weights_are_refused_unread(copy: Path, name: str, tmp_path: Path) -> None:
    (copy / "model.safetensors").unlink()
    (copy / name).write_bytes(pickle.dumps(Touch(tmp_path / "ran")))
    with pytest.raises(ModelError, match=f"only pickled weights .{name}."):
        causal(copy)
    assert not (tmp_path / "ran").exists()


def test_safetensors_are_read_where_there_are_pickled_weights_too(
    copy: Path, tmp_path: Path
) -> None:
    (copy / "pytorch_model.bin").write_bytes(pickle.dumps(Touch(tmp_path / "ran")))
    causal(copy)
    assert not (tmp_path / "ran").exists()


class Touch:
    """Makes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[..., object], tuple[str, str]]:
        return open, (str(self.path), "w")


CODE = """
from pathlib import Path
from transformers import LlamaConfig, LlamaForCausalLM
Path({marker!r}).touch()
class Config(LlamaConfig):
    model_type = "own"
class Model(LlamaForCausalLM):
    config_class = Config
"""


@pytest.fixture
def marker(copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that the folder's own code makes when it runs."""
    monkeypatch.setattr(transformers.dynamic_module_utils, "HF_MODULES_CACHE", str(tmp_path / "m"))
    marker = tmp_path / "ran"
    (copy / "own.py").write_text(CODE.format(marker=str(marker)))
    auto = {"AutoConfig": "own.Config", "AutoModelForCausalLM": "own.Model"}
    change(copy / "config.json", auto_map=auto)
    return marker


def test_code_in_a_folder_does_not_run(copy: Path, marker: Path) -> None:
    causal(copy)  # its architecture is known without the code
    change(copy / "config.json", model_type="own")
    with pytest.raises(ModelError, match="does not load"):
        causal(copy)
    assert not marker.exists()


def test_code_in_a_folder_runs_if_it_is_asked_for(copy: Path, marker: Path) -> None:
    change(copy / "config.json", model_type="own")
    causal(copy, trust_remote_code=True)
    assert marker.exists()


def test_an_unknown_architecture_is_named(copy: Path) -> None:
    change(copy / "config.json", architectures=["T5ForConditionalGeneration"])
    with pytest.raises(ModelError, match=r"T5ForConditionalGeneration.*takes …ForCausalLM"):
        causal(copy)
    change(copy / "config.json", architectures=None)
    with pytest.raises(ModelError, match="names no architecture"):
        causal(copy)


@pytest.mark.parametrize("text", [None, "{", "\x00"])
def test_a_folder_without_a_readable_config_is_refused(copy: Path, text: str | None) -> None:
    (copy / "config.json").unlink()
    if text is not None:
        (copy / "config.json").write_text(text)
    with pytest.raises(ModelError, match=r"config\.json cannot be read as a JSON object"):
        causal(copy)


def test_a_folder_without_weights_is_refused(copy: Path) -> None:
    (copy / "model.safetensors").unlink()
    with pytest.raises(ModelError, match=r"holds no \*.safetensors file"):
        causal(copy)


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json"])
def test_a_file_cut_short_is_refused(copy: Path, name: str) -> None:
    (copy / name).write_bytes((copy / name).read_bytes()[:2000])
    with pytest.raises(ModelError, match=f"{name}.* fetch or save the model again"):
        causal(copy)


def test_weights_that_are_missing_are_not_made_up(copy: Path) -> None:
    weights = load_file(copy / "model.safetensors")
    del weights["model.layers.1.mlp.up_proj.weight"]
    save_file(weights, copy / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelError, match=r"lacks 1 of the weights .*mlp.up_proj.weight"):
        causal(copy)


def test_a_model_trained_without_a_language_head_is_refused(bert: Path, tmp_path: Path) -> None:
    body: Any = transformers.BertForMaskedLM.from_pretrained(bert)
    folder = Path(shutil.copytree(bert, tmp_path / "headless"))
    body.bert.save_pretrained(folder)
    with pytest.raises(ModelError, match="BertModel"):
        masked(folder)
    change(folder / "config.json", architectures=["BertForMaskedLM"])
    with pytest.raises(ModelError, match=r"lacks .*cls\.predictions"):
        masked(folder)


def test_what_is_no_folder_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    for path in (file, tmp_path / "nowhere"):
        with pytest.raises(ModelError, match="is not a folder"):
            load(f"hf:{path}")
    with pytest.raises(UsageError, match="needs a folder or a hub id"):
        load("hf:")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there_is_refused(llama: Path) -> None:
    with pytest.raises(UsageError, match="torch sees no GPU; use --device cpu"):
        load(f"hf:{llama}", LoadOptions(device="cuda"))


def test_unknown_devices_and_dtypes_are_refused(llama: Path) -> None:
    with pytest.raises(UsageError, match="unknown device 'tpu'"):
        load(f"hf:{llama}", LoadOptions(device="tpu"))
    with pytest.raises(UsageError, match="unknown dtype 'int4'; use auto, float32"):
        causal(llama, dtype="int4")


def test_double_precision_moves_scores_by_rounding_alone(llama: Path) -> None:
    prompt = tiny.score("The capital of France is ", tiny.CITIES)
    single, double = (
        sum(dict(one_by_one(model.score([prompt])))[0].logps, ())
        for model in (causal(llama), causal(llama, dtype="float64"))
    )
    assert single != double and single == pytest.approx(double, abs=1e-4)


@pytest.mark.parametrize("stored", [torch.float16, torch.bfloat16])
def test_half_precision_weights_are_used_in_full_precision_on_a_cpu(
    copy: Path, stored: torch.dtype
) -> None:
    weights = {k: v.to(stored) for k, v in load_file(copy / "model.safetensors").items()}
    save_file(weights, copy / "model.safetensors", metadata={"format": "pt"})
    change(copy / "config.json", dtype=str(stored).removeprefix("torch."))
    model = causal(copy)
    assert {p.dtype for p in model.model.parameters()} == {torch.float32}
    assert model.identity.dtype == "float32"


def test_the_identity_is_the_same_at_every_load(llama: Path, tmp_path: Path) -> None:
    assert causal(llama).identity == causal(llama).identity
    again = tiny.llama(tmp_path / "again")
    assert causal(again).identity.weights == causal(llama).identity.weights
    assert causal(again).identity.tokenizer == causal(llama).identity.tokenizer


def test_the_identity_changes_with_the_weights(llama: Path, tmp_path: Path) -> None:
    other = causal(tiny.llama(tmp_path / "other", seed=1)).identity
    assert other.weights != causal(llama).identity.weights


def test_the_identity_changes_when_a_file_is_changed_in_place(copy: Path) -> None:
    before = causal(copy).identity
    weights = load_file(copy / "model.safetensors")
    weights["model.norm.weight"] += 1
    save_file(weights, copy / "model.safetensors", metadata={"format": "pt"})
    assert causal(copy).identity.weights != before.weights


def test_the_identity_changes_with_the_settings_of_the_same_weights(copy: Path) -> None:
    before = causal(copy).identity
    change(copy / "config.json", rms_norm_eps=0.1)
    assert causal(copy).identity.weights != before.weights


def test_how_texts_open_is_visible_in_the_identity(llama: Path) -> None:
    token = "<|endoftext|>"
    assert causal(llama).identity.bos == f"{token} always"  # as its tokenizer does it
    assert causal(llama, bos="always").identity.bos == f"{token} always"
    never = causal(llama, bos="never").identity
    assert never.bos == f"{token} only before an answer that comes first"


def test_how_texts_open_changes_what_is_scored(llama: Path) -> None:
    prompt = tiny.score("The capital of France is ", tiny.CITIES)
    always = dict(one_by_one(causal(llama, bos="always").score([prompt])))[0]
    never = dict(one_by_one(causal(llama, bos="never").score([prompt])))[0]
    assert abs(always.logps[0][0] - never.logps[0][0]) > 0.01


def test_a_tokenizer_without_a_token_to_open_with_cannot_be_told_to(copy: Path) -> None:
    change(copy / "tokenizer_config.json", bos_token=None, eos_token=None)
    assert causal(copy).identity.bos == "none"
    with pytest.raises(AbilityError, match="no beginning-of-text token"):
        causal(copy, bos="always")


def test_a_prompt_too_long_for_the_model_names_its_fact(llama: Path, bert: Path) -> None:
    subject = "Paris " * 200
    prompt = tiny.score(f"{subject} is ", ("Oslo",), fact="Q90-P36")
    with pytest.raises(PromptError, match=r"fact 'Q90-P36', template 't': .* model takes 128"):
        dict(one_by_one(causal(llama).score([prompt])))
    with pytest.raises(PromptError, match=r"fact 'Q90-P36', template 't': .* model takes 64"):
        dict(one_by_one(masked(bert).score([prompt])))
    with pytest.raises(PromptError, match=r"fact 'Q90-P36', template 't': .* model takes 64"):
        dict(one_by_one(masked(bert).fill([tiny.fill(f"{subject} is ", fact="Q90-P36")])))


@pytest.mark.parametrize("kind", ["gpt2", "bert", "roberta"])
def test_a_prompt_may_be_as_long_as_the_model_can_take(kind: str, tmp_path: Path) -> None:
    folder = {**tiny.CAUSAL, **tiny.MASKED}[kind](tmp_path)
    model: Any = load(f"hf:{folder}")
    assert model.loaded.context == 64  # RoBERTa keeps two of its 66 positions to itself
    framing = 0 if kind == "gpt2" else 2
    for words in (63 - framing, 64 - framing):
        prompt = tiny.score("Paris" + " Paris" * (words - 1) + " ", ("Paris",))
        if words == 63 - framing:
            assert dict(one_by_one(model.score([prompt])))
        else:
            with pytest.raises(PromptError, match="has 65 tokens"):
                dict(one_by_one(model.score([prompt])))


def test_an_answer_without_a_token_names_its_fact(bert: Path, llama: Path) -> None:
    with pytest.raises(PromptError, match=r"fact 'Q1', .*the answer '' has no token"):
        dict(one_by_one(causal(llama).score([tiny.score("It is ", ("",), fact="Q1")])))
    with pytest.raises(PromptError, match=r"fact 'Q1', .*the answer '' has no token"):
        dict(one_by_one(masked(bert).score([tiny.score("It is ", ("",), fact="Q1")])))
    with pytest.raises(PromptError, match=r"fact 'Q1', .*no option to score"):
        dict(one_by_one(causal(llama).score([tiny.score("It is ", (), fact="Q1")])))


def test_rows_that_no_token_belongs_to_are_no_answers(tmp_path: Path) -> None:
    size = tiny.word_pieces().get_vocab_size()
    model = masked(tiny.bert(tmp_path, vocab_size=size + 27))
    answer = dict(one_by_one(model.fill([tiny.fill("It is ", top=10**6)])))[0]
    assert len(answer.top) == size
    assert answer.mass < 0  # the other rows keep their share of the probability


def test_tokens_that_the_model_does_not_have_are_no_answers(tmp_path: Path) -> None:
    size = tiny.word_pieces().get_vocab_size()
    folder = tiny.bert(tmp_path, vocab_size=size)
    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(folder)
    tokenizer.add_tokens(["atlantis"])
    tokenizer.save_pretrained(folder)
    model = masked(folder)
    words = ("Atlantis", "Paris")
    prompt = tiny.fill("It is ", top=3, watched=words, vocabulary=words)
    answer = dict(one_by_one(model.fill([prompt])))[0]
    assert (answer.top, answer.watched_ranks) == (("Paris",), (None, 1))
    with pytest.raises(PromptError, match="do not belong together"):
        dict(one_by_one(model.score([tiny.score("It is ", words)])))


def test_a_vocabulary_of_which_nothing_is_a_token_is_refused(bert: Path) -> None:
    prompt = tiny.fill("It is ", vocabulary=("New York",), fact="Q1")
    with pytest.raises(PromptError, match=r"fact 'Q1'.*no word of the vocabulary"):
        dict(one_by_one(masked(bert).fill([prompt])))
    glued = tiny.fill("It is", vocabulary=("Paris",), fact="Q1")
    with pytest.raises(PromptError, match=r"after 's'; is a space missing"):
        dict(one_by_one(masked(bert).fill([glued])))


def test_a_model_says_so_when_it_is_asked_for_what_it_cannot_do(llama: Path, bert: Path) -> None:
    with pytest.raises(AbilityError, match="does not fill a mask"):
        dict(one_by_one(causal(llama).score([tiny.fill("It is ")])))
    with pytest.raises(AbilityError, match=r"want options scored"):
        dict(one_by_one(masked(bert).score([tiny.fill("It is ")])))
    with pytest.raises(AbilityError, match="want a masked position filled"):
        dict(one_by_one(masked(bert).fill([tiny.score("It is ", ("Paris",))])))


def test_a_masked_model_needs_a_mask(bert: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(bert, tmp_path / "copy"))
    change(folder / "tokenizer_config.json", mask_token=None)
    with pytest.raises(ModelError, match="no mask token"):
        masked(folder)
