"""The numbers of one run are those of its own report, and Overconf by template is right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sonde.analysis.comparison.numbers import numbers_of
from sonde.analysis.runs import Reading
from sonde.core.abilities import Ability, Probe
from sonde.core.answers import Answered
from sonde.core.columns import in_blocks
from sonde.core.facts import Dataset
from sonde.core.reports import Estimate
from sonde.metrics.consistency import equal_answers, matching_answers
from sonde.metrics.judged import Grid, Judges
from sonde.former.belief.probe import Belief
from sonde.former.belief_icl.probe import BeliefIcl
from sonde.testing import oracle_for
from tests.analysis.world import judged
from tests.grids import grids, names_only, one_relation, templates_only
from tests.former.belief_world import ANSWERS, FACTS, Told, world
from tests.rows import answer_all
from tests.worlds import world as capitals_and_instruments

FILLS: frozenset[Ability] = frozenset({"fill"})


def same_numbers(probe: Probe, data: Dataset, answered: Sequence[Answered], floor: int) -> set[str]:
    """Compare what is in both the analysis and the report; gives the names."""
    assert isinstance(probe, Judges)
    reading = Reading(draws=500, floor=floor)
    found = numbers_of(probe.judged(data, answered), reading)[0]
    there = probe.read(data, in_blocks(answered)).estimates
    both = set(found) & set(there)
    for name in both:
        assert found[name] == there[name], name
    return both


def test_numbers_of_a_masked_run_are_those_of_its_report() -> None:
    data, probe = world(*FACTS), Belief(draws=500, floor=1).suited(FILLS)
    both = same_numbers(probe, data, answer_all(Told(answers=ANSWERS), probe.ask(data)), 1)
    assert {"acc_at_1", "fluctuation.relation.range", "consist", "overconf", "ece"} <= both
    assert {"names_only.min", "templates_only.max", "names_help.subject", "manual.rank"} <= both
    assert {"coverage.oracle", "groups.inner_consist", "names_help.object"} <= both


def test_numbers_of_a_written_run_are_those_of_its_report() -> None:
    data, probe = capitals_and_instruments(), BeliefIcl(names="all", samples=20, draws=500, floor=1)
    both = same_numbers(probe, data, answer_all(oracle_for(data), probe.ask(data)), 1)
    assert {"acc_at_1", "consist", "overconf", "one_word_rate", "coverage.maximum"} <= both
    assert {"overconf_by_template.max", "overconf_by_template.min"} <= both


def test_answers_that_match_agree_where_only_names_or_templates_differ() -> None:
    texts = ("york", "new york", "oslo")
    answers = one_relation([[[0, 1], [2, 2]]])
    agreeing = matching_answers(texts, lambda a, b: a in b or b in a)
    assert names_only(answers).consist.value == 0.5
    assert names_only(answers, agreeing=agreeing).consist.value == 1
    assert templates_only(answers, agreeing=agreeing).consist.value == 0


@given(grids(), st.lists(st.sampled_from(["", "a", "b", "a b"]), min_size=3, max_size=3))
def test_agreement_by_matching_is_that_of_all_couples(grid: Grid, texts: list[str]) -> None:
    def matches(a: str, b: str) -> bool:
        return a in b or b in a

    groups = len(grid.relations)
    same, possible = matching_answers(texts, matches)(grid.pair, grid.answer, groups)
    for group in range(groups):
        own = grid.answer[grid.pair == group].tolist()
        couples = list(combinations(own, 2))
        agree = [a == b or bool(texts[a] and texts[b] and matches(texts[a], texts[b]))
                 for a, b in couples]  # fmt: skip
        assert (same[group], possible[group]) == (sum(agree), len(couples))
    equal = matching_answers(("a", "b", "c"), str.__eq__)
    for one, other in zip(
        equal(grid.pair, grid.answer, groups),
        equal_answers(grid.pair, grid.answer, groups),
        strict=True,
    ):
        assert np.array_equal(one, other)


def test_what_a_probe_does_not_measure_is_not_measured() -> None:
    made = judged(one_relation([[[0, 1], [0, 1]]]))
    found = numbers_of(made, Reading(draws=100))[0]
    for name in ("overconf", "ece", "one_word_rate", "names_help.subject", "names_help.object"):
        assert found[name] == Estimate.not_measured()
    words = replace(made, words=np.array([1, 2, 1, 2]))
    assert numbers_of(words, Reading(draws=100))[0]["one_word_rate"].value == 0.5
