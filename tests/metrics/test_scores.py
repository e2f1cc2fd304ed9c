"""What scored options amount to: the same numbers wherever options are compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import exp, inf, log
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonde.core.abilities import Identity
from sonde.core.answers import Answered, Filled, Scored
from sonde.core.columns import in_blocks, one_by_one
from sonde.core.errors import ModelError
from sonde.core.prompts import Cloze, Key, Prompt, Score
from sonde.core.rated import RatedColumns
from sonde.core.scores import option_logps, shares
from sonde.doctor.agreement import choice
from sonde.metrics.verdicts import judge, judge_block
from sonde.models.torch.by_relation import ensemble
from sonde.optimise.lpaqa.choosing import scoring
from sonde.optimise.making import Task
from sonde.former.framing.judge import FALSE, TRUE, verdicts
from sonde.former.lke.asking import Asked
from sonde.former.lke.choices import judge as lke_judge
from sonde.former.lke.choices import worded
from sonde.prompting.sequences import Separators
from tests.worlds import fact, relation, template, world

TEMPLATE = template("t", "[X] is [Y] of them")
RELATION = relation("r", TEMPLATE)
KEY = Key(fact="r-it", relation="r", template="t", subject="it")
LOGPS = st.lists(st.floats(-30, -0.125, width=32), min_size=1, max_size=3).map(tuple)


@st.composite
def answers(draw: Any) -> Scored:
    """Two options of one to three tokens each, with or without tokens after them."""
    logps = (draw(LOGPS), draw(LOGPS))
    after = (draw(LOGPS), draw(LOGPS)) if draw(st.booleans()) else ()
    return Scored(options=(TRUE, FALSE), logps=logps, suffix_logps=after)


class Giving:
    """A model that gives every prompt the same answer."""

    identity = Identity(name="giving", architecture="giving")

    def __init__(self, answer: Scored) -> None:
        self.answer = answer

    def score(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Scored]]:
        return ((i, self.answer) for i, _ in enumerate(prompts))


def row(answer: Scored) -> Answered:
    return Answered(key=KEY, prefix="it is ", suffix=" of them", answer=answer)


def by_lama(answer: Scored) -> float:
    return dict(judge(answer, {TRUE}).top)[TRUE]


def by_belief(answer: Scored) -> float:
    row = Answered(key=KEY, prefix="", suffix="", answer=answer)
    [block] = in_blocks([row])
    return exp(judge_block(block, np.array([0]), {0: ((TRUE,),)}).gold_logprob[0])


FACTS = (fact("r", "it", TRUE), fact("r", "that", FALSE, split="train"))
ASKED = Asked.of(world(FACTS, RELATION), n=1, options=2)


def by_ic_lke(answer: Scored) -> float:
    row = Answered(key=KEY, prefix="", suffix="", answer=answer)
    return float(
        lke_judge(ASKED, [row], (), worded("lke", lambda way: Separators())).frame["mass"][0]
    )


def by_ensembles(answer: Scored) -> float:
    model = ensemble("e", Giving(answer), {"r": ((TEMPLATE, 1.0),)})
    want = Score(options=answer.options)
    key = Key(fact="f", relation="r", template="t", subject="it")
    cloze = Cloze(relation="r", subject="it")
    prompt = Prompt(key=key, prefix="it is ", suffix=" of them", want=want, cloze=cloze)
    (found,) = one_by_one(model.score([prompt]))
    return float(np.exp([sum(logps) for logps in found[1].logps])[0]) / total(answer)


def by_optimise(answer: Scored) -> float:
    task = Task(relation=RELATION, train=(fact("r", "it", TRUE), fact("r", "it", FALSE)), dev=())
    return float(scoring(Giving(answer), task).logps(0, [fact("r", "it", TRUE)]).exp()[0, 0])


def whole(answer: Scored) -> list[float]:
    """The definition: everything from an option's first character to the end of the text."""
    after = answer.suffix_logps or ((), ())
    return [sum((*own, *rest)) for own, rest in zip(answer.logps, after, strict=True)]


def total(answer: Scored) -> float:
    return sum(map(exp, whole(answer)))


CALLERS: Mapping[str, Callable[[Scored], float]] = {
    "lama": by_lama,
    "belief": by_belief,
    "ic-lke": by_ic_lke,
    "ensembles": by_ensembles,
    "optimise": by_optimise,
}


@pytest.mark.parametrize("caller", CALLERS)
@given(answer=answers())
def test_an_option_has_the_same_share_whoever_asks(caller: str, answer: Scored) -> None:
    expected = exp(whole(answer)[0]) / total(answer)
    assert CALLERS[caller](answer) == pytest.approx(expected, rel=1e-4, abs=1e-12)


@given(answer=answers())
def test_everyone_chooses_the_same_option(answer: Scored) -> None:
    one, other = whole(answer)
    if abs(one - other) < 1e-6:
        return
    best = TRUE if one > other else FALSE
    assert choice(answer) == best
    assert judge(answer, {best}).rank == 1
    assert verdicts(RatedColumns.gathered([answer])).tolist() == [best]


@given(answer=answers())
def test_what_follows_is_counted_unless_it_is_left_out(answer: Scored) -> None:
    np.testing.assert_allclose(option_logps(answer), whole(answer), rtol=1e-12)
    own = [sum(row) for row in answer.logps]
    assert option_logps(answer, suffix=False).tolist() == own


def test_per_token_means_over_all_tokens_that_are_scored() -> None:
    answer = Scored(options=("a",), logps=((-1.0, -2.0),), suffix_logps=((-6.0,),))
    assert option_logps(answer, "tokens").tolist() == [-3.0]
    assert option_logps(answer, "tokens", suffix=False).tolist() == [-1.5]


def test_an_impossible_option_has_no_share_and_all_impossible_ones_equal_shares() -> None:
    assert shares([0.0, -inf]).tolist() == [1.0, 0.0]
    assert shares([-inf, -inf]).tolist() == [0.5, 0.5]
    rows = np.array([[log(0.2), log(0.6)], [-inf, -inf]])
    np.testing.assert_allclose(shares(rows), [[0.25, 0.75], [0.5, 0.5]])


@pytest.mark.parametrize("value", [float("nan"), inf])
def test_what_is_no_log_probability_is_never_ranked(value: float) -> None:
    scored = Scored(options=("a", "b"), logps=((value,), (-1.0,)))
    filled = Filled(
        top=("a",), top_logps=(-1.0,), watched=("b",), watched_logps=(value,), watched_ranks=(2,)
    )
    compared: list[Callable[[], object]] = [
        lambda: shares([-1.0, value]),
        lambda: judge(scored, {"b"}),
        lambda: judge(filled, {"b"}),
    ]
    for compare in compared:
        with pytest.raises(ModelError, match="not a number"):
            compare()
