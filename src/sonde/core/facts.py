"""Facts, relations, templates and the dataset that holds them. Knows nothing of files or models."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from heapq import nsmallest
from typing import TYPE_CHECKING, Literal

from sonde.core.errors import TemplateError, UsageError, nearest
from sonde.core.fact_frames import APART as APART
from sonde.core.fact_frames import FactFrames, is_apart, rows
from sonde.core.fingerprints import draw_key
from sonde.core.notebook import html
from sonde.core.overviews import asks, overview

if TYPE_CHECKING:
    from polars import DataFrame

SUBJECT_SLOT = "[X]"
ANSWER_SLOT = "[Y]"
DATE_SLOT = "[T]"
SLOT = re.compile(r"\[(?:X|T|details\.[^\[\]]+)\]")
"""What a template takes from a fact: the subject, the date, a detail."""

LAMA = "lama"
"""The origin of templates that LAMA itself asks with."""

NAME_PARTS = "uhn-"
"""How the ids of templates begin that ask about a part of a name, which is no fact."""

Kind = Literal["1-1", "N-1", "N-M"]
Source = Literal["manual", "paraphrase", "mined", "optimised"]
Style = Literal["statement", "question"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """A thing with an identifier and one or more names, the usual one first."""

    id: str
    names: tuple[str, ...]

    @classmethod
    def named(cls, name: str) -> Entity:
        """A thing that has nothing but a name."""
        return cls(id=name, names=(name,))

    @property
    def name(self) -> str:
        """The usual name."""
        return self.names[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One subject, one relation and every object accepted as correct for them.

    `wrong` are objects that its dataset names as wrong options, `details` further columns by name,
    `numbers` such as popularity. `date` is the time that is asked about; its objects are right
    `valid_from` a date `valid_to` another. Dates are YYYY, YYYY-MM or YYYY-MM-DD, empty for none.
    """

    id: str
    relation: str
    subject: Entity
    objects: tuple[Entity, ...]
    split: str = "test"
    tags: tuple[str, ...] = ()
    wrong: tuple[Entity, ...] = ()
    details: Mapping[str, str] = field(default_factory=dict, hash=False)
    numbers: Mapping[str, float] = field(default_factory=dict, hash=False)
    date: str = ""
    valid_from: str = ""
    valid_to: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A sentence with a slot `[X]` for the subject and `[Y]` for the answer.

    It may hold the fact's date, `[T]`, and its details, `[details.NAME]`: a fact with a prompt of
    its own has it there, and then the sentence needs no `[X]`.

    `group` is the id of the hand-written template a paraphrase was made from, else its own id.
    `weight` is what `sonde optimise lpaqa` gave it among the relation's, for `ensemble:FOLDER`.
    `origin` is LAMA for the sentence that LAMA itself asks the relation with, else empty.
    """

    id: str
    text: str
    source: Source = "manual"
    style: Style = "statement"
    group: str = ""
    weight: float | None = None
    origin: str = ""

    def __post_init__(self) -> None:
        for slot, role in ((SUBJECT_SLOT, "subject"), (ANSWER_SLOT, "object")):
            slots = self.text.count(slot)
            if slots == 0 and not (role == "subject" and "[details." in self.text):
                raise TemplateError(
                    f"template {self.id!r} has no {'answer' if role == 'object' else role} slot; "
                    f"write {slot} where the {role} belongs (text: {self.text!r})"
                )
            if slots > 1:
                raise TemplateError(
                    f"template {self.id!r} has {slots} {slot} slots; keep one (text: {self.text!r})"
                )

    @property
    def fact_slots(self) -> tuple[str, ...]:
        """What it takes from a fact beside the subject: `[T]` or `[details.NAME]`, each once."""
        found = (slot[0] for slot in SLOT.finditer(self.text) if slot[0] != SUBJECT_SLOT)
        return tuple(dict.fromkeys(found))

    @property
    def plain(self) -> bool:
        """Whether it takes nothing from a fact but the subject."""
        return not self.fact_slots

    def fill(self, subject: str, fact: Fact | None = None) -> tuple[str, str]:
        """The text before and after the answer, with everything in its place, taken literally.

        A template with a date or details needs the fact that has them.

        >>> Template(id="t", text="The capital of [X] is [Y].").fill("France")
        ('The capital of France is ', '.')
        """
        return self.filled({SUBJECT_SLOT: subject, **(slot_values(fact) if fact else {})})

    def filled(self, values: Mapping[str, str]) -> tuple[str, str]:
        """The text before and after the answer, every slot with what it has here."""

        def value(slot: re.Match[str]) -> str:
            text = values.get(slot[0], "")
            if not text and slot[0] != SUBJECT_SLOT:  # a subject may say nothing
                raise self._lacking(slot[0])
            return text

        before, after = self.text.split(ANSWER_SLOT)
        return SLOT.sub(value, before), SLOT.sub(value, after)

    def _lacking(self, slot: str) -> TemplateError:
        dated = slot == DATE_SLOT
        what = "its 'date'" if dated else f"{slot[9:-1]!r} of its details"
        add = "add it (of a table: --columns date=COLUMN)" if dated else "add it"
        return TemplateError(
            f"template {self.id!r} takes {what} from each fact, which one here does not have; "
            f"{add}, or ask with other templates (text: {self.text!r})"
        )

    @property
    def answer_last(self) -> bool:
        """Whether nothing but punctuation follows the answer."""
        return not re.search(r"\w", self.text.split(ANSWER_SLOT)[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """A kind of fact, with the sentences that can ask for it.

    `answers`, where there are any, are all that may be answered: every object of its facts, and
    distractors. `language` is that of sentences and names, as a code such as `ja`; `same` names
    what the relation is in every language: `P36` for `P36.ja`.
    """

    id: str
    label: str
    kind: Kind | None = None
    templates: tuple[Template, ...] = field(default=(), repr=False)
    tags: tuple[str, ...] = ()
    answers: tuple[Entity, ...] = field(default=(), repr=False)
    language: str = ""
    same: str = ""

    @property
    def title(self) -> str:
        """What it is called in a line: its id, and the label where that says more."""
        alike = self.id.casefold() == self.label.casefold()
        return self.id if alike else f"{self.id} {self.label}"

    def in_any_language(self, fact: str) -> str:
        """The id of a fact without the language of its relation, so that draws are alike in all.

        >>> Relation(id="P36.ja", label="capital", same="P36").in_any_language("P36.ja:Q17")
        'P36:Q17'
        """
        own = bool(self.same) and fact.startswith(self.id)
        return self.same + fact.removeprefix(self.id) if own else fact


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """Where a dataset comes from and how it may be used."""

    name: str
    version: str = "1"
    licence: str = "unknown"
    sources: tuple[str, ...] = ()
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which facts of a dataset are asked about; the others still serve as options and examples."""

    split: str = "test"
    relations: tuple[str, ...] = ()
    limit: int | None = None
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Dataset:
    """Relations and their facts, which are read once, when they are first asked for.

    `read(relation_id)` opens the facts of one relation, as objects or as a frame of
    `fact_frames`; `fingerprint` names the content. `from_table`: it was read from a user's table.
    """

    card: Card
    relations: tuple[Relation, ...]
    read: Callable[[str], Iterable[Fact] | DataFrame]
    fingerprint: str
    vocabulary: tuple[str, ...] | None = None
    selection: Selection = field(default_factory=Selection)
    notes: Mapping[str, int] = field(default_factory=dict)
    from_table: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.read, FactFrames):  # the same facts, selected otherwise, stay read
            spaces = {r.id: {e.id: e.names for e in r.answers} for r in self.relations}
            object.__setattr__(self, "read", FactFrames(self.read, spaces))

    def __repr__(self) -> str:
        return f"<Dataset {self.name!r} {self.card.version}: {asks(self)}>"

    def _repr_html_(self) -> str:
        return html(overview(self))

    @property
    def name(self) -> str:
        """The dataset's name."""
        return self.card.name

    def relation(self, name: str) -> Relation:
        """The relation of that id, or else of that label, whatever its case."""
        for relation in self.relations:
            if relation.id == name:
                return relation
        wanted = name.casefold()
        found = [r for r in self.relations if wanted in (r.label.casefold(), r.id.casefold())]
        if len(found) == 1:
            return found[0]
        if found:
            ids = ", ".join(relation.id for relation in found)
            raise UsageError(
                f"{name!r} is the label of several relations; name one by its id: {ids}"
            )
        hint = nearest(name, {word for r in self.relations for word in (r.id, r.label)})
        raise UsageError(f"dataset {self.name!r} has no relation {name!r}; {hint}")

    def frame(self, relation: str) -> DataFrame:
        """Every fact of a relation, of all splits: a row each, columns as in `fact_frames`."""
        assert isinstance(self.read, FactFrames)
        return self.read(relation)

    @property
    def size(self) -> int:
        """How many facts there are, of all relations and splits."""
        return sum(self.frame(relation.id).height for relation in self.relations)

    def split_frame(self, relation: str) -> DataFrame:
        """The facts of a relation in the split that is asked about, whatever the limit."""
        import polars

        return self.frame(relation).filter(polars.col("split") == self.selection.split)

    def asked_frame(self, relation: str) -> DataFrame:
        """The facts of a relation that the selection asks about, in the dataset's order."""
        frame, limit = self.split_frame(relation), self.selection.limit
        if limit is None or frame.height <= limit:
            return frame
        ids = map(self.relation(relation).in_any_language, frame["fact"])
        draws = ((draw_key(self.selection.seed, id), i) for i, id in enumerate(ids))
        return frame[sorted(i for _, i in nsmallest(limit, draws))]

    def facts(self, relation: str) -> Iterator[Fact]:
        """Every fact of a relation, of all splits."""
        yield from facts_of(self.frame(relation))

    def asked(self, relation: str) -> Iterator[Fact]:
        """The facts of a relation that the selection asks about, in the dataset's order."""
        yield from facts_of(self.asked_frame(relation))

    def asked_relations(self) -> tuple[Relation, ...]:
        """The relations that the selection asks about."""
        wanted = dict.fromkeys(self.selection.relations)
        return self.relations if not wanted else tuple(self.relation(id) for id in wanted)

    def select(self, selection: Selection) -> Dataset:
        """The same dataset, asking about other facts; refuses a selection that leaves nothing."""
        ids = dict.fromkeys(id for name in selection.relations for id in self._ids(name))
        selection = replace(selection, relations=tuple(ids))
        chosen = replace(self, selection=selection)
        if selection.limit is not None and selection.limit < 1:
            raise UsageError(f"limit must be at least 1, not {selection.limit}")
        if any(chosen.split_frame(relation.id).height for relation in chosen.asked_relations()):
            return chosen
        raise UsageError(
            f"dataset {self.name!r} has no facts in split {selection.split!r}; "
            "see 'sonde data show' for the splits it has"
        )

    def _ids(self, name: str) -> list[str]:
        """The relations of a name: one, or what it is in every language."""
        return [r.id for r in self.relations if r.same == name] or [self.relation(name).id]

    def object_names(self, relation: str, *, aliases: bool = False) -> tuple[str, ...]:
        """Distinct object names of a relation: those of its answer space, else those of its facts.

        Facts of all splits count, in order of first appearance; those collected apart only where
        their own split is asked about.
        """
        import polars

        if space := self.relation(relation).answers:
            named = (entity.names if aliases else entity.names[:1] for entity in space)
            return tuple(dict.fromkeys(name for names in named for name in names))
        asked = polars.col("split") == self.selection.split
        names = polars.col("object_names").explode()
        names = names.explode() if aliases else names.list.first()
        facts = self.frame(relation).lazy().filter(~is_apart() | asked)
        distinct = facts.select(names.drop_nulls().unique(maintain_order=True)).collect()
        return tuple(distinct["object_names"])

    def languages(self) -> tuple[str, ...]:
        """The languages of all relations that are asked, each once."""
        return tuple(dict.fromkeys(r.language for r in self.asked_relations() if r.language))

    def in_languages(self, languages: Iterable[str]) -> Dataset:
        """The same dataset, asking only the relations of some languages."""
        wanted, known = dict.fromkeys(languages), self.languages()
        for language in wanted:
            if language not in known:
                has = f"it has {', '.join(known)}" if known else "its relations name none"
                raise UsageError(f"dataset {self.name!r} has no language {language!r}; {has}")
        ids = tuple(r.id for r in self.asked_relations() if r.language in wanted)
        return self.select(replace(self.selection, relations=ids)) if wanted else self


def facts_of(frame: DataFrame) -> Iterator[Fact]:
    """The facts of a frame as objects, made as they are looked at."""
    for row in rows(frame):
        fact, relation, split, id, names, ids, object_names, tags, wrong_ids, wrong_names = row[:10]
        details, numbers, date, valid_from, valid_to = row[10:]
        yield Fact(
            id=fact,
            relation=relation,
            subject=Entity(id=id, names=tuple(names)),
            objects=_entities(ids, object_names),
            split=split,
            tags=tuple(tags),
            wrong=_entities(wrong_ids, wrong_names),
            details={detail["name"]: detail["value"] for detail in details},
            numbers={number["name"]: number["value"] for number in numbers},
            date=date,
            valid_from=valid_from,
            valid_to=valid_to,
        )


def slot_values(fact: Fact) -> dict[str, str]:
    """What a fact has for the slots of templates beside its subject."""
    return {DATE_SLOT: fact.date, **{f"[details.{n}]": text for n, text in fact.details.items()}}


def _entities(ids: list[str], names: list[list[str]]) -> tuple[Entity, ...]:
    return tuple([Entity(id=i, names=tuple(n)) for i, n in zip(ids, names, strict=True)])


def commonest_objects(facts: Iterable[Fact] | DataFrame) -> list[tuple[str, int]]:
    """The usual names of all objects with their counts, the commonest first; ties go by name."""
    from polars import DataFrame, col

    if isinstance(facts, DataFrame):
        usual = col("object_names").explode().list.first().drop_nulls()
        counts = Counter(facts.select(usual)["object_names"])
    else:
        counts = Counter(entity.name for fact in facts for entity in fact.objects)
    return sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
