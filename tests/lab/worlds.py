"""Small worlds for tests."""

from __future__ import annotations

from typing import Any

from hypothesis import settings as examples
from hypothesis import strategies as st

from sonde.lab.worlds.settings import WorldSettings

FEW = examples(max_examples=12, deadline=None)

SMALL: dict[str, Any] = {
    "one_one": 1,
    "many_one": 2,
    "many_many": 1,
    "facts": 15,
    "subjects": 24,
    "objects": 6,
    "words": 16,
    "families": 4,
    "templates": 6,
    "used": 3,
    "ladder": (0, 1, 2, 6),
}


def small(**more: Any) -> WorldSettings:
    """A world of four relations with fifteen facts each, some of it as asked for."""
    return WorldSettings(**{**SMALL, **more})


def any_world() -> st.SearchStrategy[WorldSettings]:
    """Settings that describe some small world."""
    return st.builds(
        small,
        seed=st.integers(0, 99),
        one_one=st.integers(0, 2),
        many_one=st.integers(1, 3),
        many_many=st.integers(1, 2),
        unshown=st.integers(0, 1),
        skew=st.sampled_from([0.0, 0.5, 2.0]),
        cues=st.sampled_from([0.0, 0.4, 1.0]),
        used=st.integers(2, 6),
        ladder=st.lists(st.integers(1, 9), min_size=1, max_size=4, unique=True).map(
            lambda rungs: (*rungs, 0)
        ),
        aliases=st.sampled_from([0.0, 0.5, 1.0]),
        introductions=st.integers(0, 4),
        namings=st.integers(0, 3),
    )
