"""Integrated gradients: what is shared out adds up, and agrees with a literal implementation."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch

from sonde import api
from sonde.core.abilities import Attributes
from sonde.core.columns import one_by_one
from sonde.core.errors import AbilityError, MissingExtra, PromptError
from sonde.models import options
from sonde.models.load import attributor
from tests import tiny

PREFIX = "Vienna. The capital of France is "
MODELS = {**tiny.CAUSAL, **tiny.SEQ2SEQ}


def made(folder: Path, kind: Callable[..., Path], device: str = "cpu") -> Any:
    return api.model(f"hf:{kind(folder)}", device=device)


@pytest.mark.parametrize("kind", MODELS)
def test_weights_sum_to_what_the_prompt_changes(kind: str, tmp_path: Path, device: str) -> None:
    """The completeness axiom, for answers of one token and of several."""
    model = made(tmp_path, MODELS[kind], device)
    for answer in ("Paris", "New Norway"):
        found = attributor(model).attribute(PREFIX, answer, steps=50, most=1000, tolerance=1e-3)
        bound = max(1e-3 * abs(found.gap), 0.01)
        assert found.error <= bound
        assert sum(found.weights) == pytest.approx(found.gap, abs=bound)
        assert found.steps >= 50


@pytest.mark.parametrize("kind", MODELS)
def test_the_score_is_the_one_the_engine_gives(kind: str, tmp_path: Path, device: str) -> None:
    model = made(tmp_path, MODELS[kind], device)
    for answer in ("Paris", "New Norway"):
        ((_, scored),) = one_by_one(model.score([tiny.score(PREFIX, (answer,))]))
        found = attributor(model).attribute(PREFIX, answer, steps=10, most=10, tolerance=1.0)
        assert found.score == pytest.approx(sum(scored.logps[0]), abs=1e-4)


@pytest.mark.parametrize("kind", ["llama", "gpt2", "t5", "bart"])
def test_the_weights_are_those_of_a_literal_implementation(
    kind: str, tmp_path: Path, device: str
) -> None:
    model = made(tmp_path, MODELS[kind], device)
    steps = 400
    found = attributor(model).attribute(PREFIX, "Paris", steps=steps, most=steps, tolerance=1.0)
    assert found.weights == pytest.approx(literal(model, PREFIX, "Paris", steps), abs=5e-3)
    assert max(map(abs, found.weights)) > 0.1


def literal(model: Any, prefix: str, answer: str, steps: int) -> list[float]:
    """The definition: an average of gradients, from the silent token's embedding to the text's."""
    net, embed, token = model.model, model.model.get_input_embeddings(), model.loaded.tokenizer
    tensor = partial(torch.tensor, device=net.device)
    silent = token.eos_token_id if token.pad_token_id is None else token.pad_token_id
    if hasattr(model.encoder, "source"):
        ids, (target,) = model.encoder.source(prefix).ids, model.encoder.targets([answer])
        places = range(len(model.encoder.opens), len(ids) - len(model.encoder.closes))
        opening = [model.start, *model.encoder.opens]
        more = {"decoder_input_ids": tensor([[*opening, *target[:-1]]])}
        first = len(opening) - 1
    else:
        (span,) = model.encoder.encode(prefix, [answer], "")
        ids, target, more = span.ids, span.ids[span.start : span.stop], {}
        places = range(1 if model.start.always else 0, span.start)
        first = span.start - 1
    end = embed(tensor([ids])).detach()
    begin = end.clone()
    begin[:, list(places)] = embed(tensor(silent)).detach()
    nodes, shares = np.polynomial.legendre.leggauss(steps)
    total = torch.zeros_like(end)
    for node, share in zip(nodes, shares, strict=True):
        point = (begin + (node + 1) / 2 * (end - begin)).float().requires_grad_()
        logps = torch.log_softmax(net(inputs_embeds=point, **more).logits[0], -1)
        score = torch.stack([logps[first + i, id] for i, id in enumerate(target)]).sum()
        total += share / 2 * torch.autograd.grad(score, point)[0]
    weights = (total * (end - begin)).sum(-1)[0]
    return [float(weights[i]) for i in places]


@pytest.mark.parametrize("kind", ["llama", "gpt2", "t5", "bart"])
def test_half_precision_shares_out_what_float32_does(
    kind: str, tmp_path: Path, device: str
) -> None:
    folder = MODELS[kind](tmp_path)
    with torch.backends.mkldnn.flags(enabled=False):  # its kernels stop some virtual machines
        found = [
            attributor(api.model(f"hf:{folder}", device=device, dtype=dtype)).attribute(
                PREFIX, "Paris", steps=50, most=200, tolerance=0.05
            )
            for dtype in ("bfloat16", "float32")
        ]
    assert found[0].weights == pytest.approx(found[1].weights, abs=0.2)


@pytest.mark.parametrize("kind", ["llama", "t5"])
def test_the_model_is_left_as_it_was(kind: str, tmp_path: Path) -> None:
    model = made(tmp_path, MODELS[kind])
    before = {name: p.detach().clone() for name, p in model.model.named_parameters()}
    wanted = [p.requires_grad for p in model.model.parameters()]
    attributor(model).attribute(PREFIX, "Paris", steps=10, most=10, tolerance=1.0)
    for name, parameter in model.model.named_parameters():
        assert torch.equal(parameter, before[name])
        assert parameter.grad is None
    assert [p.requires_grad for p in model.model.parameters()] == wanted


@pytest.mark.parametrize("kind", ["llama", "gpt2", "t5", "bart"])
def test_tokens_are_the_prompt_in_order(kind: str, tmp_path: Path) -> None:
    model = made(tmp_path, MODELS[kind])
    text = "Who wrote “Ōsaka”? In "
    found = attributor(model).attribute(text, "Paris", steps=5, most=5, tolerance=1.0)
    assert "".join(token.text for token in found.tokens) == text.rstrip(" ")
    assert all(text[t.start : t.stop].endswith(t.text) for t in found.tokens)


def test_a_token_that_straddles_the_boundary_is_the_answers(tmp_path: Path) -> None:
    model = made(tmp_path, tiny.gpt2)
    found = attributor(model).attribute("is Par", "is", steps=5, most=5, tolerance=1.0)
    ((_, scored),) = one_by_one(model.score([tiny.score("is Par", ("is",))]))
    assert "".join(token.text for token in found.tokens) == "is"
    assert found.score == pytest.approx(sum(scored.logps[0]), abs=1e-4)


def test_small_batches_give_the_same(tmp_path: Path) -> None:
    folder = tiny.llama(tmp_path)
    found = [
        attributor(api.model(f"hf:{folder}", device="cpu", batch_tokens=tokens)).attribute(
            PREFIX, "Paris", steps=20, most=20, tolerance=1.0
        )
        for tokens in (1, 4096)
    ]
    assert found[0].weights == pytest.approx(found[1].weights, abs=1e-4)


def test_where_steps_are_too_few_the_error_says_so(tmp_path: Path) -> None:
    model = made(tmp_path, tiny.llama)
    rough, fine = (
        attributor(model).attribute(PREFIX, "Paris", steps=5, most=most, tolerance=1e-4)
        for most in (5, 1000)
    )
    assert rough.steps == 5 and rough.error > fine.error
    assert abs(sum(rough.weights) - rough.gap) <= rough.error + 1e-6


def test_nothing_before_the_answer_is_refused(tmp_path: Path) -> None:
    model = made(tmp_path, tiny.llama)
    with pytest.raises(PromptError, match="no token before the answer"):
        attributor(model).attribute("", "Paris", steps=5, most=5, tolerance=1.0)


def test_models_without_gradients_are_refused(tmp_path: Path) -> None:
    with pytest.raises(AbilityError, match="answers from a table"):
        attributor(api.model("scripted:"))
    with pytest.raises(AbilityError, match="fills masks"):
        attributor(made(tmp_path, tiny.bert))


def test_a_model_of_ones_own_may_attribute_itself() -> None:
    class Own:
        def attribute(self, prefix: str, answer: str, **how: Any) -> Any:
            return None

    own: Any = Own()
    assert isinstance(own, Attributes)
    assert attributor(cast(Any, own)) is own


def test_without_captum_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = made(tmp_path, tiny.gpt2)
    monkeypatch.setattr(options, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"needs captum; run: pip install 'sonde\[attribute\]'"):
        attributor(model)
