"""Rows of tokens behind prefixes that many rows share: shared-prefix attention.

The keys and values of a prefix are there once and are never copied into rows. Each layer attends to
the prefixes and to the rows' own tokens apart, and the two are merged by their log-sum-exp, which
is exact up to rounding. So a pass may hold thousands of rows, of many prefixes. `rows` feeds them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch

from sonde.models.torch.causal.token_tree import KeysAndValues
from sonde.models.torch.loading.device import OwnAttention, onto, scale_of

SLOT = 32  # rows that a slot costs beside those in it
HALVES = (torch.bfloat16, torch.float16)
FLASH = 256  # the largest head that flash attention takes
ALIGNED = 16  # values to which a kernel wants the rows of a mask aligned


@dataclass(frozen=True, slots=True, kw_only=True)
class Stems:
    """Keys and values of some prefixes, laid end to end: [heads, tokens, size of a head] a layer.

    Prefix p has `sizes[p]` tokens from `starts[p]` on.
    """

    layers: KeysAndValues
    sizes: np.ndarray

    @classmethod
    def of(cls, prefixes: Sequence[KeysAndValues]) -> Stems:
        """Some prefixes, of which some may have no tokens."""
        sizes = np.array([prefix[0][0].shape[-2] if prefix else 0 for prefix in prefixes])
        some = [prefix for prefix in prefixes if prefix]
        if len(some) < 2:
            return cls(layers=[(k[0], v[0]) for prefix in some for k, v in prefix], sizes=sizes)
        layers = [
            (torch.cat([k[0] for k, _ in each], 1), torch.cat([v[0] for _, v in each], 1))
            for each in zip(*some, strict=True)
        ]
        return cls(layers=layers, sizes=sizes)

    def join(self, other: Stems) -> Stems:
        """These and then the others."""
        sizes = np.concatenate([self.sizes, other.sizes])
        if not self.layers or not other.layers:
            return Stems(layers=self.layers or other.layers, sizes=sizes)
        layers = [
            (torch.cat([k, more_k], 1), torch.cat([v, more_v], 1))
            for (k, v), (more_k, more_v) in zip(self.layers, other.layers, strict=True)
        ]
        return Stems(layers=layers, sizes=sizes)

    def take(self, chosen: np.ndarray) -> Stems:
        """Some of them, in that order."""
        if len(chosen) == len(self.sizes):
            return self
        starts = np.cumsum(self.sizes) - self.sizes
        places = np.concatenate([starts[p] + np.arange(self.sizes[p]) for p in chosen])
        layers = [
            (k.index_select(1, onto(k.device, places)), v.index_select(1, onto(v.device, places)))
            for k, v in self.layers
        ]
        return Stems(layers=layers, sizes=self.sizes[chosen])

    def stacked(self, chosen: np.ndarray) -> KeysAndValues:
        """Some prefixes as [prefixes, heads, longest, size], whatever behind the shorter ones."""
        starts, sizes = (np.cumsum(self.sizes) - self.sizes)[chosen], self.sizes[chosen]
        behind = np.arange(sizes.max())[None]
        places = np.where(behind < sizes[:, None], starts[:, None] + behind, 0)
        index = onto(self.layers[0][0].device, places.ravel())

        def stack(tensor: Any) -> Any:
            laid_out = tensor.index_select(1, index.to(tensor.device))
            return laid_out.view(tensor.shape[0], *places.shape, -1).transpose(0, 1).contiguous()

        return [(stack(keys), stack(values)) for keys, values in self.layers]


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedPrefixes:
    """Keys and values of some prefixes, and which rows stand behind which.

    Prefix owners[r] of the stems stands before row r. Rows are laid in slots of `size` rows, each
    behind one prefix: `rows` says which row lies where (one of them again where a slot is not
    full), `back` where each row lies. `layers` are [slots, heads, longest, size of a head]; `bias`
    hides what fills shorter prefixes up. `lengths` are the rows' own prefixes', as numbers; None as
    `rows` where all stand behind one prefix.
    """

    stems: Stems
    owners: np.ndarray
    lengths: np.ndarray
    layers: KeysAndValues
    size: int = 0
    rows: Any = None
    back: Any = None
    bias: Any = None

    @classmethod
    def of(cls, prefixes: Sequence[KeysAndValues], owners: np.ndarray) -> SharedPrefixes:
        """Prefix owners[r] stands before row r."""
        return cls.behind(Stems.of(prefixes), owners)

    @classmethod
    def behind(cls, stems: Stems, owners: np.ndarray) -> SharedPrefixes:
        """The same, where the prefixes lie end to end."""
        made = cls(stems=stems, owners=owners, lengths=stems.sizes[owners], layers=[])
        used = np.flatnonzero(np.bincount(owners, minlength=len(stems.sizes)) * stems.sizes)
        if len(used) == 0:
            return made
        if len(used) == 1 and (made.lengths > 0).all():
            return replace(made, layers=stems.stacked(used))
        size, slots, rows, back = laid(owners)
        layers = stems.stacked(slots)
        device = layers[0][0].device
        return replace(
            made,
            layers=layers,
            size=size,
            rows=onto(device, rows),
            back=onto(device, back),
            bias=_hidden(stems.sizes[slots], layers[0][0]),
        )

    def take(self, rows: np.ndarray) -> SharedPrefixes:
        """What stands before some of the rows, in that order."""
        if self.rows is None:
            return replace(self, owners=self.owners[rows], lengths=self.lengths[rows])
        return SharedPrefixes.behind(self.stems, self.owners[rows])

    def join(self, other: SharedPrefixes) -> SharedPrefixes:
        """What stands before these rows and then the other's."""
        owners = np.concatenate([self.owners, other.owners + len(self.stems.sizes)])
        used, owners = np.unique(owners, return_inverse=True)
        return SharedPrefixes.behind(self.stems.join(other.stems).take(used), owners)

    def attend(self, layer: int, queries: Any, scale: float) -> tuple[Any, Any] | None:
        """What rows' queries [rows, heads, queries, size] find there, and their log-sum-exp."""
        if not self.layers:
            return None
        keys, values = self.layers[layer]
        slots, heads = keys.shape[:2]
        # a model may have its layers on several devices
        rows, back = (_beside(queries, each) for each in (self.rows, self.back))
        bias = bias_beside(queries, self.bias)
        laid_out = queries if rows is None else queries[rows]
        _, _, count, width = queries.shape
        apart = laid_out.view(slots, -1, heads, count, width).transpose(1, 2)
        together = apart.reshape(slots, heads, -1, width)
        found, sums = attention(together, keys, values, bias, scale)
        found = found.view(slots, heads, -1, count, width).transpose(1, 2)
        sums = sums.reshape(slots, heads, -1, count).transpose(1, 2)
        found, sums = found.reshape(laid_out.shape), sums.reshape(laid_out.shape[:-1])
        return (found, sums) if back is None else (found[back], sums[back])


def _beside(queries: Any, tensor: Any) -> Any:
    return None if tensor is None else tensor.to(queries.device)


def laid(owners: np.ndarray) -> tuple[int, np.ndarray, np.ndarray, np.ndarray]:
    """How rows lie in slots of equal size: the size, each slot's prefix, `rows` and `back`.

    >>> size, slots, rows, back = laid(np.array([0, 1, 0]))
    >>> size, slots.tolist(), rows.tolist(), back.tolist()
    (2, [0, 1], [0, 2, 1, 1], [0, 2, 1])
    """
    order = np.argsort(owners, kind="stable")
    prefixes, counts = np.unique(owners, return_counts=True)
    needed = {int(size): -(-counts // size) for size in np.unique(counts)}
    size = min(needed, key=lambda size: int(needed[size].sum()) * (size + SLOT))
    slots = np.repeat(prefixes, needed[size])
    starts = np.cumsum(counts) - counts
    first = np.cumsum(needed[size]) - needed[size]  # slots before those of a prefix
    place = np.repeat(first * size - starts, counts) + np.arange(len(order))
    rows = np.repeat(order[np.repeat(starts, needed[size])], size)
    rows[place] = order
    back = np.empty_like(order)
    back[order] = place
    return size, slots, rows, back


def _hidden(lengths: np.ndarray, like: Any) -> Any:
    """What hides the places beyond each slot's prefix; None where all are equally long."""
    if (lengths == lengths.max()).all():
        return None
    seen = np.arange(lengths.max())[None] < lengths[:, None]
    return bias_of(onto(like.device, seen)[:, None, None], like.dtype)


def bias_of(seen: Any, dtype: Any) -> Any:
    """What to add to attention scores so that only what is seen counts; rows lie aligned."""
    width = seen.shape[-1]
    room = -(-width // ALIGNED) * ALIGNED
    least = torch.finfo(dtype).min / 4  # kernels scale it, and must not come to infinity
    made = torch.full((*seen.shape[:-1], room), least, dtype=dtype, device=seen.device)
    made[..., :width].masked_fill_(seen, 0)
    return made[..., :width]


def bias_beside(queries: Any, bias: Any) -> Any:
    """The same on the device of some queries, its rows aligned, which a plain copy forgets."""
    if bias is None or bias.device == queries.device:
        return bias
    return bias_of((bias == 0).to(queries.device), bias.dtype)


def attention(queries: Any, keys: Any, values: Any, bias: Any, scale: float) -> tuple[Any, Any]:
    """Attention of [batch, heads, queries, size], and the log-sum-exp of each query's scores."""
    shape = (*queries.shape[:-1], keys.shape[-2])
    wide = None if bias is None else bias.expand(shape)
    kernels: Any = torch.ops.aten
    if not _fits(queries):
        return plain_attention(queries, keys, values, bias, scale)
    if queries.device.type == "cpu":
        found = kernels._scaled_dot_product_flash_attention_for_cpu(
            queries, keys, values, attn_mask=wide, scale=scale
        )
    elif wide is None and _flash(queries):
        found = kernels._scaled_dot_product_flash_attention(queries, keys, values, scale=scale)
    else:
        found = kernels._scaled_dot_product_efficient_attention(
            queries, keys, values, wide, True, scale=scale
        )
    return found[0], found[1][..., : queries.shape[-2]]


def _fits(queries: Any) -> bool:
    """Whether the kernels take such queries."""
    known = queries.dtype in (torch.float32, *HALVES) and queries.shape[-1] % 8 == 0
    return known and (queries.dtype != torch.bfloat16 or _recent(queries))


def _flash(queries: Any) -> bool:
    """Whether a GPU has the kernel that is fastest where nothing is hidden."""
    return queries.dtype in HALVES and queries.shape[-1] <= FLASH and _recent(queries)


def _recent(queries: Any) -> bool:
    """Whether a GPU knows bfloat16, and flash attention: Ampere or newer; a CPU does."""
    device = queries.device
    return device.type != "cuda" or torch.cuda.get_device_capability(device) >= (8, 0)


def plain_attention(
    queries: Any, keys: Any, values: Any, bias: Any, scale: float
) -> tuple[Any, Any]:
    """The same, written out."""
    scores = (queries @ keys.transpose(-1, -2)).to(_sums(queries.dtype)) * scale
    if bias is not None:
        scores = scores + bias
    sums = torch.logsumexp(scores, -1)
    return (scores - sums[..., None]).exp().to(values.dtype) @ values, sums


def _sums(dtype: Any) -> Any:
    return torch.float64 if dtype == torch.float64 else torch.float32


@dataclass(frozen=True, slots=True, kw_only=True)
class Attending:
    """What a forward pass attends to: prefixes, and of the rows' own tokens what each sees.

    `seen` is [rows, 1, queries, keys]; `made` keeps the masks that were made of it.
    """

    prefixes: SharedPrefixes
    seen: Any
    made: dict[tuple[Any, ...], Any] = field(default_factory=dict)

    def bias(self, repeats: int, like: Any) -> Any:
        """What to add to scores, where each query comes `repeats` times."""
        repeats = repeats if self.seen.shape[2] > 1 else 1  # one query's is the same for all
        if (key := (repeats, like.device)) not in self.made:
            seen = self.seen.to(like.device).repeat(1, 1, repeats, 1)
            self.made[key] = bias_of(seen, like.dtype)
        return self.made[key]


def attend(
    module: Any,
    query: Any,
    key: Any,
    value: Any,
    attention_mask: Any,
    scaling: float | None = None,
    **others: Any,
) -> tuple[Any, None]:
    """What transformers calls in every layer: own tokens and prefixes, merged."""
    now, scale = SHARED_PREFIX.now, scale_of(query, scaling, others)
    rows, heads, count, width = query.shape
    # heads that share keys go as more queries
    folded = query.reshape(rows, key.shape[1], -1, width)
    bias = now.bias(folded.shape[2] // count, folded)
    own, sums = attention(folded, key, value, bias, scale)
    before = now.prefixes.attend(module.layer_idx, folded, scale)
    if before is not None:
        share = torch.sigmoid(before[1] - sums)[..., None]
        own = torch.lerp(own.to(share.dtype), before[0].to(share.dtype), share).to(query.dtype)
    return own.reshape(rows, heads, count, width).transpose(1, 2), None


SHARED_PREFIX: OwnAttention[Attending] = OwnAttention("sonde_shared_prefix", attend)
