"""The tally of BELIEF keeps columns, and judges as the rules say."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from math import exp, log
from typing import Any

import numpy as np
import pytest

from sonde.core.answers import Answered, Filled
from sonde.core.columns import in_blocks
from sonde.core.prompts import Key
from sonde.former.belief.judge import judge, measure_bias
from sonde.prompting.pairs import numbered_pairs
from tests.worlds import entity, fact

from .belief_world import FACTS, TEMPLATES
from .belief_world import world as facts_of

NAMES = ("Paris", "Lutetia", "Lima")
KNOWN = numbered_pairs(facts_of(*FACTS), {"P36": TEMPLATES})


def row(
    *logps: float | None,
    fact: str = "P36-France",
    subject: str = "France",
    names: tuple[str, ...] = NAMES,
) -> Answered:
    """An answer with these log-probabilities for Paris, Lutetia and Lima; Rome comes first."""
    given = [logp for logp in logps if logp is not None]
    ranks = tuple(None if p is None else 2 + sum(q > p for q in given) for p in logps)
    return Answered(
        key=Key(fact=fact, relation="P36", template="t1", subject=subject),
        prefix="",
        suffix="",
        answer=Filled(
            top=("Rome", "Bonn"),
            top_logps=(-0.1, -0.2),
            watched=names,
            watched_logps=logps,
            watched_ranks=ranks,
        ),
    )


def tallied(*rows: Answered) -> Any:
    return judge(KNOWN, rows)


def test_names_of_one_object_are_pooled() -> None:
    found = tallied(row(-1.0, -2.0, -3.0))
    assert found.judged.gold_logprob[0] == pytest.approx(log(exp(-1.0) + exp(-2.0)))
    assert not found.judged.grid.right[0] and found.judged.answers == ("Rome",)


def test_two_names_that_are_one_token_are_one_answer_and_no_added_name() -> None:
    known = numbered_pairs(
        facts_of(fact("P36", "France", entity("Paris", "PARIS"))), {"P36": TEMPLATES}
    )
    found: Any = judge(known, [row(-1.0, -1.0, -3.0, names=("Paris", "PARIS", "Lima"))])
    assert found.judged.gold_logprob[0] == pytest.approx(-1.0)
    assert found.judged.compared.tolist() == [0]


def test_two_tokens_that_are_equally_likely_are_two_answers() -> None:
    found = tallied(row(-1.0, -1.0, -3.0))
    assert found.judged.gold_logprob[0] == pytest.approx(-1.0 + log(2))
    assert found.judged.compared.tolist() == [1]


def test_names_that_a_control_never_saw_are_candidates_each() -> None:
    known = numbered_pairs(facts_of(*FACTS), {"P36": TEMPLATES})
    rows = [
        replace(made, key=replace(made.key, template=template.id))
        for template in TEMPLATES
        for made in [row(-30.0, -30.0, -30.0, fact="", subject="")]
    ]
    found = measure_bias(known, judge(known, rows), 0).estimates
    assert found["bias.single"].value == pytest.approx(0)  # even over three candidates


def test_an_added_name_is_compared_only_where_the_usual_one_is_a_token() -> None:
    assert tallied(row(-2.0, -1.0, -3.0)).judged.helped.tolist() == [1]
    assert tallied(row(-1.0, -2.0, -3.0)).judged.helped.tolist() == [0]
    assert tallied(row(None, -1.0, -3.0)).judged.compared.tolist() == [0]


def test_prompts_of_a_pair_that_cannot_be_answered_are_left_out_one_by_one() -> None:
    found = tallied(row(None, None, -3.0), row(-1.0, None, -3.0, subject="Gaul"))
    assert len(found.judged.grid) == 1 and found.judged.grid.name.tolist() == [1]
    assert (found.pairs_unanswerable, found.prompts_unanswerable) == (0, 1)


def test_very_small_probabilities_are_still_measured() -> None:
    found = tallied(row(-900.0, -901.0, -3.0))
    assert found.judged.gold_logprob[0] == pytest.approx(-900 + log(1 + exp(-1)))


def test_content_free_prompts_are_kept_apart() -> None:
    found = tallied(row(-1.0, None, -3.0, fact="", subject=""))
    assert len(found.judged.grid) == 0
    np.testing.assert_array_equal(found.contents[0][0, ""], [-1.0, np.nan, -3.0])
    assert found.candidates[0] == NAMES


def test_a_prompt_costs_some_bytes_and_no_object() -> None:
    many = 20_000
    names = tuple(f"name {i}" for i in range(many))
    large = facts_of(fact("P36", entity(*names), entity("Paris", "Lutetia")), FACTS[1])
    known = numbered_pairs(large, {"P36": TEMPLATES[:1]})

    def rows() -> Iterator[Answered]:
        return (
            row(-1.0, -2.0, -3.0, fact=f"P36-{names[0]}", subject=names[0]) for _ in range(many)
        )

    blocks = list(in_blocks(rows()))
    tracemalloc.start()
    found = judge(known, blocks)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(found.judged.grid) == 1  # of many answers to a prompt the last one counts
    assert held < 64 * many
