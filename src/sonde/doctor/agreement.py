"""Hold a model's answers against the naive ones: how far apart, and which choices differ.

Knows answers, nothing of models.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf, isfinite

from sonde.core.abilities import Ability
from sonde.core.answers import Answer, Filled, Generated, Scored, Traced
from sonde.core.scores import option_logps
from sonde.doctor.findings import Case, Finding, Seen, counted, fault, ok, skipped, some, warning
from sonde.doctor.numbers import values

KINDS: dict[type, tuple[Ability, str]] = {
    Scored: ("score", "scoring"),
    Filled: ("fill", "filling"),
    Generated: ("generate", "writing"),
    Traced: ("trace", "reading"),
}
CHOOSING = (Scored, Filled, Generated)
"""Answers in which something is chosen; the others are numbers alone."""
TOLERANCES = {"float32": 1e-3, "float16": 0.05, "bfloat16": 0.3}
"""Nats by which a log-probability may differ from the naive one, by dtype."""

Pair = tuple[str, Answer, Answer]
"""What a prompt is called, its answer, and the one that it is held against."""


def tolerance_for(dtype: str) -> float:
    """The tolerance of a dtype; float32's where it is not named."""
    return TOLERANCES.get(dtype, TOLERANCES["float32"])


def agreement(cases: Sequence[Case], kind: type, tolerance: float, ties: int = 0) -> list[Finding]:
    """Whether the engine gives what the naive path gives, for one kind of answer.

    `ties`: how many texts part where two tokens cannot be told apart.
    """
    name = KINDS[kind][1]
    pairs: list[Pair] = []
    for case in cases:
        naive = case.shown.naive if case.shown else None
        if case.answer and naive and type(case.answer) is type(naive) is kind:
            pairs.append((case.name, case.answer, naive))
    if not pairs:
        return []
    findings = [replace(distances(pairs, tolerance), check=f"{name} vs naive")]
    if kind in CHOOSING:
        findings.append(replace(flips(pairs, tolerance, ties), check=f"{name}, choices"))
    return findings


def repeated(seen: Seen) -> Finding:
    """Whether prompts get the same answers when they are asked again, in the opposite order."""
    pairs = [(c.name, c.answer, c.again) for c in seen.alive if c.answer and c.again]
    if not pairs:
        return skipped("nothing was answered")
    return furthest(
        pairs,
        seen.tolerance,
        ", asked backwards",
        "The same prompt gets other answers: dropout is on, or answers depend on what else "
        "is asked. No number of this model can be repeated",
    )


def distances(pairs: Sequence[Pair], tolerance: float) -> Finding:
    """The largest difference between an answer's log-probabilities and the naive ones."""
    other = [name for name, answer, naive in pairs if shape(answer) != shape(naive)]
    if other:
        return fault(
            f"other tokens are scored in {counted(len(other), 'prompt')} of {len(pairs)}: "
            f"{some(other)}",
            "The engine is given other tokens than the naive path; please report it",
        )
    return furthest(
        pairs,
        tolerance,
        f" (tolerance {tolerance:g})",
        "The fast path does not compute what the model computes; do not trust its numbers. "
        "Please report it with the model's name",
    )


def furthest(pairs: Sequence[Pair], tolerance: float, how: str, advice: str) -> Finding:
    """Whether the numbers of answers lie no further apart than the tolerance."""
    gaps = {name: 0.0 for name, _, _ in pairs}
    for name, answer, other in pairs:
        gaps[name] = max(gaps[name], gap(answer, other))
    largest = max(gaps.values())
    found = f"max |Δ log p| {largest:.2g} in {counted(len(pairs), 'prompt')}{how}"
    figures = {"largest": largest, "tolerance": tolerance}
    far = [name for name, value in gaps.items() if not value <= tolerance]
    return fault(f"{found}: {some(far)}", advice, figures) if far else ok(found, figures)


def shape(answer: Answer) -> list[int]:
    """How many numbers an answer has, and where."""
    if isinstance(answer, Scored):
        return [len(row) for row in (*answer.logps, *answer.suffix_logps)]
    if isinstance(answer, Traced):
        return [len(row) for row in answer.logps]
    if isinstance(answer, Filled):
        return [len(answer.top), *(int(logp is None) for logp in answer.watched_logps)]
    return []


def gap(answer: Answer, other: Answer) -> float:
    """The largest difference between the numbers of two answers; infinite if one is no number."""
    if shape(answer) != shape(other):
        return inf
    gaps = [abs(a - b) for a, b in zip(numbers(answer), numbers(other), strict=False)]
    return max((distance if isfinite(distance) else inf for distance in gaps), default=0.0)


def numbers(answer: Answer) -> list[float]:
    """The numbers of an answer, in order; of a written text those of its tokens alone."""
    return list(answer.logps) if isinstance(answer, Generated) else values(answer)


def flips(pairs: Sequence[Pair], tolerance: float, ties: int = 0) -> Finding:
    """Whether the engine chooses as the naive path does; a choice between equals is no flip."""
    clear = []
    for name, answer, naive in pairs:
        chosen, best = choice(answer), choice(naive)
        if chosen != best and lead(naive, chosen, best) > 2 * tolerance:
            clear.append(f"{name}: {chosen!r} for {best!r}")
        else:
            ties += chosen != best
    figures = {"flipped": float(len(clear)), "ties": float(ties)}
    if clear:
        return fault(
            f"{counted(len(clear), 'answer')} of {len(pairs)} flipped: {some(clear)}",
            "The fast path answers otherwise than the model; do not trust its results. "
            "Please report it with the model's name",
            figures,
        )
    found = f"{len(pairs) - ties} of {len(pairs)}"
    if not ties:
        return ok(found, figures)
    return warning(
        f"{found}; in {ties} two answers are too close to tell apart in this dtype",
        "Use --dtype float32 where such choices matter",
        figures,
    )


def choice(answer: Answer) -> str:
    """The likeliest option, the first token, or the text."""
    if isinstance(answer, Scored):
        totals = option_sums(answer)
        return max(totals, key=lambda option: totals[option])
    if isinstance(answer, Filled):
        return answer.top[0] if answer.top else ""
    return answer.text if isinstance(answer, Generated) else ""


def option_sums(answer: Scored) -> dict[str, float]:
    """Each option's summed log-probability with that of the text after it."""
    return dict(zip(answer.options, option_logps(answer).tolist(), strict=True))


def lead(naive: Answer, chosen: str, best: str) -> float:
    """Nats per token by which the naive path prefers its own choice; infinite if not known."""
    if isinstance(naive, Scored):
        totals = option_sums(naive)
        tokens = max(map(len, naive.logps)) + max(map(len, naive.suffix_logps), default=0)
        return (totals[best] - totals[chosen]) / max(tokens, 1)
    if isinstance(naive, Filled) and chosen in naive.top:
        return naive.top_logps[0] - naive.top_logps[naive.top.index(chosen)]
    return inf
