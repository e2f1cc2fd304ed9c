"""Attention of our own in a model's layers, hung in where transformers lets one choose it.

A way of attending is a function, as `AttentionInterface` of transformers wants it, that also needs
to know what a pass is about; that is told for the length of the pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Generic, TypeVar

from transformers.modeling_utils import AttentionInterface

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
