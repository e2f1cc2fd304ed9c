"""Blocks are judged as one answer after the other is."""

from __future__ import annotations

from math import exp, isnan, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonde.core.answers import Answered, Filled, Scored
from sonde.core.columns import in_blocks
from sonde.core.prompts import Key
from sonde.metrics.verdicts import judge, judge_block, top_answers

NAMES = ("Paris", "PARIS", "Lutetia", "Lima", "Rome", "Roma")
OBJECTS = {
    0: (("Paris", "Lutetia", "PARIS"),),
    1: (("Lima", "PARIS"), ("Rome", "Roma", "Paris")),
    2: (("Oslo",),),
}
LOGPS = st.sampled_from((-0.5, -1.0, -1.5, -2.0))


@st.composite
def filled(draw: st.DrawFn) -> Filled:
    logps = [draw(st.none() | LOGPS) for _ in NAMES]
    known = [p for p in logps if p is not None]
    top = sorted(((p, n) for n, p in zip(NAMES, logps, strict=True) if p is not None), reverse=True)
    top = top[: draw(st.integers(0, 3))]
    return Filled(
        top=tuple(n for _, n in top),
        top_logps=tuple(p for p, _ in top),
        watched=NAMES,
        watched_logps=tuple(logps),
        watched_ranks=tuple(None if p is None else sum(q >= p for q in known) for p in logps),
    )


@st.composite
def scored(draw: st.DrawFn) -> Scored:
    options = tuple(draw(st.permutations(NAMES)))[: draw(st.integers(1, 5))]
    after = draw(st.booleans())
    return Scored(
        options=options,
        logps=tuple(tuple(draw(st.lists(LOGPS, min_size=1, max_size=3))) for _ in options),
        suffix_logps=tuple((draw(LOGPS),) for _ in options) if after else (),
    )


def check(answers: list[Filled] | list[Scored], owners: list[int], normalise: str) -> None:
    key = Key(fact="f", relation="r", template="t", subject="s")
    rows = [Answered(key=key, prefix="", suffix="", answer=a) for a in answers]
    [block] = in_blocks(rows)
    found = judge_block(block, np.array(owners), OBJECTS, normalise)  # type: ignore[arg-type]
    tops = top_answers(block, np.arange(len(rows)), 5, normalise)  # type: ignore[arg-type]
    for i, (answer, owner) in enumerate(zip(answers, owners, strict=True)):
        correct = {name for names in OBJECTS[owner] for name in names}
        one = judge(answer, correct, normalise)  # type: ignore[arg-type]
        assert found.rank[i] == (one.rank or 0)
        assert found.tied[i] == one.tied
        np.testing.assert_allclose([p for _, p in tops[i]], [p for _, p in one.top], rtol=1e-12)
        assert [n for n, _ in tops[i]] == [n for n, _ in one.top]
        if one.probability is None:
            assert isnan(found.gold_logprob[i])
        else:
            np.testing.assert_allclose(exp(found.gold_logprob[i]), one.probability, rtol=1e-12)
        if one.top:
            assert found.names[found.answer[i]] == one.top[0][0]
            np.testing.assert_allclose(found.confidence[i], one.top[0][1], rtol=1e-12)
        else:
            assert found.answer[i] == -1 and isnan(found.confidence[i])


@given(st.data())
def test_filled_positions_in_columns_are_judged_as_one_by_one(data: st.DataObject) -> None:
    answers = data.draw(st.lists(filled(), min_size=1, max_size=6))
    owners = [data.draw(st.integers(0, 2)) for _ in answers]
    check(answers, owners, "none")


def tie(watched: tuple[str, ...]) -> Filled:
    """Names that have the same log-probability."""
    return Filled(
        top=watched[:1],
        top_logps=(log(0.25),),
        watched=watched,
        watched_logps=(log(0.25),) * len(watched),
        watched_ranks=(len(watched),) * len(watched),
    )


@pytest.mark.parametrize(
    ("other", "mass"), [("PARIS", 0.25), ("Parîs", 0.25), ("Paris ", 0.25), ("Lutetia", 0.5)]
)
def test_equally_likely_names_are_one_token_only_if_a_tokenizer_may_spell_them_alike(
    other: str, mass: float
) -> None:
    answer, objects = tie(("Paris", other)), (("Paris", other),)
    assert judge(answer, {"Paris", other}).probability == mass
    key = Key(fact="f", relation="r", template="t", subject="s")
    [block] = in_blocks([Answered(key=key, prefix="", suffix="", answer=answer)])
    found = judge_block(block, np.array([0]), {0: objects})
    assert exp(found.gold_logprob[0]) == pytest.approx(mass)
    assert found.compared.tolist() == [mass / 0.25 - 1]


@given(st.data(), st.sampled_from(("none", "tokens")))
def test_scored_options_in_columns_are_judged_as_one_by_one(
    data: st.DataObject, normalise: str
) -> None:
    answers = data.draw(st.lists(scored(), min_size=1, max_size=6))
    owners = [data.draw(st.integers(0, 2)) for _ in answers]
    check(answers, owners, normalise)
