"""Build multiple-choice facts in the manner of T-REx-MC from any stream of triples.

Relations with enough facts and objects; of each some facts for training and some for testing, and
for every test fact wrong options that no row calls correct for its subject. Subjects and objects
are told apart by name, as a model reads them, whatever the case of their letters.

Two passes, so that memory depends on what is kept and not on the number of rows. The first counts
each relation and holds a bounded number of names: those with the smallest draws, whatever their
order or repetition. The second collects, of the facts that were drawn, names, identifiers, details,
and everything that any row calls correct for their subjects, by name or by identifier. Knows
nothing of files or terminals.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random

from sonde.core.errors import DataError, UsageError
from sonde.core.facts import Card, Dataset, Entity, Fact, Kind, Relation
from sonde.data.builders.triples import Faults, Smallest, Source, Triple, clean
from sonde.data.wordings import known_relation, relation_ids

POOL = 1000
BETWEEN = "\n"  # no name that was cleaned has one

SEVERAL = 0.1
"""From this share of facts on, objects count as several of a subject, or as shared by subjects."""

MIB = 2**20
NAMED = 5

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """What a relation needs, and what is drawn from it."""

    least_facts: int = 500
    least_objects: int = 100
    train: int = 100
    test: int = 400
    options: int = 99
    seed: int = 0

    def __post_init__(self) -> None:
        least = {"least_facts": 1, "least_objects": 2, "train": 0, "test": 1, "options": 1}
        for name, smallest in least.items():
            given = getattr(self, name)
            if given < smallest:
                shown = name.replace("_", "-")
                raise UsageError(f"--{shown} must be at least {smallest}, not {given}")

    @property
    def drawn(self) -> int:
        """How many facts are drawn of a relation."""
        return self.train + self.test

    @property
    def needed(self) -> int:
        """How many facts a relation must have: at least one more than are for training."""
        return max(self.least_facts, self.train + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """What became of one relation; `lacks` says what it has too few of, nothing where it is kept.

    `options` is the smallest number of wrong options that a test fact has, `short` how many test
    facts have fewer than were asked for.
    """

    relation: Relation
    survey: Survey
    lacks: str = ""
    train: int = 0
    test: int = 0
    options: int = 0
    short: int = 0


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
        return sum(tally.survey.rows for tally in (*self.kept, *self.failed))


def build(
    sources: Sequence[Source],
    recipe: Recipe,
    *,
    name: str = "trex-mc",
    templates: Sequence[Dataset] = (),
    skip: int = 0,
    progress: Progress = lambda done, total: None,
) -> Built:
    """Read every source twice and make the dataset; refuses where no relation qualifies."""
    faults = Faults(limit=skip)
    triples = _reading(sources, progress)
    surveys = _survey(triples(faults), recipe)
    if not surveys:
        raise DataError(_nothing(sources, faults))
    tallies = {
        name: Tally(
            relation=known_relation(id, name, templates),
            survey=surveys[name],
            lacks=surveys[name].lacks(recipe),
        )
        for name, id in relation_ids(surveys).items()
    }
    good = {name: tally for name, tally in sorted(tallies.items()) if not tally.lacks}
    if not good:
        raise DataError(_none_qualifies(tallies.values(), recipe))
    drawn = {name: DrawnFacts(surveys[name], recipe) for name in good}
    for triple in triples(Faults(limit=skip)):
        if triple.relation in drawn:
            drawn[triple.relation].add(triple)
    facts = {t.relation.id: drawn.pop(n).facts(t.relation.id, recipe) for n, t in good.items()}
    relations = [
        known_relation(t.relation.id, n, templates, kind_of(facts[t.relation.id]))
        for n, t in good.items()
    ]
    return Built(
        dataset=Dataset(
            card=_card(name, sources, templates, recipe, len(good)),
            relations=tuple(sorted(relations, key=lambda relation: relation.id)),
            read=lambda id: facts[id],
            fingerprint="",
        ),
        kept=tuple(_counted(t, facts[t.relation.id], recipe) for t in _largest(good.values())),
        failed=tuple(tally for tally in _largest(tallies.values()) if tally.lacks),
        faults=faults,
    )


def _reading(sources: Sequence[Source], progress: Progress) -> Callable[[Faults], Iterator[Triple]]:
    """What goes over all sources once; progress is told in MiB, over both passes."""
    total, done = 2 * sum(source.size for source in sources), 0

    def tick(size: int) -> None:
        nonlocal done
        done += size
        progress(done // MIB, max(total // MIB, 1))

    return lambda faults: (t for source in sources for t in source.read(faults, tick))


class Survey:
    """What the first pass keeps of one relation: how many rows it has, facts and objects drawn."""

    __slots__ = ("facts", "objects", "rows")

    def __init__(self, relation: str, recipe: Recipe) -> None:
        bound = max(recipe.needed, recipe.drawn)
        pool = max(POOL, recipe.least_objects, 2 * recipe.options)
        self.rows = 0
        self.facts = Smallest(bound, recipe.seed, f"fact:{relation}:")
        self.objects = Smallest(pool, recipe.seed, f"object:{relation}:")

    def add(self, triple: Triple) -> None:
        """Count one row."""
        self.rows += 1
        object = triple.object.casefold()
        self.objects.offer(object)
        self.facts.offer(f"{triple.subject.casefold()}{BETWEEN}{object}", triple.subject_id)

    def lacks(self, recipe: Recipe) -> str:
        """What the relation has too few of; nothing where it qualifies."""
        few = {
            "facts": len(self.facts) < recipe.needed,
            "objects": len(self.objects) < recipe.least_objects,
        }
        return " and ".join(what for what, lacking in few.items() if lacking)


def _survey(triples: Iterable[Triple], recipe: Recipe) -> dict[str, Survey]:
    """The first pass: every relation, by its name."""
    surveys: dict[str, Survey] = {}
    for triple in triples:
        if triple.relation not in surveys:
            surveys[triple.relation] = Survey(triple.relation, recipe)
        surveys[triple.relation].add(triple)
    return surveys


class DrawnFacts:
    """What the second pass keeps of one relation: all forms in which rows have a thing, by name.

    Names are in small letters. `_correct` has the objects of each subject of a drawn fact,
    `_by_id` these subjects by their identifiers.
    """

    def __init__(self, survey: Survey, recipe: Recipe) -> None:
        self._drawn = survey.facts.ordered()[: recipe.drawn]
        self._details: dict[str, dict[str, str]] = {pair: {} for pair in self._drawn}
        self._pool: dict[str, set[Entity]] = {name: set() for name in survey.objects.ids}
        self._subjects: dict[str, set[Entity]] = {}
        self._correct: dict[str, dict[str, set[Entity]]] = {}
        self._by_id: dict[str, set[str]] = {}
        for pair in self._drawn:
            subject, _, _ = pair.partition(BETWEEN)
            self._subjects[subject], self._correct[subject] = set(), {}
            for id in survey.facts.ids[pair]:
                self._by_id.setdefault(id, set()).add(subject)

    def add(self, triple: Triple) -> None:
        """Take from a row what belongs to a fact that was drawn, or to an object of the pool."""
        subject, object = triple.subject.casefold(), triple.object.casefold()
        alike = self._by_id.get(triple.subject_id, set())
        if object not in self._pool and subject not in self._subjects and not alike:
            return
        thing, answer = triple.entities
        if object in self._pool:
            self._pool[object].add(answer)
        if subject in self._subjects:
            # an identifier of other facts only would bring objects that no one has looked for
            self._subjects[subject].add(thing if subject in alike else Entity.named(triple.subject))
            self._take_details(f"{subject}{BETWEEN}{object}", triple)
        for name in alike | {subject} & self._subjects.keys():
            self._correct[name].setdefault(object, set()).add(answer)

    def _take_details(self, pair: str, triple: Triple) -> None:
        """Of several rows of one fact the one that says most stays, then the first by its words."""
        if pair in self._details:
            both = (triple.details(), self._details[pair])
            self._details[pair] = min(both, key=lambda d: (-len(d), sorted(d.items())))

    def facts(self, relation: str, recipe: Recipe) -> tuple[Fact, ...]:
        """The facts drawn, in the order of their draws, those for training first.

        Of two names for one thing the first stays. Test facts have their options.
        """
        options = sorted(map(_option, self._pool.values()), key=lambda option: option[0].name)
        facts: dict[str, Fact] = {}
        for number, pair in enumerate(self._drawn):
            subject, _, object = pair.partition(BETWEEN)
            right, train = self._correct[subject], number < recipe.train
            thing, answer = _usual(self._subjects[subject]), _usual(right.get(object, ()))
            objects = {answer.id: answer}
            for name in sorted(right):
                objects.setdefault(_usual(right[name]).id, _usual(right[name]))
            fact = Fact(
                id=f"{relation}:{thing.id}:{answer.id}",
                relation=relation,
                subject=thing,
                objects=tuple(objects.values()),
                split="train" if train else "test",
                details=self._details[pair],
            )
            correct = frozenset[str]().union(*map(_marks, right.values()))
            wrong = () if train else _wrong(fact.id, options, correct, recipe)
            facts.setdefault(fact.id, replace(fact, wrong=wrong))
        return tuple(facts.values())


def _usual(forms: Collection[Entity]) -> Entity:
    """Of a thing's forms one with an identifier, then the first by that and with most names."""
    if not forms:
        raise DataError("the triples changed while they were read; run the same command again")
    return min(forms, key=lambda e: (e.id == e.name, e.id, -len(e.names), e.names))


def _marks(forms: Collection[Entity]) -> frozenset[str]:
    """What a thing can be recognised by: its names in small letters, and its identifiers."""
    names = (clean(name).casefold() for entity in forms for name in entity.names)
    return frozenset((*names, *(BETWEEN + entity.id for entity in forms)))


def _option(forms: Collection[Entity]) -> tuple[Entity, frozenset[str]]:
    """A thing as options show it, by one name, and what it can be recognised by."""
    usual = _usual(forms)
    return Entity(id=usual.id, names=usual.names[:1]), _marks(forms)


def _wrong(
    id: str,
    options: Iterable[tuple[Entity, frozenset[str]]],
    correct: frozenset[str],
    recipe: Recipe,
) -> tuple[Entity, ...]:
    """Objects that no row calls correct for the subject, as many as asked or all of them."""
    free = [entity for entity, marks in options if marks.isdisjoint(correct)]
    if len(free) > recipe.options:
        places = Random(f"{recipe.seed}:{id}").sample(range(len(free)), recipe.options)
        free = [free[place] for place in sorted(places)]
    return tuple(free)


def kind_of(facts: Sequence[Fact]) -> Kind:
    """The relation's type, judged by the facts drawn of it."""
    several = sum(len(fact.objects) > 1 for fact in facts)
    if several > SEVERAL * len(facts):
        return "N-M"
    owners = Counter(fact.objects[0].id for fact in facts)
    shared = sum(count for count in owners.values() if count > 1)
    return "N-1" if shared > SEVERAL * len(facts) else "1-1"


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


def _largest(tallies: Iterable[Tally]) -> list[Tally]:
    return sorted(tallies, key=lambda t: (-len(t.survey.facts), -t.survey.rows, t.relation.id))


def _none_qualifies(tallies: Collection[Tally], recipe: Recipe) -> str:
    shown = ", ".join(
        f"{t.relation.label} ({t.survey.facts} facts, {t.survey.objects} objects)"
        for t in _largest(tallies)[:NAMED]
    )
    return (
        f"none of {len(tallies):,} relations has {recipe.needed:,} facts and "
        f"{recipe.least_objects:,} objects; the largest: {shown}; --least-facts, --least-objects "
        "and --train ask for less"
    )


def _card(
    name: str, sources: Sequence[Source], templates: Sequence[Dataset], recipe: Recipe, kept: int
) -> Card:
    cards = [source.card for source in sources if source.card]
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
