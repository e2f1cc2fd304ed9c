"""The share of (correct, wrong) pairs, of one prompt and of many at once."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sonde.metrics.ranking import ranked, ranked_each

# few values, so that options tie
OPTION = st.tuples(st.sampled_from([-3.0, -2.0, -1.0, -0.5]), st.booleans())


@given(st.lists(st.lists(OPTION, max_size=6), max_size=6))
def test_many_prompts_at_once_are_ranked_as_one_by_one(
    prompts: list[list[tuple[float, bool]]],
) -> None:
    alone = [ranked([v for v, _ in own], [r for _, r in own]) for own in prompts]
    values = np.array([value for own in prompts for value, _ in own])
    right = np.array([correct for own in prompts for _, correct in own], dtype=np.bool_)
    owners = np.repeat(np.arange(len(prompts)), [len(own) for own in prompts])
    together = ranked_each(values, right, owners, len(prompts)).tolist()
    assert [None if np.isnan(share) else share for share in together] == alone


def test_a_tie_counts_against_the_correct_option() -> None:
    assert ranked([-1.0, -1.0, -2.0], [True, False, False]) == 0.5


def test_without_a_pair_there_is_nothing_to_rank() -> None:
    assert ranked([-1.0, -2.0], [True, True]) is None
    assert np.isnan(ranked_each(np.array([-1.0]), np.array([True]), np.array([1]), 2)).all()
