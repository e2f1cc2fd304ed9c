"""Prompts as the token ids that a left-to-right model is given, refused where it cannot take them.

Knows an encoder and how many tokens a model takes; nothing of where the model is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tokenizers import Tokenizer

from sonde.core.errors import AbilityError, PromptError
from sonde.core.prompts import Prompt, Score, Trace
from sonde.engine.encode import Branches, CausalEncoder, Start
from sonde.engine.limits import Limited, check_spans, check_text, naming
from sonde.engine.spans import SpanTokens, mark


def start_token(tokenizer: Any, choice: str, name: str) -> Start:
    """The token texts open with: as asked for, or else as the tokenizer itself does it.

    `tokenizer` is one of transformers; `name` is the model's.
    """
    id = tokenizer.bos_token_id
    fallback = tokenizer.eos_token_id if id is None else id
    if choice == "auto":
        ids = tokenizer("a").input_ids
        return Start(id=fallback, always=id is not None and ids[:1] == [id])
    if choice == "always" and id is None:
        raise AbilityError(f"{name} has no beginning-of-text token; leave out --bos always")
    return Start(id=fallback, always=choice == "always")


def describe_start(start: Start, tokenizer: Tokenizer) -> str:
    """How texts open, for the manifest."""
    if start.id is None:
        return "none"
    token = tokenizer.id_to_token(start.id)
    return f"{token} always" if start.always else f"{token} only before an answer that comes first"


def prepare_options(encoder: CausalEncoder, prompts: Sequence[Prompt]) -> None:
    """Tokenise what the options of many prompts will need, all of it at once."""
    wants = [(prompt, prompt.want) for prompt in prompts]
    encoder.prepare(
        (prompt.prefix, want.texts(prompt.prefix), want.after(prompt.suffix))
        for prompt, want in wants
        if isinstance(want, Score) and not want.whole
    )


def option_texts(encoder: CausalEncoder, prompt: Prompt, model: Limited) -> Branches:
    """The texts of a prompt's options."""
    want, prefix = prompt.want, prompt.prefix
    if not isinstance(want, Score):
        raise AbilityError("a causal model scores options; it does not fill a mask")
    with naming(prompt):
        after = want.after(prompt.suffix)
        texts = encoder.branch(prefix, want.texts(prefix), after, whole=want.whole)
        check_spans(texts.spans, model, texts.head)
    return texts


def read_texts(
    encoder: CausalEncoder, prompts: Sequence[Prompt], model: Limited
) -> list[SpanTokens]:
    """Prompts that are read in parts."""
    whole = encoder.whole([prompt.prefix for prompt in prompts])
    texts = []
    for prompt, tokens in zip(prompts, whole, strict=True):
        if not isinstance(prompt.want, Trace):
            raise AbilityError("trace() takes prompts that want Trace(…)")
        with naming(prompt):
            if prompt.suffix:
                raise PromptError(
                    f"text stands after the part that is read ({prompt.suffix!r}); put all of "
                    "it into the prefix"
                )
            text = mark(tokens, prompt.prefix, prompt.want.spans, encoder.start)
            check_text(len(text.ids), max(text.ids), model)
        texts.append(text)
    return texts


def check_writable(prompt: Prompt, kind: type) -> None:
    """Refuse to write on from a prompt that wants another kind, or has text after its answer."""
    if not isinstance(prompt.want, kind):
        verb = kind.__name__.lower()
        raise AbilityError(f"{verb}() takes prompts that want {kind.__name__}(…)")
    if prompt.suffix:
        with naming(prompt):
            raise PromptError(
                f"text follows the answer ({prompt.suffix!r}) and this model only writes on; "
                "use a template that ends with the answer"
            )
