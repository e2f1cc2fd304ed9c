"""Choose the prompts on which a model is examined. Gold answers only say which option is shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import TypeVar

from sonde.core.abilities import Ability, Probe
from sonde.core.facts import Dataset
from sonde.core.prompts import Fill, Generate, Prompt, Score, Trace, Want, prompts_of

RELATIONS = 3
SCANNED = 20_000  # prompts among which the longest is looked for
OPTIONS = 5
WRITTEN = 8  # tokens

Item = TypeVar("Item")


def sample(probe: Probe, dataset: Dataset, facts: int) -> list[Prompt]:
    """Some prompts of some relations, each relation's with one template, and the longest prompt."""
    asked = [r.id for r in dataset.asked_relations() if next(dataset.asked(r.id), None)]
    prompts = [p for id in spread(asked, RELATIONS) for p in alike(probe, dataset, id, facts)]
    longest = max(islice(prompts_of(probe.ask(dataset)), SCANNED), key=length, default=None)
    return prompts if longest is None or longest in prompts else [*prompts, longest]


def alike(probe: Probe, dataset: Dataset, relation: str, most: int) -> list[Prompt]:
    """Prompts of one relation that differ in their subject."""
    one = dataset.select(replace(dataset.selection, relations=(relation,), limit=most))
    found: dict[str, Prompt] = {}
    for prompt in prompts_of(probe.ask(one)):
        first = next(iter(found.values()), prompt)
        if prompt.key.template == first.key.template:
            found.setdefault(prompt.key.subject, prompt)
    return list(found.values())[:most]


def length(prompt: Prompt) -> int:
    """Characters of the longest text of a prompt."""
    options = prompt.want.options if isinstance(prompt.want, Score) else ()
    return len(prompt.prefix) + len(prompt.suffix) + max(map(len, options), default=0)


def wants(prompts: Sequence[Prompt], dataset: Dataset, can: frozenset[Ability]) -> list[Prompt]:
    """Each prompt in every way the model can be asked it."""
    relations = {prompt.key.relation for prompt in prompts}
    objects = {relation: dataset.object_names(relation) for relation in relations}
    first = first_objects(prompts, dataset)
    return [
        # what is written on from must be the end of its text
        replace(prompt, want=want, suffix="" if isinstance(want, Generate) else prompt.suffix)
        for prompt in prompts
        for want in _wants(prompt, first.get(prompt.key.fact), objects[prompt.key.relation], can)
    ]


def _wants(
    prompt: Prompt, shown: str | None, objects: Sequence[str], can: frozenset[Ability]
) -> Iterator[Want]:
    want = prompt.want
    names = want.options if isinstance(want, Score) else getattr(want, "watched", ()) or objects
    chosen = list(spread(names, OPTIONS))
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
