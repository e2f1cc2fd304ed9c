"""Whether tokens were drawn by their odds: a sound server is let draw, other odds are found out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from sonde.models.served.drawing import CERTAIN, DRAWN, KNOWN, ONE_BY_ONE, evidence

VOCABULARY = 5000

WORLDS: Mapping[str, Any] = {
    "many tokens are likely": 1 / np.arange(3, VOCABULARY + 3) ** 1.1,
    "few are": 1 / np.arange(1, VOCABULARY + 1) ** 2.0,
    "all are alike": np.ones(VOCABULARY),
    "one has nearly all": np.r_[VOCABULARY * 200, np.ones(VOCABULARY - 1)],
}


def weighed(odds: Any, drawn: Any, count: int, seed: int) -> float:
    """The evidence of so many tokens that are drawn in some way, against their odds."""
    tokens = np.random.default_rng(seed).choice(len(odds), count, p=drawn / drawn.sum()).tolist()
    known = {token: float(odds[token]) for token in list(dict.fromkeys(tokens))[:KNOWN]}
    return evidence(tokens, known)


@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.parametrize("count", [DRAWN, ONE_BY_ONE])
def test_sound_draws_give_no_evidence_whatever_the_odds(name: str, count: int) -> None:
    odds = WORLDS[name] / WORLDS[name].sum()
    found = np.array([weighed(odds, odds, count, seed) for seed in range(60)])
    assert found.max() < CERTAIN / 2
    assert np.exp(found).mean() < 3  # 1 on average, however many are looked at


def cut(odds: Any, most: int) -> Any:
    """The odds where only so many of the likeliest tokens are drawn."""
    return np.where(odds >= np.sort(odds)[-most], odds, 0.0)


WAYS: Mapping[str, Callable[[Any], Any]] = {
    "llama-server's defaults": lambda odds: cut(odds, 40) ** (1 / 0.8),
    "the likeliest forty": lambda odds: cut(odds, 40),
    "the likeliest alone": lambda odds: cut(odds, 1),
    "a low temperature": lambda odds: odds ** (1 / 0.6),
    "a high temperature": lambda odds: odds ** (1 / 1.5),
}


@pytest.mark.parametrize("way", WAYS)
def test_other_odds_are_found_out(way: str) -> None:
    # where many are likely, a high temperature draws hardly a token twice
    world = WORLDS["few are" if "high" in way else "many tokens are likely"]
    odds = world / world.sum()
    for seed in range(10):
        assert weighed(odds, WAYS[way](odds), DRAWN, seed) > CERTAIN


def test_a_token_that_cannot_be_told_is_one_of_the_rest() -> None:
    assert evidence([None] * DRAWN, {}) == pytest.approx(0.0)
