"""Parts of texts, read together, get what each text gets in a pass of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sonde.core.answers import Traced
from sonde.core.columns import one_by_one
from sonde.core.costs import Cost
from sonde.core.errors import AbilityError, ModelError, PromptError, PromptTooLong
from sonde.core.prompts import Prompt
from sonde.engine.encode import Span, Start
from sonde.engine.spans import SpanTokens
from sonde.engine.token_tree import merge
from sonde.models.options import LoadOptions
from sonde.models.torch.causal.model import CausalModel
from sonde.models.torch.loading.weights import load_folder
from sonde.models.torch.reference import trace_causal
from sonde.testing import check_model
from tests import tiny as worlds
from tests.parity.test_causal import WAYS, causal
from tests.parity.test_memory import ERRORS, limit
from tests.parity.world import BUDGETS, TOLERANCE, WORDS, assert_near
from tests.runs.plan.test_counts import watched
from tests.tiny import CITIES, Load, recast, score, trace

LONG = "Paris is the capital of France, and Vienna that of Austria. "


@st.composite
def texts(draw: st.DrawFn) -> Prompt:
    """A text and some of the pieces into which it falls at any characters, adjacent ones too."""
    words = draw(st.lists(WORDS, min_size=1, max_size=10))
    text = draw(st.sampled_from(["", LONG])) + draw(st.sampled_from([" ", "", ", "])).join(words)
    places = st.lists(st.integers(0, len(text)), min_size=2, max_size=7, unique=True)
    spans = list(pairwise(sorted(draw(places))))
    kept = [span for span in spans if draw(st.booleans())]
    return trace(text, *(kept or spans[:1]))


TEXTS = st.lists(texts(), min_size=1, max_size=5)


def traces(model: CausalModel, prompts: Sequence[Prompt]) -> list[Traced]:
    """The answers in the order of the prompts; each prompt has one."""
    found = list(one_by_one(model.trace(prompts)))
    assert sorted(i for i, _ in found) == list(range(len(prompts)))
    return [answer for _, answer in sorted(found, key=lambda pair: pair[0])]


def assert_traced(model: CausalModel, prompts: Sequence[Prompt]) -> list[Traced]:
    """The answers, which must be the reference's."""
    expected = dict(trace_causal(model.model, model.encoder, prompts))
    found = traces(model, prompts)
    for i, answer in enumerate(found):
        assert_near(answer.logps, expected[i].logps, TOLERANCE)
    return found


@pytest.mark.parametrize(("kind", "tree"), WAYS)
@given(prompts=TEXTS, budget=st.sampled_from(BUDGETS), always=st.booleans())
def test_reading_together_equals_the_reference(
    tiny: Load, kind: str, tree: bool, prompts: list[Prompt], budget: int, always: bool
) -> None:
    model = causal(tiny, kind, tree, budget)
    model.encoder.start = replace(model.start, always=always)
    assert_traced(model, prompts)


@pytest.mark.parametrize(("kind", "tree"), [("gpt2", True), ("mistral", True), ("mamba", False)])
@given(prompts=TEXTS, order=st.randoms(use_true_random=False), budget=st.sampled_from(BUDGETS))
def test_order_and_company_never_change_what_is_read(
    tiny: Load, kind: str, tree: bool, prompts: list[Prompt], order: Random, budget: int
) -> None:
    together = traces(causal(tiny, kind, tree), prompts)
    model = causal(tiny, kind, tree, budget)
    places = list(range(len(prompts)))
    order.shuffle(places)
    for place, answer in zip(places, traces(model, [prompts[i] for i in places]), strict=True):
        assert_near(answer.logps, together[place].logps, TOLERANCE)
        assert_near(traces(model, [prompts[place]])[0].logps, together[place].logps, TOLERANCE)


@pytest.mark.parametrize("kind", ["llama", "gpt2", "mamba"])
def test_an_option_is_read_in_a_text_as_it_is_scored_behind_it(tiny: Load, kind: str) -> None:
    model = CausalModel(tiny(kind))
    before = "The capital of France is"
    (scored,) = dict(one_by_one(model.score([score(f"{before} ", CITIES)]))).values()
    spans = [(len(before), len(before) + 1 + len(city)) for city in CITIES]
    prompts = [trace(f"{before} {city}", span) for city, span in zip(CITIES, spans, strict=True)]
    found = traces(model, prompts)
    assert_near([answer.logps[0] for answer in found], scored.logps, TOLERANCE)


def test_a_token_of_two_spans_is_the_first_ones(tiny: Load) -> None:
    model = CausalModel(tiny("gpt2"))
    text = "It is Paris"
    pieces = model.encoder.tokenizer.encode(text).tokens
    assert pieces[-1] == "ĠParis"
    halves = assert_traced(model, [trace(text, (5, 8), (8, 11))])[0]
    assert [len(row) for row in halves.logps] == [1, 0]
    whole = assert_traced(model, [trace(text, (5, 11))])[0]
    assert halves.logps[0] == pytest.approx(whole.logps[0], abs=TOLERANCE)


def test_a_straddling_token_is_the_spans(tiny: Load) -> None:
    model = CausalModel(tiny("gpt2"))
    whole, late = assert_traced(
        model, [trace("It is Paris", (5, 11)), trace("It is Paris", (6, 11))]
    )
    assert whole.logps == late.logps


def test_the_first_token_is_predicted_from_the_start_token_where_it_is_read(tiny: Load) -> None:
    model = CausalModel(tiny("gpt2"))
    assert not model.start.always
    opened, bare = model.span_tokens([trace("Paris is", (0, 5)), trace("Paris is", (5, 8))])
    assert opened.ids == (model.start.id, *bare.ids)
    assert len(assert_traced(model, [trace("Paris is", (0, 8))])[0].logps[0]) == len(bare.ids)
    without = CausalModel(tiny("gpt2"), start=Start(id=None, always=False))
    assert_traced(without, [trace("Paris is", (5, 8))])
    with pytest.raises(PromptError, match="opens the text and this tokenizer has no token"):
        traces(without, [trace("Paris is", (0, 5))])


@pytest.mark.parametrize(
    "spans", [(), ((3, 3),), ((4, 2),), ((0, 99),), ((2, 5), (4, 6)), ((4, 6), (0, 2)), ((-1, 2),)]
)
def test_spans_that_make_no_sense_are_refused(
    tiny: Load, spans: tuple[tuple[int, int], ...]
) -> None:
    with pytest.raises(PromptError, match=r"fact 'f', template 't': .*part"):
        traces(CausalModel(tiny("gpt2")), [trace("Paris is", *spans)])


def test_a_suffix_and_other_wants_are_refused(tiny: Load) -> None:
    model = CausalModel(tiny("gpt2"))
    with pytest.raises(PromptError, match="put all of it into the prefix"):
        traces(model, [replace(trace("Paris is", (0, 5)), suffix=" here")])
    with pytest.raises(AbilityError, match="want Trace"):
        traces(model, [score("It is ", CITIES)])


def test_a_text_that_is_too_long_says_by_how_much(tiny: Load) -> None:
    model = CausalModel(tiny("gpt2"))
    text = LONG * 12
    needed = len(model.encoder.tokenizer.encode(text).ids)
    for ask, prompt in ((model.trace, trace(text, (9, 12))), (model.score, score(text, CITIES))):
        with pytest.raises(PromptTooLong, match=r"fact 'f'.*and the model takes 64") as caught:
            list(ask([prompt]))
        assert caught.value.limit == 64
        assert caught.value.needed >= needed


def test_a_refusal_names_some_facts_of_a_sequence(tiny: Load) -> None:
    model = CausalModel(tiny("gpt2"))
    prompt = replace(trace(LONG * 9, (9, 12), fact="a"), own={"facts": ["a", "b", "c", "d"]})
    with pytest.raises(PromptTooLong, match=r"^facts 'a', 'b', 'c', …, template 't': the prompt"):
        traces(model, [prompt])


def sequences(count: int, training: int, first: int, stride: int) -> list[Prompt]:
    """Sequences as the efficient estimator asks them: each with another answer to all questions.

    After the `first` of the training facts, and then after every `stride`, stands a question.
    """
    lines = [f"{name} {i} is {CITIES[i % 8]}, " for i, name in enumerate(CITIES * 13)][:training]
    found = []
    for j in range(count):
        answer = f" {CITIES[j % 8]}{j}"
        text, spans = "", []
        for i, line in enumerate(lines, 1):
            text += line
            if i >= first and (i - first) % stride == 0 and i < training:
                text += f"Norway {i} is"
                spans.append((len(text), len(text) + len(answer)))
                text += f"{answer}, "
        found.append(trace(text, *spans, fact=f"f{j}"))
    return found


def distinct(marked: Sequence[SpanTokens]) -> int:
    """How many different beginnings some texts have, up to the last token that each must feed."""
    spans = [Span(ids=t.ids, start=0, stop=0, end=t.reads[-1] + 1) for t in marked]
    return len(merge(spans).ids)


@pytest.fixture
def roomy(tmp_path: Path, device: str) -> Any:
    """Models with room for thousands of tokens."""

    def load(kind: str, tokens: int | None = None) -> CausalModel:
        room = {"n_positions": 8192} if kind == "gpt2" else {"max_position_embeddings": 8192}
        folder = worlds.CAUSAL[kind](tmp_path / kind, **({} if kind == "mamba" else room))
        options = LoadOptions(device=device, batch_tokens=tokens)
        return CausalModel(load_folder(f"hf:{kind}", folder, options, weights=kind))

    return load


@pytest.mark.parametrize("tokens", [None, 4096])
def test_what_sequences_share_is_computed_once(roomy: Any, tokens: int | None) -> None:
    model = roomy("llama", tokens)
    prompts = sequences(100, training=54, first=50, stride=1)
    marked = model.span_tokens(prompts)
    sizes = watched(model)
    found = traces(model, prompts)
    (stem,) = model.prefixes.kept
    assert sizes[0] == len(stem) > 300
    assert len(stem) not in sizes[1:]
    # what is fed twice: up to fifteen tokens in each batch, since stems end at round places
    assert distinct(marked) <= sum(sizes) < distinct(marked) + 16 * len(sizes)
    for i, expected in trace_causal(model.model, model.encoder, prompts[:2]):
        assert_near(found[i].logps, expected.logps, TOLERANCE)


def test_a_hundred_sequences_cost_little_more_than_their_distinct_beginnings(roomy: Any) -> None:
    """Ten questions among a hundred facts, from the fiftieth on (docs/scale-out.md)."""
    model = roomy("llama")
    prompts = sequences(100, training=100, first=50, stride=5)
    marked = model.span_tokens(prompts)
    assert {len(text.ranges) for text in marked} == {10}
    cost = sum(next(model.estimate_costs([prompts])).costs, Cost())
    assert distinct(marked) <= cost.fed < 1.02 * distinct(marked)
    assert cost.fed < 0.6 * cost.naive


@pytest.mark.parametrize("kind", ["llama", "mistral", "mamba"])
def test_texts_of_thousands_of_tokens_are_read(roomy: Any, kind: str) -> None:
    model = roomy(kind, 512)
    text = (LONG * 400)[: 12000 if kind != "mamba" else 3000]
    spans = [(i, i + 7) for i in range(0, len(text) - 7, 900)]
    sizes = watched(model)
    half = text[: len(text) // 2]
    prompts = [trace(text, *spans), trace(f"{half}York", (len(half), len(half) + 4))]
    found = traces(model, prompts)
    assert kind == "mamba" or max(sizes) <= 2100  # a stem goes through whole
    for i, expected in trace_causal(model.model, model.encoder, prompts):
        assert_near(found[i].logps, expected.logps, 1e-3)


@pytest.mark.parametrize("tree", [True, False])
def test_logits_are_made_only_where_they_are_read(
    tiny: Load, monkeypatch: pytest.MonkeyPatch, tree: bool
) -> None:
    model = CausalModel(tiny("llama" if tree else "mamba"))
    rows: list[int] = []
    head = model.model.get_output_embeddings()
    head.register_forward_hook(lambda _m, _g, logits: rows.append(logits.shape[1]))
    prompts = [trace(LONG + city, (10, 14), (len(LONG), len(LONG) + 3)) for city in CITIES[:3]]
    rows.clear()
    traces(model, prompts)
    reads = {i for text in model.span_tokens(prompts) for i in text.reads}
    assert sum(rows) <= 3 * len(reads) < sum(len(t.fed) for t in model.span_tokens(prompts))


PROMPTS = [trace(LONG + f"{city} is it", (len(LONG) - 4, len(LONG) + 3)) for city in CITIES[:4]]
PROMPTS += [trace("Paris is the capital", (0, 5), (9, 12))]


@pytest.mark.parametrize("error", ERRORS, ids=["cuda", "linux", "windows", "python"])
@pytest.mark.parametrize(("tree", "room"), [(True, 3), (True, 20), (False, 40)])
def test_reading_goes_on_in_smaller_pieces_when_memory_runs_out(
    tiny: Load, monkeypatch: pytest.MonkeyPatch, error: Exception, tree: bool, room: int
) -> None:
    expected = traces(CausalModel(tiny("llama")), PROMPTS)
    model = CausalModel(tiny("llama"))
    model.tree = tree
    sizes = limit(monkeypatch, model.model, room, error)
    for one, other in zip(traces(model, PROMPTS), expected, strict=True):
        assert_near(one.logps, other.logps, TOLERANCE)
    assert max(sizes) <= room


def test_memory_for_not_even_one_token_is_an_error(
    tiny: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    for tree in (True, False):
        model = CausalModel(tiny("llama"))
        model.tree = tree
        limit(monkeypatch, model.model, 0, ERRORS[0])
        with pytest.raises(ModelError, match="memory ran out on a single text"):
            traces(model, PROMPTS)


@pytest.mark.parametrize("kind", ["llama", "gpt2", "mamba"])
def test_models_that_read_texts_pass_the_public_checks(tiny: Load, kind: str) -> None:
    check_model(CausalModel(tiny(kind)), PROMPTS)


def test_half_precision_reads_alike(tiny: Load) -> None:
    with torch.backends.mkldnn.flags(enabled=False):
        model = CausalModel(recast(tiny("llama"), torch.bfloat16))
        expected = dict(trace_causal(model.model, model.encoder, PROMPTS))
        for i, answer in one_by_one(model.trace(PROMPTS)):
            assert_near(answer.logps, expected[i].logps, 0.3)
