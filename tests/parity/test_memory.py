"""Running out of memory makes batches smaller and changes no answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from sonde.core.columns import one_by_one
from sonde.core.errors import ModelError
from sonde.models.torch.causal.model import CausalModel
from sonde.models.torch.loading.weights import out_of_memory
from sonde.models.torch.masked.model import MaskedModel
from tests.parity.world import TOLERANCE, answers, assert_same
from tests.tiny import CITIES, Load, fill, score

SAID = "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: "
ERRORS = [
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
    RuntimeError(SAID + "can't allocate memory: you tried to allocate 9 bytes. Error code 12"),
    RuntimeError(SAID + "not enough memory: you tried to allocate 9 bytes."),
    MemoryError(),
]
PROMPTS = [score("The capital of France is ", CITIES), score("", CITIES, " is in France.")]
PROMPTS += [score("It is ", ("Paris", "Oslo")), score("New York and York are ", CITIES)]


def limit(monkeypatch: pytest.MonkeyPatch, model: Any, tokens: int, error: Exception) -> list[int]:
    """Let a model fail above a number of tokens; returns the sizes that went through."""
    whole: Callable[..., Any] = model.forward
    sizes: list[int] = []

    def forward(*args: Any, **kwargs: Any) -> Any:
        size = kwargs["input_ids"].numel()
        if size > tokens:
            raise error
        sizes.append(size)
        return whole(*args, **kwargs)

    monkeypatch.setattr(model, "forward", forward)
    return sizes


@pytest.mark.parametrize("error", ERRORS, ids=["cuda", "linux", "windows", "python"])
@pytest.mark.parametrize("tree", [True, False])
@pytest.mark.parametrize("room", [20, 30])
def test_a_causal_model_goes_on_in_smaller_batches(
    tiny: Load, monkeypatch: pytest.MonkeyPatch, error: Exception, tree: bool, room: int
) -> None:
    expected = answers(CausalModel(tiny("llama")), PROMPTS)
    model = CausalModel(tiny("llama"))
    model.tree, model.rows = tree, False
    before = model.budgets["score"].tokens
    sizes = limit(monkeypatch, model.model, room, error)
    for one, other in zip(answers(model, PROMPTS), expected, strict=True):
        assert_same(one, other)
    assert max(sizes) <= room
    assert model.budgets["score"].tokens < before


def test_a_masked_model_goes_on_in_smaller_batches(
    tiny: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    fills = [fill(prompt.prefix, ".", watched=("Paris",)) for prompt in PROMPTS]
    calm = MaskedModel(tiny("bert"))
    scored, filled = answers(calm, PROMPTS), dict(one_by_one(calm.fill(fills)))
    model = MaskedModel(tiny("bert"))
    sizes = limit(monkeypatch, model.model, 20, ERRORS[1])
    for one, other in zip(answers(model, PROMPTS), scored, strict=True):
        assert_same(one, other)
    for i, answer in one_by_one(model.fill(fills)):
        assert answer.top_logps == pytest.approx(filled[i].top_logps, abs=TOLERANCE)
        assert answer.watched_ranks == filled[i].watched_ranks
    assert max(sizes) <= 20


def test_the_options_of_one_prompt_need_not_fit_together(
    tiny: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompt = PROMPTS[3]
    expected = answers(CausalModel(tiny("gpt2")), [prompt])[0]
    model = CausalModel(tiny("gpt2"))
    model.rows = False
    room = max(len(span.ids) - 1 for span in model.encoder.encode(prompt.prefix, CITIES, ""))
    sizes = limit(monkeypatch, model.model, room, ERRORS[0])
    assert_same(answers(model, [prompt])[0], expected)
    assert len(sizes) > 1
    assert model.budgets["score"].tokens <= room


def test_the_budget_also_bounds_the_options_of_one_prompt(
    tiny: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = CausalModel(tiny("gpt2"))
    model.rows = False
    sizes = limit(monkeypatch, model.model, 10**6, ERRORS[0])
    answers(model, [PROMPTS[0]])
    model.budgets["score"].tokens = sizes[0] - 1
    answers(model, [PROMPTS[0]])
    assert len(sizes) > 2
    assert max(sizes[1:]) < sizes[0]


@pytest.mark.parametrize("tree", [True, False])
def test_one_text_that_does_not_fit_is_an_error(
    tiny: Load, monkeypatch: pytest.MonkeyPatch, tree: bool
) -> None:
    model = CausalModel(tiny("gpt2"))
    model.tree, model.rows = tree, False
    limit(monkeypatch, model.model, 3, ERRORS[0])
    with pytest.raises(ModelError, match="memory ran out on a single text"):
        answers(model, PROMPTS)
    bert = MaskedModel(tiny("bert"))
    limit(monkeypatch, bert.model, 3, ERRORS[1])
    with pytest.raises(ModelError, match="memory ran out on a single text"):
        dict(one_by_one(bert.fill([fill("The capital of France is ", ".")])))


def test_another_error_is_passed_on_at_once(tiny: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    model = CausalModel(tiny("gpt2"))
    limit(monkeypatch, model.model, 0, RuntimeError("shapes do not match"))
    with pytest.raises(RuntimeError, match="shapes do not match"):
        answers(model, PROMPTS[:1])


def test_what_torch_says_when_memory_runs_out_is_understood() -> None:
    with pytest.raises(RuntimeError) as caught:
        torch.empty(2**60)
    assert out_of_memory(caught.value)
    assert not out_of_memory(RuntimeError("shapes do not match"))
    assert not out_of_memory(ValueError("not enough memory"))
