"""The naive twin for encoder-decoder models: one text at a time, everything recomputed.

Slow on purpose. Property tests hold the fast path against it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import torch

from sonde.core.answers import Generated, Scored
from sonde.core.prompts import Generate, Prompt, Score
from sonde.engine.seq2seq_encode import Seq2SeqEncoder


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
def generate_seq2seq(
    model: Any,
    encoder: Seq2SeqEncoder,
    start: int,
    prompts: Sequence[Prompt],
    ends: Collection[int],
) -> Iterator[tuple[int, Generated]]:
    """Write by the likeliest token, reading everything anew for each."""
    for position, prompt in enumerate(prompts):
        assert isinstance(prompt.want, Generate)
        ids = encoder.source(prompt.prefix).ids
        opening = [start, *encoder.opens]
        written: list[int] = []
        logps: list[float] = []
        text, finished = "", False
        while len(written) < prompt.want.most and not finished:
            last = table(model, ids, [*opening, *written])[-1]
            written.append(int(last.argmax()))
            logps.append(float(last[written[-1]]))
            text, finished = _read(encoder, opening, written, prompt.want.until, ends)
        if not finished:
            yield position, Generated(text=text, logps=tuple(logps), finished=False)
            continue
        # the fewest tokens that say the whole text
        said = 0
        while not _text(encoder, opening, written[:said]).startswith(text):
            said += 1
        closing = sum(logps[said:]) if logps[said:] else None
        yield position, Generated(text=text, logps=tuple(logps[:said]), end_logp=closing)


def _read(
    encoder: Seq2SeqEncoder,
    opening: Sequence[int],
    written: Sequence[int],
    until: str,
    ends: Collection[int],
) -> tuple[str, bool]:
    """What was written up to its end, and whether it has ended."""
    if written[-1] in ends:
        return _text(encoder, opening, written[:-1]), True
    text = _text(encoder, opening, written)
    return (text.split(until)[0], True) if until and until in text else (text, False)


def table(model: Any, ids: Sequence[int], written: Sequence[int]) -> Any:
    """Log-probabilities of every token after each that was written, [written, vocabulary]."""
    output = model(
        input_ids=torch.tensor([list(ids)], device=model.device),
        decoder_input_ids=torch.tensor([list(written)], device=model.device),
        use_cache=False,
    )
    return torch.log_softmax(output.logits[0].float(), -1)


def _text(encoder: Seq2SeqEncoder, opening: Sequence[int], written: Sequence[int]) -> str:
    before, whole = (
        encoder.tokenizer.decode(list(part), skip_special_tokens=False)
        for part in (opening, [*opening, *written])
    )
    return whole[len(before) :]
