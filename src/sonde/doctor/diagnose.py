"""Choose prompts, put them to a model, let it show what it was given, and check both.

Gold answers only say which option is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, TypeVar

from sonde.core.abilities import (
    TEMPLATE,
    WANTED,
    Ability,
    Batching,
    Examines,
    Identity,
    KeepsCache,
    Model,
    Probe,
)
from sonde.core.answers import Answer, Filled, Generated, Scored
from sonde.core.columns import one_by_one
from sonde.core.errors import PromptError
from sonde.core.facts import Dataset
from sonde.core.progress import begin, told
from sonde.core.prompts import Fill, Generate, Prompt, Score, Trace, Want, prompts_of
from sonde.core.scores import option_logps
from sonde.doctor import numbers, texts
from sonde.doctor.agreement import KINDS, agreement, repeated, tolerance_for
from sonde.doctor.findings import Case, Check, Diagnosis, Finding, Seen, ok, skipped, warning

RELATIONS = 3
MORE = 16  # facts of each relation whose answers are compared with each other
SCANNED = 20_000  # prompts among which the longest is looked for
OPTIONS = 5
WRITTEN = 8  # tokens
ENGINE = "engine vs naive"
LOOKING = "looking at prompts, one text at a time"
FETCHING = "fewer, larger passes (--batch-tokens), more GPUs or quantised weights are quicker"
WORK = {str(kind): name for kind, name in (*KINDS.values(), ("sample", "drawing"))}
NO_TOKENS = "the model shows no tokens: it answers from a table, or cannot show them"

FOUR_BITS, EIGHT_BITS = "bitsandbytes, 4 bits", "bitsandbytes, 8 bits"
BY_BATCH = "a text's numbers depend on what else is in the batch, in transformers too"
INSTEAD = "Use int8 weights of torchao, which give a text the same numbers in every batch"

Item = TypeVar("Item")


def path(seen: Seen) -> Finding:
    """Which way texts go through the model; a warning where that is not the quickest one."""
    limits = next((case.shown.limits for case in seen.cases if case.shown), None)
    if limits is None or not limits.path:
        return skipped("the model does not say")
    if not limits.slow:
        return ok(limits.path)
    return warning(
        limits.slow, "Answers are right all the same; 'sonde plan' says how long a run will take"
    )


CHECKS = (
    Check("how texts open", texts.opening),
    Check("answer's tokens", texts.boundary),
    Check("length", texts.length),
    Check("vocabulary", texts.known),
    Check("unknown words", texts.unknown),
    Check("answered", texts.refusals, needs_tokens=False),
    Check("finite weights", numbers.weights),
    Check("finite numbers", numbers.finite, needs_tokens=False),
    Check("sum to one", numbers.sums, needs_tokens=False),
    Check("answers vary", numbers.varied),
    Check("not shifted", numbers.aligned),
    Check("likelihood", numbers.likely),
    Check("other opening", numbers.better_opened),
    Check("asked again", repeated, needs_tokens=False),
    Check("fast path", path),
)
"""Every check of what is given and answered; the engine beside the naive path comes after."""


def diagnose(
    model: Model,
    shows: Examines | None,
    prompts: Sequence[Prompt],
    more: Sequence[tuple[Prompt, str]] = (),
) -> Diagnosis:
    """Every check that applies; `shows` shows what the model is given, None if nothing can.

    `more` are prompts about more facts, each with the fact's object: do their answers differ?
    """
    cases = tuple(examined(model, shows, prompts))
    alive = tuple(filter(numbers.is_alive, cases))
    seen = Seen(
        cases=cases,
        alive=alive,
        tolerance=tolerance_of(model.identity),
        choices=tuple(chosen(model, more)) if shows is not None else (),
    )
    findings = []
    for name, look, needs_tokens in CHECKS:
        absent = needs_tokens and shows is None
        findings.append(replace(skipped(NO_TOKENS) if absent else look(seen), check=name))
    return Diagnosis(
        findings=(
            *findings,
            *at_once(model),
            *weights(model.identity),
            *conversation(model.identity, cases),
            *engine(seen, shows, model.identity),
        ),
        cases=cases,
        tolerance=seen.tolerance,
    )


def tolerance_of(identity: Identity) -> float:
    """That of the dtype in which a model computes."""
    details = identity.details
    # there are kernels for that on a CPU, which heed no other dtype
    halved = (details.get("quantised"), details.get("device")) == (FOUR_BITS, "cpu")
    return tolerance_for("bfloat16" if halved else identity.dtype)


def at_once(model: Model) -> Iterator[Finding]:
    """How many tokens a run would send through the model at once, unless it measures first."""
    if isinstance(model, Batching):
        tokens = model.budgets.choose(measure=False).tokens
        told = ", ".join(f"{WORK[kind]} {count:,}" for kind, count in tokens.items())
        yield replace(ok(told, tokens), check="tokens at once")


def weights(identity: Identity) -> Iterator[Finding]:
    """How the weights are held, where there is something to say about it."""
    details = identity.details
    if quantised := details.get("quantised"):
        shaky = warning(f"{quantised}: {BY_BATCH}", INSTEAD)
        yield replace(shaky if quantised == EIGHT_BITS else ok(quantised), check="quantised")
    if places := details.get("weights on"):
        fetches = "disk" in places or ("cuda" in places and "CPU" in places)
        slow = f"{places}: what the device does not hold is fetched for every pass"
        found = warning(slow, f"Answers are right all the same; {FETCHING}")
        yield replace(found if fetches else ok(places), check="placement")
    if adapter := details.get("adapter"):
        silent = warning(adapter, "Its weights are all 0, as before training: was it saved then?")
        yield replace(silent if "changes nothing" in adapter else ok(adapter), check="adapter")


def conversation(identity: Identity, cases: Sequence[Case]) -> Iterator[Finding]:
    """Whether a model with a chat template has something to say as it is asked."""
    written = [case.answer.text for case in cases if isinstance(case.answer, Generated)]
    if not written or not identity.details.get(TEMPLATE):
        return
    empty = sum(not text.strip() for text in written)
    way = "in turns" if identity.chat else "as plain texts"
    found = f"asked {way}; {empty} of {len(written)} written answers are empty"
    silent = 2 * empty > len(written) and not identity.chat
    advice = "It has a chat template: ask it in turns, with --chat always"
    yield replace(warning(found, advice) if silent else ok(found), check="chat template")


def engine(seen: Seen, shows: Examines | None, identity: Identity) -> list[Finding]:
    """The engine beside the naive path, for every kind of answer."""
    cases = list(filter(numbers.naive_is_finite, seen.cases))
    if shows is None or not cases:
        why = NO_TOKENS if shows is None else "nothing to compare with"
        return [replace(skipped(why), check=ENGINE)]
    cases, ties = settled(cases, shows, seen.tolerance)
    shaky = identity.details.get("quantised") == EIGHT_BITS
    return [
        replace(finding, verdict="warning", advice=INSTEAD) if shaky and finding.advice else finding
        for kind in KINDS
        for finding in agreement(cases, kind, seen.tolerance, ties if kind is Generated else 0)
    ]


def settled(cases: Sequence[Case], shows: Examines, tolerance: float) -> tuple[list[Case], int]:
    """The cases, naive numbers being those of the text that was written where two texts part at
    tokens too close to tell apart; and how many do."""
    found, ties = [], 0
    for case in cases:
        shown, answer = case.shown, case.answer
        naive = shown.naive if shown else None
        if shown and isinstance(answer, Generated) and isinstance(naive, Generated):
            logps = along(shows, case.prompt, answer, naive, tolerance)
            if logps is not None:
                ties += 1
                case = replace(case, shown=replace(shown, naive=replace(answer, logps=logps)))
        found.append(case)
    return found, ties


def along(
    shows: Examines, prompt: Prompt, answer: Generated, naive: Generated, tolerance: float
) -> tuple[float, ...] | None:
    """What the naive path gives the tokens of another text, if it all but wrote that itself.

    None where the texts are the same, or where the first token that differs is clearly less likely.
    """
    if answer.text == naive.text:
        return None
    want = Score(options=(answer.text, naive.text))
    asked = replace(prompt, prefix=prompt.prefix.rstrip(" "), want=want)
    ((_, shown),) = shows.examine([asked])
    if not isinstance(shown.naive, Scored):
        return None
    own, other = shown.naive.logps
    if (len(own), len(other)) != (len(answer.logps), len(naive.logps)):
        return None  # as one text they have other tokens
    written, best = (text.ids[text.start : text.stop] for text in shown.texts)
    pairs = enumerate(zip(written, best, strict=False))
    parting = next((i for i, (one, two) in pairs if one != two), None)
    if parting is None or other[parting] - own[parting] > 2 * tolerance:
        return None
    return own


def examined(model: Model, shows: Examines | None, prompts: Sequence[Prompt]) -> list[Case]:
    """Each prompt with what the model shows about it and, where that can be, its answer."""
    shown = dict(told(shows.examine(prompts), LOOKING, len(prompts))) if shows else {}
    begin("asking the model")
    # one that the model cannot take would stop the others, which go together
    askable = [i for i in range(len(prompts)) if shows is None or shown[i].askable]
    answers, refusals = answered(model, [prompts[i] for i in askable])
    again, _ = answered(model, [prompts[i] for i in askable[::-1]])
    found = dict(zip(askable, answers, strict=True))
    repeats = dict(zip(askable[::-1], again, strict=True))
    why = dict(zip(askable, refusals, strict=True))
    return [
        Case(
            prompt=prompt,
            shown=shown.get(i),
            answer=found.get(i),
            again=repeats.get(i),
            refused=why.get(i, "") or (shown[i].refused if i in shown else ""),
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
            for place, answer in one_by_one(ask([prompts[i] for i in group])):
                answers[group[place]] = answer
        except PromptError:
            for i in group:
                answers[i], refusals[i] = _alone(ask, prompts[i])
    return answers, refusals


def _alone(ask: Callable[..., Any], prompt: Prompt) -> tuple[Answer | None, str]:
    try:
        return dict(one_by_one(ask([prompt])))[0], ""
    except PromptError as error:
        return None, str(error)


def chosen(model: Model, prompts: Sequence[tuple[Prompt, str]]) -> Iterator[tuple[str, str]]:
    """The most probable answer to each prompt, with the object that comes with it."""
    answers, _ = answered(model, [prompt for prompt, _ in prompts])
    for answer, (_, name) in zip(answers, prompts, strict=True):
        if isinstance(answer, Scored):
            yield answer.options[int(option_logps(answer).argmax())], name
        elif isinstance(answer, Filled) and answer.top:
            yield answer.top[0], name


def more_facts(probe: Probe, dataset: Dataset, can: frozenset[Ability]) -> list[tuple[Prompt, str]]:
    """Prompts about more facts of the sampled relations, each with the fact's object.

    A mask is filled if the probe fills one; else options are scored, since what is written after
    different subjects differs anyway.
    """
    prompts = sampled(probe, dataset, MORE)
    objects = first_objects(prompts, dataset)
    fills = [prompt.want for prompt in prompts if isinstance(prompt.want, Fill)]
    limited = any(want.vocabulary is not None for want in fills)
    return [
        (prompt, objects[prompt.key.fact])
        for prompt in wants(prompts, dataset, can)
        if isinstance(want := prompt.want, Fill if fills else Score)
        and (not isinstance(want, Fill) or (want.vocabulary is not None) == limited)
    ]


def sampled(probe: Probe, dataset: Dataset, facts: int) -> list[Prompt]:
    """Some prompts of some relations, each relation's with one template."""
    asked = [r.id for r in dataset.asked_relations() if next(dataset.asked(r.id), None)]
    return [p for id in spread(asked, RELATIONS) for p in alike(probe, dataset, id, facts)]


def sample(probe: Probe, dataset: Dataset, facts: int) -> list[Prompt]:
    """Some prompts of some relations, each relation's with one template, and the longest prompt."""
    prompts = sampled(probe, dataset, facts)
    longest = max(islice(prompts_of(probe.ask(dataset)), SCANNED), key=length, default=None)
    return prompts if longest is None or longest in prompts else [*prompts, longest]


def alike(probe: Probe, dataset: Dataset, relation: str, most: int) -> list[Prompt]:
    """Prompts of one relation that differ in their subject."""
    selected = dataset.select(replace(dataset.selection, relations=(relation,), limit=most))
    by_subject: dict[str, Prompt] = {}
    for prompt in prompts_of(probe.ask(selected)):
        first = next(iter(by_subject.values()), prompt)
        if prompt.key.template == first.key.template:
            by_subject.setdefault(prompt.key.subject, prompt)
    return list(by_subject.values())[:most]


def length(prompt: Prompt) -> int:
    """Characters of the longest text of a prompt."""
    options = prompt.want.options if isinstance(prompt.want, Score) else ()
    return len(prompt.prefix) + len(prompt.suffix) + max(map(len, options), default=0)


def wants(
    prompts: Sequence[Prompt], dataset: Dataset, can: frozenset[Ability], most: int = OPTIONS
) -> list[Prompt]:
    """Each prompt in every way the model can be asked it, with about so many options."""
    relations = {prompt.key.relation for prompt in prompts}
    objects = {relation: dataset.object_names(relation) for relation in relations}
    first = first_objects(prompts, dataset)
    return [
        # what is written on from must be the end of its text
        replace(prompt, want=want, suffix="" if isinstance(want, Generate) else prompt.suffix)
        for prompt in prompts
        for want in _wants(
            prompt, first.get(prompt.key.fact), objects[prompt.key.relation], can, most
        )
    ]


def _wants(
    prompt: Prompt, shown: str | None, objects: Sequence[str], can: frozenset[Ability], most: int
) -> Iterator[Want]:
    want = prompt.want
    names = want.options if isinstance(want, Score) else getattr(want, "watched", ()) or objects
    chosen = list(spread(names, most))
    chosen += [max(names, key=len)] if names else []
    chosen = [shown, *chosen] if shown in names else chosen
    options = tuple(name for name in dict.fromkeys(chosen) if name is not None)
    capitals = isinstance(want, Score | Fill) and want.capitals
    punctuation = isinstance(want, Score) and want.punctuation
    if "score" in can and options:
        yield Score(options=options, capitals=capitals, punctuation=punctuation)
    if "fill" in can:
        yield Fill(top=10, watched=options, capitals=capitals)
        if isinstance(want, Fill) and want.vocabulary is not None:
            yield replace(want, watched=options)
    if "trace" in can and isinstance(want, Trace):  # the spans are the probe's own
        yield want
    if "generate" in can and prompt.prefix.strip():
        yield Generate(most=WRITTEN)


def first_objects(prompts: Sequence[Prompt], dataset: Dataset) -> dict[str, str]:
    """The first name of the first object of each prompt's fact."""
    wanted = {prompt.key.fact for prompt in prompts}
    relations = {prompt.key.relation for prompt in prompts}
    facts = (fact for id in relations for fact in dataset.facts(id) if fact.id in wanted)
    return {fact.id: fact.objects[0].name for fact in facts}


def spread(items: Sequence[Item], count: int) -> list[Item]:
    """At most `count` items, evenly spread.

    >>> spread("abcdefgh", 4), spread("ab", 4)
    (['a', 'c', 'e', 'g'], ['a', 'b'])
    """
    if len(items) <= count:
        return list(items)
    return [items[i * len(items) // count] for i in range(count)]
