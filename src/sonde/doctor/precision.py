"""A model in half precision beside itself in float32, and beside itself in other batches.

A fixed set of prompts is put to all three; what is told is how many first answers, texts and draws
differ, and by how much log-probabilities do. Knows answers and whoever gives them, no library.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf
from statistics import median

from sonde.core.abilities import Ability, Model, Probe
from sonde.core.answers import Answer, Filled, Generated, Sampled, Scored
from sonde.core.facts import Dataset
from sonde.core.prompts import Fill, Generate, Prompt, Sample, Score
from sonde.doctor.agreement import KINDS, Pair, choice, lead, tolerance_for
from sonde.doctor.diagnose import WRITTEN, alike, answered, spread, wants
from sonde.doctor.findings import Finding, counted, ok, skipped, some, warning
from sonde.doctor.numbers import is_finite
from sonde.evaluation.stats import wilson_interval

HALVES = ("bfloat16", "float16")
FACTS = 2  # of each relation
OPTIONS = 10
DRAWN = 10  # prompts, and texts drawn for each
PART = 7  # prompts that go together where batches are to be others
NOTABLE = 0.05  # share of first answers; if more than that change for sure, it is worth a word
CHECK = "half precision"
SAID = {Scored: "first answers", Filled: "first answers", Generated: "texts", Sampled: "draws"}
ADVICE = "Use --dtype float32 for numbers that are compared or published"

ALL = (Score, Fill, Generate, Sample)

Given = Sequence[Answer | None]
"""Answers in the order of their prompts; None where one was refused."""


def fixed_prompts(
    probe: Probe,
    dataset: Dataset,
    can: frozenset[Ability],
    *,
    facts: int | None = None,
    options: int = OPTIONS,
) -> list[Prompt]:
    """Some facts of every relation, in every way the model can be asked them, by kind."""
    relations = [relation.id for relation in dataset.asked_relations()]
    most = FACTS if facts is None else facts
    groups = [alike(probe.suited(can), dataset, relation, most) for relation in relations]
    every = [prompt for group in groups for prompt in group]
    asked = wants(every, dataset, can, options)
    firsts = {group[0].key.fact for group in groups if group}
    found = [p for p in asked if not isinstance(p.want, Generate) or p.key.fact in firsts]
    if "sample" in can:
        draw = Sample(count=DRAWN, most=WRITTEN)
        writes = [p for p in found if isinstance(p.want, Generate)]
        found += [replace(p, want=draw) for p in spread(writes, DRAWN)]
    # any token may be filled in: with few names allowed, first answers would hardly change
    free = [p for p in found if not isinstance(p.want, Fill) or p.want.vocabulary is None]
    return sorted(free, key=lambda prompt: type(prompt.want).__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a model answered, and what it answered a few prompts at a time where that was asked."""

    prompts: Sequence[Prompt]
    together: Given
    apart: Given

    @classmethod
    def of(cls, model: Model, prompts: Sequence[Prompt], *, again: tuple[type, ...] = ALL) -> Asked:
        """All prompts put to a model, and once more, in parts, those that want some kinds."""
        together, _ = answered(model, prompts)
        apart: list[Answer | None] = [None] * len(prompts)
        chosen = [i for i, prompt in enumerate(prompts) if isinstance(prompt.want, again)]
        for start in range(0, len(chosen), PART):
            part = chosen[start : start + PART]
            found, _ = answered(model, [prompts[i] for i in part])
            for i, answer in zip(part, found, strict=True):
                apart[i] = answer
        return cls(prompts=prompts, together=together, apart=apart)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """How answers of one kind differ from others: of how many, which, and how far, in nats a token.

    `clear`: those among them of which the others are sure.
    """

    count: int
    differ: int
    clear: tuple[str, ...]
    gaps: tuple[float, ...]

    @property
    def median(self) -> float:
        """The median gap."""
        return median(self.gaps) if self.gaps else 0.0

    @property
    def largest(self) -> float:
        """The largest gap."""
        return max(self.gaps, default=0.0)

    def values(self, name: str) -> dict[str, float]:
        """The figures, for programs."""
        figures = {"differ": float(self.differ), "median": self.median, "largest": self.largest}
        return {f"{name}.{key}": value for key, value in figures.items()}


def beside_float32(half: Asked, precise: Model, dtype: str) -> list[Finding]:
    """What half precision changes and what other batches do: a verdict, and each kind of answer."""
    full = Asked.of(precise, half.prompts, again=(Sample,))
    tolerance = tolerance_for(dtype)
    found: list[tuple[type, Change, Change]] = []
    findings = []
    for kind in SAID:
        precision = change(half.prompts, half.together, full.together, kind, tolerance)
        batches = change(half.prompts, half.apart, half.together, kind, tolerance)
        if not precision.count:
            continue
        if kind is Sampled:
            own = change(full.prompts, full.apart, full.together, kind, tolerance)
            findings.append(draws(batches, own, dtype))
            continue
        found.append((kind, precision, batches))
        findings.append(told(kind, precision, batches))
    chosen = [(p, b) for kind, p, b in found if kind in (Scored, Filled)]
    return [verdict(chosen, dtype), *findings] if chosen else [not_compared("nothing was answered")]


def not_compared(why: str) -> Finding:
    """Nothing could be compared."""
    return replace(skipped(why), check=CHECK)


def verdict(changes: Sequence[tuple[Change, Change]], dtype: str) -> Finding:
    """Whether first answers in half precision are float32's, in a sentence."""
    count = sum(change.count for change, _ in changes)
    differ = sum(change.differ for change, _ in changes)
    alone = sum(batches.differ for _, batches in changes)
    clear = [name for change, _ in changes for name in change.clear]
    low, high = interval(differ, count)
    figures = {"compared": count, "differ": differ, "low": low, "high": high}
    figures |= {"clear": len(clear), "batches.differ": alone}
    said = (
        f"{differ} of {count} first answers differ from float32's ({low:.1%} to {high:.1%} of such "
        f"answers), {len(clear)} of them ones that float32 is sure of; other batches change {alone}"
    )
    if clear:
        found = warning(f"{said}: {some(clear)}", f"{dtype} changes clear answers. {ADVICE}")
    elif low > NOTABLE:
        found = warning(said, f"{dtype} changes many close answers. {ADVICE}")
    else:
        found = ok(said)
    return replace(found, check=CHECK, values=figures)


def told(kind: type, precision: Change, batches: Change) -> Finding:
    """What changed in one kind of answer."""
    name = KINDS[kind][1]
    low, high = interval(precision.differ, precision.count)
    found = (
        f"{precision.differ} of {precision.count} {SAID[kind]} ({low:.0%} to {high:.0%}), other "
        f"batches {batches.differ}; |Δ log p| a token {precision.median:.2g} in the median, "
        f"{precision.largest:.2g} at most, other batches {batches.median:.2g}, "
        f"{batches.largest:.2g}"
    )
    figures = {"compared": precision.count, "low": low, "high": high}
    values = {**figures, **precision.values("float32"), **batches.values("batches")}
    return replace(ok(found, values), check=f"{CHECK}, {name}")


def draws(batches: Change, full: Change, dtype: str) -> Finding:
    """How many draws other batches change, with the same random numbers."""
    found = (
        f"other batches change {batches.differ} of {counted(batches.count, 'draw')} in {dtype}, "
        f"{full.differ} in float32"
    )
    figures = {"compared": batches.count, "batches.differ": batches.differ}
    values = {**figures, "float32.batches.differ": full.differ}
    return replace(ok(found, values), check=f"{CHECK}, drawing")


def interval(differ: int, count: int) -> tuple[float, float]:
    """Between which shares so many of so many lie, with 95 % confidence."""
    low, high = wilson_interval(differ, count)
    return max(low, 0.0), high


def change(
    prompts: Sequence[Prompt], answers: Given, others: Given, kind: type, tolerance: float
) -> Change:
    """How answers of one kind differ from others to the same prompts."""
    pairs: list[Pair] = [
        (f"{prompt.key.relation} {prompt.key.subject!r}", one, other)
        for prompt, one, other in zip(prompts, answers, others, strict=True)
        if one and other and type(one) is type(other) is kind
        if is_finite(one) and is_finite(other)
    ]
    if kind is Sampled:
        moved = sum(moved_draws(one, other) for _, one, other in pairs)
        return Change(count=DRAWN * len(pairs), differ=moved, clear=(), gaps=())
    differ = [(n, choice(a), choice(b), b) for n, a, b in pairs if choice(a) != choice(b)]
    sure = [
        f"{name}: {chosen!r} for {best!r}"
        for name, chosen, best, other in differ
        if 2 * tolerance < lead(other, chosen, best) < inf
    ]
    gaps = tuple(gap for _, one, other in pairs for gap in token_gaps(one, other))
    return Change(count=len(pairs), differ=len(differ), clear=tuple(sure), gaps=gaps)


def token_gaps(one: Answer, other: Answer) -> Iterator[float]:
    """How far the log-probabilities of tokens that two answers have in common lie apart."""
    if isinstance(one, Generated) and isinstance(other, Generated):
        # where texts part, the tokens are others
        pairs = zip(one.logps, other.logps, strict=False) if one.text == other.text else ()
        yield from (abs(a - b) for a, b in pairs)
    elif isinstance(one, Scored) and isinstance(other, Scored):
        for row, own in zip(one.logps, other.logps, strict=True):
            yield from (abs(a - b) for a, b in zip(row, own, strict=True))
    elif isinstance(one, Filled) and isinstance(other, Filled):
        top = dict(zip(other.top, other.top_logps, strict=True))
        named = zip(one.top, one.top_logps, strict=True)
        yield from (abs(logp - top[name]) for name, logp in named if name in top)
        watched = zip(one.watched_logps, other.watched_logps, strict=True)
        yield from (abs(a - b) for a, b in watched if a is not None and b is not None)


def moved_draws(one: Answer, other: Answer) -> int:
    """How many draws of one answer are not in the other."""
    assert isinstance(one, Sampled) and isinstance(other, Sampled)
    left = dict(zip(other.texts, other.counts, strict=True))
    pairs = zip(one.texts, one.counts, strict=True)
    return sum(max(count - left.get(text, 0), 0) for text, count in pairs)
