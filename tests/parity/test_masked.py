"""A masked model gives, in batches and at the hole alone, what it gives text by text."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sonde.core.answers import Filled, Scored
from sonde.core.columns import one_by_one
from sonde.core.prompts import Fill, Prompt, Score, put
from sonde.engine.masked_batch import columns
from sonde.models.torch.masked.answers import best, by_groups, count_ranks, in_order, rank_rows
from sonde.models.torch.masked.logits import EQUAL, Ways, differs, kept_logits, mask_logits, ways_of
from sonde.models.torch.masked.model import MaskedModel
from sonde.models.torch.reference import fill_masked, score_masked
from sonde.testing import assert_same as same
from tests.parity import kernels
from tests.parity.world import (
    BUDGETS,
    PREFIXES,
    PROMPTS,
    SENTENCES,
    SUFFIXES,
    TOLERANCE,
    answers,
    assert_same,
    made,
    with_budget,
)
from tests.tiny import CITIES, MASKED, Load, fill, recast, score

VOCABULARY = ("Paris", "paris", "Vienna", "York", "Oslo", "capital", "the", "New York", "東京")
FILLS = st.lists(
    st.builds(
        fill,
        st.builds(str.__add__, PREFIXES.map(str.rstrip), st.sampled_from([" ", " ("])),
        SUFFIXES,
        top=st.integers(1, 12),
        watched=st.sampled_from([(), CITIES, ("Paris", "paris", "東京", "Paris", "the")]),
        vocabulary=st.sampled_from([None, VOCABULARY, ("Vienna", "capital", "Paris", "Oslo")]),
        capitals=st.booleans(),
    ),
    min_size=1,
    max_size=5,
)


def masked(tiny: Load, kind: str, budget: int = 4096) -> MaskedModel:
    return made(MaskedModel, with_budget(tiny(kind), budget))


def names(model: MaskedModel) -> dict[int, str]:
    """What every token is called, found without the model's own table."""
    tokenizer = model.loaded.tokenizer
    pieces = {id: piece for piece, id in model.loaded.backend.get_vocab().items()}
    shown = {id: tokenizer.decode([id]).strip() or piece for id, piece in pieces.items()}
    return {id: pieces[id] if pieces[id].startswith("##") else shown[id] for id in pieces}


@pytest.mark.parametrize("kind", MASKED)
@given(prompts=st.one_of(PROMPTS, SENTENCES), budget=st.sampled_from(BUDGETS))
def test_scoring_options_equals_the_reference(
    tiny: Load, kind: str, prompts: list[Prompt], budget: int
) -> None:
    model = masked(tiny, kind, budget)
    expected = dict(score_masked(model.model, model.encoder, prompts))
    for i, answer in enumerate(answers(model, prompts)):
        assert_same(answer, expected[i])
        want = prompts[i].want
        assert isinstance(want, Score) and (want.whole or answer.suffix_logps == ())


def test_every_token_of_a_whole_sentence_is_predicted_within_its_word(tiny: Load) -> None:
    model = masked(tiny, "bert")

    def scored(prefix: str, options: tuple[str, ...], suffix: str, **ways: Any) -> Scored:
        return answers(model, [score(prefix, options, suffix, **ways)])[0]

    ids = model.loaded.tokenizer("it is new norwegian.").input_ids[1:-1]
    assert len(ids) > 5  # the last word has several pieces
    whole = scored("it is ", ("new norwegian",), ".", whole=True, hidden="word")
    assert len(whole.logps[0]) + len(whole.suffix_logps[0]) == len(ids)
    assert len(whole.suffix_logps[0]) == 1
    # each word by itself, with all others shown
    alone = [
        scored("", ("it",), " is new norwegian."),
        scored("it ", ("is",), " new norwegian."),
        scored("it is ", ("new",), " norwegian."),
        scored("it is new ", ("norwegian",), "."),
        scored("it is new norwegian", (".",), ""),
    ]
    expected = [logp for answer in alone for logp in answer.logps[0]]
    found = [*whole.logps[0], *whole.suffix_logps[0]]
    assert all(abs(a - b) < TOLERANCE for a, b in zip(found, expected, strict=True))
    # the answer as one: its second word is hidden from its first
    other = scored("it is ", ("new norwegian",), ".", whole=True)
    both = scored("it is ", ("new norwegian",), ".")
    assert abs(other.logps[0][2] - both.logps[0][0]) < TOLERANCE
    assert abs(other.logps[0][2] - found[2]) > 1e-3
    assert abs(other.logps[0][0] - found[0]) < TOLERANCE


def test_an_option_of_several_tokens_is_predicted_from_left_to_right(tiny: Load) -> None:
    answer = answers(masked(tiny, "bert"), [score("It is ", ("New York", "Norway"), ".")])[0]
    assert [len(row) for row in answer.logps] == [2, 1]
    alone = answers(masked(tiny, "bert"), [score("It is New ", ("York",), ".")])[0]
    # the last token sees the one before it, as if that were part of the text
    assert abs(answer.logps[0][1] - alone.logps[0][0]) < TOLERANCE


@pytest.mark.parametrize(("narrow", "packs"), [(True, False), (False, False), (True, True)])
@pytest.mark.parametrize("kind", MASKED)
@given(prompts=FILLS, budget=st.sampled_from(BUDGETS), enough=st.sampled_from([0, 20, 4096]))
def test_filling_equals_the_reference(
    tiny: Load,
    kind: str,
    narrow: bool,
    packs: bool,
    prompts: list[Prompt],
    budget: int,
    enough: int,
) -> None:
    model = masked(tiny, kind, budget)
    model.enough = enough
    assert model.ways.narrow
    model.ways = replace(model.ways, narrow=narrow, packs=packs, joins=False)
    found, backwards = (
        dict(one_by_one(model.fill(prompts))),
        dict(one_by_one(model.fill(prompts[::-1]))),
    )
    assert sorted(found) == list(range(len(prompts)))
    everything = [everything_wanted(prompt) for prompt in prompts]
    for i, whole in fill_masked(model.model, model.encoder, everything, names(model)):
        alone = dict(one_by_one(model.fill([prompts[i]])))[0]
        for answer in (found[i], backwards[len(prompts) - 1 - i], alone):
            assert_filled(answer, whole, prompts[i])


def test_names_that_open_a_sentence_are_filled_with_a_capital(tiny: Load) -> None:
    model = masked(tiny, "roberta")
    lower, upper = ("paris", "oslo"), ("Paris", "Oslo")
    asked = [
        fill("", " is it.", watched=names, vocabulary=names, capitals=capitals)
        for names, capitals in ((lower, True), (upper, False))
    ]
    capital, by_hand = (answer for _, answer in sorted(one_by_one(model.fill(asked))))
    assert capital.watched == lower and capital.watched_logps == by_hand.watched_logps
    assert tuple(map(str.capitalize, capital.top)) == by_hand.top
    assert capital.top_logps == by_hand.top_logps
    later, plain = (
        fill("It is ", ".", watched=lower, vocabulary=(*lower, *upper), capitals=capitals)
        for capitals in (True, False)
    )
    assert dict(one_by_one(model.fill([later])))[0] == dict(one_by_one(model.fill([plain])))[0]


def everything_wanted(prompt: Prompt) -> Prompt:
    assert isinstance(prompt.want, Fill)
    return replace(prompt, want=replace(prompt.want, top=10**6))


def assert_filled(found: Filled, whole: Filled, prompt: Prompt) -> None:
    """Hold an answer against one that lists every allowed token."""
    assert isinstance(prompt.want, Fill)
    assert len(found.top) == min(prompt.want.top, len(whole.top))
    assert found.top_logps == pytest.approx(whole.top_logps[: len(found.top)], abs=TOLERANCE)
    for name, value in zip(found.top, found.top_logps, strict=True):
        near = [n for n, v in zip(whole.top, whole.top_logps, strict=True) if close(v, value)]
        assert name in near
    assert found.watched == prompt.want.watched
    assert found.mass == pytest.approx(whole.mass, abs=TOLERANCE)
    for i, (rank, logp) in enumerate(zip(found.watched_ranks, found.watched_logps, strict=True)):
        true = whole.watched_logps[i]
        assert (rank is None) == (logp is None) == (true is None)
        if rank is not None and logp is not None and true is not None:
            assert close(logp, true)
            # exact but for tokens whose values cannot be told apart
            assert sum(v > logp + TOLERANCE for v in whole.top_logps) < rank
            assert rank <= sum(v >= logp - TOLERANCE for v in whole.top_logps)


def close(a: float, b: float) -> bool:
    return abs(a - b) <= TOLERANCE


def test_tokens_equally_likely_share_the_worst_rank_of_them(tiny: Load) -> None:
    loaded = tiny("bert")
    model = MaskedModel(recast(loaded, torch.float32))
    head = model.model.cls.predictions.decoder
    head.weight = torch.nn.Parameter(torch.zeros_like(head.weight))
    heights = {"paris": 3.0, "vienna": 3.0, "york": 3.0, "the": 1.0}
    bias = torch.zeros_like(head.bias)
    for word, height in heights.items():
        bias[loaded.backend.token_to_id(word)] = height
    head.bias = torch.nn.Parameter(bias)
    watched = ("Paris", "York", "the", "of", "Oslo")
    prompt = fill("It is ", ".", top=4, watched=watched, vocabulary=(*watched, "Vienna"))
    answer = dict(one_by_one(model.fill([prompt])))[0]
    assert answer.watched_ranks == (3, 3, 4, 6, 6)
    by_id = ("Paris", "Vienna", "York")  # the order of the vocabulary file
    assert answer.top == (*by_id, "the")
    expected = dict(fill_masked(model.model, model.encoder, [prompt], {}))[0]
    assert (answer.top, answer.watched_ranks) == (expected.top, expected.watched_ranks)


@given(
    values=st.lists(st.integers(-4, 4), min_size=1, max_size=30),
    allowed=st.sets(st.integers(0, 29)),
    watched=st.lists(st.integers(0, 29), max_size=6),
    spare=st.integers(0, 4),
)
def test_ranks_and_the_best_are_those_of_counting(
    values: list[int], allowed: set[int], watched: list[int], spare: int
) -> None:
    ids = sorted(i for i in allowed if i < len(values))
    rows = torch.tensor([values, values[::-1]], dtype=torch.float32)
    among = rows[:, torch.tensor(ids, dtype=torch.long)]
    wanted = [i for i in watched if i < len(values)]
    heights = rows[:, torch.tensor(wanted, dtype=torch.long)]
    ranks = rank_rows(among, heights).tolist()
    assert not wanted or count_ranks(among, heights).tolist() == ranks
    for row, found in zip(rows.tolist(), ranks, strict=True):
        assert found == [sum(row[a] >= row[i] for a in ids) for i in wanted]
    for count in range(len(ids) + 1):
        given = torch.topk(among, min(count + 1 + spare, len(ids)))
        found, places = in_order(given.values.numpy(), given.indices.numpy(), count, among)
        for row, at, height in zip(rows.tolist(), places.tolist(), found.tolist(), strict=True):
            order = sorted(range(len(ids)), key=lambda i: (-row[ids[i]], i))[:count]
            assert at == order and height == [row[ids[i]] for i in order]
            if count:
                assert best(torch.tensor([row[i] for i in ids]), count) == order


@given(
    values=st.lists(st.integers(-50, 50), min_size=1, max_size=400),
    count=st.integers(1, 30),
)
def test_the_largest_are_found_in_the_groups_with_the_highest_peaks(
    values: list[int], count: int
) -> None:
    rows = torch.tensor([values, values[::-1]], dtype=torch.float32)
    count = min(count, len(values))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sonde.models.torch.masked.kernels.peaks", kernels.peaks)
        patch.setattr("sonde.models.torch.masked.kernels.GROUP", 8)
        patch.setattr(kernels, "GROUP", 8)
        norms, largest, places = by_groups(rows, count)
    assert torch.equal(norms, torch.logsumexp(rows, -1))
    assert torch.equal(largest, torch.topk(rows, count).values)
    assert torch.equal(rows.gather(1, places), largest)
    assert all(len(set(row)) == count for row in places.tolist())


def test_a_prompt_asked_twice_is_computed_once(tiny: Load, monkeypatch: Any) -> None:
    model = masked(tiny, "bert")
    model.ways = replace(model.ways, joins=False, packs=False)
    rows: list[int] = []
    whole = model.model.forward

    def counting(*args: Any, **kwargs: Any) -> Any:
        rows.append(len(kwargs["input_ids"]))
        return whole(*args, **kwargs)

    monkeypatch.setattr(model.model, "forward", counting)
    twice = [fill("It is ", ".", top=3), fill("It is ", ".", top=1), fill("It is ", "?")]
    assert len(dict(one_by_one(model.fill(twice)))) == 3
    assert rows == [2]


class NeighbourHead(torch.nn.Module):
    """A head that looks at the next position too, as no head on the hole alone could."""

    def __init__(self, head: Any) -> None:
        super().__init__()
        self.head = head

    def forward(self, hidden: Any) -> Any:
        return self.head(hidden + hidden.roll(1, dims=1))


class PooledHead(NeighbourHead):
    """A head that insists on a whole text."""

    def forward(self, hidden: Any) -> Any:
        if hidden.shape[1] == 1:
            raise ValueError("expected a text")
        return self.head(hidden)


@pytest.mark.parametrize("head", [NeighbourHead, PooledHead])
def test_a_head_that_needs_the_whole_text_gets_it(tiny: Load, head: Any) -> None:
    loaded = tiny("bert")
    changed = recast(loaded, torch.float32).model
    assert ways_of(changed).narrow
    changed.cls = head(changed.cls)
    model = MaskedModel(replace(loaded, model=changed))
    assert not model.ways.narrow
    prompts = [fill("It is ", "."), fill("The capital of France is ", " in France.")]
    found = dict(one_by_one(model.fill(prompts)))
    for i, whole in fill_masked(changed, model.encoder, prompts, names(model)):
        assert found[i].top == whole.top
        assert found[i].top_logps == pytest.approx(whole.top_logps, abs=TOLERANCE)


def test_the_hook_for_the_narrow_head_is_gone_after_a_failure(tiny: Load) -> None:
    model = tiny("bert").model
    inputs = {"input_ids": torch.tensor([[1, 2, 3]], device=model.device)}

    def fail(_states: Any) -> Any:  # here, because a device that fails is lost for all that follow
        raise IndexError

    for last in (False, True):
        with pytest.raises(IndexError):
            kept_logits(model, inputs, fail, narrow=True, last=last)
        assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


@pytest.mark.parametrize("kind", MASKED)
def test_texts_end_to_end_answer_as_they_do_alone(tiny: Load, kind: str) -> None:
    model = tiny(kind).model
    for count, length in ((1, 5), (7, 5), (40, 9), (3, 64), (5, 50)):
        texts = [
            (tuple(5 + (i * 7 + j * 3) % 40 for j in range(length)), i % length)
            for i in range(count)
        ]
        holes = columns(texts)
        ways = replace(ways_of(model), packs=True, joins=False)
        packed = mask_logits(model, holes, range(count), ways)
        for i in range(count):
            alone = mask_logits(model, holes, [i], Ways())[0]
            assert torch.allclose(packed[i], alone, atol=TOLERANCE)


def test_a_model_that_overlooks_the_mask_is_not_packed(tiny: Load, monkeypatch: Any) -> None:
    loaded = tiny("bert")
    whole = loaded.model.forward

    def overlooking(*args: Any, **kwargs: Any) -> Any:
        return whole(*args, **{**kwargs, "attention_mask": None})

    assert not differs(loaded.model, Ways(packs=True), EQUAL)
    monkeypatch.setattr(loaded.model, "forward", overlooking)
    assert differs(loaded.model, Ways(packs=True), EQUAL)


@given(
    prompts=FILLS,
    workers=st.integers(0, 2),
    task=st.integers(1, 3),
    chunk=st.integers(1, 4),
    ahead=st.sampled_from(["nothing", "these", "others"]),
)
def test_workers_chunks_and_what_was_prepared_ahead_change_no_answer(
    tiny: Load, prompts: list[Prompt], workers: int, task: int, chunk: int, ahead: str
) -> None:
    loaded = tiny("bert")
    expected = dict(one_by_one(masked(tiny, "bert").fill(prompts)))
    options = replace(loaded.options, workers=workers)
    model = MaskedModel(replace(loaded, options=options))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sonde.engine.tokenise.TASK", task)
        patch.setattr("sonde.models.torch.masked.model.FIRST", 1)
        patch.setattr("sonde.models.torch.masked.model.CHUNK", chunk)
        asked = put(prompts)
        if ahead != "nothing":
            model.prefetch(asked if ahead == "these" else put(prompts[:1]))
        found = dict(one_by_one(model.fill(asked)))
    model.tokenisers.close()
    for i, answer in expected.items():
        same(found[i], answer, f"prompt {i}")
