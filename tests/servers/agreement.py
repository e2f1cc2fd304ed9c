"""Prompts of every kind, and whether a served model answers them as the same model does here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sonde.core.columns import one_by_one
from sonde.core.prompts import Generate, Key, Prompt, Sample
from sonde.models.torch.causal.model import CausalModel
from tests.tiny import CITIES, score, trace

NEAR = 1e-5


def write(prefix: str, want: Generate | Sample) -> Prompt:
    key = Key(fact="f", relation="P36", template="t", subject="s")
    return Prompt(key=key, prefix=prefix, want=want)


SCORED = [
    score("The capital of France is ", CITIES),
    score("The capital of Norway is ", CITIES, " and not Lima."),
    score("", ("Paris", "New York"), " is the capital."),
    score("It is ", ("Paris", "Oslo"), ".", punctuation=True),
    score("The city of ", CITIES[:3], " is large.", whole=True),
    score("The capital of France is ", CITIES[::-1]),
]

TRACED = [
    trace("Paris is the capital of France.", (0, 5), (9, 20)),
    trace("Oslo is the capital of Norway, and Vienna that of Austria.", (5, 7), (24, 30)),
]


def rows(answers: Any, prompts: Sequence[Prompt]) -> list[Any]:
    found = dict(one_by_one(answers))
    assert sorted(found) == list(range(len(prompts)))
    return [found[i] for i in range(len(prompts))]


def assert_same(one: Sequence[Any], other: Sequence[Any]) -> None:
    assert len(one) == len(other)
    for a, b in zip(one, other, strict=True):
        assert [len(row) for row in a] == [len(row) for row in b]
        for left, right in zip(a, b, strict=True):
            np.testing.assert_allclose(left, right, atol=NEAR)


WRITTEN = [
    write(f"The capital of {name} is", Generate(most=6, until=until))
    for name in ("France", "Norway", "Oslo")
    for until in ("", "\n", "e", " is")
]

DRAWN = [write("The capital is", Sample(count=40, most=3)) for _ in range(2)]


def assert_agrees(there: Any, here: CausalModel) -> None:
    """Every kind of prompt is answered as it is here; draws are as many as were asked for."""
    theirs, ours = rows(there.score(SCORED), SCORED), rows(here.score(SCORED), SCORED)
    assert [a.options for a in theirs] == [a.options for a in ours]
    assert_same([a.logps for a in theirs], [a.logps for a in ours])
    assert_same([a.suffix_logps for a in theirs], [a.suffix_logps for a in ours])
    theirs, ours = rows(there.trace(TRACED), TRACED), rows(here.trace(TRACED), TRACED)
    assert_same([a.logps for a in theirs], [a.logps for a in ours])
    assert_writes_alike(there, here)
    for drawn in rows(there.sample(DRAWN), DRAWN):
        assert sum(drawn.counts) == 40 and len(drawn.texts) > 3


def assert_writes_alike(there: Any, here: CausalModel) -> None:
    """The same texts, as likely, that end in the same way."""
    theirs, ours = rows(there.generate(WRITTEN), WRITTEN), rows(here.generate(WRITTEN), WRITTEN)
    assert [(a.text, a.finished) for a in theirs] == [(a.text, a.finished) for a in ours]
    assert_same([[a.logps] for a in theirs], [[a.logps] for a in ours])
    for a, b in zip(theirs, ours, strict=True):
        if a.end_logp is not None:  # some servers have none for what ends a text
            assert b.end_logp is not None and abs(a.end_logp - b.end_logp) < NEAR
