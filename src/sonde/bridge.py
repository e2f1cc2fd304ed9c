"""Between the columns of prompts and answers here and those of today's models and run folders.

Goes when models and stores speak `prompts` and `answers` themselves.
"""

from itertools import chain

import numpy as np
import polars as pl
import pyarrow as pa

from sonde.answers import (
    Answers,
    Completions,
    MaskScores,
    OptionScores,
    Ragged,
    Result,
    Samples,
    SpanLogprobs,
)
from sonde.core import columns, prompts, rated
from sonde.prompts import (
    AnyRequest,
    FillMask,
    Generate,
    Names,
    PromptBatch,
    Sample,
    Score,
    TokenLogprobs,
)


def as_block(batch: PromptBatch) -> prompts.Block:
    """Prompts as today's models take them."""
    frame, want = batch.frame, _want(batch)
    if isinstance(batch.request, Score) and len(batch.options) > 1:
        lists = pl.Series(batch.options, dtype=pl.List(pl.String))
        frame = frame.with_columns(options=lists.gather(batch.options_ids()))
    frame = frame.drop("options_id", strict=False).rename({"example_spans": "turns"}, strict=False)
    return prompts.Block(frame=frame, want=want, cloze=batch.cloze)


def _want(batch: PromptBatch) -> prompts.Want:
    match batch.request:
        case Score() as score:
            return prompts.Score(
                options=batch.options[0] if len(batch.options) == 1 else (),
                capitals=score.capitalize,
                punctuation=score.punctuation,
                whole=score.whole,
                hidden=score.mask,
            )
        case FillMask() as fill:
            return prompts.Fill(
                top=fill.top_k,
                watched=fill.targets,
                vocabulary=fill.vocabulary,
                capitals=fill.capitalize,
            )
        case Generate() as generate:
            return prompts.Generate(
                most=generate.max_tokens, until=generate.stop, thinking=generate.reasoning_tokens
            )
        case Sample() as sample:
            return prompts.Sample(
                count=sample.count,
                most=sample.max_tokens,
                until=sample.stop,
                seed=sample.seed,
                thinking=sample.reasoning_tokens,
            )
        case _:
            return prompts.Trace()


def as_answers(block: columns.Answers) -> Answers:
    """A stored block of prompts with what was answered."""
    result: Result
    request: AnyRequest
    frame, options = block.frame.drop("options", strict=False), ()
    if block.kind == "scored":
        ids, options = _option_sets(block.rated)
        if len(options) > 1:
            frame = frame.with_columns(options_id=pl.Series(ids, dtype=pl.UInt32))
        request, result = Score(), _option_scores(block.rated)
    elif block.kind == "traced":
        traced = block.rated
        inner = Ragged(traced.tokens.astype(np.int64), traced.logps)
        request = TokenLogprobs()
        result = SpanLogprobs(logprobs=Ragged(traced.bounds.astype(np.int64), inner))
    elif block.kind == "filled":
        request, result = FillMask(targets=block.filled.watched), _mask_scores(block.filled)
    elif block.kind == "generated":
        request, result = Generate(), _completions(block.columns)
    else:
        request, result = Sample(), _samples(block.columns)
    batch = PromptBatch(frame=frame, request=request, options=options)
    return Answers(batch=batch, result=result)


def _option_sets(scores: rated.RatedColumns) -> tuple[np.ndarray, tuple[Names, ...]]:
    """The number of each prompt's set of options, and the sets."""
    assert scores.options is not None
    counts = np.diff(scores.bounds)
    if len(counts) and (counts == counts[0]).all():
        rows = scores.options.reshape(len(counts), -1)
        if (rows == rows[0]).all():
            return np.zeros(len(counts), int), (tuple(scores.names[i] for i in rows[0]),)
    numbers: dict[bytes, int] = {}
    sets, ids = [], []
    for start, stop in zip(scores.bounds[:-1].tolist(), scores.bounds[1:].tolist(), strict=True):
        codes = scores.options[start:stop]
        number = numbers.setdefault(codes.tobytes(), len(numbers))
        if number == len(sets):
            sets.append(tuple(scores.names[i] for i in codes.tolist()))
        ids.append(number)
    return np.array(ids, dtype=np.int64), tuple(sets)


def _option_scores(scores: rated.RatedColumns) -> OptionScores:
    after = None if scores.suffix_tokens is None else np.diff(scores.suffix_tokens)
    return OptionScores.of(
        np.diff(scores.bounds), np.diff(scores.tokens), scores.logps, after, scores.suffix_logps
    )


def _mask_scores(filled: columns.FilledColumns) -> MaskScores:
    there = filled.top >= 0
    names = pa.DictionaryArray.from_arrays(
        pa.array(filled.top[there].astype(np.int32)), pa.array(filled.names, pa.string())
    )
    counts = there.sum(axis=1)
    return MaskScores(
        top=Ragged.of(counts, names),
        top_logprobs=Ragged.of(counts, filled.top_logps[there]),
        allowed_logprob=filled.mass,
        target_logprobs=filled.watched_logps,
        target_ranks=filled.watched_ranks,
    )


def _completions(texts: list) -> Completions:
    logprobs = np.fromiter(chain.from_iterable(t.logps for t in texts), dtype=np.float32)
    ends = [np.nan if t.end_logp is None else t.end_logp for t in texts]
    return Completions(
        text=pa.array([t.text for t in texts], pa.string()),
        token_logprobs=Ragged.of([len(t.logps) for t in texts], logprobs),
        end_logprob=np.array(ends, dtype=np.float32),
        finished=np.array([t.finished for t in texts], dtype=bool),
        reasoning=pa.array([t.thoughts for t in texts], pa.string()),
    )


def _samples(drawn: list) -> Samples:
    sizes = [len(each.texts) for each in drawn]
    reasoning = [each.thoughts or ((),) * len(each.texts) for each in drawn]
    thoughts = list(chain.from_iterable(reasoning))
    return Samples(
        texts=Ragged.of(sizes, pa.array(list(chain.from_iterable(d.texts for d in drawn)), pa.string())),
        counts=Ragged.of(sizes, np.array(list(chain.from_iterable(d.counts for d in drawn)), dtype=np.int64)),
        texts_reasoning=Ragged.of(
            sizes,
            Ragged.of([len(t) for t in thoughts], pa.array(list(chain.from_iterable(thoughts)), pa.string())),
        ),
    )
