"""Let an encoder-decoder model show its tokens and a naive second opinion, for `sonde doctor`.

What is read and what is written are texts of their own, and both are shown. What should open an
answer is looked up in the weights' own settings, not in the model that is examined.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch

from sonde.core.errors import AbilityError
from sonde.core.examinations import Examination, Text
from sonde.core.prompts import Generate, Prompt, Score
from sonde.engine.encode import Span
from sonde.engine.seq2seq_encode import GAP, Ids, Seq2SeqEncoder
from sonde.models.torch import reference
from sonde.models.torch.decode.steps import end_tokens
from sonde.models.torch.examine import SHIFTED, causal_shifts, fits, total, trying
from sonde.models.torch.loading.limits import naming
from sonde.models.torch.seq2seq.model import Seq2SeqModel, first_token
from sonde.models.torch.tokens import Tokens


class Seq2SeqExaminer:
    """Shows what an encoder-decoder model reads and writes, and what it answers text by text."""

    def __init__(self, model: Seq2SeqModel) -> None:
        self.model = model
        self.encoder: Seq2SeqEncoder = model.encoder
        path = "each prompt is read once for all its options"
        self.tokens = Tokens(model.loaded, None, closed=True, path=path)

    def examine(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Examination]]:
        """Yield (position, what the model shows about the prompt)."""
        for position, prompt in enumerate(prompts):
            yield position, trying(self.tokens.limits, prompt, self._examine)

    @torch.inference_mode()
    def _examine(self, prompt: Prompt) -> Examination:
        if isinstance(prompt.want, Generate):
            return self._writing(prompt, prompt.want.most)
        if not isinstance(prompt.want, Score):
            raise AbilityError("an encoder-decoder model is examined on scoring and writing")
        options, texts = prompt.want.options, prompt.want.texts(prompt.prefix)
        after = prompt.want.after(prompt.suffix)
        source = self.encoder.source(prompt.prefix, after)
        opening = (self.model.start, *source.opens)
        spans = [written(opening, target) for target in self.encoder.targets(texts)]
        due = self._due(after)
        answers = tuple(self._answer(*pair, due) for pair in zip(texts, spans, strict=True))
        sources = (self._source(prompt.prefix.rstrip(" "), after, source.ids),)
        shown = Examination(limits=self.tokens.limits, texts=answers, sources=sources)
        if not fits(shown):
            return replace(shown, askable=False)
        net, start = self.model.model, self.model.start
        tables = [reference.table(net, source.ids, span.ids) for span in spans[:SHIFTED]]
        return replace(
            shown,
            naive=dict(reference.score_seq2seq(net, self.encoder, start, [prompt]))[0],
            shifted=causal_shifts(options, spans[:SHIFTED], tables),
            totals=tuple(total(t[s.start - 1]) for s, t in zip(spans, tables, strict=False)),
        )

    def _due(self, after: str) -> Ids:
        """What should open an answer: the model's own token, the tokenizer's, and a gap's."""
        gap = self.model.loaded.backend.token_to_id(GAP) if after else None
        opening = (first_token(self.model.loaded), *self.tokens.around.before)
        return opening if gap is None else (*opening, gap)

    def _answer(self, option: str, span: Span, due: Ids) -> Text:
        text = self.tokens.text("", option, "", span)
        return replace(text, opens=due, closes=(), bos=frozenset(due))

    def _source(self, before: str, after: str, ids: Ids) -> Text:
        """What is read; it has no answer, whose place is its end or the gap."""
        gap = self.model.loaded.backend.token_to_id(GAP) if after else None
        end = len(ids) - len(self.tokens.around.after)
        place = ids.index(gap) if gap in ids else max(end, 0)
        span = Span(ids=ids, start=place, stop=place, end=place)
        text = self.tokens.text(before, "", "", span)
        if gap is None:
            return text
        tail: Any = self.tokens.literal.encode(after, add_special_tokens=False)
        return replace(text, content=(*text.content, gap, *tail.ids), offsets=())

    def _writing(self, prompt: Prompt, most: int) -> Examination:
        """Only the naive text, where there is room for it: there is no answer to be found yet."""
        loaded = self.model.loaded
        with naming(prompt):
            self.model.decoder().ids(prompt, most)  # refuses what the model cannot take
        naive = reference.generate_seq2seq(
            loaded.model, self.encoder, self.model.start, [prompt], end_tokens(loaded)
        )
        return Examination(limits=self.tokens.limits, naive=dict(naive)[0])


def written(opening: Ids, target: Ids) -> Span:
    """An answer behind what opens it."""
    stop = len(opening) + len(target)
    return Span(ids=(*opening, *target), start=len(opening), stop=stop, end=stop)
