"""The naive twins of the engine: one text at a time, no sharing, no padding, no shortcut.

Slow on purpose. Property tests hold the fast paths against them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from tokenizers import Encoding, Tokenizer

from sonde.core.answers import Filled, Generated, Sampled, Scored, Traced
from sonde.core.prompts import Fill, Generate, Prompt, Sample, Score, Trace
from sonde.engine.encode import CausalEncoder, Span
from sonde.engine.endings import Thoughts, thought_length
from sonde.engine.masked_batch import MaskedEncoder
from sonde.engine.seq2seq_encode import Seq2SeqEncoder


@torch.inference_mode()
def score_causal(
    model: Any, encoder: CausalEncoder, prompts: Sequence[Prompt]
) -> Iterator[tuple[int, Scored]]:
    """Score every option as a text of its own."""
    for position, prompt in enumerate(prompts):
        assert isinstance(prompt.want, Score)
        logps, after = [], []
        want, prefix = prompt.want, prompt.prefix
        tail = want.after(prompt.suffix)
        for span in encoder.encode(prefix, want.texts(prefix), tail, whole=want.whole):
            logits = model(torch.tensor([span.ids], device=model.device)).logits[0].float()
            table = torch.log_softmax(logits, -1)
            rows = [float(table[i - 1, span.ids[i]]) for i in range(span.start, span.end)]
            logps.append(tuple(rows[: span.stop - span.start]))
            after.append(tuple(rows[span.stop - span.start :]))
        yield (
            position,
            Scored(
                options=prompt.want.options,
                logps=tuple(logps),
                suffix_logps=tuple(after) if any(after) else (),
            ),
        )


@torch.inference_mode()
def trace_causal(
    model: Any, encoder: CausalEncoder, prompts: Sequence[Prompt]
) -> Iterator[tuple[int, Traced]]:
    """Read every span's tokens from one pass over the whole text."""
    for position, prompt in enumerate(prompts):
        assert isinstance(prompt.want, Trace)
        encoding = encoder.tokenizer.encode(prompt.prefix, add_special_tokens=False)
        owners = [_owner(offset, prompt.want.spans) for offset in encoding.offsets]
        ids = list(encoding.ids)
        if encoder.start.always or owners[0] is not None:
            assert encoder.start.id is not None
            ids, owners = [encoder.start.id, *ids], [None, *owners]
        logits = model(torch.tensor([ids], device=model.device)).logits[0].float()
        table = torch.log_softmax(logits, -1)
        rows: list[list[float]] = [[] for _ in prompt.want.spans]
        for i, owner in enumerate(owners):
            if owner is not None:
                rows[owner].append(float(table[i - 1, ids[i]]))
        yield position, Traced(logps=tuple(map(tuple, rows)))


def _owner(offset: tuple[int, int], spans: Sequence[tuple[int, int]]) -> int | None:
    """The first span that shares a character with a token."""
    shares = (offset[1] > start and offset[0] < stop for start, stop in spans)
    return next((i for i, shared in enumerate(shares) if shared), None)


@torch.inference_mode()
def score_masked(
    model: Any, encoder: MaskedEncoder, prompts: Sequence[Prompt]
) -> Iterator[tuple[int, Scored]]:
    """Score every option token by token, itself and what is hidden with it masked."""
    for position, prompt in enumerate(prompts):
        want, prefix, suffix = prompt.want, prompt.prefix, prompt.suffix
        assert isinstance(want, Score)
        logps: list[tuple[float, ...]] = []
        after: list[tuple[float, ...]] = []
        texts = want.texts(prefix)
        for text, span in zip(texts, encoder.options(prefix, texts, suffix), strict=True):
            row = {}
            for i, hidden in _hidden(encoder.literal.encode(prefix + text + suffix), span, want):
                ids = [encoder.mask_id if j in hidden else id for j, id in enumerate(span.ids)]
                row[i] = float(_mask_logps(model, ids, i)[span.ids[i]])
            logps.append(tuple(value for i, value in row.items() if i < span.stop))
            after.append(tuple(value for i, value in row.items() if i >= span.stop))
        some = tuple(after) if any(after) else ()
        yield position, Scored(options=want.options, logps=tuple(logps), suffix_logps=some)


def _hidden(text: Encoding, span: Span, want: Score) -> Iterator[tuple[int, set[int]]]:
    """Every token that is scored, and those that are masked for it: itself and, right of it, the
    rest of the answer or of its word."""
    answer = set(range(span.start, span.stop))
    inner = {i for i, special in enumerate(text.special_tokens_mask) if not special}
    scored = inner if want.whole else answer
    for i in sorted(scored):
        word = {j for j in scored if text.word_ids[j] == text.word_ids[i]}
        alone = {i} if text.word_ids[i] is None else word
        together = answer if i in answer and want.hidden == "answer" else alone
        yield i, {j for j in together if j >= i}


@torch.inference_mode()
def fill_masked(
    model: Any,
    encoder: MaskedEncoder,
    prompts: Sequence[Prompt],
    names: Mapping[int, str],
    *,
    by: int = 0,
) -> Iterator[tuple[int, Filled]]:
    """Fill masked positions by sorting; without a vocabulary the tokens of `names` may be said.

    `by`: how many places beside the mask is read, to show what that would give.
    """
    for position, prompt in enumerate(prompts):
        want = prompt.want
        assert isinstance(want, Fill)
        span: Span = encoder.masked([(prompt.prefix, prompt.suffix)])[0]
        logps = _mask_logps(model, list(span.ids), span.start + by).tolist()
        called = dict(names)
        if want.vocabulary is not None:
            words = encoder.single_tokens(want.vocabulary, prompt.prefix, capitals=want.capitals)
            called = {id: word for word, id in reversed(words.items())}
        allowed = sorted(called)
        order = sorted(allowed, key=lambda id: (-logps[id], id))
        watched = [
            encoder.single_tokens([w], prompt.prefix, capitals=want.capitals).get(w)
            for w in want.watched
        ]
        watched = [id if id in called else None for id in watched]
        yield (
            position,
            Filled(
                top=tuple(called[id] for id in order[: want.top]),
                top_logps=tuple(logps[id] for id in order[: want.top]),
                watched=want.watched,
                watched_logps=tuple(None if id is None else logps[id] for id in watched),
                watched_ranks=tuple(
                    None if id is None else sum(logps[a] >= logps[id] for a in allowed)
                    for id in watched
                ),
                mass=float(torch.logsumexp(torch.tensor([logps[a] for a in allowed]), 0)),
            ),
        )


@torch.inference_mode()
def score_seq2seq(
    model: Any, encoder: Seq2SeqEncoder, start: int, prompts: Sequence[Prompt]
) -> Iterator[tuple[int, Scored]]:
    """Score every option in a pass of its own."""
    for position, prompt in enumerate(prompts):
        assert isinstance(prompt.want, Score)
        want = prompt.want
        source = encoder.source(prompt.prefix, want.after(prompt.suffix))
        rows = []
        for target in encoder.targets(want.texts(prompt.prefix)):
            opening = [start, *source.opens]
            logps = table(model, source.ids, [*opening, *target[:-1]])[len(opening) - 1 :]
            rows.append(tuple(float(logps[i, id]) for i, id in enumerate(target)))
        yield position, Scored(options=prompt.want.options, logps=tuple(rows))


@torch.inference_mode()
def generate_causal(
    model: Any,
    encoder: CausalEncoder,
    prompts: Sequence[Prompt],
    ends: Collection[int],
    thoughts: Thoughts = "never",
) -> Iterator[tuple[int, Generated]]:
    """Write on from every prompt by its likeliest token, reading the whole text for each."""
    for position, prompt in enumerate(prompts):
        opening = list(encoder.open(prompt.prefix))
        texts = Texts(encoder.tokenizer, opening, ends, thoughts)
        yield position, _greedy(prompt, texts, partial(_mask_logps, model, position=-1))


@torch.inference_mode()
def generate_seq2seq(
    model: Any,
    encoder: Seq2SeqEncoder,
    start: int,
    prompts: Sequence[Prompt],
    ends: Collection[int],
) -> Iterator[tuple[int, Generated]]:
    """Write by the likeliest token, reading everything anew for each."""
    for position, prompt in enumerate(prompts):
        source = encoder.source(prompt.prefix).ids
        texts = Texts(encoder.tokenizer, [start, *encoder.opens], ends)
        yield position, _greedy(prompt, texts, partial(_last_row, model, source))


@torch.inference_mode()
def sample_causal(
    model: Any,
    encoder: CausalEncoder,
    prompts: Sequence[Prompt],
    ends: Collection[int],
    generator: torch.Generator,
    thoughts: Thoughts = "never",
) -> Iterator[tuple[int, Sampled]]:
    """Draw every sample of every prompt by itself, token by token."""
    for position, prompt in enumerate(prompts):
        want = prompt.want
        assert isinstance(want, Sample)
        opening = list(encoder.open(prompt.prefix))
        texts = Texts(encoder.tokenizer, opening, ends, thoughts)
        drawn: list[tuple[str, str, int]] = []
        for _ in range(want.count):
            ids = list(opening)
            text, finished = "", False
            while not (finished or texts.full(ids, want)):
                shares = _mask_logps(model, ids, -1).exp()
                ids.append(int(torch.multinomial(shares, 1, generator=generator)))
                text, finished = texts.read(ids, want.until)
            before = text[: thought_length(text, thoughts)]
            drawn.append((text.removeprefix(before), before.strip(), 1))
        yield position, Sampled.pooled(drawn)


@dataclass(frozen=True, slots=True)
class Texts:
    """What tokens say after those of an opening, and where that ends."""

    tokenizer: Tokenizer
    opening: list[int]
    ends: Collection[int]
    thoughts: Thoughts = "never"

    def read(self, ids: list[int], until: str) -> tuple[str, bool]:
        """What was written since the opening, up to its end, and whether it has ended."""
        if ids[-1] in self.ends:
            return self.written(ids[:-1]), True
        text = self.written(ids)
        start = thought_length(text, self.thoughts)
        ended = bool(until) and until in text[start:]
        return (text[:start] + text[start:].split(until)[0], True) if ended else (text, False)

    def full(self, ids: list[int], want: Generate | Sample) -> bool:
        """Whether there may be no more tokens: in all, of the thoughts, or of the answer."""
        text, count = self.written(ids), len(ids) - len(self.opening)
        if count >= want.most or not want.thinking:
            return count >= want.most
        before = text[: thought_length(text, self.thoughts)]
        if before and "</think>" not in before:
            return count >= want.thinking
        if not before and text.strip() and "<think>".startswith(text.lstrip()):
            return False  # it is not known yet what they are
        return count - self.thought(ids) >= want.most - want.thinking

    def thought(self, ids: list[int]) -> int:
        """How many tokens since the opening hold nothing of the answer."""
        text = self.written(ids)
        before = text[: thought_length(text, self.thoughts)]
        counts = range(len(ids) - len(self.opening) + 1)
        texts = (self.written(ids[: len(self.opening) + n]) for n in counts)
        return max(n for n, said in enumerate(texts) if before.startswith(said)) if before else 0

    def written(self, ids: list[int]) -> str:
        """What was written since the opening."""
        before, whole = (
            self.tokenizer.decode(part, skip_special_tokens=False) for part in (self.opening, ids)
        )
        return whole[len(before) :]


def _greedy(prompt: Prompt, texts: Texts, last: Callable[[list[int]], Any]) -> Generated:
    """Write by the likeliest token; `last` gives log-probabilities after some tokens."""
    assert isinstance(prompt.want, Generate)
    ids = list(texts.opening)
    logps: list[float] = []
    text, finished = "", False
    while not (finished or texts.full(ids, prompt.want)):
        row = last(ids)
        ids.append(int(row.argmax()))
        logps.append(float(row[ids[-1]]))
        text, finished = texts.read(ids, prompt.want.until)
    before = text[: thought_length(text, texts.thoughts)]
    first = texts.thought(ids)
    said = _fewest(texts, ids, text) if finished else len(logps)
    return Generated(
        text=text.removeprefix(before),
        logps=tuple(logps[first:said]),
        end_logp=sum(logps[said:]) if logps[said:] else None,
        finished=finished,
        thoughts=before.strip(),
    )


def _fewest(texts: Texts, ids: list[int], text: str) -> int:
    """The fewest tokens behind the opening that say a whole text."""
    said = 0
    while not texts.written(ids[: len(texts.opening) + said]).startswith(text):
        said += 1
    return said


def _mask_logps(model: Any, ids: list[int], position: int) -> Any:
    logits = model(torch.tensor([ids], device=model.device)).logits[0, position]
    return torch.log_softmax(logits.float(), -1)


def table(model: Any, ids: Sequence[int], written: Sequence[int]) -> Any:
    """Log-probabilities of every token after each that was written, [written, vocabulary]."""
    output = model(
        input_ids=torch.tensor([list(ids)], device=model.device),
        decoder_input_ids=torch.tensor([list(written)], device=model.device),
        use_cache=False,
    )
    return torch.log_softmax(output.logits[0].float(), -1)


def _last_row(model: Any, source: Sequence[int], written: Sequence[int]) -> Any:
    return table(model, source, written)[-1]
