"""Options of a causal model, scored together, get what each gets as a text of its own."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sonde.core.answers import Scored
from sonde.core.columns import one_by_one
from sonde.core.prompts import Prompt
from sonde.engine.encode import Span, Start
from sonde.engine.token_tree import merge
from sonde.models.torch.causal.model import CausalModel
from sonde.models.torch.causal.token_tree import additive_mask, why_flat
from sonde.models.torch.reference import score_causal
from tests.parity.world import (
    BUDGETS,
    OPTIONS,
    PREFIXES,
    PROMPTS,
    SENTENCES,
    TOLERANCE,
    answers,
    assert_near,
    assert_same,
    made,
    with_budget,
)
from tests.tiny import CITIES, Load, recast, score

WAYS = [("llama", True), ("llama", False), ("gpt2", True), ("gpt2", False)]
WAYS += [("mistral", True), ("mistral", False), ("gemma3", True), ("mamba", False)]


def causal(tiny: Load, kind: str, tree: bool, budget: int = 4096) -> CausalModel:
    model = made(CausalModel, with_budget(tiny(kind), budget))
    assert model.tree or not tree
    model.tree, model.rows = tree, False  # rows have tests of their own
    return model


@pytest.mark.parametrize(("kind", "tree"), WAYS)
@given(prompts=st.one_of(PROMPTS, SENTENCES), budget=st.sampled_from(BUDGETS))
def test_scoring_together_equals_the_reference(
    tiny: Load, kind: str, tree: bool, prompts: list[Prompt], budget: int
) -> None:
    model = causal(tiny, kind, tree, budget)
    expected = dict(score_causal(model.model, model.encoder, prompts))
    for i, answer in enumerate(answers(model, prompts)):
        assert_same(answer, expected[i])


@pytest.mark.parametrize(("kind", "tree"), WAYS)
@given(prompts=PROMPTS, order=st.randoms(use_true_random=False), budget=st.sampled_from(BUDGETS))
def test_order_and_company_never_change_an_answer(
    tiny: Load, kind: str, tree: bool, prompts: list[Prompt], order: Random, budget: int
) -> None:
    together = answers(causal(tiny, kind, tree), prompts)
    model = causal(tiny, kind, tree, budget)
    places = list(range(len(prompts)))
    order.shuffle(places)
    mixed = answers(model, [prompts[i] for i in places])
    for place, answer in zip(places, mixed, strict=True):
        assert_same(answer, together[place])
        assert_same(answers(model, [prompts[place]])[0], together[place])
        assert choice(answer) in choices(together[place])


@given(prefix=PREFIXES, options=OPTIONS)
def test_a_suffix_of_punctuation_changes_nothing(
    tiny: Load, prefix: str, options: tuple[str, ...]
) -> None:
    model = causal(tiny, "llama", tree=True)
    bare, dotted = answers(model, [score(prefix, options), score(prefix, options, "?! …")])
    assert_same(bare, dotted)
    assert bare.suffix_logps == dotted.suffix_logps == ()


@given(prefix=PREFIXES, options=OPTIONS, suffix=st.sampled_from([".", "?!", ", in France."]))
def test_punctuation_that_is_wanted_is_scored_as_what_follows(
    tiny: Load, prefix: str, options: tuple[str, ...], suffix: str
) -> None:
    """Whole, a sentence has the same tokens whether its end is scored as option or as suffix."""
    model = causal(tiny, "llama", tree=True)
    wanted = score(prefix, options, suffix, punctuation=True)
    whole = score(prefix, tuple(option + suffix for option in options))
    apart, together = answers(model, [wanted, whole])
    rows = zip(apart.logps, apart.suffix_logps or ((),) * len(options), strict=True)
    assert_near([(*own, *rest) for own, rest in rows], together.logps, TOLERANCE)


@given(
    prefix=st.sampled_from(["", " ", "The capital is "]), suffix=st.sampled_from(["", " it is."])
)
def test_an_option_that_opens_a_sentence_gets_its_capital(
    tiny: Load, prefix: str, suffix: str
) -> None:
    model = causal(tiny, "gpt2", tree=True)
    names, written = ("paris", "new York", "東京"), ("Paris", "New York", "東京")
    capital, plain, by_hand = answers(
        model,
        [
            score(prefix, names, suffix, capitals=True),
            score(prefix, names, suffix),
            score(prefix, written, suffix),
        ],
    )
    assert_same(capital, replace(plain if prefix.strip() else by_hand, options=names))


def test_what_follows_the_answer_is_scored_apart_from_it(tiny: Load) -> None:
    model = causal(tiny, "gpt2", tree=True)
    answer = answers(model, [score("", CITIES, " is the capital of France.")])[0]
    assert len(answer.suffix_logps) == len(CITIES)
    assert all(row for row in (*answer.logps, *answer.suffix_logps))
    last = answers(model, [score("It is ", CITIES, ".")])[0]
    assert last.suffix_logps == ()


def test_a_model_with_a_state_is_fed_no_trees(tiny: Load) -> None:
    assert not CausalModel(tiny("mamba")).tree


def test_a_window_matters_so_that_the_test_above_means_something(tiny: Load) -> None:
    model = causal(tiny, "mistral", tree=False)
    prompt = score("The capital of France is Paris and that of Norway is ", CITIES)
    narrow = answers(model, [prompt])[0]
    model.model.config.sliding_window = None
    try:
        with pytest.raises(AssertionError):
            assert_same(answers(model, [prompt])[0], narrow)
    finally:
        model.model.config.sliding_window = 4


def test_a_stack_with_unknown_layers_is_fed_no_trees(tiny: Load) -> None:
    model = tiny("llama").model
    model.config.layer_types = ["full_attention", "linear_attention"]
    try:
        assert why_flat(model)
    finally:
        model.config.layer_types = None
    assert not why_flat(model)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_model_in_half_precision_is_fed_trees_too(
    tiny: Load, dtype: torch.dtype, plain_kernels: None
) -> None:
    model = CausalModel(recast(tiny("llama"), dtype))
    assert model.tree
    prompts = [score("The capital of France is ", CITIES), score("", CITIES, " is it")]
    for (_, expected), answer in zip(
        score_causal(model.model, model.encoder, prompts), answers(model, prompts), strict=True
    ):
        assert_same(answer, expected, tolerance=0.3)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_a_node_sees_its_ancestors_and_itself(tiny: Load, dtype: torch.dtype) -> None:
    options = [Span(ids=(1, 2, 3, 4), start=1, stop=4, end=4)]
    options += [Span(ids=(1, 5, 6), start=1, stop=3, end=3)]
    trie = merge(options)
    model = tiny("llama").model
    half = type(model)(model.config).to(dtype)
    mask = additive_mask(half, trie.seen, trie.depths, 2, trie.depths)[0, 0].cpu()
    assert trie.ids.tolist() == [1, 2, 3, 5]
    own = torch.tensor([[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 0, 0, 1]]).bool()
    stem = torch.ones(4, 2).bool()
    assert torch.equal(mask == 0, torch.cat([stem, own], dim=1))
    assert torch.isfinite(mask).all()


LONG = "Paris is the capital of France, and Vienna that of Austria. " * 3


def test_a_window_hides_what_lies_too_far_back(tiny: Load) -> None:
    trie = merge([Span(ids=tuple(range(1, 7)), start=1, stop=6, end=6)])
    model = tiny("gemma3").model
    masks = additive_mask(model, trie.seen, trie.depths, 2, trie.depths)
    wide, narrow = (masks[f"{kind}_attention"][0, 0].cpu() for kind in ("full", "sliding"))
    behind = torch.arange(2, 7)[:, None] - torch.arange(7)[None]
    assert torch.equal(wide == 0, behind >= 0)
    assert torch.equal(narrow == 0, (behind >= 0) & (behind < 5))


@pytest.mark.parametrize("kind", ["llama", "gpt2", "mistral", "gemma3"])
def test_prompts_behind_one_stem_score_as_they_do_alone(tiny: Load, kind: str) -> None:
    """The shared beginning is computed once; another call finds it again."""
    model = CausalModel(tiny(kind))
    model.rows = False
    prompts = [score(f"{LONG}{place} is in ", CITIES, " now") for place in ("Oslo", "York", "It")]
    prompts += [score("It is ", CITIES)]
    reference = dict(score_causal(model.model, model.encoder, prompts))
    for position, answer in one_by_one(model.score(prompts)):
        assert_same(answer, reference[position])
    (stem,) = model.prefixes.kept
    assert len(stem) >= 16
    kept = model.prefixes.kept[stem]
    again = dict(one_by_one(model.score(prompts[:2])))
    assert model.prefixes.kept[stem] is kept
    fresh = CausalModel(tiny(kind))
    fresh.rows = False
    assert again[0] == dict(one_by_one(fresh.score(prompts[:2])))[0]


def test_stems_leave_when_they_outgrow_their_budget(tiny: Load) -> None:
    model = CausalModel(tiny("llama"))
    model.rows, model.prefixes.budget = False, 0
    for opening in (LONG, "Who wrote it? " + LONG, "Marie Curie. " + LONG):
        prompts = [score(f"{opening}{place} is in ", CITIES) for place in ("Oslo", "York")]
        reference = dict(score_causal(model.model, model.encoder, prompts))
        for position, answer in one_by_one(model.score(prompts)):
            assert_same(answer, reference[position])
        assert len(model.prefixes.kept) == 1


def test_the_start_token_changes_the_answer_as_it_does_for_the_reference(tiny: Load) -> None:
    prompt = score("The capital of France is ", CITIES)
    always = CausalModel(tiny("gpt2"), start=Start(id=0, always=True))
    never = CausalModel(tiny("gpt2"), start=Start(id=0, always=False))
    opened, bare = answers(always, [prompt])[0], answers(never, [prompt])[0]
    assert abs(opened.logps[0][0] - bare.logps[0][0]) > 0.01
    assert_same(opened, dict(score_causal(always.model, always.encoder, [prompt]))[0])


def choice(answer: Scored) -> str:
    """The likeliest option."""
    return max(zip(map(sum, answer.logps), answer.options, strict=True))[1]


def choices(answer: Scored) -> list[str]:
    """The likeliest option, and those that cannot be told from it."""
    totals = [sum(row) for row in answer.logps]
    near = max(totals) - 10 * TOLERANCE
    return [o for o, total in zip(answer.options, totals, strict=True) if total >= near]
