"""The naive twin of the engine: one text at a time, no sharing, no padding, no shortcut.

Slow on purpose. Property tests hold the fast paths against it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from sonde.core.answers import Filled, Scored
from sonde.core.prompts import Fill, Prompt, Score
from sonde.engine.encode import CausalEncoder, MaskedEncoder, Span


@torch.inference_mode()
def score_causal(
    model: Any, encoder: CausalEncoder, prompts: Sequence[Prompt]
) -> Iterator[tuple[int, Scored]]:
    """Score every option as a text of its own."""
    for position, prompt in enumerate(prompts):
        assert isinstance(prompt.want, Score)
        logps, after = [], []
        for span in encoder.encode(prompt.prefix, prompt.want.options, prompt.suffix):
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
def score_masked(
    model: Any, encoder: MaskedEncoder, prompts: Sequence[Prompt]
) -> Iterator[tuple[int, Scored]]:
    """Score every option token by token, itself and what is right of it in the option masked."""
    for position, prompt in enumerate(prompts):
        assert isinstance(prompt.want, Score)
        logps = []
        for span in encoder.options(prompt.prefix, prompt.want.options, prompt.suffix):
            row = []
            for i in range(span.start, span.stop):
                ids = list(span.ids)
                ids[i : span.stop] = [encoder.mask_id] * (span.stop - i)
                row.append(float(_mask_logps(model, ids, i)[span.ids[i]]))
            logps.append(tuple(row))
        yield position, Scored(options=prompt.want.options, logps=tuple(logps))


@torch.inference_mode()
def fill_masked(
    model: Any, encoder: MaskedEncoder, prompts: Sequence[Prompt], names: Mapping[int, str]
) -> Iterator[tuple[int, Filled]]:
    """Fill every hole by sorting; without a vocabulary the tokens of `names` may be answered."""
    for position, prompt in enumerate(prompts):
        want = prompt.want
        assert isinstance(want, Fill)
        span: Span = encoder.holes([(prompt.prefix, prompt.suffix)])[0]
        logps = _mask_logps(model, list(span.ids), span.start).tolist()
        called = dict(names)
        if want.vocabulary is not None:
            words = encoder.single_tokens(want.vocabulary, prompt.prefix)
            called = {id: word for word, id in reversed(words.items())}
        allowed = sorted(called)
        order = sorted(allowed, key=lambda id: (-logps[id], id))
        watched = [encoder.single_tokens([w], prompt.prefix).get(w) for w in want.watched]
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


def _mask_logps(model: Any, ids: list[int], position: int) -> Any:
    logits = model(torch.tensor([ids], device=model.device)).logits[0, position]
    return torch.log_softmax(logits.float(), -1)
