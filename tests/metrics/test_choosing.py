"""Filled positions as a choice between options."""

from __future__ import annotations

import numpy as np
from pyarrow import table

from sonde.core.answers import Filled
from sonde.core.columns import Answers, FilledColumns
from sonde.metrics.verdicts import judge_block
from sonde.former.lama.judge import NOTHING, as_choice, fillable

WATCHED = ("Lima", "Oslo", "Cusco", "La Paz")


def filled(*logps: float | None) -> Filled:
    """A position where each watched name has a log-probability, or is no token."""
    ranks = [
        None if own is None else 1 + sum(o is not None and o > own for o in logps) for own in logps
    ]
    return Filled(
        top=("the",), top_logps=(-0.1,), watched=WATCHED, watched_logps=logps,
        watched_ranks=tuple(ranks), mass=1.0,
    )  # fmt: skip


def block(*answers: Filled) -> Answers:
    asked = table({"fact": [str(number) for number in range(len(answers))]})
    return Answers(kind="filled", asked=asked, columns=FilledColumns.gathered(answers))


def test_the_likeliest_of_a_facts_own_options_is_its_answer() -> None:
    answers = block(filled(-3.0, -1.0, -2.0, None), filled(-3.0, -1.0, -3.0, None))
    chosen = as_choice(answers, [("Cusco", "Lima"), ("Cusco", "Lima")])
    found = judge_block(chosen, np.array([0, 0]), {0: [["Lima"]]})
    assert [found.names[i] for i in found.answer] == ["Cusco", "Cusco"]
    assert found.rank.tolist() == [2, 2], "a tie is wrong"
    assert found.tied.tolist() == [False, True]


def test_an_option_of_several_tokens_cannot_be_chosen() -> None:
    answers = block(filled(-3.0, None, None, None), filled(None, None, None, None))
    may = fillable(answers.filled, [("La Paz", "Lima", "never watched"), ("La Paz", "Lima")])
    assert may == [["Lima"], []]
    chosen = as_choice(answers, may)
    assert [getattr(a, "options", None) for a in chosen.rated.each()] == [("Lima",), (NOTHING,)]
    found = judge_block(chosen, np.array([0, 0]), {0: [["Lima"]]})
    assert found.rank.tolist() == [1, 0], "the second has no answer that could be right"
