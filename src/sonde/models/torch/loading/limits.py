"""Refuse a prompt that a model cannot take, naming the fact it asks about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from sonde.core.errors import ModelError, PromptError, PromptTooLong
from sonde.core.prompts import Prompt
from sonde.engine.encode import Span, Spans
from sonde.models.torch.loading.weights import Loaded, out_of_memory

Item = TypeVar("Item")

NO_OPTION = "there is no option to score"


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


@contextmanager
def naming(prompt: Prompt) -> Iterator[None]:
    """Say in a refusal which fact and template it is about."""
    try:
        yield
    except PromptError as error:
        error.args = (f"{prompt.told}: {error}",)
        raise


def check_spans(spans: Sequence[Span], loaded: Loaded, head: Sequence[int] = ()) -> None:
    """Refuse texts that are too long for the model, or hold tokens it does not have.

    `head`: what stands before every one of them.
    """
    every = spans if isinstance(spans, Spans) else Spans(spans)
    if not every:
        raise PromptError(NO_OPTION)
    check_text(len(head) + every.longest, max(every.highest, max(head, default=0)), loaded)


def check_texts(texts: Sequence[Sequence[int]], loaded: Loaded) -> None:
    """The same of token ids; there must be some."""
    if not texts:
        raise PromptError(NO_OPTION)
    check_text(max(map(len, texts)), max(map(max, texts)), loaded)


def check_predicted(predicted: Iterable[int], loaded: Loaded) -> None:
    """Refuse a text in which the model would have to predict a vector of a soft prompt."""
    if loaded.vectors and any(id in loaded.vectors for id in predicted):
        raise PromptError(
            "a vector of a soft prompt stands where the model would have to predict it; score the "
            "answer alone, and use a template with every vector before [Y]"
        )


def check_text(length: int, strange: int, loaded: Loaded) -> None:
    """Refuse a text of too many tokens, or whose highest token id the model does not have."""
    if length > loaded.context:
        raise PromptTooLong(
            f"the prompt has {length} tokens and the model takes {loaded.context}; use fewer "
            "examples or a shorter subject, or leave the fact out",
            needed=length,
            limit=loaded.context,
        )
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
        raise PromptTooLong(
            f"the prompt has {len(ids)} tokens, the answer may have {most}, and the model takes "
            f"{loaded.context}; shorten the prompt, ask for a shorter answer or leave the fact out",
            needed=len(ids) + most,
            limit=loaded.context,
        )
    check_text(len(ids), max(ids), loaded)
