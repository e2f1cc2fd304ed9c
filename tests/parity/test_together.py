"""Options scored beside the text that is written after them are those scored apart from it."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sonde.core.abilities import ScoresAndGenerates
from sonde.core.answers import Answer, Generated, Scored
from sonde.core.columns import one_by_one
from sonde.core.errors import AbilityError, PromptError
from sonde.core.prompts import Prompt, Score
from sonde.engine.token_tree import shared_prefill
from sonde.models.torch.causal.model import CausalModel
from sonde.models.torch.decode.steps import end_tokens
from sonde.models.torch.masked.model import MaskedModel
from sonde.models.torch.reference import generate_causal, score_causal
from sonde.runs.shards import answer
from tests.parity.test_memory import ERRORS, limit
from tests.parity.world import BUDGETS, OPTIONS, PREFIXES, assert_same
from tests.parity.writing import (
    LONG,
    UNTILS,
    WAYS,
    Fed,
    Way,
    assert_same_text,
    causal,
    draw,
    in_order,
    write,
    written,
)
from tests.tiny import CITIES, Load, fill, score

FRANCE = "The capital of France is "
SHORT = PREFIXES.map(lambda prefix: prefix[:20])
OPENINGS = st.one_of(SHORT, SHORT.map(lambda prefix: LONG + prefix))
SUFFIXES = st.sampled_from(["", ".", " in France."])


@st.composite
def shards(draw: Any) -> list[Prompt]:
    """A few beginnings, each with options to score, a text to write, or several of both."""
    found = []
    for prefix in draw(st.lists(OPENINGS, min_size=1, max_size=3)):
        options = st.builds(score, st.just(prefix), OPTIONS, SUFFIXES)
        texts = st.builds(write, st.just(prefix), st.integers(1, 7), UNTILS)
        found += draw(st.lists(st.one_of(options, texts), min_size=1, max_size=4))
        found += [score(prefix, ("Paris",)), write(prefix)]
    return found


def joined(model: CausalModel, prompts: Sequence[Prompt]) -> list[Answer]:
    found: list[Answer] = in_order(
        list(one_by_one(model.score_and_generate(prompts))), len(prompts)
    )
    return found


def reference(model: CausalModel, prompts: Sequence[Prompt]) -> list[Answer]:
    """Every prompt by itself, without any sharing."""
    found: list[Answer] = []
    ends = end_tokens(model.loaded)
    for prompt in prompts:
        if isinstance(prompt.want, Score):
            found += [a for _, a in score_causal(model.model, model.encoder, [prompt])]
        else:
            found += [a for _, a in generate_causal(model.model, model.encoder, [prompt], ends)]
    return found


def assert_alike(one: Answer, other: Answer) -> None:
    if isinstance(one, Scored) and isinstance(other, Scored):
        assert_same(one, other)
    else:
        assert isinstance(one, Generated) and isinstance(other, Generated)
        assert_same_text(one, other)


@pytest.mark.parametrize(("kind", "tree"), WAYS)
@given(prompts=shards(), budget=st.sampled_from(BUDGETS))
@settings(max_examples=12, deadline=None, derandomize=True)
def test_together_equals_the_reference(
    tiny: Load, kind: str, tree: Way, prompts: list[Prompt], budget: int
) -> None:
    model = causal(tiny, kind, tree, budget)
    for one, other in zip(joined(model, prompts), reference(model, prompts), strict=True):
        assert_alike(one, other)


def test_options_longer_than_a_window_allows_go_along_a_tree_beside_a_short_text(
    tiny: Load,
) -> None:
    model = causal(tiny, "gemma3", "rows")
    prompts = [write("is", 1), score("is", ("Vienna",), " in France."), write("is", 6)]
    for one, other in zip(joined(model, prompts), reference(model, prompts), strict=True):
        assert_alike(one, other)


@pytest.mark.parametrize("kind", ["llama", "mistral", "mamba"])
@given(prompts=shards(), order=st.randoms(use_true_random=False), budget=st.sampled_from(BUDGETS))
@settings(max_examples=6, deadline=None, derandomize=True)
def test_order_never_changes_an_answer(
    tiny: Load, kind: str, prompts: list[Prompt], order: Random, budget: int
) -> None:
    expected = joined(causal(tiny, kind, kind != "mamba"), prompts)
    places = list(range(len(prompts)))
    order.shuffle(places)
    model = causal(tiny, kind, kind != "mamba", budget)
    for place, found in zip(places, joined(model, [prompts[i] for i in places]), strict=True):
        assert_alike(found, expected[place])


@pytest.mark.parametrize("kind", ["llama", "gpt2", "mistral", "gemma3"])
@pytest.mark.parametrize("start", ["", LONG], ids=["without a stem", "behind a stem"])
def test_what_is_read_for_a_text_serves_the_options_after_it(
    tiny: Load, kind: str, start: str
) -> None:
    """Of each option all tokens but the last are fed beside the text, and no prompt again."""
    model = causal(tiny, kind)
    writes = [write(start + f"{name} is ") for name in ("Oslo", "York", "Paris")]
    scores = [score(p.prefix, ("Vienna", "New Norway")) for p in writes]
    with Fed(model.model) as text:
        written(model, writes)
    model.prefixes.clear()
    with Fed(model.model) as both:
        joined(model, [*scores, *writes])
    own = {s.ids[:n] for p in scores for s in spans(model, p) for n in range(s.start + 1, s.end)}
    assert sum(both.sizes) == sum(text.sizes) + len(own)
    assert len(both.sizes) == len(text.sizes)


def spans(model: CausalModel, prompt: Prompt) -> list[Any]:
    assert isinstance(prompt.want, Score)
    after = prompt.want.after(prompt.suffix)
    return model.encoder.encode(prompt.prefix, prompt.want.options, after)


def test_several_prompts_are_scored_beside_one_text_and_texts_beside_one_prompt(
    tiny: Load,
) -> None:
    model = causal(tiny, "llama")
    prompts = [write(FRANCE), score(FRANCE, ("Oslo", "York")), score(FRANCE, ("Paris",), fact="g")]
    prompts += [write(FRANCE, most=2), score(FRANCE, ("New York",), " in France.")]
    with Fed(model.model) as fed:
        found = joined(model, prompts)
    assert sum(size > 2 for size in fed.sizes) == 1
    for one, other in zip(found, reference(model, prompts), strict=True):
        assert_alike(one, other)


def test_an_option_that_is_written_too_is_scored_as_the_text_is(tiny: Load) -> None:
    model = causal(tiny, "llama")
    starts = [f"{start} {city}" for city in CITIES for start in ("It is", "In", "The capital of")]
    found = 0
    for start, text in zip(starts, written(model, [write(s, most=2) for s in starts]), strict=True):
        if len(model.encoder.open(start + text.text)) > len(model.encoder.open(start)) + 2:
            continue  # read again, what was written is other tokens
        option, again = joined(model, [score(start, (text.text,)), write(start, most=2)])
        assert isinstance(option, Scored)
        assert_alike(again, text)
        assert option.logps[0] == pytest.approx(text.logps, abs=1e-4)
        found += 1
    assert found > 0


def test_options_that_take_more_room_than_the_text_are_scored_apart(tiny: Load) -> None:
    model = causal(tiny, "llama")
    prompts = [score(FRANCE, CITIES), write(FRANCE, most=2)]
    texts = {0: model.branches(prompts[0])}
    ids = model.encoder.open(FRANCE)
    assert shared_prefill(texts, {1: (ids, 2)}) == {}
    assert shared_prefill(texts, {1: (ids, 64)}) == {1: (0,)}
    for one, other in zip(joined(model, prompts), reference(model, prompts), strict=True):
        assert_alike(one, other)


def test_an_option_that_shares_a_token_with_the_prompt_is_scored_apart(tiny: Load) -> None:
    model = causal(tiny, "llama")
    prompts = [score("It was written in Par", ("is",)), write("It was written in Par")]
    texts = {0: model.branches(prompts[0])}
    assert shared_prefill(texts, {1: (model.encoder.open(prompts[1].prefix), 9)}) == {}
    for one, other in zip(joined(model, prompts), reference(model, prompts), strict=True):
        assert_alike(one, other)


@pytest.mark.parametrize("error", ERRORS, ids=["cuda", "linux", "windows", "python"])
@pytest.mark.parametrize(
    ("kind", "tree"), [("llama", True), ("llama", False), ("llama", "rows"), ("gemma3", True)]
)
def test_answers_stay_the_same_in_smaller_batches(
    tiny: Load, monkeypatch: pytest.MonkeyPatch, error: Exception, kind: str, tree: Way
) -> None:
    starts = [f"{p} it " for p in ("Oslo is", "It", "", "York in", "a", "b", "c")]
    prompts = [p for s in starts for p in (score(s, ("Paris", "New York")), write(s, most=6))]
    expected = joined(causal(tiny, kind, tree), prompts)
    model = causal(tiny, kind, tree)
    before = model.budgets["generate"].tokens
    sizes = limit(monkeypatch, model.model, 20, error)
    for one, other in zip(joined(model, prompts), expected, strict=True):
        assert_alike(one, other)
    assert max(sizes) <= 20
    assert model.budgets["generate"].tokens < before


@pytest.mark.parametrize(("kind", "tree"), [("llama", True), ("mamba", False)])
def test_a_shard_of_both_kinds_is_answered_together_and_always_alike(
    tiny: Load, kind: str, tree: Way
) -> None:
    prompts = [score(FRANCE, ("Paris",)), draw(FRANCE), write(FRANCE), write("It is")]
    first, second = (
        in_order(list(one_by_one(answer(causal(tiny, kind, tree), prompts))), len(prompts))
        for _ in range(2)
    )
    assert first == second
    both = joined(causal(tiny, kind, tree), [prompts[i] for i in (0, 2, 3)])
    assert [first[i] for i in (0, 2, 3)] == both


def test_a_shard_of_one_kind_goes_the_usual_way(
    tiny: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = causal(tiny, "llama")
    assert isinstance(model, ScoresAndGenerates) and not isinstance(
        MaskedModel(tiny("bert")), ScoresAndGenerates
    )
    monkeypatch.setattr(model, "score_and_generate", None)
    assert len(list(answer(model, [write(FRANCE), draw(FRANCE)]))) == 2
    assert len(list(answer(model, [score(FRANCE, CITIES)]))) == 1


def test_together_refuses_what_either_way_refuses(tiny: Load) -> None:
    model = causal(tiny, "gpt2")
    some = [score(FRANCE, ("Paris",)), write(FRANCE)]
    with pytest.raises(PromptError, match=r"fact 'f'.*the answer may have 64.*takes 64"):
        joined(model, [*some, write("It", most=64)])
    with pytest.raises(PromptError, match=r"fact 'g'.*there is no option"):
        joined(model, [*some, score("It", (), fact="g")])
    with pytest.raises(AbilityError, match="scores options"):
        joined(model, [*some, fill("It ")])
