"""Answers as columns: selecting, joining and storing are inverse to each other, for every type."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonde.answers import (
    Answers,
    Completions,
    Floats,
    MaskScores,
    OptionScores,
    Part,
    Ragged,
    Result,
    Samples,
    SpanLogprobs,
    concat,
    gather,
    take,
)
from sonde.core.errors import ModelError
from sonde.prompts import (
    AnyRequest,
    FillMask,
    Generate,
    Ints,
    PromptBatch,
    Sample,
    Score,
    TokenLogprobs,
)

REQUESTS: dict[type[Result], AnyRequest] = {
    OptionScores: Score(),
    MaskScores: FillMask(targets=("a", "b", "c")),
    Completions: Generate(),
    Samples: Sample(),
    SpanLogprobs: TokenLogprobs(),
}


class Make:
    """Random results of each type."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def floats(self, *shape: int) -> Floats:
        return -self.rng.exponential(size=shape).astype(np.float32)

    def texts(self, n: int) -> pa.Array:
        return pa.array([f"text {i}" for i in self.rng.integers(0, 9, n)], pa.string())

    def nested(self, n: int) -> tuple[Ints, Ints, Floats]:
        options = self.rng.integers(0, 4, n)
        tokens = self.rng.integers(1, 3, int(options.sum()))
        return options, tokens, self.floats(int(tokens.sum()))

    def results(self, n: int) -> list[Result]:
        options, tokens, logprobs = self.nested(n)
        counts = self.rng.integers(0, 3, n)
        total = int(counts.sum())
        numbers = self.rng.integers(1, 5, total)
        return [
            OptionScores.of(options, tokens, logprobs, tokens, logprobs),
            MaskScores(
                top=Ragged.of(counts, self.texts(total).dictionary_encode()),
                top_logprobs=Ragged.of(counts, self.floats(total)),
                allowed_logprob=self.floats(n),
                target_logprobs=self.floats(n, 3),
                target_ranks=self.rng.integers(1, 9, (n, 3)),
            ),
            Completions(
                text=self.texts(n),
                token_logprobs=Ragged.of(counts, self.floats(total)),
                end_logprob=self.floats(n),
                finished=self.rng.integers(0, 2, n).astype(bool),
                reasoning=self.texts(n),
            ),
            Samples(
                texts=Ragged.of(counts, self.texts(total)),
                counts=Ragged.of(counts, numbers),
                texts_reasoning=Ragged.of(
                    counts, Ragged.of(numbers, self.texts(int(numbers.sum())))
                ),
            ),
            SpanLogprobs(logprobs=Ragged.of(options, Ragged.of(tokens, logprobs))),
        ]


def batch(n: int, request: AnyRequest) -> PromptBatch:
    prompts = [
        {"relation": "R", "fact": f"f{i}", "template": "t", "subject": "s", "prefix": f"p{i}"}
        for i in range(n)
    ]
    return PromptBatch.of(prompts, request)


def same(one: Result, other: Result) -> bool:
    tables = one.to_arrow(), other.to_arrow()
    return type(one) is type(other) and tables[0].equals(tables[1], check_metadata=True)


seeds = st.integers(0, 2**32)


@given(seeds, st.integers(1, 9), st.integers(0, 9))
def test_selecting_joining_and_storing_give_back_the_same(seed: int, n: int, cut: int) -> None:
    make = Make(seed)
    for whole in make.results(n):
        order = make.rng.permutation(n)
        assert len(whole) == n
        assert same(whole.select(order).select(np.argsort(order)), whole)
        parts = [whole.select(np.arange(min(cut, n))), whole.select(np.arange(min(cut, n), n))]
        joined = type(whole).concat(parts)
        assert joined.to_arrow().to_pylist() == whole.to_arrow().to_pylist()
        assert same(type(whole).from_arrow(whole.to_arrow()), whole)
        # a table may hold several results, of which one is a part
        part = type(whole).from_arrow(whole.to_arrow().slice(cut % n))
        assert part.to_arrow().to_pylist() == whole.to_arrow().to_pylist()[cut % n :]
        assert not len(whole.invalid())


def test_lists_of_different_lengths() -> None:
    ragged = Ragged.of([2, 0, 1], np.array([1.0, 2.0, 4.0]))
    assert ragged.sums().tolist() == [3, 0, 4] and ragged.owners.tolist() == [0, 0, 2]
    assert cast(Any, take(ragged, np.array([2, 2]))).values.tolist() == [4, 4]
    assert cast(Any, concat([ragged, ragged])).counts.tolist() == [2, 0, 1, 2, 0, 1]


def test_options_with_and_without_the_text_after_them() -> None:
    logprobs = np.array([-1, -2, -4], np.float32)
    scores = OptionScores.of([2], [1, 2], logprobs, np.array([1, 0]), logprobs[:1])
    assert scores.sums().tolist() == [-2, -6] and scores.counts().tolist() == [2, 2]
    assert scores.sums(suffix=False).tolist() == [-1, -6]
    assert OptionScores.of([2], [1, 2], logprobs).counts().tolist() == [1, 2]


@given(seeds)
def test_parts_in_any_order_are_gathered_in_that_of_the_prompts(seed: int) -> None:
    make = Make(seed)
    results = make.results(7)
    batches = [batch(7, REQUESTS[type(result)]) for result in results]
    rows = np.split(make.rng.permutation(7), [3])
    parts: list[Part] = [
        (number, some, result.select(some))
        for number, result in enumerate(results)
        for some in rows
    ]
    gathered = gather(batches, [parts[i] for i in make.rng.permutation(len(parts))])
    for answers, made, result in zip(gathered, batches, results, strict=True):
        assert answers.batch is made and len(answers) == 7
        assert answers.result.to_arrow().to_pylist() == result.to_arrow().to_pylist()


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([], "0 answers to 2 prompts"),
        ([(0, [0])], "1 answers to 2 prompts"),
        ([(0, [0, 1]), (0, [1])], "3 answers to 2 prompts"),
        ([(0, [0, 0])], "or one answered twice"),
        ([(0, [0, 1, 2])], "3 answers to 2 prompts"),
    ],
)
def test_every_prompt_is_answered_once(parts: list[tuple[int, list[int]]], message: str) -> None:
    result = Make(0).results(3)[0]
    given = [(n, np.array(rows), result.select(np.array(rows))) for n, rows in parts]
    with pytest.raises(ModelError, match=message):
        gather([batch(2, Score())], given)


def test_rows_and_answers_of_a_part_have_the_same_length() -> None:
    with pytest.raises(ModelError, match="1 answers to 2 prompts"):
        gather([batch(2, Score())], [(0, np.arange(2), Make(0).results(1)[0])])


def test_a_result_of_another_type_is_rejected() -> None:
    scores, _, texts, *_ = Make(0).results(1)
    parts = [(0, np.array([0]), scores), (0, np.array([1]), texts)]
    with pytest.raises(ModelError, match="expected OptionScores, the model gave Completions"):
        gather([batch(2, Score())], parts)


@pytest.mark.parametrize("value", [np.nan, -np.inf])
def test_what_is_no_log_probability_is_rejected_with_its_prompt(value: float) -> None:
    bad = np.array([-1, value, -2], np.float32)
    one = Ragged.of([1, 1, 1], bad)
    names = Ragged.of([1, 1, 1], pa.array(["a", "b", "c"]))
    fine, target = np.zeros(3, np.float32), np.zeros((3, 1), np.float32)
    rank = np.array([[1], [1], [0]])
    scores: dict[str, Any] = {
        "top": names,
        "top_logprobs": Ragged.of([1, 1, 1], fine),
        "allowed_logprob": fine,
    }
    scores |= {"target_logprobs": target, "target_ranks": rank}
    texts = Make(0).results(3)[2].columns()
    results: list[Result] = [
        OptionScores.of([1, 1, 1], [1, 1, 1], bad),
        SpanLogprobs(logprobs=Ragged.of([1, 1, 1], one)),
        Completions(**cast(Any, texts | {"token_logprobs": one})),
        MaskScores(**scores | {"top_logprobs": one}),
        MaskScores(**scores | {"allowed_logprob": bad}),
        MaskScores(**scores | {"target_logprobs": bad[:, None]}),
    ]
    for result in results:
        assert result.invalid().tolist() == [1]
        with pytest.raises(ModelError, match=r"NaN or infinity .* fact 'f1', template 't': 'p1'"):
            gather([batch(3, REQUESTS[type(result)])], [(0, np.arange(3), result)])
    unanswerable = MaskScores(**scores | {"target_logprobs": bad[[0, 2, 1], None]})
    assert not len(unanswerable.invalid())  # rank 0: a name that cannot be answered


def test_one_prompt_with_its_answer_as_plain_values() -> None:
    result = Make(0).results(2)[1]
    row = Answers(batch=batch(2, REQUESTS[MaskScores]), result=result).row(1)
    assert row["fact"] == "f1" and row["prefix"] == "p1"
    assert row["target_ranks"] == cast(MaskScores, result).target_ranks[1].tolist()
    assert all(isinstance(name, str) for name in row["top"])
