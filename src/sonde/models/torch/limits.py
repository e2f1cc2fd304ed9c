"""Refuse a prompt that a model cannot take, naming the fact it asks about."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from sonde.core.errors import ModelError, PromptError
from sonde.core.prompts import Prompt
from sonde.engine.encode import Span
from sonde.models.torch.weights import Loaded, out_of_memory

Item = TypeVar("Item")


def telling(answers: Iterator[Item]) -> Iterator[Item]:
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


@contextmanager
def naming(prompt: Prompt) -> Iterator[None]:
    """Say in a refusal which fact and template it is about."""
    try:
        yield
    except PromptError as error:
        key = prompt.key
        raise PromptError(f"fact {key.fact!r}, template {key.template!r}: {error}") from None


def check_spans(spans: Sequence[Span], loaded: Loaded, head: Sequence[int] = ()) -> None:
    """Refuse texts that are too long for the model, or hold tokens it does not have.

    `head`: what stands before every one of them.
    """
    if not spans:
        raise PromptError("there is no option to score")
    longest = len(head) + max(len(span.ids) for span in spans)
    if longest > loaded.context:
        raise PromptError(
            f"the prompt has {longest} tokens and the model takes {loaded.context}; shorten the "
            "subject or leave the fact out"
        )
    strange = max(max(span.ids) for span in spans)
    strange = max(strange, max(head, default=0))
    if strange >= loaded.vocabulary:
        raise PromptError(
            f"the tokenizer gives token {strange} and the model has {loaded.vocabulary}; the "
            "tokenizer and the weights do not belong together"
        )


def check_room(ids: Sequence[int], most: int, loaded: Loaded) -> None:
    """Refuse to write on where prompt and answer are too long together for the model."""
    if most < 1:
        raise PromptError(f"an answer of at most {most} tokens is no answer; ask for 1 or more")
    if len(ids) + most > loaded.context:
        raise PromptError(
            f"the prompt has {len(ids)} tokens, the answer may have {most}, and the model takes "
            f"{loaded.context}; shorten the prompt, ask for a shorter answer or leave the fact out"
        )
    check_spans([Span(ids=tuple(ids), start=0, stop=0, end=0)], loaded)
