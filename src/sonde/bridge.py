"""Between the columns of prompts and answers here and those of today's models and run folders.

Goes when models and stores speak `prompts` and `answers` themselves.
"""

from collections.abc import Sequence
from itertools import chain
from typing import Any, cast

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
from sonde.core.answers import Generated, Sampled
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
    if "options_id" in frame.columns:
        lists = pl.Series("options", batch.options, dtype=pl.List(pl.String))
        frame = frame.drop("options_id").with_columns(lists.gather(batch.options_ids()))
    frame = frame.rename({"example_spans": "turns"}, strict=False)
    return prompts.Block(frame=frame, want=want, cloze=batch.cloze, raw=batch.raw)


def _want(batch: PromptBatch) -> prompts.Want:
    match batch.request:
        case Score() as score:
            shared = batch.options and "options_id" not in batch.frame.columns
            return prompts.Score(
                options=batch.options[0] if shared else (),
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


def as_answers(block: columns.Answers | Answers) -> Answers:
    """A stored block of prompts with what was answered."""
    if isinstance(block, Answers):
        return block
    request: AnyRequest
    result: Result
    options: Sequence[Names] = ()
    # the lists of options are as large as the scores, and are numbered instead
    prompts_table = block.asked.drop_columns(
        [n for n in block.asked.column_names if n == "options"]
    )
    frame = cast(pl.DataFrame, pl.from_arrow(prompts_table))
    frame = frame.with_columns(pl.col(pl.Categorical).cast(pl.String))
    answered: Any = block.columns
    match block.kind:
        case "scored":
            ids, options = _option_sets(answered)
            if len(options) > 1:
                frame = frame.with_columns(options_id=ids)
            request, result = Score(), _option_scores(answered)
        case "traced":
            inner = Ragged(answered.tokens.astype(np.int64), answered.logps)
            request = TokenLogprobs()
            result = SpanLogprobs(logprobs=Ragged(answered.bounds.astype(np.int64), inner))
        case "filled":
            request, result = FillMask(targets=answered.watched), _mask_scores(answered)
        case "generated":
            request, result = Generate(), _completions(answered)
        case _:
            request, result = Sample(), _samples(answered)
    return Answers(batch=PromptBatch(frame=frame, request=request, options=options), result=result)


def _option_sets(scores: rated.RatedColumns) -> tuple[pl.Series, Sequence[Names]]:
    """The number of each prompt's options among the different lists of options, and those lists."""
    assert scores.options is not None
    bounds, codes = scores.bounds, scores.options
    arrow = pa.ListArray.from_arrays(bounds.astype(np.int32), codes.astype(np.int32))
    # 64 bits each: a million lists collide once in 30 million runs. Ten million options: 0.02 s
    hashes = cast(pl.Series, pl.from_arrow(arrow)).hash().to_numpy()
    _, first, ids = np.unique(hashes, return_index=True, return_inverse=True)
    order = np.argsort(first)
    lists = [
        tuple([scores.names[code] for code in codes[bounds[row] : bounds[row + 1]].tolist()])
        for row in first[order].tolist()
    ]
    return pl.Series(np.argsort(order)[ids], dtype=pl.UInt32), lists


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


def _completions(texts: Sequence[Generated]) -> Completions:
    logprobs = np.fromiter(chain.from_iterable(t.logps for t in texts), dtype=np.float32)
    ends = [np.nan if t.end_logp is None else t.end_logp for t in texts]
    return Completions(
        text=pa.array([t.text for t in texts], pa.string()),
        token_logprobs=Ragged.of([len(t.logps) for t in texts], logprobs),
        end_logprob=np.array(ends, dtype=np.float32),
        finished=np.array([t.finished for t in texts], dtype=bool),
        reasoning=pa.array([t.thoughts for t in texts], pa.string()),
    )


def _samples(samples: Sequence[Sampled]) -> Samples:
    sizes = [len(s.texts) for s in samples]
    texts = [text for s in samples for text in s.texts]
    counts = [count for s in samples for count in s.counts]
    reasoning = [before for s in samples for before in s.thoughts or [()] * len(s.texts)]
    before = pa.array(list(chain.from_iterable(reasoning)), pa.string())
    return Samples(
        texts=Ragged.of(sizes, pa.array(texts, pa.string())),
        counts=Ragged.of(sizes, np.array(counts, dtype=np.int64)),
        texts_reasoning=Ragged.of(sizes, Ragged.of([len(b) for b in reasoning], before)),
    )
