"""Refuse a prompt that a model cannot take, naming the fact it asks about.

Knows how many tokens a model takes and has; nothing else of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from sonde.core.errors import PromptError, PromptTooLong
from sonde.core.prompts import Prompt
from sonde.engine.encode import Span, Spans

NO_OPTION = "there is no option to score"


class Limited(Protocol):
    """What takes texts of so many tokens, among so many."""

    @property
    def context(self) -> int:
        """How many tokens a text may have."""

    @property
    def vocabulary(self) -> int:
        """How many tokens there are."""


@contextmanager
def naming(prompt: Prompt) -> Iterator[None]:
    """Say in a refusal which fact and template it is about."""
    try:
        yield
    except PromptError as error:
        error.args = (f"{prompt.told}: {error}",)
        raise


def check_spans(spans: Sequence[Span], model: Limited, head: Sequence[int] = ()) -> None:
    """Refuse texts that are too long for the model, or hold tokens it does not have.

    `head`: what stands before every one of them.
    """
    every = spans if isinstance(spans, Spans) else Spans(spans)
    if not every:
        raise PromptError(NO_OPTION)
    check_text(len(head) + every.longest, max(every.highest, max(head, default=0)), model)


def check_texts(texts: Sequence[Sequence[int]], model: Limited) -> None:
    """The same of token ids; there must be some."""
    if not texts:
        raise PromptError(NO_OPTION)
    check_text(max(map(len, texts)), max(map(max, texts)), model)


def check_text(length: int, strange: int, model: Limited) -> None:
    """Refuse a text of too many tokens, or whose highest token id the model does not have."""
    if length > model.context:
        raise PromptTooLong(
            f"the prompt has {length} tokens and the model takes {model.context}; use fewer "
            "examples or a shorter subject, or leave the fact out",
            needed=length,
            limit=model.context,
        )
    if strange >= model.vocabulary:
        raise PromptError(
            f"the tokenizer gives token {strange} and the model has {model.vocabulary}; the "
            "tokenizer and the weights do not belong together"
        )


def check_room(ids: Sequence[int], most: int, model: Limited) -> None:
    """Refuse to write on where prompt and answer are too long together for the model."""
    if most < 1:
        raise PromptError(f"an answer of at most {most} tokens is no answer; ask for 1 or more")
    if len(ids) + most > model.context:
        raise PromptTooLong(
            f"the prompt has {len(ids)} tokens, the answer may have {most}, and the model takes "
            f"{model.context}; shorten the prompt, ask for a shorter answer or leave the fact out",
            needed=len(ids) + most,
            limit=model.context,
        )
    check_text(len(ids), max(ids), model)
