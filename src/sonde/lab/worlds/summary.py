"""A world in numbers: what is taught, what can be guessed, how long its text is.

Knows worlds, nothing of files or screens.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sonde.core.facts import Kind
from sonde.lab.worlds.frames import pieces
from sonde.lab.worlds.truth import Taught
from sonde.lab.worlds.world import World


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """The relations of one kind: facts, those that are taught, and those that can be guessed."""

    kind: Kind
    shown: bool
    relations: int
    facts: int
    taught: int
    mentions: int
    cue: int
    majority: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Length:
    """How long the text is: sentences, words and marks in all, and how many of these differ."""

    sentences: int
    words: int
    different: int


def counts(world: World) -> Iterator[Counts]:
    """Each kind of relation that the world has, those that the text shows apart from others."""
    groups: dict[tuple[Kind, bool], list[Taught]] = {}
    kinds = {relation.id: relation.kind for relation in world.dataset.relations}
    for taught in world.truth.values():
        groups.setdefault((kinds[taught.relation], taught.shown), []).append(taught)
    for (kind, shown), own in groups.items():
        yield Counts(
            kind=kind,
            shown=shown,
            relations=len({taught.relation for taught in own}),
            facts=len(own),
            taught=sum(taught.exposure > 0 for taught in own),
            mentions=sum(taught.exposure for taught in own),
            cue=sum(taught.guess == "cue" for taught in own),
            majority=sum(taught.guess == "majority" for taught in own),
        )


def length(world: World) -> Length:
    """The length of the text, without writing it: templates, names, and an object each."""
    told, introductions = world.told, world.introductions()
    own = np.array([_words(world.templates[id].text) for id in told.worded])
    usual = int(np.count_nonzero(told.names == 0))  # of two words; an alias has one
    words = int(own[told.templates].sum()) + 2 * len(told) + usual
    return Length(
        sentences=len(told) + len(introductions),
        words=words + sum(len(pieces(text)) for text in introductions),
        different=len(world.words()),
    )


def _words(template: str) -> int:
    return len(pieces(template.replace("[X]", " ").replace("[Y]", " ")))
