"""Random models: other weights, the same everything else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from sonde.core.errors import ModelError, UsageError
from sonde.models.load import load
from sonde.models.scripted import Scripted
from sonde.models.torch.loading.open import randomised
from sonde.testing import check_model
from tests import tiny

PROMPTS = [tiny.score("The capital of France is", ("Paris", "Oslo", "New York"))]
HOLES = [tiny.fill("The capital of france is ", ".", watched=("paris", "oslo"))]


def weights(model: Any) -> dict[str, torch.Tensor]:
    return {name: p.detach().clone() for name, p in model.loaded.model.named_parameters()}


def changed(one: Any, other: Any) -> set[str]:
    """Names of the parameters in which two models differ."""
    a, b = weights(one), weights(other)
    assert a.keys() == b.keys()
    return {name for name in a if not torch.equal(a[name], b[name])}


@pytest.mark.parametrize("kind", ["llama", "gpt2", "bert", "roberta", "t5", "bart"])
def test_a_random_model_has_no_learned_matrix_left(kind: str, tmp_path: Path) -> None:
    folder = {**tiny.CAUSAL, **tiny.MASKED, **tiny.SEQ2SEQ}[kind](tmp_path)
    model, random = load(f"hf:{folder}"), load(f"random:hf:{folder}")
    matrices = {name for name, value in weights(model).items() if value.dim() > 1}
    assert matrices <= changed(model, random)
    assert type(random) is type(model)
    assert random.identity.name == f"random:hf:{folder}"
    assert random.identity.tokenizer == model.identity.tokenizer
    assert random.identity.weights != model.identity.weights


@pytest.mark.parametrize("kind", ["llama", "bert", "t5"])
def test_random_embeddings_change_tokens_alone(kind: str, tmp_path: Path) -> None:
    folder = {**tiny.CAUSAL, **tiny.MASKED, **tiny.SEQ2SEQ}[kind](tmp_path)
    model: Any = load(f"hf:{folder}")
    found = changed(model, load(f"random-embeddings:hf:{folder}"))
    table = model.loaded.model.get_input_embeddings().weight
    assert found == {n for n, p in model.loaded.model.named_parameters() if p is table}


def test_tied_output_embeddings_change_with_the_tokens(tmp_path: Path) -> None:
    random: Any = load(f"random-embeddings:hf:{tiny.bert(tmp_path)}")
    model = random.loaded.model
    assert torch.equal(model.get_output_embeddings().weight, model.get_input_embeddings().weight)


def test_untied_output_embeddings_stay(tmp_path: Path) -> None:
    folder = tiny.llama(tmp_path, tie_word_embeddings=False)
    found = changed(load(f"hf:{folder}"), load(f"random-embeddings:hf:{folder}"))
    assert found == {"model.embed_tokens.weight"}


def test_the_same_seed_draws_the_same_weights_and_another_does_not(tmp_path: Path) -> None:
    folder = tiny.bert(tmp_path)
    zero, again, one = (load(f"random:{seed}hf:{folder}") for seed in ("", "0:", "1:"))
    assert not changed(zero, again)
    assert zero.identity.weights == again.identity.weights != one.identity.weights
    assert changed(zero, one)


def test_drawing_leaves_the_random_numbers_of_others_alone(tmp_path: Path) -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    load(f"random:hf:{tiny.bert(tmp_path)}")
    assert torch.equal(torch.rand(3), expected)


def test_random_embeddings_of_two_models_have_names_of_their_own(tmp_path: Path) -> None:
    one, other = tiny.bert(tmp_path / "a"), tiny.bert(tmp_path / "b", seed=1)
    found = {load(f"random-embeddings:hf:{folder}").identity.weights for folder in (one, other)}
    assert len(found) == 2


@pytest.mark.parametrize("scheme", ["random", "random-embeddings"])
def test_a_random_model_answers_like_any_other(scheme: str, tmp_path: Path) -> None:
    check_model(load(f"{scheme}:hf:{tiny.llama(tmp_path / 'a')}"), PROMPTS)
    check_model(load(f"{scheme}:hf:{tiny.bert(tmp_path / 'b')}"), HOLES)


def test_what_has_no_weights_is_refused() -> None:
    with pytest.raises(ModelError, match="has no weights that could be drawn anew"):
        randomised(Scripted(answers={}), "random:scripted:x", 0, embeddings=False)
    with pytest.raises(UsageError, match="needs a model, as in random:hf:FOLDER"):
        load("random:")
