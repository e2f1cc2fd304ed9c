"""Texts that a causal model writes together are those it writes alone, all recomputed."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sonde.core.errors import AbilityError, ModelError, PromptError
from sonde.core.prompts import Prompt
from sonde.engine.encode import Start
from sonde.models.torch.causal.model import CausalModel
from sonde.models.torch.decode.steps import end_tokens
from sonde.models.torch.reference import generate_causal
from tests.parity.test_memory import ERRORS, limit
from tests.parity.world import BUDGETS
from tests.parity.writing import (
    LONG,
    OPENINGS,
    UNTILS,
    WAYS,
    Fed,
    Way,
    assert_same_text,
    causal,
    draw,
    write,
    written,
)
from tests.tiny import Load

PROMPTS = st.lists(st.builds(write, OPENINGS, st.integers(1, 7), UNTILS), min_size=1, max_size=5)
SOME = [
    write("The capital of France is "),
    write("The capital of France is", most=3, until="a"),
    write(LONG + "Oslo is in"),
    write(LONG + "York is in", until="a"),
    write(""),
]


@pytest.fixture
def ending(monkeypatch: pytest.MonkeyPatch, tiny: Load) -> Any:
    """Let every third token of a model end a text, so that many texts end early."""

    def change(kind: str) -> None:
        config = tiny(kind).model.generation_config
        size = tiny(kind).vocabulary
        monkeypatch.setattr(config, "eos_token_id", list(range(0, size, 3)))

    return change


@pytest.mark.parametrize(("kind", "tree"), WAYS)
@given(prompts=PROMPTS, budget=st.sampled_from(BUDGETS))
@settings(max_examples=15, deadline=None, derandomize=True)
def test_writing_together_equals_the_reference(
    tiny: Load, kind: str, tree: Way, prompts: list[Prompt], budget: int
) -> None:
    model = causal(tiny, kind, tree, budget)
    prompts = [*prompts, prompts[0]]
    expected = dict(generate_causal(model.model, model.encoder, prompts, end_tokens(model.loaded)))
    for i, answer in enumerate(written(model, prompts)):
        assert_same_text(answer, expected[i])


@pytest.mark.parametrize(("kind", "tree"), WAYS)
def test_texts_end_where_the_reference_ends_them(
    tiny: Load, ending: Any, kind: str, tree: Way
) -> None:
    ending(kind)
    model = causal(tiny, kind, tree)
    prompts = [write(prompt.prefix, most=20) for prompt in SOME]
    expected = dict(generate_causal(model.model, model.encoder, prompts, end_tokens(model.loaded)))
    found = written(model, prompts)
    for i, answer in enumerate(found):
        assert_same_text(answer, expected[i])
    assert any(answer.finished and answer.end_logp is not None for answer in found)


@pytest.mark.parametrize("kind", ["llama", "gpt2", "mistral", "gemma3", "mamba"])
@pytest.mark.parametrize("early", [True, False])
def test_writing_equals_what_transformers_generates(
    tiny: Load, ending: Any, kind: str, early: bool
) -> None:
    if early:
        ending(kind)
    model = CausalModel(tiny(kind))
    prompts = [write(prompt.prefix, most=12) for prompt in SOME]
    decode = model.loaded.backend.decode
    for prompt, answer in zip(prompts, written(model, prompts), strict=True):
        ids = list(model.encoder.open(prompt.prefix))
        given = torch.tensor([ids], device=model.model.device)
        made = model.model.generate(
            given,
            attention_mask=torch.ones_like(given),
            max_new_tokens=12,
            do_sample=False,
            pad_token_id=1,
        )[0].tolist()
        ended = made[-1] in end_tokens(model.loaded)
        kept = made[:-1] if ended else made
        before = decode(ids, skip_special_tokens=False)
        assert answer.text == decode(kept, skip_special_tokens=False)[len(before) :]
        assert len(answer.logps) + (answer.end_logp is not None) == len(made) - len(ids)
        assert answer.finished == ended


@pytest.mark.parametrize(("kind", "tree"), WAYS)
@given(prompts=PROMPTS, order=st.randoms(use_true_random=False), budget=st.sampled_from(BUDGETS))
@settings(max_examples=8, deadline=None, derandomize=True)
def test_order_and_company_never_change_a_text(
    tiny: Load, kind: str, tree: Way, prompts: list[Prompt], order: Random, budget: int
) -> None:
    together = written(causal(tiny, kind, tree), prompts)
    model = causal(tiny, kind, tree, budget)
    places = list(range(len(prompts)))
    order.shuffle(places)
    mixed = written(model, [prompts[i] for i in places])
    for place, answer in zip(places, mixed, strict=True):
        assert_same_text(answer, together[place])


@given(prefix=OPENINGS, data=st.data())
@settings(max_examples=40, deadline=None, derandomize=True)
def test_a_text_is_cut_where_its_end_is_written(tiny: Load, prefix: str, data: Any) -> None:
    model = causal(tiny, "llama")
    (whole,) = written(model, [write(prefix, most=10)])
    start = data.draw(st.integers(0, len(whole.text) - 1))
    until = whole.text[start : start + data.draw(st.integers(1, 4))]
    (answer,) = written(model, [write(prefix, most=10, until=until)])
    assert answer.finished
    assert answer.text == whole.text.split(until)[0]
    assert answer.logps == pytest.approx(whole.logps[: len(answer.logps)], abs=1e-4)
    if answer.end_logp is not None:
        rest = whole.logps[len(answer.logps) :]
        sums = [sum(rest[:stop]) for stop in range(1, len(rest) + 1)]
        assert any(abs(answer.end_logp - total) < 1e-4 for total in sums)


def test_spaces_that_close_a_prompt_are_left_to_the_model(tiny: Load) -> None:
    model = causal(tiny, "llama")
    one, other = written(model, [write("The capital is  "), write("The capital is")])
    assert one == other


@pytest.mark.parametrize("kind", ["llama", "gpt2", "gemma3"])
@pytest.mark.parametrize("some", [SOME[:2], SOME[2:4]], ids=["without a stem", "behind a stem"])
def test_every_distinct_token_is_fed_once(tiny: Load, kind: str, some: list[Prompt]) -> None:
    model = causal(tiny, kind)
    prompts = [*some, *some, write(some[0].prefix, most=9, fact="other")]
    decoder: Any = model.decoder()
    paths: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
    settle = decoder._settle

    def noting(openings: Any, leaf: Any) -> Any:
        ended, shares = settle(openings, leaf)
        paths.extend((leaf.root.ids, leaf.path) for _ in ended)
        return ended, shares

    decoder._settle = noting
    with Fed(model.model) as fed:
        list(decoder.generate(prompts))
    nodes = {(ids[:n], ()) for ids, _ in paths for n in range(1, len(ids) + 1)}
    grown = {(ids, path[:n]) for ids, path in paths for n in range(1, len(path))}
    assert sum(fed.sizes) == len(nodes) + len(grown)


def test_finished_texts_leave_the_batch(tiny: Load) -> None:
    model = causal(tiny, "llama")
    with Fed(model.model) as fed:
        written(model, [write("Oslo", most=2), write("It", most=5), write("York", most=4)])
    assert fed.sizes[1:] == [3, 2, 2, 1]


@pytest.mark.parametrize("error", ERRORS, ids=["cuda", "linux", "windows", "python"])
@pytest.mark.parametrize(
    ("kind", "tree"), [("llama", True), ("llama", False), ("llama", "rows"), ("gemma3", True)]
)
@pytest.mark.parametrize("room", [0, 6])
def test_writing_goes_on_in_smaller_batches(
    tiny: Load,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    kind: str,
    tree: Way,
    room: int,
) -> None:
    prompts = [write(f"{p} it", most=4) for p in ("Oslo is", "It", "", "York in", "a", "b", "c")]
    model = causal(tiny, kind, tree)
    room += max(len(model.encoder.open(prompt.prefix)) for prompt in prompts) + 3
    expected = written(model, prompts)
    model = causal(tiny, kind, tree)
    before = model.budgets["generate"].tokens
    sizes = limit(monkeypatch, model.model, room, error)
    for one, other in zip(written(model, prompts), expected, strict=True):
        assert_same_text(one, other)
    assert max(sizes) <= room
    assert model.budgets["generate"].tokens < before


def test_one_prompt_that_does_not_fit_is_an_error(
    tiny: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = causal(tiny, "llama")
    limit(monkeypatch, model.model, 3, ERRORS[0])
    with pytest.raises(ModelError, match="memory ran out on a single text"):
        written(model, SOME)
    assert not model.prefixes.kept


def test_prompts_that_cannot_be_written_on_from_are_refused(tiny: Load) -> None:
    model = causal(tiny, "gpt2")
    with pytest.raises(PromptError, match=r"fact 'f'.*text follows the answer \(' in'\)"):
        written(model, [write("It is ", suffix=" in")])
    with pytest.raises(PromptError, match=r"fact 'f'.*the answer may have 64.*takes 64"):
        written(model, [write("It", most=64)])
    with pytest.raises(PromptError, match=r"fact 'f'.*at most 0 tokens"):
        written(model, [write("It", most=0)])
    with pytest.raises(AbilityError, match="generate"):
        written(model, [draw("It is")])
    with pytest.raises(AbilityError, match="sample"):
        list(model.sample([write("It is")]))


def test_an_empty_prompt_needs_a_token_to_start_from(tiny: Load) -> None:
    model = CausalModel(tiny("gpt2"), start=Start(id=None, always=False))
    with pytest.raises(PromptError, match=r"fact 'f'.*no token to start from"):
        written(model, [write("  ")])
    opened = CausalModel(tiny("gpt2"), start=Start(id=0, always=True))
    bare = CausalModel(tiny("gpt2"), start=Start(id=0, always=False))
    assert written(opened, [write("It")]) != written(bare, [write("It")])
    assert written(opened, [write("")]) == written(bare, [write("")])
