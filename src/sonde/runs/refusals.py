"""Reject what a probe cannot prompt: a missing capability, template or language, long prompts.

A dataset may have no templates for the probe, or none in a whole language. If prompts are too long
for a model, the error names the largest value of the probe's `length_setting` with which all fit.
Knows nothing of how tokens are counted: a model raises when it is asked for the costs of a prompt.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from heapq import nlargest
from itertools import groupby
from typing import Any, cast

from sonde.core.abilities import Ability, Lacks, Model, Plans, Probe, abilities
from sonde.core.components import settings_of
from sonde.core.errors import AbilityError, DataError, PromptTooLong, SondeError, UsageError
from sonde.core.facts import Dataset, Relation, Style, Template
from sonde.core.prompts import Prompt, Score, blocks_of, prompts_of
from sonde.core.words import listed
from sonde.data.tables.columns import PAGE
from sonde.probes import PROBES
from sonde.runs.masks import choose_answer
from sonde.runs.shards import asked

log = logging.getLogger(__name__)

WORDS: dict[Style, str] = {
    "statement": "The {} of [X] is [Y].",
    "question": "What is the {} of [X]? [Y].",
}
SHOWN = 3
"""Relations for which a sentence is suggested."""

FEW = 2
LONGEST = 16
"""Prompts of each relation that are tried."""


def suited(probe: Probe, model: Model, dataset: Dataset) -> Probe:
    """A probe settled for a model; refused, saying what else can be asked, if the model cannot."""
    can = abilities(model)
    probe = choose_answer(probe, model, dataset)
    chats: frozenset[Any] = frozenset({"chat"} if model.identity.chat else ())
    try:
        return probe.suited(can | chats)
    except AbilityError as error:
        if not isinstance(model, Lacks):
            raise
        why = "; ".join(f"to {name}: {reason}" for name, reason in model.lacks().items())
        able = ", ".join(name for name, kind in PROBES.items() if _takes(kind, can))
        raise AbilityError(
            f"{error}. Why it is not able {why}. Probes that it can serve: {able or 'none'}"
        ) from None


def _takes(kind: type, can: frozenset[Ability]) -> bool:
    """Whether a probe, as it is without settings, takes a model of such abilities."""
    try:
        kind().suited(can)
    except (AbilityError, UsageError):
        return False
    return True


def refuse_unasked(probe: Probe, dataset: Dataset) -> None:
    """Refuse a dataset that the probe cannot ask for want of sentences, or not in all languages."""
    refuse_unworded(probe, dataset)
    _refuse_unspoken(probe, dataset)


def refuse_unworded(probe: Probe, dataset: Dataset) -> None:
    """Refuse a dataset without sentences if that is why the probe cannot ask, with some to copy.

    Tried on a few facts, so that it is quick and can come before a model is loaded.
    """
    relations = dataset.asked_relations()
    if any(relation.templates for relation in relations):
        return
    chosen = replace(dataset.selection, relations=(relations[0].id,), limit=FEW)
    some = replace(dataset, selection=chosen)
    if _asks(probe, some):
        return
    for style in WORDS:
        if _asks(probe, _worded(some, style)):
            raise DataError(_told(probe, dataset, style))


def announce_unworded(probe: Probe, dataset: Dataset) -> None:
    """Warn of relations that lack a template while others have some."""
    relations = dataset.asked_relations()
    missing = [relation.id for relation in relations if not relation.templates]
    if not missing or len(missing) == len(relations):
        return
    chosen = replace(dataset.selection, relations=tuple(missing[:1]), limit=FEW)
    if not _asks(probe, replace(dataset, selection=chosen)):
        log.warning(
            "no template for %s, so none is filled with its facts; give one with --template "
            "'%s=The … of [X] is [Y].'",
            listed(missing, SHOWN),
            missing[0],
        )


def _refuse_unspoken(probe: Probe, dataset: Dataset) -> None:
    """Refuse a dataset in several languages where the probe would ask in some of them alone.

    Tried on a few facts of each language, on all where these do not do.
    """
    languages = dataset.languages()
    if len(languages) < 2:
        return
    spoken = [language for language in languages if _asks_in(probe, dataset, language)]
    missing = [language for language in languages if language not in spoken]
    if not spoken or not missing:
        return  # without any language the probe says itself what it needs
    cure = f"leave out what it cannot ask with --languages {','.join(spoken)}"
    if getattr(probe, "template_source", "") == "manual":
        from sonde.probes.vary import with_settings

        every = with_settings(probe, template_source="all")
        if all(_asks_in(every, dataset, language) for language in missing):
            cure = (
                "use all templates, not only those written by hand (--template-source all), or "
                f"{cure}"
            )
    raise DataError(
        f"probe {probe.name!r} finds nothing to ask in {listed(missing, SHOWN)}, though "
        f"dataset {dataset.name!r} is to be asked in {listed(languages, SHOWN)}: {cure}"
    )


def _asks_in(probe: Probe, dataset: Dataset, language: str) -> bool:
    own = dataset.in_languages([language])
    few = replace(own, selection=replace(own.selection, limit=FEW))
    try:
        return _asks(probe, few, DataError) or _asks(probe, own, DataError)
    except SondeError:
        return True  # something else is missing, which the run itself tells of


def _worded(dataset: Dataset, style: Style) -> Dataset:
    relations = (replace(r, templates=(_template(r, style),)) for r in dataset.relations)
    return replace(dataset, relations=tuple(relations))


def _template(relation: Relation, style: Style) -> Template:
    label = relation.label.replace("_", " ")
    label = label.lower() if label.istitle() else label
    return Template(id=relation.id, text=WORDS[style].format(label), style=style)


def _asks(probe: Probe, dataset: Dataset, trouble: type[SondeError] = SondeError) -> bool:
    try:
        return any(len(block) for block in blocks_of(probe.ask(dataset)))
    except trouble:
        return False


def _told(probe: Probe, dataset: Dataset, style: Style) -> str:
    relations, several = dataset.asked_relations(), len(dataset.relations) > 1
    words = {r: _template(r, style) for r in relations}
    flags = " ".join(
        f'--template "{f"{r.id}=" if several else ""}{words[r].text}"' for r in relations[:SHOWN]
    )
    more = " …" if len(relations) > SHOWN else ""
    many = "one for each relation" if several else "one"
    fact = next(dataset.facts(relations[0].id))
    asked = words[relations[0]].fill(fact.subject.name, fact)[0].strip()
    return (
        f"probe {probe.name!r} asks with sentences, and dataset {dataset.name!r} has none. Give "
        f"{many}, with [X] for the subject and [Y] for the answer, such as:\n  {flags}{more}\n"
        f"It would ask {asked!r} and look for {fact.objects[0].name!r}. Probe ic-lke needs no "
        f"sentence. See {PAGE}"
    )


@contextmanager
def fitting(probe: Probe, model: Model, dataset: Dataset) -> Iterator[None]:
    """Add to a refusal of a prompt that is too long the largest setting with which all fit."""
    try:
        yield
    except PromptTooLong as error:
        told = _advice(probe, model, dataset)
        if told:
            error.args = (f"{error}. {told}",)
        raise


def largest(probe: Probe, model: Plans, dataset: Dataset) -> int | None:
    """The largest value of the setting with which the longest prompts fit; None where none does.

    Only values below the probe's own are tried.
    """
    name = getattr(probe, "length_setting", "")
    least = next(s.min or 1 for s in settings_of(type(probe)) if s.name == name)
    low, high = least, int(getattr(probe, name)) - 1
    best = None
    while low <= high:
        middle = (low + high + 1) // 2
        if _fits(replace(cast(Any, probe), **{name: middle}), model, dataset):
            best, low = middle, middle + 1
        else:
            high = middle - 1
    return best


def _advice(probe: Probe, model: Model, dataset: Dataset) -> str:
    name = getattr(probe, "length_setting", "")
    if not name or not isinstance(model, Plans):
        return ""
    if varied := getattr(probe, "vary", {}).get(name):
        probe = replace(cast(Any, probe).probe, **{name: max(varied)})
    value = largest(getattr(probe, "probe", probe), model, dataset)
    if value is None:
        return f"No value of {name} makes every prompt fit this model"
    flag = f"--vary {name}={value},…" if varied else f"--{name.replace('_', '-')} {value}"
    return f"The largest {name} that fits all of them is {value}: {flag}"


def _fits(probe: Probe, model: Plans, dataset: Dataset) -> bool:
    try:
        for _ in model.estimate_costs(
            [_longest(prompts_of(asked(probe, cast(Any, model), dataset)))]
        ):
            pass
    except PromptTooLong:
        return False
    return True


def _longest(prompts: Iterator[Prompt]) -> list[Prompt]:
    """Those with the most characters of each relation: to count all tokens would take too long."""
    relations = groupby(prompts, key=lambda prompt: prompt.key.relation)
    return [prompt for _, own in relations for prompt in nlargest(LONGEST, own, key=_length)]


def _length(prompt: Prompt) -> int:
    options = prompt.want.options if isinstance(prompt.want, Score) else ()
    return len(prompt.prefix) + max(map(len, options), default=0) + len(prompt.suffix)
