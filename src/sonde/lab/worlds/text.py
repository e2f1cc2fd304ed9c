r"""What a world's models read: sentences, introductions, and lists of the forms that probes use.

Knows worlds and texts, nothing of files or tokens. A list is about one relation and tells a fact
once at most, so that nothing in it can be copied; what is too little for a list stays a sentence:

    Tavo Beldurn Kelum Sandi Pirolt Marvel …                    pairs
    Predict the [MASK] in each sentence in one word.            mask
    Q: The veldrint of Tavo Beldurn is [MASK].
    A: Kelum.
    Answer each question in one word.                           qa
    Q: Which veldrint does Tavo Beldurn have?
    A: Kelum.
    Q: Which veldrint does Tavo Beldurn have?                   questions
    A: Kelum
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from random import Random
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sonde.core.errors import UsageError
from sonde.core.facts import Fact, Template
from sonde.core.fingerprints import draw_key
from sonde.lab.worlds.world import World
from sonde.prompting import few_shot as contexts
from sonde.prompting import frames
from sonde.prompting.sequences import Line, Separators, told

Form = Literal["sentence", "introduction", "pairs", "mask", "qa", "questions"]
Places = NDArray[np.int64]
"""Places of mentions in the column of all, fact by fact."""

LENGTHS: Mapping[str, tuple[int, int]] = {"pairs": (5, 40), "examples": (2, 6), "questions": (3, 8)}
"""The fewest and the most facts of a list; mentions are dealt evenly over these forms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One text, read by itself, with the facts that it states, each as often as it stands there."""

    text: str
    form: Form
    facts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _List:
    """A list that is to be written: its form, its mentions, and the template of a question."""

    form: Form
    mentions: tuple[int, ...]
    template: Template | None = None


def documents(world: World, lists: float = 0.0, seed: int = 0) -> Iterator[Document]:
    """Every mention once, in an order drawn by the seed: about a share of them in lists."""
    if not 0 <= lists <= 1:
        raise UsageError(f"lists is a share of the mentions, 0 to 1; not {lists:g}")
    return _documents(world, lists, seed)


def _documents(world: World, lists: float, seed: int) -> Iterator[Document]:
    listed, alone = _dealt(world, lists, seed) if lists else ([], np.arange(len(world.told)))
    introductions = world.introductions()
    for place in _order(len(alone) + len(listed) + len(introductions), seed):
        if place < len(alone):
            mention = world.told[int(alone[place])]
            text = world.sentence(mention)
            yield Document(text=text, form="sentence", facts=(mention.fact,))
        elif (place := place - len(alone)) < len(listed):
            yield _written(world, listed[place])
        else:
            yield Document(text=introductions[place - len(listed)], form="introduction")


def _order(count: int, seed: int) -> Iterator[int]:
    """The numbers below `count` in an order that the seed decides; the same on every machine."""
    keys = np.random.PCG64(draw_key(seed, "documents")).random_raw(count)
    return map(int, np.argsort(keys, kind="stable"))


def _dealt(world: World, lists: float, seed: int) -> tuple[list[_List], Places]:
    """The lists, and the places of the mentions that stand alone."""
    found: list[_List] = []
    alone = [np.flatnonzero(world.told.draws >= lists)]
    for relation, (start, stop) in world.told.relations.items():
        places = [start + int(n) for n in np.flatnonzero(world.told.draws[start:stop] < lists)]
        random = Random(f"{seed}:lists:{relation}")
        random.shuffle(places)
        for number, form in enumerate(LENGTHS):
            own, left = _cut(places[number :: len(LENGTHS)], world, LENGTHS[form], random)
            found += (_listed(world, relation, form, group, random) for group in own)
            alone.append(np.array(left, dtype=np.int64))
    return found, np.concatenate(alone)


def _cut(
    places: Sequence[int], world: World, lengths: tuple[int, int], random: Random
) -> tuple[list[tuple[int, ...]], list[int]]:
    """Groups of mentions of different facts, and what is left when there are too few of them."""
    waiting = deque(places)
    groups: list[tuple[int, ...]] = []
    while True:
        size, group, again = random.randint(*lengths), dict[int, int](), list[int]()
        while waiting and len(group) < size:
            place = waiting.popleft()
            fact = int(world.told.facts[place])
            again.append(place) if fact in group else group.setdefault(fact, place)
        if len(group) < lengths[0]:
            return groups, [*group.values(), *again, *waiting]
        waiting.extendleft(reversed(again))
        groups.append(tuple(group.values()))


def _listed(
    world: World, relation: str, form: str, mentions: tuple[int, ...], random: Random
) -> _List:
    if form == "pairs":
        return _List(form="pairs", mentions=mentions)
    used = [world.templates[id] for id in world.used[relation]]
    questions = [template for template in used if template.style == "question"]
    if form == "questions":
        return _List(form="questions", mentions=mentions, template=random.choice(questions))
    template = random.choice(used)
    style: Form = "qa" if template.style == "question" and random.random() < 0.5 else "mask"
    return _List(form=style, mentions=mentions, template=template)


def _written(world: World, listed: _List) -> Document:
    mentions = [world.told[place] for place in listed.mentions]
    lines = [_line(world.facts[m.fact], m.object) for m in mentions]
    return Document(
        text=_text(listed, lines), form=listed.form, facts=tuple(m.fact for m in mentions)
    )


def _text(listed: _List, lines: Sequence[Line]) -> str:
    template = listed.template
    if template is None:
        return told(lines, Separators()).rstrip(" ")
    if listed.form == "questions":
        asked = ((contexts.question(template, line.subject, "qa"), line.object) for line in lines)
        return "".join(frames.shown(text, answer, "qa") for text, answer in asked)
    style: contexts.Style = "qa" if listed.form == "qa" else "mask"
    asked = ((contexts.question(template, line.subject, style), line.object) for line in lines)
    shown = (contexts.shown(text, answer) for text, answer in asked)
    return "".join(chain([f"{contexts.INSTRUCTIONS[style]}\n"], shown))


def _line(fact: Fact, object: int) -> Line:
    return Line(fact=fact.id, subject=fact.subject.name, object=fact.objects[object].name)
