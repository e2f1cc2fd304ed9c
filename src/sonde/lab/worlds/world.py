"""A made-up world: its facts, what its text tells of them and in which words; and in numbers.

Knows facts and sentences, nothing of files, tokens or screens.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import chain

import numpy as np

from sonde.core.facts import Card, Dataset, Fact, Kind, Template
from sonde.core.fingerprints import canonical, fingerprint
from sonde.lab.worlds.drafts import drafts, made_subjects
from sonde.lab.worlds.language import check_room, distinct, introduced, named, pieces, plain_words
from sonde.lab.worlds.settings import WorldSettings
from sonde.lab.worlds.truth import Mention, Taught, Told, drawn, told


@dataclass(frozen=True, kw_only=True, eq=False)
class World:
    """Facts, what the text tells of each, and the templates that the text uses, by relation."""

    settings: WorldSettings
    dataset: Dataset
    truth: Mapping[str, Taught]
    used: Mapping[str, tuple[str, ...]]

    @cached_property
    def fingerprint(self) -> str:
        """A short name for the world and its text: equal worlds, equal names."""
        settings = canonical(asdict(self.settings))
        told = (canonical([f.id, f.subject.names, _names(f)]) for f in self.facts.values())
        truth = (canonical(asdict(taught)) for taught in self.truth.values())
        worded = (canonical([t.id, t.text]) for t in self.templates.values())
        return fingerprint(chain(["world", settings, canonical(self.used)], told, truth, worded))

    @cached_property
    def facts(self) -> Mapping[str, Fact]:
        """Every fact by its id, relation by relation."""
        relations = self.dataset.relations
        return {fact.id: fact for r in relations for fact in self.dataset.facts(r.id)}

    @cached_property
    def templates(self) -> Mapping[str, Template]:
        """Every template by its id, used or not."""
        return {t.id: t for r in self.dataset.relations for t in r.templates}

    def mentions(self, fact: str) -> tuple[Mention, ...]:
        """Every place where the text states a fact; none for an untaught one."""
        taught, objects = self.truth[fact], len(self.facts[fact].objects)
        return drawn(taught, self.used[taught.relation], objects, self.settings.seed)

    @cached_property
    def told(self) -> Told:
        """Every mention of the text, fact by fact, in little space."""
        return told(self.truth.values(), self.used, self.mentions)

    def sentence(self, mention: Mention) -> str:
        """A mention as a sentence of the text."""
        fact = self.facts[mention.fact]
        before, after = self.templates[mention.template].fill(fact.subject.names[mention.name])
        return f"{before}{fact.objects[mention.object].name}{after}"

    def introductions(self) -> tuple[str, ...]:
        """The sentences that state no fact: other names of subjects, and what each object is."""
        called = (self.facts[id].subject for id, taught in self.truth.items() if taught.alias)
        subjects = {subject.id: subject for subject in called}
        times = self.settings.introductions
        pairs = (subjects[id].names[:2] for id in sorted(subjects))
        aliases = chain.from_iterable(introduced(name, alias, times) for name, alias in pairs)
        return (*aliases, *self._namings())

    def _namings(self) -> Iterator[str]:
        """Without them a model never meets the object of an untaught 1-1 fact, and any score would
        tell that fact by its object alone. Relations that are not shown stay unmentioned."""
        shown = {taught.relation for taught in self.truth.values() if taught.shown}
        for relation in self.dataset.relations:
            if relation.id in shown:
                for name in self.dataset.object_names(relation.id):
                    yield from named(relation.label, name, self.settings.namings)

    def words(self) -> tuple[str, ...]:
        """Every word and mark of the text, of names, templates and forms of prompts, each once.

        Names and nouns that the text never holds are among them, and [MASK] is one word.
        """
        worded = (t.text.replace("[X]", "").replace("[Y]", "") for t in self.templates.values())
        names = (name for fact in self.facts.values() for name in fact.subject.names)
        return tuple(
            dict.fromkeys(
                chain(
                    plain_words(),
                    distinct(worded),
                    self.dataset.vocabulary or (),
                    distinct(dict.fromkeys(names)),
                )
            )
        )


def make_world(settings: WorldSettings) -> World:
    """The world that the settings describe."""
    _check_room(settings)
    reserved = frozenset(word.casefold() for word in plain_words())
    made = tuple(drafts(settings, made_subjects(settings, reserved), reserved))
    own = {draft.relation.id: draft.facts for draft in made}
    dataset = Dataset(
        card=_card(settings),
        relations=tuple(draft.relation for draft in made),
        read=lambda id: own[id],
        fingerprint=fingerprint(["world", canonical(asdict(settings))]),
        vocabulary=tuple(name for draft in made for name in draft.objects),
    )
    truth = {taught.fact: taught for draft in made for taught in draft.truth}
    used = {draft.relation.id: draft.used for draft in made}
    return World(settings=settings, dataset=dataset, truth=truth, used=used)


def _card(settings: WorldSettings) -> Card:
    return Card(
        name=f"world-{settings.seed}",
        licence="CC0-1.0",
        sources=("sonde lab world",),
        description="An invented world: its names are made up and its facts are true nowhere. "
        "truth.jsonl says how often text.txt states each.",
    )


def _check_room(settings: WorldSettings) -> None:
    check_room("given", settings.words - settings.families)
    check_room("family", settings.families)
    check_room("alias", settings.subjects)
    few = settings.many_one + settings.many_many
    check_room("object", settings.one_one * settings.facts + few * settings.objects)
    check_room("noun", settings.relations)


def _names(fact: Fact) -> list[str]:
    return [entity.name for entity in fact.objects]


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
