"""Show texts as tokens: those the encoder made, beside those of the whole text.

Tokenises every text anew with a copy of the tokenizer of its own, and looks for weights that hold
NaN or infinity. Passes no judgement.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from tokenizers import Encoding

from sonde.core.examinations import Limits, Text
from sonde.engine.control_tokens import shielded
from sonde.engine.encode import Span, literal, tokens_around, untruncated
from sonde.models.torch.loading.spread import each_weight
from sonde.models.torch.loading.weights import UNLIMITED, Loaded


class Tokens:
    """Shows texts as a model's tokenizer has them; `start` is a token a causal text may open with.

    `closed`: the model sees both sides of a text, so that it needs the end too. `path` and `slow`
    are the model's own, as in `Limits`. `controls`: special tokens that a chat template writes,
    which then writes what opens a text too.
    """

    def __init__(
        self,
        loaded: Loaded,
        start: int | None,
        *,
        closed: bool,
        path: str,
        slow: str = "",
        controls: Sequence[str] = (),
    ) -> None:
        self.loaded = loaded
        self.controls = controls
        self.plain = untruncated(loaded.backend.to_str())
        self.literal = literal(loaded.backend, controls)
        before, after = tokens_around(self.literal)
        self.before = () if controls else before
        self.after = after if closed else ()
        bos = loaded.tokenizer.bos_token_id
        self.bos = frozenset(id for id in (*self.before, start, bos) if id is not None)
        self.unknown = loaded.tokenizer.unk_token_id
        self.limits = Limits(
            context=loaded.context if loaded.context < UNLIMITED else None,
            vocabulary=loaded.vocabulary,
            tokens=loaded.backend.get_vocab_size(with_added_tokens=True),
            bos=loaded.options.bos,
            path=path,
            slow=slow,
            damaged=damaged(loaded.model),
        )

    def text(self, prefix: str, answer: str, tail: str, span: Span) -> Text:
        """A text with an answer in it, as the encoder gave it."""
        answer, tail = (shielded(text, self.controls) for text in (answer, tail))
        whole = self.literal.encode(prefix + answer + tail, add_special_tokens=False)
        parts = [prefix, answer, *([tail] if tail else [])]
        apart = (self.literal.encode(part, add_special_tokens=False).ids for part in parts)
        ids = tuple(id for part in apart for id in part)
        return self._text(answer, span, whole, ids, prefix)

    def masked(self, prefix: str, mask: str, suffix: str, span: Span) -> Text:
        """A text with a masked position, as the encoder gave it."""
        if any(token in prefix + suffix for token in self.loaded.tokenizer.all_special_tokens):
            whole = None  # written in the text, it is taken literally; the tokenizer would not
        else:
            whole = self.plain.encode(prefix + mask + suffix, add_special_tokens=False)
        return self._text(mask, span, whole, span.ids, prefix)

    def _text(
        self,
        answer: str,
        span: Span,
        whole: Encoding | None,
        apart: tuple[int, ...],
        prefix: str,
    ) -> Text:
        # what a template writes at the beginning opens the text, as what a tokenizer puts there
        first = next((i for i, id in enumerate(span.ids) if id not in self.bos), 0)
        skipped = first if self.controls else 0
        return Text(
            answer=answer,
            ids=span.ids,
            pieces=tuple(map(self.piece, span.ids)),
            start=span.start,
            stop=span.stop,
            end=span.end,
            opens=self.before,
            closes=self.after,
            bos=self.bos,
            content=() if whole is None else tuple(whole.ids[skipped:]),
            offsets=() if whole is None else tuple(whole.offsets[skipped:]),
            apart=apart,
            gap=len(prefix.rstrip(" ")),
            begin=len(prefix),
            finish=len(prefix) + len(answer),
            unknown=self.unknown,
        )

    def piece(self, id: int) -> str:
        """A token's text with its spaces; a mark for one the tokenizer does not have."""
        written = self.loaded.backend.id_to_token(id)
        if written is None:
            return f"<{id}?>"
        text: str = self.loaded.tokenizer.decode([id])
        if written.startswith("▁") and not text.startswith(" "):
            text = " " + text
        return written if not text or "\ufffd" in text or written.startswith("##") else text


@torch.inference_mode()
def damaged(model: Any) -> tuple[str, ...]:
    """The names of the parameters with a number that is not finite."""
    return tuple(name for name, weight in each_weight(model) if not _sound(weight))


def _sound(weight: Any) -> bool:
    """Whether least and largest are finite; both are NaN where any number is."""
    if not weight.is_floating_point() or not weight.numel():
        return True
    if type(weight) not in (torch.nn.Parameter, torch.Tensor):  # quantised
        weight = weight.dequantize()
    least, largest = torch.aminmax(weight)
    return bool(torch.isfinite(least) & torch.isfinite(largest))
