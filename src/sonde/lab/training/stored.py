"""Which facts a model has stored: it gives the object back in a text that it learnt the fact from.

Asks through the model's ordinary abilities. Knows worlds and prompts, nothing of weights.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from sonde.core.abilities import Fills, Generates, Model
from sonde.core.errors import AbilityError, ModelError
from sonde.core.facts import Fact
from sonde.core.prompts import Fill, Generate, Key, Prompt
from sonde.lab.training.tokens import check_tokenizer
from sonde.lab.training.train import Trained
from sonde.lab.worlds.text import Document, documents
from sonde.lab.worlds.world import World

MOST = 8
"""Texts in which a model is asked for one fact."""

AT_ONCE = 4096
"""Prompts that are put to a model together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """A text that states a fact, around its object; `objects` are those that it was told with."""

    before: str
    after: str
    objects: frozenset[str]


def stored(
    world: World,
    trained: Trained,
    model: Model,
    *,
    facts: Collection[str] | None = None,
    most: int = MOST,
) -> dict[str, bool]:
    """For each fact, whether the model gives its object back in a text that taught it.

    `facts` are the ids of those that are wanted, None for all.
    """
    shares = recited(world, trained, model, facts=facts, most=most)
    return {fact: share > 0 for fact, share in shares.items()}


def recited(
    world: World,
    trained: Trained,
    model: Model,
    *,
    facts: Collection[str] | None = None,
    most: int = MOST,
) -> dict[str, float]:
    """For each fact, the share of its texts in which the model gives the object back.

    That is the model's first choice of all its tokens. At most `most` texts of a fact are tried,
    sentences before lists; 0 for a fact that was not taught.
    """
    check(world, trained)
    wanted = world.truth if facts is None else dict.fromkeys(facts)
    taught = lessons(world, trained.lists, trained.seed, facts=wanted, most=most)
    asked = ((fact, lesson) for fact, own in taught.items() for lesson in own)
    hits = dict.fromkeys(wanted, 0)
    while some := list(islice(asked, AT_ONCE)):
        for (fact, lesson), said in zip(some, _said(model, some, world), strict=True):
            hits[fact] += said in lesson.objects
    return {fact: hits[fact] / max(1, len(taught.get(fact, ()))) for fact in wanted}


def check(world: World, trained: Trained) -> None:
    """Refuse a model that was not trained on this world."""
    if trained.world_fingerprint != world.fingerprint:
        check_tokenizer(world, trained.path)
        raise ModelError(f"{trained.path} was trained on another world; give the one it was told")
    check_tokenizer(world, trained.path)


def lessons(
    world: World,
    lists: float,
    seed: int,
    *,
    facts: Collection[str] | None = None,
    most: int = MOST,
) -> Mapping[str, tuple[Lesson, ...]]:
    """The texts that state each taught fact, up to `most`; lists only where there is no sentence.

    A text that was told with several objects is one lesson.
    """
    alone: dict[str, dict[tuple[str, str], Lesson]] = {}
    listed: dict[str, dict[tuple[str, str], Lesson]] = {}
    for document in documents(world, lists=lists, seed=seed):
        kept = alone if document.form == "sentence" else listed
        for fact in document.facts:
            if (kept is listed and fact in alone) or (facts is not None and fact not in facts):
                continue
            own = kept.setdefault(fact, {})
            _learn(own, lesson_of(document, world.facts[fact]), most)
    found = {**listed, **alone}
    return {fact: tuple(found[fact].values()) for fact in world.truth if fact in found}


def lesson_of(document: Document, fact: Fact) -> Lesson:
    """A document around the object that it states for a fact.

    A name and an object are words that stand for nothing else, so that the object is the first one
    of the fact's after its subject.
    """
    text = document.text
    named = _words(fact.subject.names).search(text)
    told = named and _words(e.name for e in fact.objects).search(text, named.end())
    if told is None:
        raise ModelError(f"fact {fact.id} is not stated in the text that is said to: {text!r}")
    after = text[told.end() :] if document.form == "sentence" else ""
    return Lesson(before=text[: told.start()], after=after, objects=frozenset([told.group()]))


def _learn(own: dict[tuple[str, str], Lesson], lesson: Lesson, most: int) -> None:
    key = lesson.before, lesson.after
    if key in own:
        own[key] = replace(lesson, objects=own[key].objects | lesson.objects)
    elif len(own) < most:
        own[key] = lesson


def _said(model: Model, asked: Sequence[tuple[str, Lesson]], world: World) -> Iterator[str]:
    """What the model says first in the place of each object."""
    said = [""] * len(asked)
    if isinstance(model, Fills):
        prompts = [_prompt(fact, lesson, world, Fill(top=1)) for fact, lesson in asked]
        for place, filled in model.fill(prompts):
            said[place] = filled.top[0].strip()
    elif isinstance(model, Generates):
        want = Generate(most=1, until="")  # an object is one token
        prompts = [_prompt(fact, lesson, world, want) for fact, lesson in asked]
        for place, generated in model.generate(prompts):
            said[place] = generated.text.strip()
    else:
        raise AbilityError("what is stored can only be asked of a model that fills or generates")
    return iter(said)


def _prompt(id: str, lesson: Lesson, world: World, want: Fill | Generate) -> Prompt:
    fact = world.facts[id]
    key = Key(fact=id, relation=fact.relation, template="stored", subject=fact.subject.name)
    after = lesson.after if isinstance(want, Fill) else ""
    return Prompt(key=key, prefix=lesson.before, suffix=after, want=want)


def _words(names: Iterable[str]) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, names))})\b")
