"""Whether a model takes trees is tried, and what a trial cannot show is known beforehand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sonde.core.prompts import Prompt
from sonde.models.options import LoadOptions
from sonde.models.torch.causal import CausalModel, takes_trees
from sonde.models.torch.masked import MaskedModel
from sonde.models.torch.reference import fill_masked, score_causal
from sonde.models.torch.weights import load_folder
from tests import tiny as world
from tests.parity.conftest import Load
from tests.parity.world import answers, assert_same


def test_a_window_wider_than_the_trial_is_seen_all_the_same(tmp_path: Path) -> None:
    wide = world.mistral(tmp_path, sliding_window=64)
    assert not takes_trees(load_folder("hf:wide", wide, LoadOptions(), weights="w").model)


def test_a_model_without_its_window_is_fed_trees(tmp_path: Path) -> None:
    full = world.mistral(tmp_path, sliding_window=None)
    assert takes_trees(load_folder("hf:full", full, LoadOptions(), weights="f").model)


def test_a_model_that_overlooks_positions_is_fed_no_trees(
    tiny: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tiny("llama").model
    whole = model.forward

    def overlooking(*args: Any, **kwargs: Any) -> Any:
        return whole(*args, **{**kwargs, "position_ids": None})

    monkeypatch.setattr(model, "forward", overlooking)
    assert not takes_trees(model)
    prompts = [world.score("It is ", world.CITIES), world.score("The capital is ", world.CITIES)]
    scorer = CausalModel(tiny("llama"))
    for i, expected in score_causal(model, scorer.encoder, prompts):
        assert_same(answers(scorer, prompts)[i], expected)


def test_one_wish_means_other_tokens_where_texts_begin_otherwise(tiny: Load) -> None:
    model = MaskedModel(tiny("roberta"))
    words = ("Paris", "Oslo", "York")
    first = world.fill("It is ", ".", watched=words, vocabulary=words)
    prompts = [Prompt(key=first.key, prefix=p, want=first.want) for p in ("It is ", "", "It (")]
    found = dict(model.fill(prompts))
    for i, expected in fill_masked(model.model, model.encoder, prompts, {}):
        assert found[i].watched_ranks == expected.watched_ranks
    # only " Paris" and " York" are tokens, and only "Paris" and "Oslo"
    measured = [[rank is not None for rank in found[i].watched_ranks] for i in range(3)]
    assert measured == [[True, False, True], [True, True, False], [True, True, False]]
