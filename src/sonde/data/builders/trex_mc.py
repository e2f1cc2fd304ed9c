"""Build multiple-choice facts in the manner of T-REx-MC from any stream of triples.

Relations with enough facts and objects; of each some facts for training and some for testing, and
for every test fact wrong options that no row calls correct for its subject. Two passes, so that
memory depends on what is kept. Knows nothing of files or terminals.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from sonde.core.errors import DataError
from sonde.core.facts import Card, Dataset, Entity, Fact, Kind
from sonde.data.builders.triple_passes import (
    Collection,
    Count,
    Drawn,
    Option,
    Recipe,
    Survey,
    collect,
    survey,
)
from sonde.data.builders.triples import DatasetTriples, Faults, Source, Triple
from sonde.data.known import KnownRelations, relation_ids

SEVERAL = 0.1
"""From this share of facts on, objects count as several of a subject, or as shared by subjects."""

MIB = 2**20
NAMED = 5

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """What became of one relation; `lacks` says what it has too few of, nothing where it is kept.

    `options` is the smallest number of wrong options that a test fact has, `short` how many test
    facts have fewer than were asked for.
    """

    id: str
    label: str
    rows: int
    facts: Count
    objects: Count
    lacks: str = ""
    train: int = 0
    test: int = 0
    options: int = 0
    short: int = 0
    templates: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A dataset, and what became of every relation and every row."""

    dataset: Dataset
    kept: tuple[Tally, ...]
    failed: tuple[Tally, ...]
    faults: Faults

    @property
    def rows(self) -> int:
        """Rows that were read, faulty ones aside."""
        return sum(tally.rows for tally in (*self.kept, *self.failed))


def build(
    sources: Sequence[Source],
    recipe: Recipe,
    *,
    name: str = "trex-mc",
    templates: Sequence[Dataset] = (),
    skip: int = 0,
    progress: Progress | None = None,
) -> Built:
    """Read every source twice and make the dataset; refuses where no relation qualifies."""
    faults = Faults(limit=skip)
    reading = Reading(sources, progress)
    surveys = survey(reading.triples(faults), recipe)
    if not surveys:
        raise DataError(_nothing(sources, faults))
    known = KnownRelations.of(templates)
    tallies = {
        name: _tally(id, name, surveys[name], recipe, known)
        for name, id in relation_ids(surveys).items()
    }
    good = {name: tally.id for name, tally in sorted(tallies.items()) if not tally.lacks}
    if not good:
        raise DataError(_none_qualifies(tallies, recipe))
    found = collect(
        reading.triples(Faults(limit=skip)), {name: surveys[name] for name in good}, recipe
    )
    facts = {good[n]: tuple(drawn_facts(good[n], found.pop(n), recipe)) for n in good}
    relations = [known.relation(id, n, kind_of(facts[id])) for n, id in good.items()]
    return Built(
        dataset=Dataset(
            card=_card(name, sources, templates, recipe, len(good)),
            relations=tuple(sorted(relations, key=lambda relation: relation.id)),
            read=lambda id: facts[id],
            fingerprint="",
        ),
        kept=tuple(_counted(t, facts[t.id], recipe) for t in _largest(tallies) if not t.lacks),
        failed=tuple(tally for tally in _largest(tallies) if tally.lacks),
        faults=faults,
    )


class Reading:
    """Reads all sources, and says how far it is over both passes, in MiB."""

    def __init__(self, sources: Sequence[Source], progress: Progress | None) -> None:
        self._sources = sources
        self._progress = progress
        self._total = 2 * sum(source.size for source in sources)
        self._done = 0

    def triples(self, faults: Faults) -> Iterator[Triple]:
        """One pass over everything."""
        for source in self._sources:
            yield from source.read(faults, self._tick)

    def _tick(self, size: int) -> None:
        self._done += size
        if self._progress is not None:
            self._progress(self._done // MIB, max(self._total // MIB, 1))


def drawn_facts(relation: str, found: Collection, recipe: Recipe) -> Iterator[Fact]:
    """The facts of a relation, those for training first; test facts have their options."""
    pool = Pool(found.options())
    met: set[str] = set()
    for number, drawn in enumerate(found.facts()):
        id = f"{relation}:{drawn.subject.id}:{drawn.objects[0].id}"
        if id in met:  # two names for one thing
            continue
        met.add(id)
        train = number < recipe.train
        yield Fact(
            id=id,
            relation=relation,
            subject=drawn.subject,
            objects=drawn.objects,
            split="train" if train else "test",
            wrong=() if train else pool.wrong(id, drawn, recipe),
            details=drawn.details,
        )


class Pool:
    """The objects of a relation that options are drawn from, found by name and identifier."""

    def __init__(self, options: Iterable[Option]) -> None:
        self._options = sorted(options, key=lambda option: option.name)
        self._shown = [_short(option.entity) for option in self._options]
        self._places: dict[str, list[int]] = {}
        for place, option in enumerate(self._options):
            for mark in option.marks:
                self._places.setdefault(mark, []).append(place)

    def wrong(self, id: str, drawn: Drawn, recipe: Recipe) -> tuple[Entity, ...]:
        """Objects that no row calls correct for the subject, as many as asked or all of them."""
        barred = {place for mark in drawn.correct for place in self._places.get(mark, ())}
        free = [place for place in range(len(self._shown)) if place not in barred]
        if len(free) > recipe.options:
            free = sorted(Random(f"{recipe.seed}:{id}").sample(free, recipe.options))
        return tuple(self._shown[place] for place in free)


def kind_of(facts: Sequence[Fact]) -> Kind:
    """The relation's type, judged by the facts drawn of it."""
    several = sum(len(fact.objects) > 1 for fact in facts)
    if several > SEVERAL * len(facts):
        return "N-M"
    owners = Counter(fact.objects[0].id for fact in facts)
    shared = sum(count for count in owners.values() if count > 1)
    return "N-1" if shared > SEVERAL * len(facts) else "1-1"


def _short(entity: Entity) -> Entity:
    return Entity(id=entity.id, names=entity.names[:1])


def _tally(id: str, name: str, found: Survey, recipe: Recipe, known: KnownRelations) -> Tally:
    return Tally(
        id=id,
        label=known.label(id, name),
        rows=found.rows,
        facts=found.facts,
        objects=found.objects,
        lacks=found.lacks(recipe),
        templates=len(known.templates(id, name)),
    )


def _counted(tally: Tally, facts: Sequence[Fact], recipe: Recipe) -> Tally:
    options = [len(fact.wrong) for fact in facts if fact.split == "test"]
    return replace(
        tally,
        train=len(facts) - len(options),
        test=len(options),
        options=min(options, default=0),
        short=sum(count < recipe.options for count in options),
    )


def _nothing(sources: Sequence[Source], faults: Faults) -> str:
    where = ", ".join(source.name for source in sources)
    why = f"; {faults.count} faulty rows, the first: {faults.first[0]}" if faults.count else ""
    return f"no triple in {where}{why}"


def _largest(tallies: Mapping[str, Tally]) -> list[Tally]:
    return sorted(tallies.values(), key=lambda t: (-t.facts.value, -t.rows, t.id))


def _none_qualifies(tallies: Mapping[str, Tally], recipe: Recipe) -> str:
    best = _largest(tallies)[:NAMED]
    shown = ", ".join(f"{t.label} ({t.facts} facts, {t.objects} objects)" for t in best)
    return (
        f"none of {len(tallies):,} relations has {recipe.needed:,} facts and "
        f"{recipe.least_objects:,} objects; the largest: {shown}; --least-facts, --least-objects "
        "and --train ask for less"
    )


def _card(
    name: str, sources: Sequence[Source], templates: Sequence[Dataset], recipe: Recipe, kept: int
) -> Card:
    cards = [source.dataset.card for source in sources if isinstance(source, DatasetTriples)]
    cards += [dataset.card for dataset in templates]
    licences = dict.fromkeys(f"{card.name}: {card.licence}" for card in cards)
    named = dict.fromkeys([*(s.name for s in sources), *(c.name for c in cards)])
    return Card(
        name=name,
        licence="; ".join(licences) or "unknown",
        sources=tuple(named),
        description=f"Multiple choice in the manner of T-REx-MC: {kept} relations, up to "
        f"{recipe.train} training and {recipe.test} test facts each, {recipe.options} wrong "
        f"options; seed {recipe.seed}.",
    )
