"""Rows behind shared prefixes give what whole texts give."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sonde.models.torch.causal.rows import RowCache, farthest, row_logits, why_not_rows
from sonde.models.torch.causal.shared_prefix import (
    SharedPrefixes,
    attention,
    bias_beside,
    bias_of,
    laid,
    plain_attention,
)
from sonde.models.torch.causal.token_tree import kept_prefixes, prefill
from tests.tiny import Load

FAMILIES = ("llama", "gpt2")
Ids = tuple[int, ...]


@given(st.lists(st.integers(0, 6), min_size=1, max_size=40))
def test_every_row_lies_once_in_a_slot_of_its_prefix(owners: list[int]) -> None:
    own = np.array(owners)
    size, slots, rows, back = laid(own)
    assert len(rows) == size * len(slots)
    assert (rows[back] == np.arange(len(own))).all()
    assert (own[rows] == np.repeat(slots, size)).all()


@given(st.integers(1, 3), st.integers(1, 5), st.integers(1, 37), st.sampled_from([8, 16, 64]))
def test_the_kernel_gives_what_attention_written_out_gives(
    batch: int, count: int, keys: int, width: int
) -> None:
    draw = torch.Generator().manual_seed(batch * keys)
    queries = torch.randn(batch, 2, count, width, generator=draw)
    stored = torch.randn(2, batch, 2, keys, width, generator=draw)
    seen = torch.rand(batch, 1, count, keys, generator=draw) < 0.5
    seen[..., 0] = True
    for bias in (None, bias_of(seen, torch.float32)):
        found = attention(queries, stored[0], stored[1], bias, 0.3)
        written = plain_attention(queries, stored[0], stored[1], bias, 0.3)
        for one, other in zip(found, written, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


def whole(model: Any, texts: Sequence[Ids]) -> Any:
    """Logits after the last token of each text, fed alone."""
    with torch.inference_mode():
        rows = [torch.tensor([ids], device=model.device) for ids in texts]
        each = [model(row, use_cache=False).logits[0, -1] for row in rows]
    return torch.stack(each)


def texts_of(seed: int, vocabulary: int) -> tuple[list[Ids], np.ndarray, list[Ids]]:
    """Prefixes, one of them empty, their owners, and rows of different lengths."""
    draw = np.random.default_rng(seed)
    prefixes = [tuple(draw.integers(0, vocabulary, n).tolist()) for n in (7, 0, 11)]
    owners = draw.integers(0, 3, 9)
    rows = [tuple(draw.integers(0, vocabulary, draw.integers(1, 6)).tolist()) for _ in owners]
    return prefixes, owners, rows


def feed(model: Any, rows: Sequence[Ids], before: SharedPrefixes, cache: RowCache) -> Any:
    """Feed rows behind what they have; logits after each."""
    counts = np.array([len(row) for row in rows])
    width = int(counts.max())
    ids = np.array([[*row, *[0] * (width - len(row))] for row in rows])
    depths = cache.lengths[:, None] + np.arange(width)[None]
    reads = np.arange(len(rows)) * width + counts - 1
    logits = row_logits(model, ids, depths, before, reads=reads, cache=cache)
    cache.add(counts)
    return logits


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("seed", range(4))
def test_rows_behind_several_prefixes_are_read_as_their_whole_texts(
    tiny: Load, family: str, seed: int
) -> None:
    model = tiny(family).model
    prefixes, owners, rows = texts_of(seed, model.config.vocab_size)
    before = SharedPrefixes.of([prefill(model, ids) for ids in prefixes], owners)
    cache = RowCache(len(rows), 24)
    found = feed(model, rows, before, cache)
    texts = [prefixes[owner] + row for owner, row in zip(owners, rows, strict=True)]
    torch.testing.assert_close(found, whole(model, texts), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_rows_that_leave_branch_and_join_go_on_as_their_own_texts(tiny: Load, family: str) -> None:
    model = tiny(family).model
    prefixes, owners, rows = texts_of(0, model.config.vocab_size)
    kept = [prefill(model, ids) for ids in prefixes]
    before, cache = SharedPrefixes.of(kept, owners), RowCache(len(rows), 8)
    feed(model, rows, before, cache)
    chosen = np.array([4, 0, 0, 7])
    other = RowCache(2, 24)
    feed(model, rows[2:4], before.take(np.array([2, 3])), other)
    joined = cache.take(chosen).join(other)
    lines = np.array([4, 0, 0, 7, 2, 3])
    last = [((5 + i),) * (1 + i % 2) for i in range(6)]
    found = feed(model, last, before.take(lines), joined)
    texts = [
        prefixes[owners[line]] + rows[line] + end for line, end in zip(lines, last, strict=True)
    ]
    torch.testing.assert_close(found, whole(model, texts), rtol=1e-4, atol=1e-5)


def test_a_tree_in_a_row_is_read_as_its_texts(tiny: Load) -> None:
    model = tiny("llama").model
    # 1 2 then 3, 4 or 4 5
    ids, depths = np.array([[1, 2, 3, 4, 5]] * 2), np.array([[0, 1, 2, 2, 3]] * 2)
    seen = np.tril(np.ones((5, 5), dtype=bool))
    seen[3, 2] = seen[4, 2] = False
    prefixes = [(9, 8, 7), (6,)]
    before = SharedPrefixes.of([prefill(model, p) for p in prefixes], np.arange(2))
    reads = np.array([2, 4, 7, 9])
    found = row_logits(model, ids, depths, before, reads=reads, seen=np.stack([seen] * 2))
    ends = [(1, 2, 3), (1, 2, 4, 5)]
    texts = [prefix + end for prefix in prefixes for end in ends]
    torch.testing.assert_close(found, whole(model, texts), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
def test_rows_are_read_in_other_precisions(tiny: Load, dtype: torch.dtype) -> None:
    import copy

    model = copy.deepcopy(tiny("llama").model).to(dtype)
    prefixes, owners, rows = texts_of(1, model.config.vocab_size)
    before = SharedPrefixes.of([prefill(model, ids) for ids in prefixes], owners)
    found = feed(model, rows, before, RowCache(len(rows), 8)).double()
    texts = [prefixes[owner] + row for owner, row in zip(owners, rows, strict=True)]
    gap = (found - whole(model, texts).double()).abs().max().item()
    assert gap <= 16 * torch.finfo(dtype).eps * found.abs().max().item()


def test_what_takes_rows_is_tried(tiny: Load) -> None:
    assert [why_not_rows(tiny(family).model) for family in FAMILIES] == ["", ""]
    for family in ("mamba", "mistral"):  # no attention; a window shorter than the trial
        assert why_not_rows(tiny(family).model)
    assert [farthest(tiny(family).model) for family in ("llama", "mistral")] == [None, 4]
    assert tiny("llama").model.config._attn_implementation == "sdpa"


def test_what_is_hidden_stays_finite_where_a_kernel_scales_it() -> None:
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        hidden = bias_of(torch.zeros(1, 1, 1, 3, dtype=torch.bool), dtype)
        assert torch.isfinite(hidden.to(dtype) * 1.5).all()  # to powers of two, by 1.44


def test_what_hides_places_lies_aligned_on_another_device_too() -> None:
    seen = torch.tensor([[True, True, False], [True, False, False]])[:, None, None]
    here = bias_of(seen, torch.float32)
    there = bias_beside(torch.empty(0, device="meta"), here)
    assert there.device.type == "meta"
    assert there.shape == here.shape
    assert there.stride() == here.stride()
    assert bias_beside(torch.empty(0), here) is here


def test_a_cache_that_is_split_gives_each_part_its_rows_and_keeps_nothing() -> None:
    cache = RowCache(5, 4)
    cache.lengths = np.arange(5)
    cache.kept[0] = torch.arange(5 * 8).view(5, 1, 4, 2), torch.arange(5 * 8).view(5, 1, 4, 2) + 1
    whole = cache.take(np.arange(5))
    one, two = cache.split(2)
    assert not cache.kept
    assert [one.lengths.tolist(), two.lengths.tolist()] == [[0, 1], [2, 3, 4]]
    for part, rows in ((one, np.arange(2)), (two, np.arange(2, 5))):
        for made, taken in zip(part.kept[0], whole.take(rows).kept[0], strict=True):
            filled = int(part.lengths.max())
            assert torch.equal(made[:, :, :filled], taken[:, :, :filled])


def test_prefixes_that_were_computed_together_are_held_one_by_one(tiny: Load) -> None:
    prefixes = [(first, *range(5, 5 + size)) for first, size in enumerate((60, 15, 15, 15), 1)]
    cache = kept_prefixes(tiny("llama").model, 20_000)
    cache.get_all(prefixes, 4 * 61)
    tensors = [tensor for layers, _ in cache.kept.values() for pair in layers for tensor in pair]
    assert sum(tensor.untyped_storage().nbytes() for tensor in tensors) == cache.held <= 20_000
