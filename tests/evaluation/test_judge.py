"""Grades of scored options, filled masks and texts, next to one prompt at a time."""

from collections.abc import Sequence
from dataclasses import replace
from math import exp, log

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonde.answers import Answers, Completions, MaskScores, OptionScores, Ragged
from sonde.core.texts import folded
from sonde.evaluation.judge import judge, judge_text, top_answers
from sonde.prompts import FillMask, Generate, PromptBatch, Request, Score

Objects = Sequence[Sequence[str]]


def facts(
    objects: Sequence[Objects], question: Sequence[Objects | None] | None = None
) -> pl.DataFrame:
    """Facts f0, f1, … of P1 with these objects."""
    names = pl.List(pl.List(pl.String))
    return pl.DataFrame(
        {
            "fact_no": pl.Series(range(len(objects)), dtype=pl.UInt32),
            "relation": pl.Series(["P1"] * len(objects), dtype=pl.Enum(["P1"])),
            "fact": [f"f{n}" for n in range(len(objects))],
            "language": "",
            "gold_names": pl.Series(objects, dtype=names),
            "question_names": pl.Series(question or [None] * len(objects), dtype=names),
        }
    )


def prompts(
    about: Sequence[int], request: Request, options: Sequence[Sequence[str]] = ()
) -> PromptBatch:
    """A prompt about each of these facts; -1 is about none."""
    rows = [
        {"relation": "P1", "fact": f"f{n}" if n >= 0 else "", "template": "t", "subject": "s"}
        | {"prefix": "It is"}
        | ({"options": options[i]} if options else {})
        for i, n in enumerate(about)
    ]
    return PromptBatch.of(rows, request)  # type: ignore[arg-type]


def scored(
    about: Sequence[int], options: Sequence[Sequence[str]], values: Sequence[Sequence[float]]
) -> Answers:
    flat = np.array([value for row in values for value in row])
    result = OptionScores.of([len(row) for row in values], np.ones(len(flat), int), flat)
    return Answers(batch=prompts(about, Score(), options), result=result)


VALUES = st.sampled_from([-3.0, -2.0, -1.0, -0.5])


@st.composite
def choices(draw: st.DrawFn) -> tuple[list[list[str]], list[list[float]], list[Objects]]:
    """Options of three prompts, their values, and what is correct; some are names of no object."""
    options, values = [], []
    objects: list[Objects] = []
    for _ in range(3):
        names = draw(st.lists(st.sampled_from("abcdef"), min_size=1, unique=True))
        options.append(names)
        values.append([draw(VALUES) for _ in names])
        correct = draw(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=4, unique=True))
        objects.append([correct[:2], correct[2:]] if len(correct) > 2 else [correct])
    return options, values, objects


@given(choices())
def test_options_are_graded_as_one_prompt_at_a_time(
    drawn: tuple[list[list[str]], list[list[float]], list[Objects]],
) -> None:
    options, values, objects = drawn
    question = [names if len(names) > 1 else None for names in objects]
    rows = judge(scored([0, 1, 2], options, values), facts(objects, question))
    for n, row in enumerate(rows.iter_rows(named=True)):
        table = dict(zip(options[n], values[n], strict=True))
        gold = {name for names in objects[n] for name in names}
        correct = [v for name, v in table.items() if name in gold]
        wrong = [v for name, v in table.items() if name not in gold]
        total = sum(exp(v) for v in values[n])
        assert row["answer"] == max(table, key=lambda name: table[name])
        assert row["tied"] == (values[n].count(max(values[n])) > 1)
        assert row["confidence"] == pytest.approx(exp(max(values[n])) / total)
        if not correct:
            assert (row["rank"], row["gold_logprob"], row["correct"]) == (None, None, False)
            continue
        assert row["rank"] == 1 + sum(v >= max(correct) for v in wrong)
        assert row["correct"] == (row["rank"] == 1)
        assert row["gold_logprob"] == pytest.approx(log(sum(map(exp, correct)) / total))
        pairs = [c > w for c in correct for w in wrong]
        assert row["ranked"] == (pytest.approx(np.mean(pairs)) if pairs else None)


def filled(
    about: Sequence[int], targets: Sequence[str], logprobs: object, ranks: object
) -> Answers:
    """Masks whose top answers are "x" and "y"."""
    top = pa.array(["x", "y"] * len(about), pa.string())
    result = MaskScores(
        top=Ragged.of([2] * len(about), top),
        top_logprobs=Ragged.of([2] * len(about), np.log([0.5, 0.25] * len(about)).astype("f4")),
        allowed_logprob=np.zeros(len(about), np.float32),
        target_logprobs=np.array(logprobs, np.float32),
        target_ranks=np.array(ranks),
    )
    return Answers(batch=prompts(about, FillMask(targets=tuple(targets))), result=result)


@st.composite
def masks(draw: st.DrawFn) -> tuple[list[float], list[int], Objects]:
    """Log-probabilities and ranks of the targets; equal ones share the worse rank."""
    values = [draw(st.one_of(VALUES, st.just(float("nan")))) for _ in range(6)]
    ranks = [sum(o >= v for o in values) if v == v else 0 for v in values]
    names = draw(
        st.lists(
            st.sampled_from(["a", "A", "b", "c", "d", "é"]), min_size=1, max_size=5, unique=True
        )
    )
    return values, ranks, [names[:3], names[3:]] if len(names) > 3 else [names]


@given(masks())
def test_masks_are_graded_as_one_prompt_at_a_time(
    drawn: tuple[list[float], list[int], Objects],
) -> None:
    values, ranks, objects = drawn
    targets = ["a", "A", "b", "c", "d", "é"]
    known = dict(zip(targets, zip(values, ranks, strict=True), strict=True))
    table = facts([objects], [objects if len(objects) > 1 else None])
    (row,) = judge(filled([0], targets, [values], [ranks]), table).iter_rows(named=True)

    def tokens(names: Sequence[str]) -> list[tuple[str, int, float]]:
        return [(folded(n), known[n][1], known[n][0]) for n in names if known[n][1]]

    gold = set(tokens([n for names in objects for n in names]))
    assert (row["answer"], row["tied"]) == ("x", False)
    assert row["confidence"] == pytest.approx(0.5)
    assert row["rank"] == (min(rank for _, rank, _ in gold) if gold else None)
    expected = pytest.approx(log(sum(exp(v) for *_, v in gold))) if gold else None
    assert row["gold_logprob"] == expected
    able = [set(tokens(names)) for names in objects if tokens(names[:1])]
    usual = [tokens(names)[0][2] for names in objects if tokens(names[:1])]
    assert row["compared"] == sum(len(own) - 1 for own in able)
    assert row["helped"] == sum(v > u for own, u in zip(able, usual, strict=True) for *_, v in own)


def test_all_objects_of_the_question_are_correct_for_the_ranking_alone() -> None:
    table = facts([[["a"]]], [[["a"], ["b"]]])
    answers = scored([0], ["abcd"], [[-2.0, -1.0, -1.5, -1.8]])
    (row,) = judge(answers, table).iter_rows(named=True)
    assert (row["rank"], row["correct"]) == (4, False)
    assert row["ranked"] == pytest.approx(2 / 4), "c and d beat a, but not b"


def test_prompts_about_no_fact_or_an_unknown_one_are_dropped() -> None:
    answers = scored([-1, 0, 7], ["ab", "ab", "ab"], [[-1.0, -2.0]] * 3)
    assert judge(answers, facts([[["a"]]]))["fact"].to_list() == ["f0"]


def test_options_are_compared_per_token_if_so_normalized() -> None:
    result = OptionScores.of([2], [1, 3], np.array([-1.0, -0.5, -0.5, -0.5]))
    answers = Answers(batch=prompts([0], Score(), ["ab"]), result=result)
    assert judge(answers, facts([[["a"]]]))["answer"].item() == "a"
    assert judge(answers, facts([[["a"]]]), "tokens")["answer"].item() == "b"


def test_an_option_without_probability_is_never_ahead() -> None:
    (row,) = judge(scored([0], ["ab"], [[-np.inf, -np.inf]]), facts([[["b"]]])).iter_rows(
        named=True
    )
    assert (row["rank"], row["tied"], row["confidence"]) == (2, True, 0.5)


def test_equal_options_have_equal_ids_in_all_batches() -> None:
    table = facts([[["a"]], [["b"]]])
    first = judge(scored([0, 1], ["ab", "ac"], [[-1.0, -2.0]] * 2), table)["options_id"]
    second = judge(scored([1, 0], ["ac", "ab"], [[-1.0, -2.0]] * 2), table)["options_id"]
    assert first.to_list() == second.to_list()[::-1] and first[0] != first[1]


def test_a_mask_without_an_allowed_answer_is_empty() -> None:
    answers = filled([0], ["a"], [[np.nan]], [[0]])
    top, logprobs = Ragged.of([0], pa.array([], pa.string())), Ragged.of([0], np.zeros(0, "f4"))
    assert isinstance(answers.result, MaskScores)
    result = replace(answers.result, top=top, top_logprobs=logprobs)
    rows = judge(Answers(batch=answers.batch, result=result), facts([[["a"]]]))
    (row,) = rows.iter_rows(named=True)
    assert (row["answer"], row["tied"], row["confidence"], row["rank"]) == ("", False, None, None)


def test_each_text_is_graded_once_per_fact() -> None:
    calls = []

    def accepts(answer: str, names: Sequence[str], language: str) -> bool:
        calls.append((answer, tuple(names)))
        return answer in names

    texts = ["a.", "a.", "I do not know", "b."]
    result = Completions(
        text=pa.array(texts, pa.string()),
        token_logprobs=Ragged.of([1, 1, 2, 0], np.log([0.5, 0.5, 0.5, 0.5]).astype("f4")),
        end_logprob=np.zeros(4, np.float32),
        finished=np.array([True, True, False, True]),
        reasoning=pa.array([""] * 4, pa.string()),
    )
    answers = Answers(batch=prompts([0, 0, 0, 1], Generate()), result=result)
    table = facts([[["a", "A"], ["a"]], [["a"]]])
    rows = judge_text(answers, table, accepts, lambda t: t.strip("."), lambda t: "know" in t)
    assert rows["answer"].to_list() == ["a", "a", "I do not know", "b"]
    assert rows["correct"].to_list() == [True, True, False, False]
    assert rows["abstained"].to_list() == [False, False, True, False]
    assert rows["finished"].to_list() == [True, True, False, True]
    assert rows["n_tokens"].to_list() == [1, 1, 2, 0]
    assert rows["sequence_prob"].to_list() == pytest.approx([0.5, 0.5, 0.25, 1.0])
    assert calls == [("a", ("a", "A")), ("I do not know", ("a", "A")), ("b", ("a",))]


def test_top_answers_are_the_most_likely_with_their_shares() -> None:
    values = np.log([[0.2, 0.6, 0.2], [0.5, 0.25, 0.25]]).tolist()
    answers = scored([0, 0], ["abc", "abc"], values)
    table = top_answers(answers, np.array([1, 0]), k=2)
    assert table["prompt"].to_list() == [0, 0, 1, 1]
    assert table["answer"].to_list() == ["b", "a", "a", "b"]
    assert table["probability"].to_list() == pytest.approx([0.6, 0.2, 0.5, 0.25])
    assert top_answers(filled([0], ["a"], [[-1.0]], [[1]]), np.array([0]))["answer"].to_list() == [
        "x",
        "y",
    ]
