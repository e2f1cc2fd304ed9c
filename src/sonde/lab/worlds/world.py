"""A made-up world: its facts, and what its text tells of them; drawn relation by relation.

Knows facts, words and draws, nothing of sentences, files, tokens or screens.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import accumulate, chain
from random import Random
from typing import Annotated, Literal, NamedTuple

from msgspec import Meta
from polars import DataFrame, col
from polars import len as rows

from sonde.core.facts import Card, Dataset, Entity, Fact, Kind, Relation, Template
from sonde.core.fingerprints import canonical, fingerprint
from sonde.core.train_test_overlap import DEV, TEST, TRAIN
from sonde.lab.worlds.language import (
    check_room,
    distinct,
    full_names,
    made_words,
    plain_words,
    templates,
)
from sonde.lab.worlds.settings import WorldSettings

FEWEST, MOST = 2, 3
"""Objects of a fact in an N-M relation."""

TWICE = 2
"""A fact is stated at least so often to have both names of its subject in the text."""

Guess = Literal["", "majority", "cue"]
"""How an object can be guessed: not at all, as its relation's commonest, from the name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Taught:
    """What the text of a world holds about one fact.

    exposure: how often the text states it. guess: whether its object could be guessed without being
    told; a cue counts before the majority. alias: whether the text also calls its subject by its
    other name. shown: whether the text states any fact of its relation.
    """

    fact: str
    relation: str
    split: str
    exposure: Annotated[int, Meta(ge=0)]
    guess: Guess = ""
    alias: bool = False
    shown: bool = True


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
        settings = canonical(self.settings.record())
        told = (
            canonical([fact.id, fact.subject.names, [entity.name for entity in fact.objects]])
            for fact in self.facts.values()
        )
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

    def words(self) -> tuple[str, ...]:
        """Every word and mark of the text, of names, templates and forms of prompts, each once.

        Names and nouns that the text never holds are among them, and [MASK] is one word.
        """
        worded = (t.text.replace("[X]", "").replace("[Y]", "") for t in self.templates.values())
        names = dict.fromkeys(name for fact in self.facts.values() for name in fact.subject.names)
        objects, plain = self.dataset.vocabulary or (), plain_words(self.settings.tongue)
        return tuple(dict.fromkeys(chain(plain, distinct(worded), objects, distinct(names))))

    def counts(self) -> DataFrame:
        """A row for each kind of relation, those that the text shows apart from others: relations,
        facts, how many are taught, how often, and how many can be guessed by cue or majority."""
        kinds = {relation.id: relation.kind for relation in self.dataset.relations}
        truth = DataFrame([asdict(taught) for taught in self.truth.values()])
        kind = col("relation").replace_strict(kinds).alias("kind")
        return truth.group_by(kind, "shown", maintain_order=True).agg(
            relations=col("relation").n_unique(),
            facts=rows(),
            taught=(col("exposure") > 0).sum(),
            mentions=col("exposure").sum(),
            cue=(col("guess") == "cue").sum(),
            majority=(col("guess") == "majority").sum(),
        )


def make_world(settings: WorldSettings) -> World:
    """The world that the settings describe."""
    _check_room(settings)
    reserved = frozenset(word.casefold() for word in plain_words(settings.tongue))
    drafts = tuple(_drafts(settings, _subjects(settings, reserved), reserved))
    facts = {draft.relation.id: draft.facts for draft in drafts}
    dataset = Dataset(
        card=_card(settings),
        relations=tuple(draft.relation for draft in drafts),
        read=lambda id: facts[id],
        fingerprint=fingerprint(["world", canonical(settings.record())]),
        vocabulary=tuple(name for draft in drafts for name in draft.objects),
    )
    truth = {taught.fact: taught for draft in drafts for taught in draft.truth}
    used = {draft.relation.id: draft.used for draft in drafts}
    return World(settings=settings, dataset=dataset, truth=truth, used=used)


def _card(settings: WorldSettings) -> Card:
    return Card(
        name=f"world-{settings.seed}"
        + ("" if settings.language == "en" else f"-{settings.language}"),
        licence="CC0-1.0",
        sources=("sonde lab world",),
        description="An invented world: its names are made up and its facts are true nowhere. "
        "truth.jsonl says how often text.txt states each.",
    )


def _check_room(settings: WorldSettings) -> None:
    tongue = settings.tongue
    check_room("given", settings.words - settings.families, tongue)
    check_room("family", settings.families, tongue)
    check_room("alias", settings.subjects, tongue)
    few = settings.many_one + settings.many_many
    check_room("object", settings.one_one * settings.facts + few * settings.objects, tongue)
    check_room("noun", settings.relations, tongue)


class _Draft(NamedTuple):
    """One relation of a world, with the templates that the text uses and the names of its objects,
    the commonest first."""

    relation: Relation
    used: tuple[str, ...]
    objects: list[str]
    facts: list[Fact]
    truth: list[Taught]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """What a relation is drawn from: `cues` says which object a family word stands for."""

    id: str
    kind: Kind
    shown: bool
    objects: tuple[Entity, ...]
    cues: Mapping[str, int]
    settings: WorldSettings

    def random(self, what: str) -> Random:
        """A source of draws for one purpose."""
        return Random(f"{self.settings.seed}:{self.id}:{what}")


def _subjects(settings: WorldSettings, reserved: frozenset[str]) -> tuple[Entity, ...]:
    """The subjects of a world, each with a usual name of two words and an alias of one."""
    seed, tongue = settings.seed, settings.tongue
    count = settings.words - settings.families
    given = made_words("given", count, Random(f"{seed}:given"), reserved, tongue)
    family = made_words("family", settings.families, Random(f"{seed}:family"), reserved, tongue)
    aliases = made_words("alias", settings.subjects, Random(f"{seed}:alias"), reserved, tongue)
    pairs = full_names(given, family, settings.subjects, Random(f"{seed}:names"))
    return tuple(
        Entity(id=f"s{n:05d}", names=(f"{first}{tongue.joint}{last}", alias))
        for n, ((first, last), alias) in enumerate(zip(pairs, aliases, strict=True), 1)
    )


def _drafts(
    settings: WorldSettings, subjects: Sequence[Entity], reserved: frozenset[str]
) -> Iterator[_Draft]:
    """Every relation, 1-1 first, then N-1, of which the last are unshown, then N-M."""
    numbers: dict[Kind, int] = {
        "1-1": settings.one_one,
        "N-1": settings.many_one,
        "N-M": settings.many_many,
    }
    kinds = [kind for kind, count in numbers.items() for _ in range(count)]
    few = settings.one_one + settings.many_one
    unshown = range(few - settings.unshown, few)
    seed, tongue = settings.seed, settings.tongue
    nouns = made_words("noun", len(kinds), Random(f"{seed}:noun"), reserved, tongue)
    taken = set(reserved)
    for number, (kind, noun) in enumerate(zip(kinds, nouns, strict=True)):
        id = f"R{number + 1:02d}"
        count = settings.facts if kind == "1-1" else settings.objects
        words = made_words("object", count, Random(f"{seed}:{id}:object"), taken, tongue)
        taken.update(word.casefold() for word in words)
        plan = _Plan(
            id=id,
            kind=kind,
            shown=number not in unshown,
            objects=tuple(Entity(id=f"{id}-o{k:04d}", names=(w,)) for k, w in enumerate(words, 1)),
            cues=_cues(settings, id, subjects) if settings.cues and kind != "1-1" else {},
            settings=settings,
        )
        yield _draft(plan, noun, plan.random("subjects").sample(subjects, settings.facts))


def _draft(plan: _Plan, noun: str, subjects: Sequence[Entity]) -> _Draft:
    settings = plan.settings
    worded = templates(plan.id, noun, settings.templates, plan.random("templates"), settings.tongue)
    facts, truth = [], []
    splits = _splits(plan)
    exposures = _exposures(plan, splits)
    columns = (subjects, _objects(plan, subjects), splits, exposures, _aliases(plan, exposures))
    for number, row in enumerate(zip(*columns, strict=True), 1):
        subject, places, split, exposure, alias = row
        id, objects = f"{plan.id}-{number:05d}", tuple(plan.objects[place] for place in places)
        facts.append(Fact(id=id, relation=plan.id, subject=subject, objects=objects, split=split))
        truth.append(
            Taught(
                fact=id,
                relation=plan.id,
                split=split,
                exposure=exposure,
                guess=_guess(plan, subject, places),
                alias=alias,
                shown=plan.shown,
            )
        )
    language = "" if settings.language == "en" else settings.language
    relation = Relation(id=plan.id, label=noun, kind=plan.kind, templates=worded, language=language)
    used = _used(plan, [template.id for template in worded])
    return _Draft(relation, used, [entity.name for entity in plan.objects], facts, truth)


def _used(plan: _Plan, ids: Sequence[str]) -> tuple[str, ...]:
    """The templates that the text uses: the first statement, the first question, and others."""
    others = plan.random("used").sample(ids[2:], plan.settings.used - 2)
    return tuple(id for id in ids if id in ids[:2] or id in others)


def _objects(plan: _Plan, subjects: Sequence[Entity]) -> list[tuple[int, ...]]:
    """The places of every fact's objects among those of the relation."""
    if plan.kind == "1-1":
        return [(place,) for place in range(len(subjects))]
    random = plan.random("objects")
    cued = set(_some(range(len(subjects)), plan.settings.cues, plan.random("cued")))
    free = iter(_weighted(len(subjects) - len(cued), plan.settings, random))
    firsts = [
        plan.cues[_family(subject)] if n in cued else next(free)
        for n, subject in enumerate(subjects)
    ]
    if plan.kind == "N-1":
        return [(place,) for place in firsts]
    return [(place, *_others(plan, place, random)) for place in firsts]


def _others(plan: _Plan, first: int, random: Random) -> list[int]:
    """Further objects of a fact, all alike common."""
    places = [place for place in range(len(plan.objects)) if place != first]
    return random.sample(places, random.randint(FEWEST, MOST) - 1)


def _weighted(count: int, settings: WorldSettings, random: Random) -> list[int]:
    """So many places of objects, as near to their weights as whole numbers come, in any order.

    One even step through the weights, so that no object is common by chance.
    """
    weights = [rank**-settings.skew for rank in range(1, settings.objects + 1)]
    ends = list(accumulate(weights))
    start = random.random()
    steps = ((start + n) / count * ends[-1] for n in range(count))
    places = [min(bisect_right(ends, step), settings.objects - 1) for step in steps]
    random.shuffle(places)
    return places


def _cues(settings: WorldSettings, id: str, subjects: Sequence[Entity]) -> Mapping[str, int]:
    """Which object each family word stands for in a relation; as common as its weight says."""
    families = sorted({_family(subject) for subject in subjects})
    random = Random(f"{settings.seed}:{id}:cues")
    return dict(zip(families, _weighted(len(families), settings, random), strict=True))


def _family(subject: Entity) -> str:
    return re.split("[ ・]", subject.name)[-1]


def _splits(plan: _Plan) -> list[str]:
    settings = plan.settings
    count = settings.facts
    splits = [TRAIN] * round(settings.train * count) + [DEV] * round(settings.dev * count)
    splits += [TEST] * (count - len(splits))
    plan.random("splits").shuffle(splits)
    return splits


def _exposures(plan: _Plan, splits: Sequence[str]) -> list[int]:
    """The ladder dealt over the facts of one split after the other, so that each has all of it."""
    if not plan.shown:
        return [0] * len(splits)
    random = plan.random("ladder")
    ladder = random.sample(plan.settings.ladder, len(plan.settings.ladder))
    order = random.sample(range(len(splits)), len(splits))
    order.sort(key=lambda place: splits[place])
    found = [0] * len(splits)
    for number, place in enumerate(order):
        found[place] = ladder[number % len(ladder)]
    return found


def _aliases(plan: _Plan, exposures: Sequence[int]) -> list[bool]:
    """Which facts have both names of their subject in the text: a share of each rung."""
    chosen: set[int] = set()
    for rung in plan.settings.ladder:
        own = [place for place, exposure in enumerate(exposures) if exposure == rung >= TWICE]
        chosen.update(_some(own, plan.settings.aliases, plan.random(f"aliases:{rung}")))
    return [place in chosen for place in range(len(exposures))]


def _some(places: Sequence[int], share: float, random: Random) -> list[int]:
    return random.sample(places, round(share * len(places)))


def _guess(plan: _Plan, subject: Entity, objects: Sequence[int]) -> Guess:
    """Whether one of a fact's objects can be guessed: from the name, or as the commonest."""
    if plan.kind == "1-1":
        return ""
    if plan.cues and plan.cues[_family(subject)] in objects:
        return "cue"
    return "majority" if plan.settings.skew and 0 in objects else ""
