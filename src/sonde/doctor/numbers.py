"""Check that log-probabilities are alive: numbers, varied, each its own token's, summing to one.

Knows answers and the naive ones beside them, nothing of models.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import exp, inf, isfinite, log
from statistics import mean

from sonde.core.answers import Answer, Filled, Generated, Scored, Traced
from sonde.core.examinations import Text
from sonde.core.prompts import Fill
from sonde.core.scores import option_logps
from sonde.doctor.findings import Case, Finding, Seen, counted, fault, ok, skipped, some, warning

SUM_TOLERANCE = 1e-3
SAME = 1e-9
FEWEST, FEWEST_OBJECTS = 8, 4  # with fewer, one answer to all can be chance
RATIO = 4  # objects per different answer from which a model answers too much alike
DOMINANT = 0.9  # share of one answer, where no object is right for more than half of the facts
GAIN = 0.5  # nats per token by which another opening must be better to be worth a word


def values(answer: Answer) -> list[float]:
    """Every log-probability of an answer that was measured."""
    if isinstance(answer, Scored):
        return [logp for row in (*answer.logps, *answer.suffix_logps) for logp in row]
    if isinstance(answer, Filled):
        found = (*answer.top_logps, *answer.watched_logps, answer.mass)
        return [logp for logp in found if logp is not None]
    if isinstance(answer, Generated):
        return [*answer.logps, *([] if answer.end_logp is None else [answer.end_logp])]
    if isinstance(answer, Traced):
        return [logp for row in answer.logps for logp in row]
    return []


def is_finite(answer: Answer | None) -> bool:
    """Whether an answer, where there is one, has neither NaN nor infinity."""
    return answer is None or all(map(isfinite, values(answer)))


def naive_is_finite(case: Case) -> bool:
    """Whether the numbers of the naive path, where there are any, are some."""
    shown = case.shown
    if shown is None:
        return True
    numbers = (shown.likelihood, shown.otherwise, *shown.totals)
    return is_finite(shown.naive) and all(isfinite(x) for x in numbers if x is not None)


def is_alive(case: Case) -> bool:
    """Whether all numbers of a case are some, so that it can be looked at what they are."""
    return naive_is_finite(case) and is_finite(case.answer) and is_finite(case.again)


def weights(seen: Seen) -> Finding:
    """No NaN and no infinity in the weights, whether or not a prompt meets them."""
    names = next((case.shown.limits.damaged for case in seen.cases if case.shown), None)
    if names is None:
        return skipped("the model does not show them")
    if names:
        return fault(
            f"NaN or infinity in {counted(len(names), 'tensor')}: {some(names)}",
            "If --dtype float32 does not help, the weights are damaged: fetch them anew",
        )
    return ok("no NaN and no infinity")


def finite(seen: Seen) -> Finding:
    """No NaN and no infinity, in the answers or in the naive ones."""
    bad = [c.name for c in seen.cases if not is_finite(c.answer)]
    naive = [c.name for c in seen.cases if not naive_is_finite(c)]
    if bad or naive:
        whose = "the model itself gives them" if naive else "the naive path gives none"
        return fault(
            f"NaN or infinity in {counted(len(bad or naive), 'answer')} of {len(seen.cases)} "
            f"({whose}): {some(bad or naive)}",
            "Try --dtype float32: half precision overflows in some models. If it stays, "
            "the weights are damaged"
            if naive
            else "The fast path is at fault; please report it with the model's name",
        )
    count = sum(len(values(case.answer)) for case in seen.cases if case.answer)
    return ok(f"{count:,} finite log-probabilities")


def varied(seen: Seen) -> Finding:
    """Options differ from each other, and so do the answers about different subjects."""
    if not seen.alive:
        return skipped("nothing to compare")
    flat = [case.name for case in seen.alive if is_flat(case)]
    if flat:
        return fault(
            f"every option is equally likely in {counted(len(flat), 'prompt')}: {some(flat)}",
            "The model is not being read: its log-probabilities do not depend on the answer",
        )
    pairs = list(comparable(seen.alive))
    same = [(a, b) for a, b in pairs if is_same(a.answer, b.answer)]
    blind = [f"{a.name} and {b.prompt.key.subject!r}" for a, b in same if tokens(a) != tokens(b)]
    if blind:
        return fault(
            f"different subjects get identical answers in {counted(len(blind), 'pair')} of "
            f"{len(pairs)}: {some(blind)}",
            "The model does not see the subject: it is cut off, masked or cached wrongly",
        )
    if same:
        names = [f"{a.name} and {b.prompt.key.subject!r}" for a, b in same]
        return warning(
            f"{counted(len(same), 'pair')} of subjects become the same tokens: {some(names)}",
            "This tokenizer cannot tell these names apart; leave the facts out",
        )
    found = f"options differ in all prompts, subjects in all {counted(len(pairs), 'pair')} compared"
    chosen = diverse(seen.choices)
    if chosen.found:
        return chosen if chosen.advice else ok(f"{found}; {chosen.found}", chosen.values)
    return ok(found)


def diverse(choices: Sequence[tuple[str, str]]) -> Finding:
    """Whether the most probable answers differ about as the objects of the facts do.

    Small models that read prompts correctly answer some single relations with one object, but the
    41 relations of atlas, three at a time, get fewer than a quarter as many answers as they have
    objects in 1% of cases when options are scored, in 6% when a mask is filled.
    """
    count = len(choices)
    answers = Counter(answer for answer, _ in choices)
    objects = Counter(name for _, name in choices)
    if count < FEWEST or len(objects) < FEWEST_OBJECTS:
        return ok("")
    [(first, times)] = answers.most_common(1)
    common = max(objects.values()) / count
    found = (
        f"{counted(len(answers), 'different answer')} to {count} prompts with "
        f"{len(objects)} different objects; the most common, {first!r}, to {times / count:.0%}"
    )
    figures = {"answers": len(answers), "objects": len(objects), "largest share": times / count}
    few = len(answers) * RATIO <= len(objects)
    dominated = times / count >= DOMINANT and common <= 0.5
    if not few and not dominated:
        return ok(found, figures)
    return warning(
        found,
        "The model gives nearly the same answer whatever the subject. Compare it with "
        "control:majority, and try other templates",
        figures,
    )


def is_flat(case: Case) -> bool:
    """Whether all options of a prompt that are different tokens have one log-probability."""
    answer = case.answer
    if isinstance(answer, Scored):
        rows = zip(case.texts, option_logps(answer, suffix=False).tolist(), strict=False)
        kinds = {text.ids[text.start : text.end]: logp for text, logp in rows}
        return len(kinds) > 1 and max(kinds.values()) - min(kinds.values()) <= SAME
    if isinstance(answer, Filled) and len(answer.top_logps) > 1:
        return answer.top_logps[0] - answer.top_logps[-1] <= SAME
    return False


def comparable(cases: Sequence[Case]) -> Iterator[tuple[Case, Case]]:
    """Pairs of prompts that differ in their subject alone."""
    groups: dict[tuple[object, ...], list[Case]] = defaultdict(list)
    for case in cases:
        if isinstance(case.answer, Scored | Filled):
            key = case.prompt.key
            length = isinstance(case.prompt.want, Fill) and case.prompt.want.vocabulary is not None
            own = tuple(map(str, case.prompt.own.values()))
            groups[key.relation, key.template, own, type(case.answer), length].append(case)
    for group in groups.values():
        for a, b in combinations(group, 2):
            if a.prompt.key.subject != b.prompt.key.subject:
                yield a, b


def is_same(one: Answer | None, other: Answer | None) -> bool:
    """Whether all options that two answers have in common are equally likely in both."""
    if isinstance(one, Scored) and isinstance(other, Scored):
        rows = dict(zip(other.options, other.logps, strict=True))
        pairs = [(r, rows[o]) for o, r in zip(one.options, one.logps, strict=True) if o in rows]
        return bool(pairs) and all(_near(a, b) for a, b in pairs)
    if isinstance(one, Filled) and isinstance(other, Filled):
        return one.top == other.top and _near(one.top_logps, other.top_logps)
    return False


def _near(one: Sequence[float], other: Sequence[float]) -> bool:
    return len(one) == len(other) and all(
        abs(a - b) <= SAME for a, b in zip(one, other, strict=True)
    )


def tokens(case: Case) -> list[tuple[int, ...]]:
    """What the model is given before the answer."""
    return sorted({text.ids[: text.start] + text.ids[text.stop :] for text in case.given})


def aligned(seen: Seen) -> Finding:
    """Answers fit the naive ones better than those that a fault of one place would give."""
    fits = list(shifts(seen.alive))
    if not fits:
        return skipped("nothing to compare with")
    # a shift explains what is off; where nothing is off, the nearest shift is told
    off = [fit for fit in fits if fit.own > seen.tolerance and fit.shifted < fit.own / 2]
    best = min(off or fits, key=lambda fit: fit.shifted)
    figures = {"own": best.own, "shifted": best.shifted}
    if off:
        return fault(
            f"log-probabilities are shifted by one token ({best.name}): as they stand they "
            f"are {best.own:.2g} nats off, shifted back {best.shifted:.2g}",
            "Every token has another's log-probability: no number of this model can be used",
            values=figures,
        )
    found = f"shifted by one token they would be off by {best.shifted:.2g} nats or more"
    if any(fit.own > seen.tolerance for fit in fits):
        found = "what is off does not fit a shift by one token"
    return ok(found, values=figures)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """How far answers are from the naive ones, and from those of one shift, in nats."""

    name: str
    own: float
    shifted: float


def shifts(cases: Sequence[Case]) -> Iterator[Fit]:
    """For each kind of answer and each shift, how well both fit."""
    pairs: dict[tuple[type, str], list[tuple[float, float]]] = defaultdict(list)
    for case in cases:
        shown, answer = case.shown, case.answer
        if shown is None or shown.naive is None or answer is None:
            continue
        for name, other in shown.shifted.items():
            both = gap(answer, shown.naive, like=other), gap(answer, other)
            pairs[type(answer), name].append(both)
    for (_, name), found in pairs.items():
        yield Fit(name=name, own=mean(a for a, _ in found), shifted=mean(b for _, b in found))


def gap(answer: Answer, other: Answer, like: Answer | None = None) -> float:
    """Mean distance between the log-probabilities of two answers, over the options of `like`."""
    one, two = _rows(answer), _rows(other)
    names = _rows(like or other).keys() & one.keys() & two.keys()
    gaps = [
        abs(a - b) for name in sorted(names) for a, b in zip(one[name], two[name], strict=False)
    ]
    return mean(g if isfinite(g) else inf for g in gaps) if gaps else 0.0


def _rows(answer: Answer) -> dict[str, tuple[float, ...]]:
    if isinstance(answer, Scored):
        return dict(zip(answer.options, answer.logps, strict=True))
    if isinstance(answer, Filled):
        pairs = zip(answer.watched, answer.watched_logps, strict=True)
        named = {name: (logp,) for name, logp in pairs if logp is not None}
        return {**named, "(top)": answer.top_logps}
    return {}


def sums(seen: Seen) -> Finding:
    """Probabilities of the whole vocabulary are one, and those of a part of it no more."""
    if not seen.alive:
        return skipped("nothing to add up")
    wrong: list[str] = []
    unnamed = 0.0
    totals: list[float] = []
    for case in seen.alive:
        naive = list(case.shown.totals) if case.shown else []
        totals += naive
        wrong += [f"{case.name}: {t:.4g}" for t in naive if not abs(t - 1) <= SUM_TOLERANCE]
        wrong += [f"{case.name}: {t:.4g}" for t in parts(case) if not t <= 1 + SUM_TOLERANCE]
        wrong += [
            f"{case.name}: {got:.4g}"
            for got, due in masses(case)
            if not abs(got - due) <= SUM_TOLERANCE
        ]
        unnamed = max([unnamed, *(1 - due for _, due in masses(case))])
    if wrong:
        return fault(
            f"they do not in {counted(len(wrong), 'place')}: {some(wrong)}",
            "These are no log-probabilities of the full vocabulary: raw logits, a cut "
            "vocabulary or another temperature",
        )
    if unnamed > SUM_TOLERANCE:
        return warning(
            f"{unnamed:.1%} of the probability lies on tokens the tokenizer does not have",
            "The model has more tokens than its tokenizer; do they belong together?",
        )
    worst = max((abs(t - 1) for t in totals), default=0.0)
    found = f"over the vocabulary, to {worst:.1g}" if totals else "no part of them exceeds one"
    return ok(found)


def parts(case: Case) -> list[float]:
    """Sums of probabilities that exclude each other, so that none may exceed one."""
    answer = case.answer
    if isinstance(answer, Filled):
        return [sum(map(exp, map(_low, answer.top_logps))), exp(_low(answer.mass))]
    if isinstance(answer, Generated | Traced):
        return [exp(_low(v)) for v in values(answer)]
    if not isinstance(answer, Scored):
        return []
    groups: dict[tuple[object, ...], dict[int, float]] = defaultdict(dict)
    for text, row in zip(case.texts, answer.logps, strict=False):
        if row:
            groups[_context(text)][text.ids[text.start]] = exp(_low(row[0]))
    single = [exp(_low(v)) for v in values(answer)]
    return [*(sum(group.values()) for group in groups.values()), max(single, default=0.0)]


def _low(logp: float) -> float:
    return min(logp, 50.0)  # so that exp does not overflow on what is no log-probability


def _context(text: Text) -> tuple[object, ...]:
    return text.ids[: text.start], text.stop - text.start, text.ids[text.stop :]


def masses(case: Case) -> list[tuple[float, float]]:
    """The mass of a full-vocabulary filling, and what it should be by the naive path."""
    answer, want = case.answer, case.prompt.want
    naive = case.shown.naive if case.shown else None
    if not isinstance(answer, Filled) or not isinstance(naive, Filled):
        return []
    if isinstance(want, Fill) and want.vocabulary is not None:
        return []
    return [(exp(_low(answer.mass)), exp(_low(naive.mass)))]


def likely(seen: Seen) -> Finding:
    """The model finds the prompts' own words likelier than words drawn blindly."""
    found = [c.shown.likelihood for c in seen.alive if c.shown and c.shown.likelihood is not None]
    sizes = [case.shown.limits.vocabulary for case in seen.alive if case.shown]
    if not found:
        return skipped("nothing to compare with")
    average, blind = mean(found), -log(sizes[0])
    said = f"{average:.2f} nats per token of the prompts; drawn blindly {blind:.2f}"
    figures = {"likelihood": average, "blind": blind}
    if average > blind:
        return ok(said, values=figures)
    return warning(
        said,
        "The model is untrained, or tokenizer, opening or language do not suit it",
        values=figures,
    )


def better_opened(seen: Seen) -> Finding:
    """Texts are not much likelier when they are opened the other way."""
    shown = [case.shown for case in seen.alive if case.shown]
    pairs = [
        (s.likelihood, s.otherwise, s.texts[0].opening > 0)
        for s in shown
        if s.likelihood is not None and s.otherwise is not None
    ]
    if not pairs:
        return skipped("there is no other way")
    gain = mean(other - own for own, other, _ in pairs)
    opened = sum(is_open for _, _, is_open in pairs) > len(pairs) / 2
    way = "without BOS" if opened else "with BOS"
    change = f"{abs(gain):.2f} nats {'likelier' if gain > 0 else 'less likely'}"
    found = f"{way}, a token of the prompts would be {change}"
    if gain <= GAIN:
        return ok(found, values={"gain": gain})
    return warning(
        found,
        f"The model may have been made for it; try --bos {'never' if opened else 'always'}",
        values={"gain": gain},
    )
