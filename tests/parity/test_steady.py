"""Draws in half precision: distributed as the weights say, and moved by rounding alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from sonde.engine.sampling import draw_name, uniforms
from sonde.models.torch.causal.model import CausalModel
from sonde.models.torch.decode.steps import NoDistribution, split_rows, steady_tokens
from tests.parity.writing import draw, drawn
from tests.tiny import CITIES, Load, recast

NAME = draw_name(0, "fact")
WEIGHTS = st.lists(st.sampled_from([0.0, 1e-12, 0.1, 1.0, 3.0]), min_size=1, max_size=70)


def tokens(weights: np.ndarray, draws: np.ndarray, device: str = "cpu") -> np.ndarray:
    """The tokens that draws take from one row of weights."""
    running = torch.tensor(weights, dtype=torch.float64, device=device).cumsum(-1)[None]
    found = steady_tokens(running, torch.tensor(draws, device=device)[None])[0]
    return np.asarray(found.cpu())


@given(weights=WEIGHTS.filter(any), seed=st.integers(0, 9))
def test_only_tokens_with_weight_are_taken(device: str, weights: list[float], seed: int) -> None:
    draws = uniforms(draw_name(seed, "a"), [], 50)
    draws = np.concatenate([draws, [0.0, np.nextafter(1.0, 0.0)]])
    assert all(weights[token] > 0 for token in tokens(np.array(weights), draws, device))


@pytest.mark.parametrize("size", [2, 5, 64, 300])
def test_draws_follow_the_weights(device: str, size: int) -> None:
    weights = np.random.default_rng(size).gamma(0.5, size=size)
    found = np.bincount(tokens(weights, uniforms(NAME, [], 20_000), device), minlength=size)
    common = 20_000 * weights / weights.sum() > 5
    expected = np.append((20_000 * weights / weights.sum())[common], 0)
    counts = np.append(found[common], 20_000 - found[common].sum())
    expected[-1] = 20_000 - expected.sum()
    some = expected > 1e-6
    assert chisquare(counts[some], expected[some]).pvalue > 1e-4


def test_devices_take_the_same(device: str) -> None:
    weights = np.random.default_rng(1).gamma(0.1, size=5000)
    draws = uniforms(NAME, [], 1000)
    assert np.array_equal(tokens(weights, draws, device), tokens(weights, draws))


@pytest.mark.parametrize("noise", [1e-5, 1e-3, 1e-2])
def test_rounding_moves_few_draws_more_than_it_must(noise: float) -> None:
    """At least the distance of two distributions; laid end to end it would be many times that."""
    rng = np.random.default_rng(2)
    logits = rng.normal(0, 3, 20_000)
    one, other = np.exp(logits), np.exp(logits + rng.normal(0, noise, len(logits)))
    one, other = one / one.sum(), other / other.sum()
    distance = float(np.abs(one - other).sum() / 2)
    draws = uniforms(NAME, [], 20_000)
    moved = np.mean(tokens(one, draws) != tokens(other, draws))
    assert moved < 4 * distance + 3e-4
    laid = (np.searchsorted(np.cumsum(p), draws, side="right") for p in (one, other))
    assert np.mean(np.not_equal(*laid)) > 10 * distance


@pytest.mark.usefixtures("plain_kernels")
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_two_batch_sizes_draw_what_the_rounding_of_their_logits_explains(
    tiny: Load, dtype: torch.dtype
) -> None:
    model = CausalModel(recast(tiny("llama"), dtype))
    prompts = [draw(f"{city} is in", count=100, most=1, fact=city) for city in CITIES]
    together = drawn(model, prompts)
    apart = [drawn(model, [prompt])[0] for prompt in prompts]
    differ = 0.0
    for one, other in zip(together, apart, strict=True):
        counts, others = (dict(zip(a.texts, a.counts, strict=True)) for a in (one, other))
        differ += sum(abs(counts.get(t, 0) - others.get(t, 0)) for t in counts | others) / 2
    ids = [list(model.encoder.open(prompt.prefix)) for prompt in prompts]
    with torch.inference_mode():
        alone = [model.model(torch.tensor([row], device=model.model.device)) for row in ids]
    logits = torch.stack([output.logits[0, -1] for output in alone])
    assert logits.dtype == torch.float32
    # what the eight or eleven bits of a number make of a logit of this size, both times
    off = 4 * torch.finfo(dtype).eps * float(logits.std())
    assert differ <= 2 * (100 * len(prompts)) * off


def test_a_row_without_a_distribution_is_told_here_too() -> None:
    logits = torch.tensor([[0.0, 1.0], [float("nan"), 0.0]])
    with pytest.raises(NoDistribution) as caught:
        split_rows(logits, [[uniforms(NAME, [], 2)]] * 2, steady=True)
    assert caught.value.row == 1


@pytest.mark.usefixtures("plain_kernels")
def test_logits_in_half_precision_are_float32_and_those_of_the_weights_as_they_are(
    tiny: Load,
) -> None:
    model = CausalModel(recast(tiny("llama"), torch.bfloat16)).model
    ids = torch.tensor([[5, 6, 7]], device=model.device)
    head = model.get_output_embeddings()
    for factor in (1, 2):  # changed in place, as by drawing weights anew
        with torch.no_grad():
            head.weight.mul_(factor)
            hidden = model.base_model(ids).last_hidden_state
            found = model(ids).logits
        expected = hidden.double() @ head.weight.double().t()
        assert found.dtype == torch.float32
        assert torch.allclose(found.double(), expected, atol=1e-4)
    with torch.enable_grad():
        model(ids).logits.sum().backward()
    assert head.weight.grad is not None
