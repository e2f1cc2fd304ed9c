"""The bridge: prompts and answers are the same on both sides, and columns stay columns."""

from __future__ import annotations

import sys
from functools import cache
from typing import Any, cast

import numpy as np
import polars as pl
import pytest

import sonde
from sonde import testing
from sonde.answers import Completions, MaskScores, OptionScores, Samples, SpanLogprobs
from sonde.bridge import as_answers, as_block
from sonde.core import answers, columns, prompts
from sonde.core.prompts import Block, blocks_of
from sonde.models.controls import majority
from sonde.probes import PROBES
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

PROBED: dict[str, dict[str, Any]] = {  # what each asks with
    "bear": {},
    "belief": {"answer": "score"},
    "lama": {"answer": "fill"},
    "belief-icl": {"samples": 3},
    "ic-lke": {"shots": 2},
    "eic-lke": {"start": 1, "examples": 3, "stride": 1},
    "monitor": {},
}


@cache
def blocks(name: str) -> list[Block]:
    """The prompts of a probe on a small dataset."""
    kind = PROBES[name]
    known = {s.name for s in sonde.core.components.settings_of(kind)}
    settings = {k: v for k, v in PROBED[name].items() if k in known}
    data = sonde.dataset("atlas", relations=("P30", "P36"), limit=3)
    return list(blocks_of(kind(**settings).ask(data)))


def as_batch(block: Block) -> PromptBatch:
    """The batch that `as_block` turns into a block."""
    frame, want = block.frame, block.want
    options: tuple[Names, ...] = ()
    request: AnyRequest
    if isinstance(want, prompts.Score):
        options = (want.options,)
        if "options" in frame.columns:
            lists = [tuple(each) for each in frame["options"].to_list()]
            options = tuple(dict.fromkeys(lists))
            ids = [options.index(each) for each in lists]
            frame = frame.drop("options").with_columns(options_id=pl.Series(ids))
        request = Score(
            capitalize=want.capitals,
            punctuation=want.punctuation,
            whole=want.whole,
            mask=want.hidden,
        )
    elif isinstance(want, prompts.Fill):
        request = FillMask(
            top_k=want.top,
            targets=want.watched,
            vocabulary=want.vocabulary,
            capitalize=want.capitals,
        )
    elif isinstance(want, prompts.Generate):
        request = Generate(max_tokens=want.most, stop=want.until, reasoning_tokens=want.thinking)
    elif isinstance(want, prompts.Sample):
        request = Sample(count=want.count, max_tokens=want.most, stop=want.until, seed=want.seed)
    else:
        request = TokenLogprobs()
    frame = frame.rename({"turns": "example_spans"}, strict=False)
    return PromptBatch(frame=frame, request=request, options=options, cloze=block.cloze)


@pytest.mark.parametrize("name", PROBED)
def test_batches_and_blocks_have_the_same_prompts(name: str) -> None:
    for block in blocks(name):
        made = as_block(as_batch(block))
        assert made.want == block.want and made.cloze == block.cloze
        assert made.frame.select(block.frame.columns).equals(block.frame)
        assert len(made.frame.columns) == len(block.frame.columns)
        assert list(made.prompts()) == list(block.prompts())


@pytest.mark.parametrize("name", PROBED)
def test_stored_answers_are_the_same_in_columns(name: str) -> None:
    data = sonde.dataset("atlas", relations=("P30", "P36"), limit=3)
    for block in testing.answer_all(majority(data), blocks(name)):
        made = as_answers(block)
        assert len(made) == len(made.result) == len(block)
        asked = block.frame.drop("options", strict=False)
        assert made.frame.drop("options_id", strict=False).equals(asked)
        for i, one in enumerate(block.each()):
            assert_same(made, i, one.answer)


def assert_same(made: sonde.answers.Answers, i: int, stored: answers.Answer) -> None:
    result, row = made.result, cast(Any, made.row(i))
    if isinstance(stored, answers.Scored):
        assert isinstance(result, OptionScores)
        assert made.batch.options[made.batch.options_ids()[i]] == stored.options
        assert row["logprobs"] == list(map(list, stored.logps))
        suffix = stored.suffix_logps or [()] * len(stored.options)
        assert row["suffix_logprobs"] == list(map(list, suffix))
    elif isinstance(stored, answers.Traced):
        assert isinstance(result, SpanLogprobs)
        assert row["logprobs"] == list(map(list, stored.logps))
    elif isinstance(stored, answers.Filled):
        assert isinstance(result, MaskScores)
        assert cast(FillMask, made.batch.request).targets == stored.watched
        assert (tuple(row["top"]), tuple(row["top_logprobs"])) == (stored.top, stored.top_logps)
        assert row["allowed_logprob"] == stored.mass
        assert [rank or None for rank in row["target_ranks"]] == list(stored.watched_ranks)
        shown = [None if np.isnan(value) else value for value in row["target_logprobs"]]
        assert shown == list(stored.watched_logps)
    elif isinstance(stored, answers.Generated):
        assert isinstance(result, Completions)
        assert (row["text"], row["reasoning"]) == (stored.text, stored.thoughts)
        assert tuple(row["token_logprobs"]) == stored.logps
        assert row["finished"] == stored.finished
        ended = None if np.isnan(row["end_logprob"]) else row["end_logprob"]
        assert ended == stored.end_logp
    else:
        assert isinstance(result, Samples)
        assert (tuple(row["texts"]), tuple(row["counts"])) == (stored.texts, stored.counts)
        assert [tuple(each) for each in row["texts_reasoning"] if each] == list(stored.thoughts)


def test_reasoning_of_samples_stays_with_its_text() -> None:
    drawn = answers.Sampled(texts=("Oslo", "Ål"), counts=(2, 1), thoughts=(("a", "b"), ("",)))
    plain = answers.Sampled(texts=("Rome",), counts=(3,))
    made = as_answers(stored([drawn, plain]))
    assert made.row(0)["texts_reasoning"] == [["a", "b"], [""]]
    assert made.row(1)["texts_reasoning"] == [[]]


def stored(found: list[Any]) -> columns.Answers:
    rows = [
        answers.Answered(
            key=prompts.Key(fact=f"f{i}", relation="R", template="t", subject="s"),
            prefix="p",
            suffix="",
            answer=answer,
        )
        for i, answer in enumerate(found)
    ]
    [block] = columns.in_blocks(iter(rows))
    return block


def scored(rows: int) -> columns.Answers:
    """Prompts of which every other one has one of two lists of options."""
    lists = (("a", "b"), ("c",))
    found = [
        answers.Scored(options=lists[i % 2], logps=((-1.0,),) * len(lists[i % 2]))
        for i in range(rows)
    ]
    return stored(found)


def filled(rows: int) -> columns.Answers:
    one = answers.Filled(
        top=("a",), top_logps=(-0.5,), watched=("b",), watched_logps=(None,), watched_ranks=(None,)
    )
    return stored([one] * rows)


def test_lists_of_options_are_numbered_as_they_first_come() -> None:
    made = as_answers(scored(5))
    assert list(made.batch.options) == [("a", "b"), ("c",)]
    assert made.batch.options_ids().tolist() == [0, 1, 0, 1, 0]


@pytest.mark.parametrize("make", [scored, filled])
def test_reading_many_prompts_calls_no_function_for_each(make: Any) -> None:
    few, many = (calls(make(rows)) for rows in (20, 2000))
    assert many == few


def calls(block: columns.Answers) -> int:
    count = 0

    def profile(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    as_answers(block)  # what is imported late is imported now
    sys.setprofile(profile)
    try:
        as_answers(block)
    finally:
        sys.setprofile(None)
    return count
