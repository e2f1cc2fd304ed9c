"""Whether a model takes trees is tried, and what a trial cannot show is known beforehand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import transformers

from sonde.core.columns import one_by_one
from sonde.core.prompts import Prompt
from sonde.models.options import LoadOptions
from sonde.models.torch.causal.model import CausalModel
from sonde.models.torch.causal.token_tree import why_flat
from sonde.models.torch.loading.weights import load_folder
from sonde.models.torch.masked.model import MaskedModel
from sonde.models.torch.reference import fill_masked, score_causal, score_masked
from tests import tiny as world
from tests.parity.world import BUDGETS, answers, assert_same
from tests.tiny import Load


def test_a_window_wider_than_the_trial_is_seen_all_the_same(tmp_path: Path) -> None:
    model = load_folder(
        "hf:wide", world.mistral(tmp_path, sliding_window=64), LoadOptions(), weights="w"
    ).model
    assert not why_flat(model)
    assert model.config.sliding_window == 64
    model.config.sliding_window = 2
    model.config.attention_chunk_size = 64  # of layers like these nothing is known
    assert why_flat(model)


def test_a_local_layer_under_another_name_is_seen_too(tmp_path: Path) -> None:
    sizes: dict[str, Any] = {"hidden_size": 32, "num_layers": 2, "num_heads": 4}
    layers = [[["global", "local"], 1]]
    config = transformers.GPTNeoConfig(**sizes, attention_types=layers, window_size=64)
    build: Any = transformers.GPTNeoForCausalLM
    assert why_flat(build(config).eval())


def test_a_model_without_its_window_is_fed_trees(tmp_path: Path) -> None:
    full = world.mistral(tmp_path, sliding_window=None)
    assert not why_flat(load_folder("hf:full", full, LoadOptions(), weights="f").model)


def test_a_model_that_overlooks_positions_is_fed_no_trees(
    tiny: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tiny("llama").model
    whole = model.forward

    def overlooking(*args: Any, **kwargs: Any) -> Any:
        return whole(*args, **{**kwargs, "position_ids": None})

    monkeypatch.setattr(model, "forward", overlooking)
    assert why_flat(model)
    prompts = [world.score("It is ", world.CITIES), world.score("The capital is ", world.CITIES)]
    scorer = CausalModel(tiny("llama"))
    for i, expected in score_causal(model, scorer.encoder, prompts):
        assert_same(answers(scorer, prompts)[i], expected)


@pytest.mark.parametrize("budget", BUDGETS)
def test_a_model_that_looks_into_the_padding_gets_none(tmp_path: Path, budget: int) -> None:
    folder = world.convbert(tmp_path)
    loaded = load_folder("hf:convbert", folder, LoadOptions(batch_tokens=budget), weights="c")
    model = MaskedModel(loaded)
    assert not model.ways.pads
    prompts = [world.score("It is ", world.CITIES, "."), world.score("", world.CITIES, " is it")]
    expected = dict(score_masked(model.model, model.encoder, prompts))
    for i, answer in enumerate(answers(model, prompts)):
        assert_same(answer, expected[i])


@pytest.mark.parametrize("kind", world.MASKED)
def test_other_masked_models_are_padded(tiny: Load, kind: str) -> None:
    assert MaskedModel(tiny(kind)).ways.pads


def test_one_wish_means_other_tokens_where_texts_begin_otherwise(tiny: Load) -> None:
    model = MaskedModel(tiny("roberta"))
    words = ("Paris", "Oslo", "York")
    first = world.fill("It is ", ".", watched=words, vocabulary=words)
    prompts = [Prompt(key=first.key, prefix=p, want=first.want) for p in ("It is ", "", "It (")]
    found = dict(one_by_one(model.fill(prompts)))
    for i, expected in fill_masked(model.model, model.encoder, prompts, {}):
        assert found[i].watched_ranks == expected.watched_ranks
    # only " Paris" and " York" are tokens, and only "Paris" and "Oslo"
    measured = [[rank is not None for rank in found[i].watched_ranks] for i in range(3)]
    assert measured == [[True, False, True], [True, True, False], [True, True, False]]
