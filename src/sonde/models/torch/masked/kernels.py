"""What a GPU is spared with kernels of one's own: attention over short texts, sums normalised.

Written in Triton, which comes with PyTorch for CUDA and needs a C compiler on the machine; without
either nothing here is used. Knows tensors; nothing of models, prompts or columns.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

ROWS = 4
"""Rows that are normalised together."""

GROUP = 128
"""Neighbours of which the largest is told."""


@triton.jit
def _attend(  # type: ignore[no-untyped-def]
    query, key, value, out, starts, owners, scale,
    query_token, query_head, key_token, key_head, value_token, value_head, out_token, out_head,
    SIZE: tl.constexpr, WIDTH: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    first, last = tl.load(starts + tl.program_id(0)), tl.load(starts + tl.program_id(0) + 1)
    if first < last:
        head = tl.program_id(1)
        at, column = first + tl.arange(0, TILE), tl.arange(0, WIDTH)
        there = at < last
        inside = there[:, None] & (column < SIZE)[None]
        token, column = at.to(tl.int64)[:, None], column[None]
        q = tl.load(query + token * query_token + head * query_head + column, inside, 0.0)
        k = tl.load(key + token * key_token + head * key_head + column, inside, 0.0)
        v = tl.load(value + token * value_token + head * value_head + column, inside, 0.0)
        owner = tl.load(owners + at, there, -1)
        scores = tl.dot(q, tl.trans(k), input_precision="tf32x3") * scale
        scores = tl.where(owner[:, None] == owner[None], scores, float("-inf"))
        weights = tl.exp(scores - tl.max(scores, 1)[:, None])
        weights = weights / tl.sum(weights, 1)[:, None]
        found = tl.dot(weights.to(v.dtype), v, input_precision="tf32x3")
        place = out + token * out_token + head * out_head + column
        tl.store(place, found.to(out.dtype.element_ty), inside)


def attend(
    query: Any, key: Any, value: Any, starts: Any, owners: Any, scale: float, tile: int
) -> Any:
    """Attention of texts laid end to end, each seeing itself: [1, tokens, heads, size].

    `query`, `key` and `value` are [1, heads, tokens, size]. Token i belongs to the text owners[i].
    Tile j is of the tokens from starts[j] up to starts[j + 1]: whole texts, at most `tile` tokens.
    What no tile holds is left as memory has it.
    """
    _, heads, tokens, size = query.shape
    assert query.stride(3) == key.stride(3) == value.stride(3) == 1
    out = torch.empty(1, tokens, heads, size, dtype=query.dtype, device=query.device)
    strides = [tensor.stride(i) for tensor in (query, key, value) for i in (2, 1)]
    width = max(triton.next_power_of_2(size), 16)
    _attend[(len(starts) - 1, heads)](
        query, key, value, out, starts, owners, scale, *strides, out.stride(1), out.stride(2),
        SIZE=size, WIDTH=width, TILE=tile, num_warps=4,
    )  # fmt: skip
    return out


@triton.jit
def _normalise(  # type: ignore[no-untyped-def]
    values, more, weight, bias, out, rows, width, eps,
    MORE: tl.constexpr, WIDTH: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, WIDTH)
    there = column < width
    at = row.to(tl.int64)[:, None] * width + column[None]
    inside = (row < rows)[:, None] & there[None]
    x = tl.load(values + at, inside, 0.0).to(tl.float32)
    if MORE:
        x += tl.load(more + at, inside, 0.0).to(tl.float32)
    x = tl.where(inside, x - (tl.sum(x, 1) / width)[:, None], 0.0)
    x *= tl.rsqrt(tl.sum(x * x, 1) / width + eps)[:, None]
    x *= tl.load(weight + column, there, 0.0).to(tl.float32)[None]
    x += tl.load(bias + column, there, 0.0).to(tl.float32)[None]
    tl.store(out + at, x.to(out.dtype.element_ty), inside)


def normalise(more: Any, norm: Any, values: Any) -> Any:
    """A layer norm of values, and of `more` added to them, as a `torch.nn.LayerNorm` gives it."""
    values = values.contiguous()
    more = more if more is None else more.contiguous()
    width = values.shape[-1]
    rows = values.numel() // width
    out = torch.empty_like(values)
    _normalise[(triton.cdiv(rows, ROWS),)](
        values, more, norm.weight, norm.bias, out, rows, width, norm.eps,
        MORE=more is not None, WIDTH=triton.next_power_of_2(width), ROWS=ROWS, num_warps=4,
    )  # fmt: skip
    return out


@triton.jit
def _peaks(  # type: ignore[no-untyped-def]
    logits, norms, peaks, groups, WIDTH: tl.constexpr, BLOCK: tl.constexpr, GROUP: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    highest = tl.full((GROUP,), float("-inf"), tl.float32)
    total = tl.zeros((GROUP,), tl.float32)
    for start in range(0, WIDTH, BLOCK * GROUP):
        group = start // GROUP + tl.arange(0, BLOCK)
        at = group[:, None] * GROUP + tl.arange(0, GROUP)[None]
        x = tl.load(logits + row * WIDTH + at, at < WIDTH, float("-inf"))
        tl.store(peaks + row * groups + group, tl.max(x, 1), group < groups)
        higher = tl.maximum(highest, tl.max(x, 0))
        # nothing but -inf yet is nothing to scale
        known = tl.where(higher == float("-inf"), 0.0, higher)
        total = total * tl.exp(highest - known) + tl.sum(tl.exp(x - known[None]), 0)
        highest = higher
    top = tl.max(highest, 0)
    tl.store(norms + row, top + tl.log(tl.sum(total * tl.exp(highest - top), 0)))


def peaks(logits: Any) -> tuple[Any, Any]:
    """Of each row the log-sum-exp, and the largest of each `GROUP` of neighbours; one look."""
    rows, width = logits.shape
    groups = triton.cdiv(width, GROUP)
    norms = torch.empty(rows, dtype=torch.float32, device=logits.device)
    found = torch.empty(rows, groups, dtype=torch.float32, device=logits.device)
    _peaks[(rows,)](logits, norms, found, groups, WIDTH=width, BLOCK=16, GROUP=GROUP, num_warps=4)
    return norms, found
