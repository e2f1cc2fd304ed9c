"""Frames and wrong objects for any dataset, in the manner of FKTC. Knows no terminal.

Frames are the dataset's own questions, then those of a file, then those that a model writes.
Wrong objects are other objects of the relation that no fact calls right for the subject.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sonde.core.errors import DataError, EndpointError, UsageError
from sonde.core.facts import Card, Dataset, Entity, Fact, Relation
from sonde.data.builders.fktc_questions import Fault, Gathered, Origin, Rule, Writer, templates
from sonde.prompting.options import correct_for, correct_names, negatives, spellings

NAMED = 8

Progress = Callable[[int, int], None]
"""Called with the relations that are done and all of them."""

Given = Mapping[str, Sequence[str]]
"""Questions by relation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """What is wanted of a relation and of a fact; `turns` is how often a model is asked at most."""

    rule: Rule = field(default_factory=Rule)
    negatives: int = 5
    turns: int = 5
    seed: int = 0

    def __post_init__(self) -> None:
        if self.rule.frames < 1 or self.negatives < 0 or self.turns < 1:
            raise UsageError("--frames and --turns must be at least 1, --negatives at least 0")
        if not 0 < self.rule.bleu <= 100:
            raise UsageError(f"--bleu must be above 0 and at most 100, not {self.rule.bleu:g}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """What became of one relation.

    `wrong` counts facts by how many wrong objects they have; `mistaken` are objects that the
    dataset called wrong and that are right.
    """

    id: str
    label: str
    frames: Mapping[Origin, int]
    refused: Mapping[tuple[Origin, Fault], int]
    wrong: Mapping[int, int]
    mistaken: int

    @property
    def kept(self) -> int:
        """Frames of all origins."""
        return sum(self.frames.values())

    @property
    def facts(self) -> int:
        """Facts of all splits."""
        return sum(self.wrong.values())

    def faults(self, fault: Fault) -> int:
        """Questions that were refused for a reason."""
        return sum(count for (_, why), count in self.refused.items() if why == fault)


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """The dataset, with what became of its questions; `strangers` are questions of no relation."""

    dataset: Dataset
    gathered: Mapping[str, Gathered]
    wrong: WrongObjects
    strangers: int

    @property
    def tallies(self) -> tuple[Tally, ...]:
        """What became of every relation; facts are read unless they have been, as by writing."""
        return tuple(map(self._tally, self.dataset.relations))

    def _tally(self, relation: Relation) -> Tally:
        origins: tuple[Origin, ...] = ("own", "file", "endpoint")
        gathered = self.gathered[relation.id]
        wrong = Counter(self.dataset.frame(relation.id)["wrong_ids"].list.len())
        return Tally(
            id=relation.id,
            label=relation.label,
            frames={origin: gathered.count(origin) for origin in origins},
            refused=dict(gathered.refused),
            wrong=wrong,
            mistaken=self.wrong.mistaken[relation.id],
        )


def build(
    dataset: Dataset,
    recipe: Recipe,
    *,
    name: str,
    given: Given | None = None,
    writer: Writer | None = None,
    sources: Sequence[str] = (),
    progress: Progress = lambda done, total: None,
) -> Built:
    """The dataset under frames, with wrong objects; `sources` name who wrote further questions."""
    given = given or {}
    found = gather(dataset, recipe, given, writer, progress)
    if not any(one.frames for one in found.values()):
        raise DataError(
            f"no relation of {dataset.name!r} has a question; --paraphrases FILE or --endpoint URL "
            "with --model NAME brings some"
        )
    wrong = WrongObjects(dataset, recipe)
    made = Dataset(
        card=_card(dataset, recipe, name, sources),
        relations=tuple(
            replace(r, templates=templates(r, found[r.id].frames)) for r in dataset.relations
        ),
        read=wrong.facts,
        fingerprint="",
        vocabulary=dataset.vocabulary,
    )
    strangers = sum(len(texts) for id, texts in given.items() if id not in found)
    return Built(dataset=made, gathered=found, wrong=wrong, strangers=strangers)


def gather(
    dataset: Dataset, recipe: Recipe, given: Given, writer: Writer | None, progress: Progress
) -> dict[str, Gathered]:
    """The frames of every relation; where the model fails, says which relations lack some."""
    found = dict(_at_hand(dataset, recipe, given, further=writer is not None))
    for done, relation in enumerate(dataset.relations if writer else ()):
        progress(done, len(dataset.relations))
        try:
            _ask(relation, found[relation.id], recipe, writer)
        except EndpointError as error:
            left = [r.id for r in dataset.relations[done:] if found[r.id].missing]
            raise EndpointError(f"{error}; {_lacking(left)}") from None
    progress(len(dataset.relations), len(dataset.relations))
    return found


def _at_hand(
    dataset: Dataset, recipe: Recipe, given: Given, *, further: bool
) -> Iterator[tuple[str, Gathered]]:
    """The frames that need no asking; objects are read where other people's questions come in."""
    for relation in dataset.relations:
        strange = further or relation.id in given
        objects = dataset.object_names(relation.id, aliases=True) if strange else ()
        found = Gathered(rule=recipe.rule, objects=objects)
        found.offer([t for t in relation.templates if t.style == "question"], "own")
        found.offer(given.get(relation.id, ()), "file")
        yield relation.id, found


def _ask(relation: Relation, found: Gathered, recipe: Recipe, writer: Writer | None) -> None:
    for turn in range(1, recipe.turns + 1):
        if writer is None or not found.missing:
            return
        found.offer(writer.write(relation, found.texts, found.missing, turn), "endpoint")


def _lacking(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - NAMED} more" if len(ids) > NAMED else ""
    return f"frames are missing for {len(ids)} relations: {', '.join(ids[:NAMED])}{more}"


class WrongObjects:
    """Gives facts wrong objects; `mistaken` counts, by relation, those named so that are right."""

    def __init__(self, dataset: Dataset, recipe: Recipe) -> None:
        self._dataset, self._recipe = dataset, recipe
        self.mistaken: Counter[str] = Counter()

    def facts(self, relation: str) -> Iterator[Fact]:
        """The facts of a relation."""
        pool = Pool(self._dataset, relation)
        for fact in self._dataset.facts(relation):
            drawn, right = pool.wrong(fact, self._recipe)
            self.mistaken[relation] += right
            yield replace(fact, wrong=drawn)


class Pool:
    """The objects of a relation, and what is right for its subjects over all facts and splits."""

    def __init__(self, dataset: Dataset, relation: str) -> None:
        self._right = correct_names(dataset, relation)
        self._entities: dict[str, Entity] = {}
        for fact in dataset.facts(relation):
            for entity in fact.objects:
                shown = Entity(id=entity.id, names=entity.names[:1])
                self._entities.setdefault(entity.name, shown)
        self._owners: dict[str, set[str]] = {}
        for usual, names in spellings(dataset, relation).items():
            for name in names:
                self._owners.setdefault(name, set()).add(usual)

    def wrong(self, fact: Fact, recipe: Recipe) -> tuple[tuple[Entity, ...], int]:
        """Wrong objects: those that the dataset names first, drawn where there are too many.

        Others of the relation make up for what is lacking. No name of any is right.
        """
        right = correct_for(fact, self._right)
        barred = right.union(*(self._owners.get(name, ()) for name in right))
        named = {entity.name: entity for entity in fact.wrong}
        sound = {n: e for n, e in named.items() if n not in barred and barred.isdisjoint(e.names)}
        if len(sound) > recipe.negatives:
            names = _drawn(fact, barred, sound, recipe.seed, recipe.negatives)
        else:
            others = [name for name in self._entities if name not in sound]
            lacking = recipe.negatives - len(sound)
            names = (*sound, *_drawn(fact, barred, others, recipe.seed, lacking))
        known = {**self._entities, **sound}
        return tuple(known[name] for name in names), len(named) - len(sound)


def _drawn(
    fact: Fact, barred: frozenset[str], pool: Iterable[str], seed: int, count: int
) -> tuple[str, ...]:
    """Names of a pool that are wrong for a fact, as MONITOR draws them where there are none."""
    return negatives(replace(fact, wrong=()), barred, tuple(pool), seed, count)[0]


def _card(dataset: Dataset, recipe: Recipe, name: str, sources: Sequence[str]) -> Card:
    rule = recipe.rule
    return Card(
        name=name,
        licence=dataset.card.licence,
        sources=tuple(dict.fromkeys((*dataset.card.sources, *sources))),
        description=f"{dataset.name} under question frames, in the manner of FKTC: up to "
        f"{rule.frames} of a relation, BLEU of any two under {rule.bleu:g}; up to "
        f"{recipe.negatives} wrong objects of a fact; seed {recipe.seed}.",
    )
