"""Prompts for tiny models, and what it means that two answers are the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import TypeVar

import pytest
from hypothesis import strategies as st

from sonde.core.answers import Scored
from sonde.core.columns import one_by_one
from sonde.core.prompts import Prompt
from sonde.models.torch.causal.model import CausalModel
from sonde.models.torch.causal.token_tree import why_flat
from sonde.models.torch.loading.weights import Loaded
from sonde.models.torch.masked.logits import ways_of
from sonde.models.torch.masked.model import MaskedModel
from tests.tiny import CITIES, score

BUDGETS = (1, 7, 64, 4096)
TOLERANCE = 1e-4

WORDS = st.sampled_from(["Paris", "is", "the", "capital", "New", "of", "1867", "é東", "(", "Oslo"])
PREFIXES = st.one_of(
    st.just(""),
    st.lists(WORDS, min_size=1, max_size=8).map(lambda words: " ".join(words) + " "),
    st.lists(WORDS, min_size=1, max_size=3).map(" ".join),
)
SUFFIXES = st.sampled_from(["", ".", "?!", " in France.", ", and it is the capital of Norway."])
# York and New York share no beginning, Paris and Paris France do, and one begins the other
OPTIONS = st.lists(
    st.sampled_from([*CITIES, "Paris France", "Paris is", "Par is", "東京", "1867", ".", "of"]),
    min_size=1,
    max_size=6,
    unique=True,
).map(tuple)
WAYS = {"capitals": st.booleans(), "punctuation": st.booleans()}
PROMPTS = st.lists(st.builds(score, PREFIXES, OPTIONS, SUFFIXES, **WAYS), min_size=1, max_size=5)
READ = {"whole": st.booleans(), "hidden": st.sampled_from(["answer", "word"])}
SENTENCES = st.lists(
    st.builds(score, PREFIXES, OPTIONS, SUFFIXES, **WAYS, **READ), min_size=1, max_size=5
)
"""Prompts of which some want whole sentences scored."""


Made = TypeVar("Made", CausalModel, MaskedModel)

TRIED = {
    "sonde.models.torch.causal.model.why_flat": cache(why_flat),
    "sonde.models.torch.masked.model.ways_of": cache(ways_of),
}
"""How a tiny model may be fed, found out once: an example of a property takes as long as that."""


def made(kind: type[Made], loaded: Loaded) -> Made:
    """A model of its own for every example; its weights are never changed."""
    with pytest.MonkeyPatch.context() as patch:
        for name, found in TRIED.items():
            patch.setattr(name, found)
        return kind(loaded)


def with_budget(loaded: Loaded, tokens: int) -> Loaded:
    return replace(loaded, options=replace(loaded.options, batch_tokens=tokens))


def answers(model: CausalModel | MaskedModel, prompts: Sequence[Prompt]) -> list[Scored]:
    """The answers in the order of the prompts; each prompt has one."""
    found = list(one_by_one(model.score(prompts)))
    assert sorted(i for i, _ in found) == list(range(len(prompts)))
    return [answer for _, answer in sorted(found, key=lambda pair: pair[0])]


def assert_same(one: Scored, other: Scored, tolerance: float = TOLERANCE) -> None:
    assert one.options == other.options
    assert_near(one.logps, other.logps, tolerance)
    assert_near(one.suffix_logps, other.suffix_logps, tolerance)


def assert_near(
    one: Sequence[Sequence[float]], other: Sequence[Sequence[float]], tolerance: float
) -> None:
    assert [len(row) for row in one] == [len(row) for row in other]
    for a, b in zip(one, other, strict=True):
        assert all(abs(x - y) <= tolerance for x, y in zip(a, b, strict=True)), (a, b)
