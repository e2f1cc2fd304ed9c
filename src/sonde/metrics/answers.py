"""Judge one answer against the names that count as correct. Knows nothing of prompts or files."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from math import exp

import numpy as np

from sonde.core.answers import Answer, Filled, Scored
from sonde.core.errors import AbilityError
from sonde.core.scores import Normalise, option_logps, shares, sound


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """How an answer did.

    `rank` of the best correct name, 1 is best, ties count against it; None where no correct name
    could be answered. `probability` of all correct names together. `top` answers with theirs.
    """

    rank: int | None
    probability: float | None
    top: tuple[tuple[str, float], ...]
    tied: bool


def judge(answer: Answer, correct: Collection[str], normalise: Normalise = "none") -> Judgement:
    """Rank the correct names among what was answered."""
    if isinstance(answer, Filled):
        return _judge_filled(answer, correct)
    if not isinstance(answer, Scored):
        raise AbilityError("only scored options and filled holes have ranks, not written texts")
    return _judge_scored(answer, correct, normalise)


def _judge_scored(answer: Scored, correct: Collection[str], normalise: Normalise) -> Judgement:
    logps = option_logps(answer, normalise)
    among = shares(logps)
    right = np.array([option in correct for option in answer.options])
    order = np.argsort(-logps, kind="stable")
    top = tuple((answer.options[i], float(among[i])) for i in order[:5])
    tied = bool((logps == logps.max()).sum() > 1)
    if not right.any():
        return Judgement(rank=None, probability=None, top=top, tied=tied)
    rank = 1 + int((logps[~right] >= logps[right].max()).sum())
    return Judgement(rank=rank, probability=float(among[right].sum()), top=top, tied=tied)


def _judge_filled(answer: Filled, correct: Collection[str]) -> Judgement:
    found = [
        (rank, logp)
        for name, rank, logp in zip(
            answer.watched, answer.watched_ranks, answer.watched_logps, strict=True
        )
        if name in correct and rank is not None and logp is not None
    ]
    sound([*answer.top_logps, *(logp for _, logp in found)])
    top = tuple((w, exp(p)) for w, p in zip(answer.top[:5], answer.top_logps[:5], strict=True))
    tied = len(answer.top_logps) > 1 and answer.top_logps[0] == answer.top_logps[1]
    if not found:
        return Judgement(rank=None, probability=None, top=top, tied=tied)
    # two names that are the same token are the same answer
    mass = sum(exp(logp) for _, logp in set(found))
    return Judgement(rank=min(rank for rank, _ in found), probability=mass, top=top, tied=tied)
