"""A model whose numbers are none is told of, relation by relation; no share is made of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sonde.optimise.autoprompt import AutoPrompt
from sonde.optimise.finetune import FineTune
from sonde.optimise.lpaqa import Lpaqa
from sonde.optimise.making import optimise
from sonde.optimise.optiprompt import OptiPrompt
from tests import tiny

from .world import dataset, opened

METHODS = {
    "autoprompt": AutoPrompt(iterations=2, candidates=2),
    "finetune": FineTune(epochs=1),
    "lpaqa": Lpaqa(),
    "optiprompt": OptiPrompt(epochs=1),
}
MODELS = {"bert": (tiny.bert, "LayerNorm.weight"), "llama": (tiny.llama, "norm.weight")}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", MODELS)
def test_nothing_is_said_of_what_is_no_number(tmp_path: Path, kind: str, method: str) -> None:
    make, name = MODELS[kind]
    model = opened(tiny.spoiled(make(tmp_path / "m"), name, tiny.one_nan))
    chosen: Any = METHODS[method]
    (made,) = optimise(chosen, model, dataset("P36"), tmp_path / "out")
    assert (made.before, made.after) == (None, None)
    assert "finite number" in made.problem or "NaN" in made.problem


def test_the_prompt_is_named_where_templates_are_compared(tmp_path: Path) -> None:
    model = opened(tiny.spoiled(tiny.bert(tmp_path / "m"), "LayerNorm.weight", tiny.one_nan))
    (made,) = optimise(Lpaqa(), model, dataset("P36"), tmp_path / "out")
    assert not made.templates
    for part in ("relation 'P36'", "fact 'P36:", "template 'P36-own'", "--dtype", "sonde doctor"):
        assert part in made.problem
