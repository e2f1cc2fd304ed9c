"""Say what to do where memory runs out, and refuse to predict what no model can."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from sonde.core.errors import ModelError, PromptError
from sonde.models.torch.loading.weights import Loaded, out_of_memory

Item = TypeVar("Item")


def explain_oom(answers: Iterator[Item]) -> Iterator[Item]:
    """Say what to do where memory runs out on what cannot be made smaller."""
    try:
        yield from answers
    except Exception as error:
        if not out_of_memory(error):
            raise
        raise ModelError(
            "memory ran out on a single text; use a smaller --dtype, another --device or a "
            "smaller model"
        ) from error


def check_predicted(predicted: Iterable[int], loaded: Loaded) -> None:
    """Refuse a text in which the model would have to predict a vector of a soft prompt."""
    if loaded.vectors and any(id in loaded.vectors for id in predicted):
        raise PromptError(
            "a vector of a soft prompt stands where the model would have to predict it; score the "
            "answer alone, and use a template with every vector before [Y]"
        )
