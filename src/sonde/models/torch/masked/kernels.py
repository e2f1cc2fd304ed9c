"""Kernels of our own for a GPU: attention over short texts, norms, GELU, peaks of logits.

Written in Triton, which PyTorch for CUDA brings along and which needs a C compiler on the machine.
Without either, calling one fails, and whoever tries has another way. Knows tensors alone.
"""

from __future__ import annotations

import logging
from contextlib import nullcontext
from functools import cache
from typing import Any

import torch

try:
    import triton
    from triton import language as tl
except ImportError:  # PyTorch for the CPU comes without it
    triton = tl = None

log = logging.getLogger("sonde")

ROWS = 4
"""Rows that are normalised together."""

BLOCK = 2048
"""Values that an activation is applied to together."""

GROUP = 128
"""Neighbours of which the largest is told."""


def _jit(kernel: Any) -> Any:
    return kernel if triton is None else triton.jit(kernel)


def _there(tensor: Any) -> Any:
    """On the device of a tensor, which need not be the one that is used where none is named."""
    return torch.cuda.device(tensor.device) if tensor.is_cuda else nullcontext()


@cache
def usable(device: torch.device) -> bool:
    """Whether kernels can be made on a device and are right: tried once, with `peaks`."""
    values = torch.linspace(-9, 9, 600, device=device).sin().mul(9).view(2, 300)
    try:
        norms, found = peaks(values)
    except Exception:
        log.debug("no kernels of our own", exc_info=True)
        return False
    groups = (values[:, at : at + GROUP].amax(-1) for at in range(0, 300, GROUP))
    highest = torch.stack(list(groups), 1)
    return torch.allclose(norms, torch.logsumexp(values, -1)) and torch.equal(found, highest)


@_jit
def _attend(  # type: ignore[no-untyped-def]
    query, key, value, out, starts, owners, scale,
    query_token, query_head, key_token, key_head,
    value_token, value_head, out_token, out_head,
    size: tl.constexpr, width: tl.constexpr, tile: tl.constexpr,
):  # fmt: skip
    """One tile of one head; `width` is `size` rounded up to a power of two."""
    first, last = tl.load(starts + tl.program_id(0)), tl.load(starts + tl.program_id(0) + 1)
    if first < last:
        head = tl.program_id(1)
        at, column = first + tl.arange(0, tile), tl.arange(0, width)
        there = at < last
        inside = there[:, None] & (column < size)[None]
        token, column = at.to(tl.int64)[:, None], column[None]
        q = tl.load(query + token * query_token + head * query_head + column, inside, 0.0)
        k = tl.load(key + token * key_token + head * key_head + column, inside, 0.0)
        v = tl.load(value + token * value_token + head * value_head + column, inside, 0.0)
        owner = tl.load(owners + at, there, -1)
        # in float32 three products of tensor cores, which round as little as one of float32
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
    with _there(query):
        _attend[(len(starts) - 1, heads)](
            query, key, value, out, starts, owners, scale, *strides, out.stride(1), out.stride(2),
            size=size, width=width, tile=tile, num_warps=4,
        )  # fmt: skip
    return out


@_jit
def _normalise(  # type: ignore[no-untyped-def]
    values, more, weight, bias, out, count, width, eps,
    adds: tl.constexpr, block: tl.constexpr, rows: tl.constexpr,
):  # fmt: skip
    """Some rows; `block` is `width` rounded up to a power of two."""
    row = tl.program_id(0) * rows + tl.arange(0, rows)
    column = tl.arange(0, block)
    there = column < width
    at = row.to(tl.int64)[:, None] * width + column[None]
    inside = (row < count)[:, None] & there[None]
    x = tl.load(values + at, inside, 0.0).to(tl.float32)
    if adds:
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
    count = values.numel() // width
    out = torch.empty_like(values)
    with _there(values):
        _normalise[(triton.cdiv(count, ROWS),)](
            values, more, norm.weight, norm.bias, out, count, width, norm.eps,
            adds=more is not None, block=triton.next_power_of_2(width), rows=ROWS, num_warps=4,
        )  # fmt: skip
    return out


@_jit
def _gelu(values, out, count, block: tl.constexpr):  # type: ignore[no-untyped-def]
    """Some neighbours."""
    at = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    x = tl.load(values + at, at < count, 0.0).to(tl.float32)
    # the error function by Abramowitz and Stegun (7.1.26): right to 1.5e-7, and quick
    z = tl.abs(x) * 0.7071067811865476
    t = 1.0 / (1.0 + 0.3275911 * z)
    rest = 1.421413741 + t * (-1.453152027 + t * 1.061405429)
    rest = t * (0.254829592 + t * (-0.284496736 + t * rest)) * tl.exp(-z * z) * 0.5
    x *= tl.where(x < 0, rest, 1.0 - rest)
    tl.store(out + at, x.to(out.dtype.element_ty), at < count)


def gelu(values: Any) -> Any:
    """What `torch.nn.functional.gelu` gives, to 1e-6."""
    values = values.contiguous()
    out = torch.empty_like(values)
    count = values.numel()
    with _there(values):
        _gelu[(triton.cdiv(count, BLOCK),)](values, out, count, block=BLOCK, num_warps=4)
    return out


@_jit
def _peaks(  # type: ignore[no-untyped-def]
    logits, norms, peaks, groups,
    width: tl.constexpr, block: tl.constexpr, group: tl.constexpr,
):  # fmt: skip
    """One row, `block` groups at a time."""
    row = tl.program_id(0).to(tl.int64)
    highest = tl.full((group,), float("-inf"), tl.float32)
    total = tl.zeros((group,), tl.float32)
    for start in range(0, width, block * group):
        number = start // group + tl.arange(0, block)
        at = number[:, None] * group + tl.arange(0, group)[None]
        x = tl.load(logits + row * width + at, at < width, float("-inf"))
        tl.store(peaks + row * groups + number, tl.max(x, 1), number < groups)
        higher = tl.maximum(highest, tl.max(x, 0))
        # where all is -inf yet, nothing is there to scale
        known = tl.where(higher == float("-inf"), 0.0, higher)
        total = total * tl.exp(highest - known) + tl.sum(tl.exp(x - known[None]), 0)
        highest = higher
    top = tl.max(highest, 0)
    tl.store(norms + row, top + tl.log(tl.sum(total * tl.exp(highest - top), 0)))


def peaks(logits: Any) -> tuple[Any, Any]:
    """Of each row the log-sum-exp, and the largest of each `GROUP` of neighbours: in one look."""
    rows, width = logits.shape
    groups = triton.cdiv(width, GROUP)
    norms = torch.empty(rows, dtype=torch.float32, device=logits.device)
    found = torch.empty(rows, groups, dtype=torch.float32, device=logits.device)
    sizes = {"width": width, "block": 16, "group": GROUP}
    with _there(logits):
        _peaks[(rows,)](logits, norms, found, groups, **sizes, num_warps=4)
    return norms, found
