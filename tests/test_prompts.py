"""Requests, batches of prompts and shards: what they weigh, what they share, what is selected."""

from __future__ import annotations

import msgspec
import numpy as np
import polars as pl
import pytest

from sonde.core import prompts as former
from sonde.prompts import (
    AnyRequest,
    FillMask,
    Generate,
    PromptBatch,
    Sample,
    Score,
    Shard,
    TokenLogprobs,
)
from sonde.runs.shards import weights

REQUESTS = (
    Score(capitalize=True, whole=True, mask="word"),
    FillMask(targets=("Lima", "Oslo"), vocabulary=("Lima",)),
    Generate(max_tokens=3, stop=""),
    Sample(count=7, seed=1),
    TokenLogprobs(),
)


def batch(rows: int, request: AnyRequest) -> PromptBatch:
    prompts = [
        {"relation": "P36", "fact": f"f{i}", "template": "t", "subject": "s", "prefix": "a" * i}
        for i in range(rows)
    ]
    return PromptBatch.of(prompts, request)


@pytest.mark.parametrize("request_", REQUESTS)
def test_a_request_survives_json(request_: AnyRequest) -> None:
    assert msgspec.json.decode(msgspec.json.encode(request_), type=AnyRequest) == request_


def test_prompts_made_one_by_one_share_equal_options() -> None:
    prompts = [
        {"relation": "P36", "fact": str(i), "prefix": "x", "options": options}
        for i, options in enumerate([("a", "b"), ["c"], ["a", "b"]])
    ]
    made = PromptBatch.of(prompts, Score())
    assert made.options == (("a", "b"), ("c",))
    assert made.options_ids().tolist() == [0, 1, 0]
    assert made.frame["suffix"].to_list() == ["", "", ""]
    assert len(prompts[0]["options"]) == 2  # the prompts of the caller are as they were


def test_without_a_column_all_prompts_have_the_first_options() -> None:
    assert batch(3, Score()).options_ids().tolist() == [0, 0, 0]


def test_selecting_keeps_order_and_request() -> None:
    some = batch(5, Score()).select(np.array([4, 1, 1]))
    assert some.frame["fact"].to_list() == ["f4", "f1", "f1"] and some.request == Score()
    assert len(batch(5, Score()).select(slice(1, 3))) == 2


def test_weights_are_those_by_which_shards_are_cut_today() -> None:
    long = [{"relation": "P36", "fact": "f", "prefix": "a" * 300}] * 2
    pairs: list[tuple[PromptBatch, former.Want]] = [
        (PromptBatch.of(long, FillMask(targets=("a",) * 600)), former.Fill(watched=("a",) * 600)),
        (PromptBatch.of(long, Generate()), former.Generate()),
        (PromptBatch.of(long, Sample()), former.Sample()),
        (PromptBatch.of(long, TokenLogprobs()), former.Trace()),
    ]
    for made, want in pairs:
        block = former.Block(frame=made.frame, want=want)
        assert made.weights().tolist() == weights(block).tolist(), want
    options = [{**long[0], "options": ["a"] * n} for n in (1, 3, 3)]
    assert PromptBatch.of(options, Score()).weights().tolist() == [4, 12, 12]
    without = PromptBatch(frame=pl.DataFrame({"fact": ["f"]}), request=Score(), options=((),))
    assert without.weights().tolist() == [4]  # an empty list costs a prompt at least


def test_a_shard_sums_its_batches() -> None:
    shard = Shard(number=3, batches=(batch(2, Generate()), batch(3, FillMask())))
    assert len(shard) == 5 and shard.weight == 2 * 4 + 3
