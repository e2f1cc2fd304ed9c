"""Let a torch model show its tokens and a naive second opinion, for `sonde doctor`.

Texts are tokenised here once more, whole, by a fresh copy of the tokenizer, so that what the
encoder made of them can be held against it. Numbers come from `reference.py` and from plain passes
over one text. Passes no judgement.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import torch

from sonde.core.abilities import Examines
from sonde.core.answers import Answer, Scored
from sonde.core.errors import AbilityError, PromptError
from sonde.core.examinations import Examination, Text
from sonde.core.prompts import Fill, Generate, Prompt, Score, Trace
from sonde.engine.encode import CausalEncoder, Span
from sonde.engine.limits import naming
from sonde.engine.masked_batch import MaskedEncoder
from sonde.engine.seq2seq_encode import GAP, Ids, Seq2SeqEncoder
from sonde.models.torch import reference
from sonde.models.torch.causal.model import CausalModel
from sonde.models.torch.decode.steps import end_tokens
from sonde.models.torch.masked.answers import token_name
from sonde.models.torch.masked.model import MaskedModel
from sonde.models.torch.seq2seq import Seq2SeqModel, first_token
from sonde.models.torch.tokens import Tokens

SHIFTED = 2  # options per prompt for which shifted answers are computed too


def examiner(model: Any) -> Examines | None:
    """What shows a model's tokens; None for a kind that nothing here can take apart."""
    if isinstance(model, CausalModel):
        return CausalExaminer(model)
    if isinstance(model, MaskedModel):
        return MaskedExaminer(model)
    return Seq2SeqExaminer(model) if isinstance(model, Seq2SeqModel) else None


class Examiner(ABC):
    """Shows what a model is given and what it answers without any sharing."""

    tokens: Tokens

    def examine(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Examination]]:
        """Yield (position, what the model shows about the prompt, or why it cannot)."""
        for position, prompt in enumerate(prompts):
            try:
                with torch.inference_mode():
                    shown = self.show(prompt)
            except PromptError as error:
                shown = Examination(limits=self.tokens.limits, askable=False, refused=str(error))
            yield position, shown

    @abstractmethod
    def show(self, prompt: Prompt) -> Examination:
        """What the model shows about one prompt."""


class CausalExaminer(Examiner):
    """Shows a model that reads from left to right."""

    def __init__(self, model: CausalModel) -> None:
        self.model = model
        self.encoder: CausalEncoder = model.encoder
        path = "a tree of tokens: what options share goes through the model once"
        self.tokens = Tokens(
            model.loaded,
            model.start.id,
            closed=False,
            path=path,
            slow=model.slow,
            controls=model.encoder.controls,
        )

    def show(self, prompt: Prompt) -> Examination:
        """Options with their naive scores, or only the naive numbers of what is read or written."""
        want = prompt.want
        if isinstance(want, Generate):
            return self._writing(prompt, want.most)
        if isinstance(want, Trace):
            return self._reading(prompt)
        assert isinstance(want, Score)
        written = want.texts(prompt.prefix)
        tail = want.after(prompt.suffix)
        spans = self.encoder.encode(prompt.prefix, written, tail)
        texts = tuple(
            self.tokens.text(prompt.prefix, option, tail, span)
            for option, span in zip(written, spans, strict=True)
        )
        shown = Examination(limits=self.tokens.limits, texts=texts)
        if not fits(shown):
            return replace(shown, askable=False)
        net = self.model.model
        tables = [log_table(net, span.ids) for span in spans[:SHIFTED]]
        return replace(
            shown,
            naive=dict(reference.score_causal(net, self.encoder, [prompt]))[0],
            shifted=causal_shifts(want.options, spans[:SHIFTED], tables),
            totals=tuple(total(t[s.start - 1]) for s, t in zip(spans, tables, strict=False)),
            likelihood=likelihood(spans[0].ids, tables[0], texts[0].opening),
            otherwise=self._otherwise(texts[0]),
        )

    def _otherwise(self, text: Text) -> float | None:
        """How likely the text is had it been opened with BOS, or without where it is."""
        bos = self.model.loaded.tokenizer.bos_token_id
        ids = text.inner if text.opening else (bos, *text.ids)
        if (
            self.model.chat
            or bos is None
            or len(text.inner) < 2
            or len(ids) > self.model.loaded.context
        ):
            return None
        return likelihood(ids, log_table(self.model.model, ids), 0 if text.opening else 1)

    def _reading(self, prompt: Prompt) -> Examination:
        """Only the naive numbers: no answer stands at an end of the text, to be looked at."""
        self.model.span_tokens([prompt])  # refuses what the model cannot take
        naive = reference.trace_causal(self.model.model, self.encoder, [prompt])
        return Examination(limits=self.tokens.limits, naive=dict(naive)[0])

    def _writing(self, prompt: Prompt, most: int) -> Examination:
        """Only the naive text, where there is room for it: there is no answer to be found yet."""
        loaded = self.model.loaded
        ids = self.encoder.open(prompt.prefix)
        if len(ids) + most > loaded.context or max(ids) >= loaded.vocabulary:
            return Examination(limits=self.tokens.limits, askable=False)
        endings = self.model.endings
        how = (self.encoder, [prompt], endings.ends, endings.thoughts)
        naive = reference.generate_causal(loaded.model, *how)
        return Examination(limits=self.tokens.limits, naive=dict(naive)[0])


class MaskedExaminer(Examiner):
    """Shows a model that sees both sides of the answer."""

    def __init__(self, model: MaskedModel) -> None:
        self.model = model
        self.encoder: MaskedEncoder = model.encoder
        path = "the head at the mask alone; texts of all lengths go together"
        self.tokens = Tokens(model.loaded, None, closed=True, path=path, slow=model.ways.slow)

    def show(self, prompt: Prompt) -> Examination:
        """A masked position, or options, each as the model is given them."""
        return self._fill(prompt) if isinstance(prompt.want, Fill) else self._score(prompt)

    def _fill(self, prompt: Prompt) -> Examination:
        span = self.encoder.masked([(prompt.prefix, prompt.suffix)])[0]
        text = self.tokens.masked(prompt.prefix, self.encoder.mask, prompt.suffix, span)
        shown = Examination(limits=self.tokens.limits, texts=(text,))
        if not fits(shown):
            return replace(shown, askable=False)
        table = log_table(self.model.model, span.ids)
        net, names = self.model.model, self._names
        naive = {
            by: dict(reference.fill_masked(net, self.encoder, [prompt], names, by=by))[0]
            for by in (0, -1, 1)
            if 0 <= span.start + by < len(span.ids)
        }
        return replace(
            shown,
            naive=naive.pop(0),
            shifted={DISPLACED[by]: answer for by, answer in naive.items()},
            totals=(total(table[span.start]),),
            likelihood=seen_likelihood(span, table, text.opening, text.closing),
        )

    def _score(self, prompt: Prompt) -> Examination:
        want = prompt.want
        assert isinstance(want, Score)
        written = want.texts(prompt.prefix)
        spans = self.encoder.options(prompt.prefix, written, prompt.suffix)
        texts = tuple(
            self.tokens.text(prompt.prefix, option, prompt.suffix, span)
            for option, span in zip(written, spans, strict=True)
        )
        shown = Examination(limits=self.tokens.limits, texts=texts)
        if not fits(shown):
            return replace(shown, askable=False)
        naive = dict(reference.score_masked(self.model.model, self.encoder, [prompt]))[0]
        return replace(shown, naive=naive, shifted=self._shifts(want.options, spans[:SHIFTED]))

    def _shifts(self, options: Sequence[str], spans: Sequence[Span]) -> dict[str, Answer]:
        rows: dict[int, list[tuple[float, ...]]] = {-1: [], 1: []}
        for span in spans:
            places = range(span.start, span.stop)
            inputs = [masked(span, i, self.encoder.mask_id) for i in places]
            tables = [(i, log_table(self.model.model, inputs[i - span.start])) for i in places]
            for by, found in rows.items():
                found.append(tuple(at(table, i + by, span.ids[i]) for i, table in tables))
        chosen = tuple(options[: len(spans)])
        return {
            DISPLACED[by]: Scored(options=chosen, logps=tuple(found)) for by, found in rows.items()
        }

    @cached_property
    def _names(self) -> Mapping[int, str]:
        """What may be answered without a vocabulary, as the engine has it."""
        loaded = self.model.loaded
        return {id: token_name(loaded, id) for id in loaded.answerable}


class Seq2SeqExaminer(Examiner):
    """Shows an encoder-decoder model: what it reads and what it writes are texts of their own.

    What should open an answer is looked up in the weights' own settings, not in the model.
    """

    def __init__(self, model: Seq2SeqModel) -> None:
        self.model = model
        self.encoder: Seq2SeqEncoder = model.encoder
        path = "each prompt is read once for all its options"
        self.tokens = Tokens(model.loaded, None, closed=True, path=path)

    def show(self, prompt: Prompt) -> Examination:
        """Options with their naive scores, or only the naive text where one is written."""
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
        opening = (first_token(self.model.loaded), *self.tokens.before)
        return opening if gap is None else (*opening, gap)

    def _answer(self, option: str, span: Span, due: Ids) -> Text:
        text = self.tokens.text("", option, "", span)
        return replace(text, opens=due, closes=(), bos=frozenset(due))

    def _source(self, before: str, after: str, ids: Ids) -> Text:
        """What is read; it has no answer, whose place is its end or the gap."""
        gap = self.model.loaded.backend.token_to_id(GAP) if after else None
        end = len(ids) - len(self.tokens.after)
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
            self.model.decoder().ids(prompt, (), most)  # refuses what the model cannot take
        naive = reference.generate_seq2seq(
            loaded.model, self.encoder, self.model.start, [prompt], end_tokens(loaded)
        )
        return Examination(limits=self.tokens.limits, naive=dict(naive)[0])


DISPLACED = {-1: "read one place before the mask", 1: "read one place behind the mask"}


def fits(shown: Examination) -> bool:
    """Whether the model can be given these texts at all."""
    limits = shown.limits
    return all(
        (limits.context is None or len(text.ids) <= limits.context)
        and max(text.ids) < limits.vocabulary
        for text in (*shown.texts, *shown.sources)
    )


def log_table(model: Any, ids: Sequence[int]) -> Any:
    """Log-probabilities of every token at every place of one text, [places, vocabulary]."""
    logits = model(torch.tensor([list(ids)], device=model.device)).logits[0]
    return torch.log_softmax(logits.float(), -1)


def total(logps: Any) -> float:
    """The sum of the probabilities of the whole vocabulary."""
    return float(logps.double().exp().sum())


def at(table: Any, place: int, token: int) -> float:
    """The log-probability of a token at a place; the nearest place where there is none."""
    return float(table[min(max(place, 0), len(table) - 1), token])


def causal_shifts(
    options: Sequence[str], spans: Sequence[Span], tables: Sequence[Any]
) -> dict[str, Answer]:
    """What a reading that is off by one token would give, for each way of being off."""
    # at(table, i - 1, ids[i]) is right: the place before a token predicts it
    readings: dict[str, Callable[[Any, tuple[int, ...], int], float]] = {
        "given to the token after it": lambda t, ids, i: at(t, i - 2, ids[i - 1]),
        "given to the token before it": lambda t, ids, i: at(t, i, ids[min(i + 1, len(ids) - 1)]),
        "read one place too late": lambda t, ids, i: at(t, i, ids[i]),
        "read one place too early": lambda t, ids, i: at(t, i - 2, ids[i]),
    }
    return {
        name: Scored(
            options=tuple(options[: len(spans)]),
            logps=tuple(
                tuple(read(table, span.ids, i) for i in range(span.start, span.stop))
                for span, table in zip(spans, tables, strict=True)
            ),
        )
        for name, read in readings.items()
    }


def masked(span: Span, i: int, mask: int) -> list[int]:
    """The text with the answer hidden from its i-th token on."""
    return [*span.ids[:i], *([mask] * (span.stop - i)), *span.ids[span.stop :]]


def likelihood(ids: Sequence[int], table: Any, opening: int) -> float | None:
    """Mean log-probability of a text's tokens, the first after the opening left out."""
    places = range(opening + 1, len(ids))
    return sum(at(table, i - 1, ids[i]) for i in places) / len(places) if places else None


def seen_likelihood(span: Span, table: Any, opening: int, closing: int) -> float | None:
    """Mean log-probability of the tokens that a masked model sees, each at its own place."""
    places = [i for i in range(opening, len(span.ids) - closing) if i != span.start]
    return sum(at(table, i, span.ids[i]) for i in places) / len(places) if places else None


def written(opening: Ids, target: Ids) -> Span:
    """An answer behind what opens it."""
    stop = len(opening) + len(target)
    return Span(ids=(*opening, *target), start=len(opening), stop=stop, end=stop)
