"""Put prompts to a model, let it show what it was given, and check both."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sonde.core.abilities import WANTED, Examines, KeepsCache, Model
from sonde.core.answers import Answer
from sonde.core.errors import PromptError
from sonde.core.prompts import Prompt
from sonde.doctor import numbers, texts
from sonde.doctor.agreement import KINDS, agreement, repeated, tolerance_for
from sonde.doctor.findings import Case, Check, Diagnosis, Finding

TOKENS = (texts.opening, texts.boundary, texts.length, texts.known, texts.unknown)

ENGINE = Check("engine vs naive")
PATH = Check("fast path")

NEED_TOKENS = (
    texts.OPENING,
    texts.BOUNDARY,
    texts.LENGTH,
    texts.KNOWN,
    texts.UNKNOWN,
    numbers.VARIED,
    numbers.ALIGNED,
    numbers.LIKELY,
    numbers.BETTER_OPENED,
    numbers.WEIGHTS,
    PATH,
    ENGINE,
)


def diagnose(model: Model, shows: Examines | None, prompts: Sequence[Prompt]) -> Diagnosis:
    """Every check that applies; `shows` shows what the model is given, None if nothing can."""
    tolerance = tolerance_for(model.identity.dtype)
    cases = tuple(examined(model, shows, prompts))
    alive = tuple(filter(numbers.is_alive, cases))  # what else is told of NaN would mislead
    if shows is None:
        why = "the model shows no tokens: it answers from a table, or cannot show them"
        general = [texts.refusals(cases), numbers.finite(cases), numbers.sums(alive)]
        general.append(repeated(alive, tolerance))
        absent = [name.skipped(why) for name in NEED_TOKENS]
        return Diagnosis(findings=(*general, *absent), cases=cases, tolerance=tolerance)
    findings = [
        *(check(cases) for check in TOKENS),
        texts.refusals(cases),
        numbers.weights(cases),
        numbers.finite(cases),
        numbers.sums(alive),
        numbers.varied(alive),
        numbers.aligned(alive, tolerance),
        numbers.likely(alive),
        numbers.better_opened(alive),
        repeated(alive, tolerance),
        path(cases),
        *engine(tuple(filter(numbers.naive_is_finite, cases)), tolerance),
    ]
    return Diagnosis(findings=tuple(findings), cases=cases, tolerance=tolerance)


def path(cases: Sequence[Case]) -> Finding:
    """Which way texts go through the model; a warning where that is not the quickest one."""
    limits = next((case.shown.limits for case in cases if case.shown), None)
    if limits is None or not limits.path:
        return PATH.skipped("the model does not say")
    if not limits.slow:
        return PATH.ok(limits.path)
    return PATH.warning(
        limits.slow, "Answers are right all the same; 'sonde plan' says how long a run will take"
    )


def engine(cases: Sequence[Case], tolerance: float) -> list[Finding]:
    """The engine beside the naive path, for every kind of answer."""
    if not cases:
        return [ENGINE.skipped("nothing to compare with")]
    return [finding for kind in KINDS for finding in agreement(cases, kind, tolerance)]


def examined(model: Model, shows: Examines | None, prompts: Sequence[Prompt]) -> list[Case]:
    """Each prompt with what the model shows about it and, where that can be, its answer."""
    shown = dict(shows.examine(prompts)) if shows else {}
    # one that the model cannot take would stop the others, which go together
    askable = [i for i in range(len(prompts)) if shows is None or shown[i].askable]
    answers, refusals = answered(model, [prompts[i] for i in askable])
    again, _ = answered(model, [prompts[i] for i in askable[::-1]])
    found = dict(zip(askable, answers, strict=True))
    repeats = dict(zip(askable[::-1], again, strict=True))
    told = dict(zip(askable, refusals, strict=True))
    return [
        Case(
            prompt=prompt,
            shown=shown.get(i),
            answer=found.get(i),
            again=repeats.get(i),
            refused=told.get(i, "") or (shown[i].refused if i in shown else ""),
        )
        for i, prompt in enumerate(prompts)
    ]


def answered(model: Model, prompts: Sequence[Prompt]) -> tuple[list[Answer | None], list[str]]:
    """The answers, all prompts of a kind asked together; one by one if one of them is refused."""
    if isinstance(model, KeepsCache):
        model.reset_cache()
    answers: list[Answer | None] = [None] * len(prompts)
    refusals = [""] * len(prompts)
    for kind in dict.fromkeys(type(prompt.want) for prompt in prompts):
        group = [i for i, prompt in enumerate(prompts) if type(prompt.want) is kind]
        ask = getattr(model, WANTED[kind])
        try:
            for place, answer in ask([prompts[i] for i in group]):
                answers[group[place]] = answer
        except PromptError:
            for i in group:
                answers[i], refusals[i] = _alone(ask, prompts[i])
    return answers, refusals


def _alone(ask: Callable[..., object], prompt: Prompt) -> tuple[Answer | None, str]:
    try:
        found: dict[int, Answer] = dict(ask([prompt]))  # type: ignore[call-overload]
        return found[0], ""
    except PromptError as error:
        return None, str(error)
