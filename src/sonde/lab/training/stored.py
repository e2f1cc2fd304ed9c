"""Which facts a model has stored: it gives the object back in a text that it learnt the fact from.

Asks through the model's ordinary abilities. Knows worlds and prompts, nothing of weights.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice

from sonde.core.abilities import Fills, Generates, Model
from sonde.core.columns import one_by_one
from sonde.core.errors import AbilityError, ModelError
from sonde.core.facts import Fact
from sonde.core.prompts import Fill, Generate, Key, Prompt
from sonde.lab.training.corpus import check_tokenizer
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


def recited(
    world: World,
    trained: Trained,
    model: Model,
    *,
    facts: Collection[str] | None = None,
    most: int = MOST,
) -> dict[str, float]:
    """For each fact, the share of its texts in which the model gives the object back; what is given
    back in any is stored.

    That is the model's first choice of all its tokens. At most `most` texts of a fact are tried,
    sentences before lists; 0 for a fact that was not taught. `facts` are the ids of those that are
    wanted, None for all.
    """
    check(world, trained)
    wanted = world.truth if facts is None else dict.fromkeys(facts)
    settings = trained.settings
    taught = lessons(world, settings.lists, settings.seed, facts=wanted, most=most)
    asked = ((fact, lesson) for fact, texts in taught.items() for lesson in texts)
    hits = dict.fromkeys(wanted, 0)
    while some := list(islice(asked, AT_ONCE)):
        for (fact, lesson), said in zip(some, _said(model, some, world), strict=True):
            hits[fact] += said in lesson.objects
    return {fact: hits[fact] / max(1, len(taught.get(fact, ()))) for fact in wanted}


def check(world: World, trained: Trained) -> None:
    """Refuse a model that was not trained on this world."""
    check_tokenizer(world, trained.path)
    if trained.world_fingerprint != world.fingerprint:
        raise ModelError(f"{trained.path} was trained on another world; give the one it was told")


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
    facts = None if facts is None else frozenset(facts)
    alone: dict[str, dict[tuple[str, str], Lesson]] = {}
    listed: dict[str, dict[tuple[str, str], Lesson]] = {}
    for document in documents(world, lists=lists, seed=seed, about=facts):
        kept = alone if document.form == "sentence" else listed
        for fact in document.facts:
            if (kept is listed and fact in alone) or (facts is not None and fact not in facts):
                continue
            texts, lesson = kept.setdefault(fact, {}), lesson_of(document, world.facts[fact])
            text = lesson.before, lesson.after
            if text in texts:
                texts[text] = replace(lesson, objects=texts[text].objects | lesson.objects)
            elif len(texts) < most:
                texts[text] = lesson
    every = {**listed, **alone}
    return {fact: tuple(every[fact].values()) for fact in world.truth if fact in every}


def lesson_of(document: Document, fact: Fact) -> Lesson:
    """A document around the object that it states for a fact.

    A name and an object are words that stand for nothing else, so that the object is the first one
    of the fact's after its subject.
    """
    text = document.text
    named = _words(tuple(fact.subject.names)).search(text)
    told = named and _words(tuple(e.name for e in fact.objects)).search(text, named.end())
    if told is None:
        raise ModelError(f"fact {fact.id} is not stated in the text that is said to: {text!r}")
    after = text[told.end() :] if document.form == "sentence" else ""
    return Lesson(before=text[: told.start()], after=after, objects=frozenset([told.group()]))


def _said(model: Model, asked: Sequence[tuple[str, Lesson]], world: World) -> list[str]:
    """What the model says first in the place of each object."""
    said = [""] * len(asked)
    if isinstance(model, Fills):
        prompts = [_prompt(world, *ask, Fill(top=1)) for ask in asked]
        for place, filled in one_by_one(model.fill(prompts)):
            said[place] = filled.top[0].strip()
    elif isinstance(model, Generates):
        want = Generate(most=1, until="")  # an object is one token
        for place, generated in model.generate([_prompt(world, *ask, want) for ask in asked]):
            said[place] = generated.text.strip()
    else:
        raise AbilityError("what is stored can only be asked of a model that fills or generates")
    return said


def _prompt(world: World, id: str, lesson: Lesson, want: Fill | Generate) -> Prompt:
    fact = world.facts[id]
    key = Key(fact=id, relation=fact.relation, template="stored", subject=fact.subject.name)
    after = lesson.after if isinstance(want, Fill) else ""
    return Prompt(key=key, prefix=lesson.before, suffix=after, want=want)


@lru_cache(maxsize=1 << 17)  # a fact is told many times
def _words(names: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, names))})\b")
