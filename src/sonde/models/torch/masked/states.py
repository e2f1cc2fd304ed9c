"""Keep a model's states at the masks alone: behind its body, or in its last layer already.

In a last layer only the mask's own state counts, once attention has looked at all others. Knows
modules and tensors; nothing of texts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch


@contextmanager
def keeping(model: Any, keep: Callable[[Any], Any], *, last: bool) -> Iterator[None]:
    """Let a model's body give what `keep` takes out of its states [texts, tokens, …].

    `last`: they are taken out behind the attention of the last layer.
    """

    def before(_module: Any, states: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(map(keep, states))

    def after(_module: Any, _inputs: Any, output: Any) -> Any:
        output.last_hidden_state = keep(output.last_hidden_state)
        return output

    if last:
        hook = last_sum(model).register_forward_pre_hook(before)
    else:
        hook = model.base_model.register_forward_hook(after)
    try:
        yield
    finally:
        hook.remove()


def last_sum(model: Any) -> Any:
    """What adds up, in the last layer, its input and what attention found, as in BERT and its kin.

    It is given both, and after it every token goes its own way.
    """
    for module in model.base_model.modules():
        if isinstance(module, torch.nn.ModuleList) and len(module):
            layer: Any = module[-1]
            return layer.attention.output
    raise ValueError("it has no list of layers")
