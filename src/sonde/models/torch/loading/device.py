"""Numbers onto a device and back without making anyone wait, and attention that suits it.

Attention of our own is hung in where transformers lets one choose it: a function, as its
`AttentionInterface` wants it, that is told for the length of a pass what the pass is about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from transformers.modeling_utils import AttentionInterface

from sonde.models.torch.loading.spread import is_spread


def onto(device: Any, values: Any) -> Any:
    """Numbers as a tensor on a device; a GPU fetches them while this process goes on."""
    tensor = torch.as_tensor(values)
    if torch.device(device).type == "cuda":
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)


def kept(model: Any, places: np.ndarray) -> Any:
    """The places whose logits are wanted: of a model on several devices, for any of them."""
    return torch.as_tensor(places) if is_spread(model) else onto(model.device, places)


def padded(device: Any, rows: Sequence[Sequence[int]]) -> dict[str, Any]:
    """Token ids as rows of equal length on a device, and the mask that hides what fills them up."""
    ids = torch.zeros(len(rows), max(map(len, rows)), dtype=torch.long)
    mask = torch.zeros_like(ids)
    for i, row in enumerate(rows):
        ids[i, : len(row)] = torch.tensor(row)
        mask[i, : len(row)] = 1
    return {"input_ids": ids.to(device), "attention_mask": mask.to(device)}


def fetched(tensor: Any) -> Callable[[], np.ndarray]:
    """Begin to fetch a tensor from its device; calling waits for it, not for what came after."""
    if tensor.device.type != "cuda":
        return lambda: tensor.cpu().numpy()
    here = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
    here.copy_(tensor, non_blocking=True)
    done: Any = torch.cuda.Event()  # type: ignore[no-untyped-call]
    # the device that is used where none is named may be another
    done.record(torch.cuda.current_stream(tensor.device))

    def wait() -> np.ndarray:
        done.synchronize()
        # copied, because pinned memory is dear to get and is used again
        return here.numpy().copy()

    return wait


def token_logps(logits: Any, rows: np.ndarray, tokens: np.ndarray) -> Any:
    """The log-probability of each token, from the logits at the row before it."""
    at = onto(logits.device, rows)
    # in blocks, because a float32 copy of all logits can be the largest thing in memory
    size = 256 if logits.device.type == "cpu" else 2048
    norms = torch.cat([torch.logsumexp(block.float(), -1) for block in logits.split(size)])
    return logits[at, onto(logits.device, tokens)].float() - norms[at]


@contextmanager
def steady_attention(model: Any) -> Iterator[None]:
    """Attention without cuDNN, which plans anew for every shape: here nearly all are new."""
    if model.device.type != "cuda":
        yield
        return
    kernels = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
    with sdpa_kernel(kernels):
        yield


def float_logits(model: Any) -> None:
    """Make a half-precision head give logits in float32.

    Products are summed in float32 anyway; rounding the sums to eight bits would make ties.
    """
    if model.dtype not in (torch.bfloat16, torch.float16):
        return
    try:
        head: Any = model.get_output_embeddings()
    except (AttributeError, NotImplementedError):  # it has none that it can name
        return
    if type(head) is not torch.nn.Linear or type(head.weight) is not torch.nn.Parameter:
        return  # it may be quantised
    weight = _float_copy(head)

    def forward(hidden: Any) -> Any:
        flat = hidden.reshape(-1, hidden.shape[-1])
        if torch.is_grad_enabled():
            logits = flat.float() @ head.weight.float().t()
        elif flat.is_cuda:  # this product has no gradient
            logits = torch.mm(flat, head.weight.t(), out_dtype=torch.float32)
        else:
            logits = flat.float() @ weight().t()
        if head.bias is not None:
            logits += head.bias
        return logits.view(*hidden.shape[:-1], -1)

    # where weights are spread over devices, `forward` itself brings inputs and weights together
    setattr(head, "_old_forward" if hasattr(head, "_old_forward") else "forward", forward)


def _float_copy(head: Any) -> Callable[[], Any]:
    """A head's weights in float32, copied when they are first asked for and when they change."""
    kept: dict[str, Any] = {}

    def weight() -> Any:
        own = head.weight
        mark = (own.data_ptr(), own._version, own.shape)
        if kept.get("mark") != mark:
            kept.update(mark=mark, weight=own.detach().float())
        return kept["weight"]

    return weight


State = TypeVar("State")

UNKNOWN = ("softcap", "s_aux", "position_bias", "sinks")
"""What an architecture may do to attention beyond scaling and masking it."""


class OwnAttention(Generic[State]):
    """A way of attending by its name; `now` is what it has been told about the pass."""

    def __init__(self, name: str, attend: Callable[..., Any]) -> None:
        self.name = name
        self._now: ContextVar[State] = ContextVar(name)
        AttentionInterface.register(name, attend)

    @property
    def now(self) -> State:
        """What the pass is about."""
        return self._now.get()

    @contextmanager
    def used(self, model: Any, state: State) -> Iterator[None]:
        """Let every layer of a model attend so."""
        config = model.config.get_text_config()
        before, token = config._attn_implementation, self._now.set(state)
        config._attn_implementation = self.name
        try:
            yield
        finally:
            config._attn_implementation = before
            self._now.reset(token)


def scale_of(query: Any, scaling: float | None, others: Mapping[str, Any]) -> float:
    """By how much scores are scaled; refuses an architecture that does more to them."""
    if strange := [name for name in UNKNOWN if others.get(name) is not None]:
        raise ValueError(f"attention that is more than scaled and masked: {', '.join(strange)}")
    return float(query.shape[-1] ** -0.5) if scaling is None else scaling
