"""Samples drawn by splitting counts are those of independent draws, and nobody else's business."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2_contingency, chisquare

from sonde.core.answers import Sampled
from sonde.core.prompts import Prompt
from sonde.models.options import LoadOptions
from sonde.models.torch.causal.model import CausalModel
from sonde.models.torch.decode.steps import end_tokens, on_device, split_rows
from sonde.models.torch.loading.weights import load_folder
from sonde.models.torch.reference import sample_causal
from sonde.testing import check_model
from tests.parity.test_memory import ERRORS, limit
from tests.parity.world import BUDGETS
from tests.parity.writing import LONG, OPENINGS, UNTILS, WAYS, Fed, Way, causal, draw, drawn, write
from tests.tiny import Load, llama, score

PROMPTS = st.lists(
    st.builds(draw, OPENINGS, st.integers(0, 12), st.integers(1, 4), UNTILS, st.integers(0, 3)),
    min_size=1,
    max_size=4,
)
SOME = [
    draw("The capital of France is "),
    draw("The capital of France is ", until="a", fact="g"),
    draw("The capital of France is", seed=1),
    draw(LONG + "Oslo is in", count=7),
    draw(LONG + "York is in", until="a"),
]
CPU = LoadOptions(device="cpu")
SURE = 1e-4
"""Chance at which a right sampler fails; wrong ones are far below it."""


@pytest.mark.parametrize(("kind", "tree"), WAYS)
@given(prompts=PROMPTS, order=st.randoms(use_true_random=False), budget=st.sampled_from(BUDGETS))
@settings(max_examples=8, deadline=None, derandomize=True)
def test_batches_order_and_company_never_change_a_draw(
    tiny: Load, kind: str, tree: Way, prompts: list[Prompt], order: Random, budget: int
) -> None:
    together = drawn(causal(tiny, kind, tree), prompts)
    model = causal(tiny, kind, tree, budget)
    places = list(range(len(prompts)))
    order.shuffle(places)
    mixed = drawn(model, [prompts[i] for i in places])
    for place, answer in zip(places, mixed, strict=True):
        assert answer == together[place]
        assert drawn(model, [prompts[place]]) == [together[place]]


@pytest.mark.parametrize("kind", ["llama", "gpt2", "mistral", "gemma3"])
def test_trees_and_rows_draw_the_same(tiny: Load, kind: str) -> None:
    assert drawn(causal(tiny, kind, tree=True), SOME) == drawn(causal(tiny, kind, tree=False), SOME)


def test_answers_hold_as_many_draws_as_asked_and_the_commonest_first(tiny: Load) -> None:
    for prompt, answer in zip(SOME, drawn(causal(tiny, "llama"), SOME), strict=True):
        assert sum(answer.counts) == getattr(prompt.want, "count", None)
        pairs = list(zip(answer.texts, answer.counts, strict=True))
        assert pairs == sorted(pairs, key=lambda pair: (-pair[1], pair[0]))
        assert len(set(answer.texts)) == len(pairs)


def test_a_causal_model_that_writes_and_draws_conforms(tiny: Load) -> None:
    check_model(causal(tiny, "llama"), [*SOME, write("Oslo is in"), score("It is ", ("Oslo",))])


def test_prompts_of_one_text_draw_each_for_themselves(tiny: Load) -> None:
    model = causal(tiny, "llama")
    prompts = [draw("Oslo is in", fact=fact, seed=seed) for fact in "abc" for seed in range(3)]
    answers = drawn(model, [*prompts, prompts[0]])
    assert len(set(answers)) == len(prompts)
    assert answers[-1] == answers[0]


@pytest.fixture
def decided(tmp_path: Path) -> CausalModel:
    """A model that says few things often, so that whole texts can be compared."""
    model = CausalModel(load_folder("hf:llama", llama(tmp_path), CPU, weights="d"))
    with torch.no_grad():
        model.model.lm_head.weight.mul_(3)
    return model


def table(one: Sampled, other: Sampled, least: int = 10) -> np.ndarray:
    """Counts of both for every text that is common enough, and for all others together."""
    first, second = (
        Counter(dict(zip(answer.texts, answer.counts, strict=True))) for answer in (one, other)
    )
    both = first + second
    common = [text for text in both if both[text] >= least]
    rest = [sum(counts.values()) - sum(counts[t] for t in common) for counts in (first, second)]
    rows = [[counts[text] for text in common] for counts in (first, second)]
    return np.array([[*row, other] for row, other in zip(rows, rest, strict=True)])


def test_draws_are_distributed_as_independent_ones(decided: CausalModel) -> None:
    prompt = draw("The capital of France is", count=2000, most=3, until="i")
    ends = end_tokens(decided.loaded)
    generator = torch.Generator().manual_seed(7)
    reference = sample_causal(decided.model, decided.encoder, [prompt], ends, generator)
    counts = table(drawn(decided, [prompt])[0], next(reference)[1])
    assert counts.shape[1] > 20
    assert chi2_contingency(counts).pvalue > SURE
    # what two samples of one distribution differ by on average
    shares = counts / counts.sum(axis=1, keepdims=True)
    expected = np.sqrt(shares.mean(axis=0) / 2000 / np.pi).sum()
    assert np.abs(shares[0] - shares[1]).sum() / 2 < 1.5 * expected


def test_first_tokens_follow_the_model_itself(tiny: Load) -> None:
    model = causal(tiny, "llama")
    ids = model.encoder.open("Oslo is in")
    shares = torch.softmax(
        model.model(torch.tensor([ids], device=model.model.device)).logits[0, -1].double(), -1
    )
    texts: Counter[str] = Counter()
    tail = model.decoder().endings.tail(ids)
    for token, share in enumerate(shares.tolist()):
        ended = token in end_tokens(model.loaded)
        texts["" if ended else model.decoder().endings.text(tail, (token,))] += share
    (answer,) = drawn(model, [draw("Oslo is in", count=20_000, most=1)])
    found = dict(zip(answer.texts, answer.counts, strict=True))
    assert set(found) <= set(texts)
    common = [text for text in texts if texts[text] > 5e-4]
    counts = np.array([found.get(text, 0) for text in common])
    expected = np.array([20_000 * texts[text] for text in common])
    counts, expected = (
        np.append(counts, 20_000 - counts.sum()),
        np.append(expected, 20_000 - expected.sum()),
    )
    assert chisquare(counts, expected).pvalue > SURE


def test_what_follows_one_token_does_not_depend_on_what_follows_another(tiny: Load) -> None:
    """Many seeds, few draws: the pairs of texts in one answer are independent."""
    model = causal(tiny, "llama")
    prompts = [draw("Oslo is in", count=2, most=2, seed=seed) for seed in range(1500)]
    texts = [
        [t for t, n in zip(a.texts, a.counts, strict=True) for _ in range(n)]
        for a in drawn(model, prompts)
    ]
    same = sum(one == other for one, other in texts)
    (pool,) = drawn(model, [draw("Oslo is in", count=5000, most=2, fact="pool")])
    shares = np.array(pool.counts) / 5000
    chance = float((shares**2).sum() - 1 / 5000)
    assert abs(same - 1500 * chance) < 5 * np.sqrt(1500 * chance) + 1


@pytest.mark.parametrize("kind", ["llama", "gpt2", "gemma3"])
@pytest.mark.parametrize("some", [SOME[:3], SOME[3:]], ids=["without a stem", "behind a stem"])
@pytest.mark.parametrize("budget", [40, 4096])
def test_every_distinct_token_is_fed_once(
    tiny: Load, kind: str, some: list[Prompt], budget: int
) -> None:
    model = causal(tiny, kind)
    model.budgets["sample"].tokens = 10**6
    decoder: Any = model.decoder("sample")
    paths: set[tuple[tuple[int, ...], tuple[int, ...]]] = set()
    settle = decoder._settle

    def noting(openings: Any, leaf: Any) -> Any:
        model.budgets["sample"].tokens = budget  # once the prompts are in, they may go on in parts
        paths.add((leaf.root.ids, leaf.path))
        return settle(openings, leaf)

    decoder._settle = noting
    with Fed(model.model) as fed:
        found = dict(decoder.sample(some))
    assert found == dict(enumerate(drawn(causal(tiny, kind), some)))
    nodes = {ids[:n] for ids, _ in paths for n in range(1, len(ids) + 1)}
    grown = {(ids, path[:n]) for ids, path in paths for n in range(1, len(path))}
    assert sum(fed.sizes) == len(nodes) + len(grown)
    assert budget > 40 or max(fed.sizes[2:]) <= 40


def test_common_beginnings_of_samples_are_computed_once(tiny: Load) -> None:
    model = causal(tiny, "llama")
    (answer,) = drawn(model, [draw("Oslo", count=1000, most=1)])
    with Fed(model.model) as fed:
        drawn(model, [draw("Oslo", count=1000, most=2)])
    assert sum(fed.sizes) <= len(model.encoder.open("Oslo")) + 380
    assert len(answer.texts) < 380


@pytest.mark.parametrize("tree", [True, False, "rows"])
@pytest.mark.parametrize("error", ERRORS, ids=["cuda", "linux", "windows", "python"])
def test_sampling_goes_on_in_smaller_batches(
    tiny: Load, monkeypatch: pytest.MonkeyPatch, error: Exception, tree: Way
) -> None:
    prompts = [draw(text, count=40) for text in ("Oslo", "It is", "York")]
    expected = drawn(causal(tiny, "llama", tree), prompts)
    model = causal(tiny, "llama", tree)
    sizes = limit(monkeypatch, model.model, 12, error)
    assert drawn(model, prompts) == expected
    assert max(sizes) <= 12
    assert model.budgets["sample"].tokens <= 12


def test_memory_that_runs_out_between_layers_leaves_no_trace(
    tiny: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompts = [draw("Oslo", count=40)]
    expected = drawn(causal(tiny, "llama"), prompts)
    model = causal(tiny, "llama")
    last = model.model.model.layers[-1]
    whole, failed = last.forward, []

    def forward(states: Any, *args: Any, **kwargs: Any) -> Any:
        if states.shape[1] > 12:
            failed.append(states.shape[1])
            raise ERRORS[0]
        return whole(states, *args, **kwargs)

    monkeypatch.setattr(last, "forward", forward)
    assert drawn(model, prompts) == expected
    assert failed


@given(
    sets=st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=3), min_size=1, max_size=40),
    seed=st.integers(0, 100),
)
def test_a_device_splits_as_the_host_does(sets: list[list[int]], seed: int) -> None:
    numbers = np.random.default_rng(seed)
    logits = torch.from_numpy(numbers.normal(size=(len(sets), 50)))
    logits[:, ::7] = -torch.inf
    drawn = [[numbers.random(n) for n in row] for row in sets]
    host = split_rows(logits, drawn)
    assert on_device(torch.softmax(logits.float(), -1), drawn) == host
    assert [[sum(counts.values()) for counts in row] for row in host] == sets
