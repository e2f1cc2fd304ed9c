"""A soft prompt is text with named tokens: read by the model it was made for, never answered."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file

from sonde.core.answers import Filled, Scored
from sonde.core.columns import one_by_one
from sonde.core.errors import AbilityError, ModelError, PromptError
from sonde.core.facts import Template
from sonde.core.prompts import Fill, Generate, Score, Want
from sonde.core.texts import marker, markers
from sonde.models.load import load
from sonde.models.options import LoadOptions
from sonde.models.torch.soft import soft_model
from sonde.optimise.making import optimise
from sonde.optimise.optiprompt import OptiPrompt
from tests import tiny

from .world import answers, dataset, opened, prompts

Folders = Callable[[str], Path]
EVERY = ["bert", "roberta", "gpt2", "llama", "metaspace", "legacy", "padded", "convbert"]
SUBJECTS = ("France", "New York", "Marie Curie", "paris (france)")
CPU = LoadOptions(device="cpu")


def made(folder: Path, out: Path, **settings: Any) -> Path:
    """Prompts made for a model, without training unless told."""
    settings = {"start": "manual", "epochs": 0, **settings}
    data = dataset()
    optimise(OptiPrompt(**settings), opened(folder), data, out, reference=f"hf:{folder}")
    return out


def template_of(out: Path, relation: str = "P36") -> Template:
    """The template that was made for a relation."""
    rows = map(json.loads, (out / "templates.jsonl").read_text().splitlines())
    (row,) = [row for row in rows if row.pop("relation") == relation]
    return Template(**row)


@pytest.mark.parametrize("name", EVERY)
def test_an_untrained_manual_start_answers_as_the_sentence_itself(
    name: str, folder: Folders, tmp_path: Path
) -> None:
    out = made(folder(name), tmp_path / "out")
    base, soft = opened(folder(name)), load(f"soft:{out}", CPU)
    for relation in dataset().relations:
        plain, vectors = relation.templates[0], template_of(out, relation.id)
        assert len(markers(vectors.text)) >= 3 and "The" not in vectors.text
        expected = answers(base, prompts(base, plain, SUBJECTS))
        found = answers(soft, prompts(soft, vectors, SUBJECTS))
        for one, other in zip(expected, found, strict=True):
            assert_alike(one, other)


def assert_alike(one: Any, other: Any) -> None:
    if isinstance(one, Filled):
        assert one.top == other.top
        assert np.allclose(one.top_logps, other.top_logps, atol=1e-5)
        assert np.allclose(_known(one), _known(other), atol=1e-5)
        assert one.watched_ranks == other.watched_ranks
    else:
        assert isinstance(one, Scored)
        for a, b in zip(
            one.logps + one.suffix_logps, other.logps + other.suffix_logps, strict=True
        ):
            assert np.allclose(a, b, atol=1e-5)


def _known(filled: Filled) -> list[float]:
    return [logp for logp in filled.watched_logps if logp is not None]


@pytest.mark.parametrize("name", EVERY)
def test_a_marker_changes_no_token_beside_it(name: str, folder: Folders) -> None:
    base = opened(folder(name))
    soft = with_random(base, 12)
    before, after = base.loaded.backend, soft.loaded.backend
    first, last = soft.loaded.vectors[0], soft.loaded.vectors[-1]
    for left, right in (("Paris", " is"), ("(", " Oslo"), ("Paris", ", is"), ("Par is ", " .")):
        whole = before.encode(left + right, add_special_tokens=False).ids
        alone = before.encode(left, add_special_tokens=False).ids
        assert whole[: len(alone)] == alone, "the test's own words must not join"
        text = f"{left}{marker('P36', 1)}{marker('P36', 12)}{right}"
        found = after.encode(text, add_special_tokens=False).ids
        assert found == [*alone, first, last, *whole[len(alone) :]]


def with_random(base: Any, count: int) -> Any:
    """A model with some random vectors."""
    width = base.model.get_input_embeddings().weight.shape[1]
    draws = np.random.default_rng(0).normal(size=(count, width)).astype(np.float32)
    vectors = {marker("P36", i + 1): draws[i] for i in range(count)}
    return soft_model("soft:test", base, vectors, "w")


@pytest.mark.parametrize("name", ["bert", "roberta", "padded", "gpt2"])
def test_vectors_never_enter_the_output_softmax(name: str, folder: Folders) -> None:
    base = opened(folder(name))
    rows, head = base.loaded.rows, base.model.get_output_embeddings().weight
    kept = {key: value.clone() for key, value in base.model.state_dict().items()}
    names = base.loaded.answerable
    soft = with_random(base, 20)
    assert soft.loaded.rows == rows == head.shape[0]
    assert soft.loaded.answerable == names
    assert soft.model.get_output_embeddings().weight is head
    assert soft.model.get_input_embeddings().weight.shape[0] == rows
    with torch.no_grad():
        logits = soft.model(torch.tensor([[5, soft.loaded.vectors[0], 7]])).logits
    assert logits.shape[-1] == rows
    assert all(torch.equal(kept[key], v) for key, v in soft.model.state_dict().items())
    if hasattr(soft, "fill"):
        text = f"{marker('P36', 1)} Paris "
        (answer,) = answers(soft, [tiny.fill(text, " .", top=1000)])
        assert len(answer.top) == len(names)
        assert not any(markers(word) for word in answer.top)


def test_the_vectors_are_what_is_read(folder: Folders) -> None:
    base = opened(folder("bert"))
    asked = [tiny.fill(f"{marker('P36', 1)} Paris ", " .")]
    (one,) = answers(with_random(base, 2), asked)
    other = opened(folder("bert"))
    width = other.model.get_input_embeddings().weight.shape[1]
    flat = {marker("P36", 1): np.zeros(width, dtype=np.float32)}
    (zero,) = answers(soft_model("soft:test", other, flat, "w"), asked)
    assert one.top_logps != zero.top_logps


@pytest.mark.parametrize("name", ["bert", "roberta", "gpt2", "llama"])
def test_a_plain_model_refuses_a_text_with_markers(name: str, folder: Folders) -> None:
    model = opened(folder(name))
    prefix = f"Paris{marker('P36', 1)} "
    wants: dict[str, Want] = {"score": Score(options=("Paris", "York"))}
    wants |= {"fill": Fill()} if hasattr(model, "fill") else {"generate": Generate(most=2)}
    for ask, want in wants.items():
        prompt = replace(tiny.score(prefix, ("a",)), want=want)
        with pytest.raises(PromptError, match="⟦P36:1⟧ is a vector of a soft prompt"):
            list(getattr(model, ask)([prompt]))


def test_an_encoder_decoder_refuses_a_text_with_markers(tmp_path: Path) -> None:
    model = opened(tiny.t5(tmp_path / "t5"))
    with pytest.raises(PromptError, match="vector of a soft prompt"):
        list(one_by_one(model.score([tiny.score(f"Paris{marker('P36', 1)} is ", ("Paris",))])))


def test_brackets_that_are_no_marker_are_text_like_any_other(folder: Folders) -> None:
    model = opened(folder("gpt2"))
    ((_, answer),) = one_by_one(model.score([tiny.score("⟦ P36 ⟧ is ", ("Paris",))]))
    assert answer.logps


def test_a_causal_model_is_never_asked_to_predict_a_vector(folder: Folders) -> None:
    soft = with_random(opened(folder("gpt2")), 1)
    with pytest.raises(PromptError, match="every vector before"):
        list(
            one_by_one(soft.score([tiny.score("Paris is ", ("Paris",), f" too{marker('P36', 1)}")]))
        )


def test_another_model_is_refused(folder: Folders, tmp_path: Path) -> None:
    base = Path(shutil.copytree(folder("bert"), tmp_path / "base"))
    out = made(base, tmp_path / "out")
    shutil.rmtree(base)
    tiny.bert(base, seed=1)
    with pytest.raises(ModelError, match="make it anew"):
        load(f"soft:{out}", CPU)


def test_a_model_that_moved_is_found_where_it_is_now(folder: Folders, tmp_path: Path) -> None:
    base = Path(shutil.copytree(folder("bert"), tmp_path / "base"))
    out = made(base, tmp_path / "out")
    base.rename(tmp_path / "moved")
    with pytest.raises(ModelError, match="@hf:FOLDER"):
        load(f"soft:{out}", CPU)
    found = load(f"soft:{out}@hf:{tmp_path / 'moved'}", CPU)
    assert found.identity.name == f"soft:{out}"


def test_the_identity_names_both_the_model_and_the_vectors(folder: Folders, tmp_path: Path) -> None:
    out = made(folder("bert"), tmp_path / "out")
    one = load(f"soft:{out}", CPU).identity
    assert one.weights != opened(folder("bert")).identity.weights
    vectors = load_file(out / "vectors.safetensors")
    save_file({key: value + 1 for key, value in vectors.items()}, out / "vectors.safetensors")
    assert load(f"soft:{out}", CPU).identity.weights != one.weights


@pytest.mark.parametrize("rest", ["", "nowhere"])
def test_a_folder_without_prompts_is_refused(rest: str, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="sonde optimise"):
        load(f"soft:{tmp_path / rest if rest else ''}", CPU)


def test_vectors_of_another_width_are_refused(folder: Folders, tmp_path: Path) -> None:
    out = made(folder("bert"), tmp_path / "out")
    save_file({marker("P36", 1): np.zeros(7, dtype=np.float32)}, out / "vectors.safetensors")
    with pytest.raises(ModelError, match="made for another model"):
        load(f"soft:{out}", CPU)


def test_a_damaged_file_of_vectors_is_told(folder: Folders, tmp_path: Path) -> None:
    out = made(folder("bert"), tmp_path / "out")
    (out / "vectors.safetensors").write_bytes(b"no vectors")
    with pytest.raises(ModelError, match="does not read back"):
        load(f"soft:{out}", CPU)


def test_models_without_weights_or_with_two_texts_are_refused(tmp_path: Path) -> None:
    data = dataset()
    control = load("control:majority", CPU, data)
    with pytest.raises(AbilityError, match="no gradients"):
        optimise(OptiPrompt(), control, data, tmp_path / "a")
    with pytest.raises(AbilityError, match="masked or causal"):
        optimise(OptiPrompt(), opened(tiny.t5(tmp_path / "t5")), data, tmp_path / "b")
    assert not (tmp_path / "a").exists()
