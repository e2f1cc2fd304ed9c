"""Frames and wrong objects for any dataset, in the manner of FKTC. Knows no terminal.

A frame is a question that asks for the object and has one slot for the subject: `Where was [X]
born?`. Frames are the dataset's own questions, then those of a file, then those that a model
writes. The first one that qualifies is the base frame; any other is kept while it is not too alike
to one kept before, by BLEU; this is the only file that knows sacrebleu. Wrong objects are other
objects of the relation that no fact calls right for the subject.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.util import find_spec
from typing import Any, Literal, NamedTuple

from sonde.core.errors import DataError, EndpointError, MissingExtra, UsageError
from sonde.core.fact_frames import frame_of
from sonde.core.facts import (
    ANSWER_SLOT,
    SUBJECT_SLOT,
    Card,
    Dataset,
    Entity,
    Fact,
    Relation,
    Template,
)
from sonde.data.builders.endpoint import LOST, Asker, questions
from sonde.data.check import bare, stands_in
from sonde.data.wordings import regrouped
from sonde.prompting.languages import QUESTION_MARKS
from sonde.prompting.options import (
    aliases_by_usual_name,
    draw_wrong_names,
    names_correct_for,
    names_correct_for_repeated_subjects,
)

Origin = Literal["own", "file", "endpoint"]
Fault = Literal["malformed", "repeated", "alike", "telling"]

LONGEST = 300
NAMED = 8
_ANSWER = re.compile(rf"\s*{re.escape(ANSWER_SLOT)}\W*$")

Progress = Callable[[int, int], None]
"""Called with the relations that are done and all of them."""

Given = Mapping[str, Sequence[str]]
"""Questions by relation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """What is wanted of a relation and of a fact.

    Any two of its `frames` stay under the BLEU; `turns` is how often a model is asked at most.
    """

    frames: int = 7
    bleu: float = 70.0
    negatives: int = 5
    turns: int = 5
    seed: int = 0

    def __post_init__(self) -> None:
        if self.frames < 1 or self.negatives < 0 or self.turns < 1:
            raise UsageError("--frames and --turns must be at least 1, --negatives at least 0")
        if not 0 < self.bleu <= 100:
            raise UsageError(f"--bleu must be above 0 and at most 100, not {self.bleu:g}")


class Frame(NamedTuple):
    """A question that is kept; `template` is the dataset's own, where it is from there."""

    text: str
    origin: Origin
    template: Template | None = None


@dataclass(slots=True, kw_only=True)
class Gathered:
    """What became of a relation: its frames so far, and how many questions were refused, why.

    `objects` are names that a question of another's must not give away. `wrong` counts facts by how
    many wrong objects they have; `mistaken` are objects that the dataset called wrong and that are
    right.
    """

    relation: Relation
    recipe: Recipe
    objects: Sequence[str] = ()
    frames: list[Frame] = field(default_factory=list)
    refused: Counter[Fault] = field(default_factory=Counter)
    wrong: Counter[int] = field(default_factory=Counter)
    mistaken: int = 0

    @property
    def missing(self) -> int:
        """Frames that are still wanted."""
        return self.recipe.frames - len(self.frames)

    @property
    def texts(self) -> tuple[str, ...]:
        """The questions that are kept."""
        return tuple(frame.text for frame in self.frames)

    def count(self, origin: Origin) -> int:
        """Frames of an origin."""
        return sum(frame.origin == origin for frame in self.frames)

    def offer(self, questions: Iterable[str | Template], origin: Origin) -> None:
        """Keep what qualifies, until there are enough frames."""
        for given in questions:
            if self.missing <= 0:
                return
            template = given if isinstance(given, Template) else None
            text = question_of(template.text if template else str(given))
            hidden = self.objects if template is None else ()
            if fault := fault_of(text, self.texts, self.recipe.bleu, hidden):
                self.refused[fault] += 1
            else:
                self.frames.append(Frame(text, origin, template))

    def templates(self) -> tuple[Template, ...]:
        """The relation's templates: its frames, the base frame first, then its statements."""
        statements = [t for t in self.relation.templates if t.style == "statement"]
        taken = {template.id for template in self.relation.templates}
        group = statements[0].id if statements else ""
        asked: list[Template] = []
        for number, frame in enumerate(self.frames, 1):
            id = f"{self.relation.id}-frame-{number}"
            while id in taken:
                id += "x"
            new = Template(
                id=id,
                text=f"{frame.text} {ANSWER_SLOT}.",
                source="paraphrase",
                style="question",
                group=group,
            )
            asked.append(frame.template or new)
            group = asked[0].id
        return regrouped((*asked, *statements))


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """The dataset, with what became of its relations; `strangers` are questions of no relation."""

    dataset: Dataset
    gathered: tuple[Gathered, ...]
    strangers: int


def build(
    dataset: Dataset,
    recipe: Recipe,
    *,
    name: str,
    given: Given | None = None,
    asker: Asker | None = None,
    sources: Sequence[str] = (),
    progress: Progress = lambda done, total: None,
) -> Built:
    """The dataset under frames, with wrong objects; `sources` name who wrote further questions."""
    given = given or {}
    gathered = tuple(_at_hand(dataset, recipe, given, further=asker is not None))
    if asker is not None:
        _ask(gathered, asker, progress)
    if not any(each.frames for each in gathered):
        raise DataError(
            f"no relation of {dataset.name!r} has a question; --paraphrases FILE or --endpoint URL "
            "with --model NAME brings some"
        )
    facts = {each.relation.id: frame_of(_with_wrong(dataset, each)) for each in gathered}
    framed = Dataset(
        card=_card(dataset, recipe, name, sources),
        relations=tuple(replace(each.relation, templates=each.templates()) for each in gathered),
        read=facts.__getitem__,
        fingerprint="",
        vocabulary=dataset.vocabulary,
    )
    strangers = sum(len(texts) for id, texts in given.items() if id not in facts)
    return Built(dataset=framed, gathered=gathered, strangers=strangers)


def _at_hand(
    dataset: Dataset, recipe: Recipe, given: Given, *, further: bool
) -> Iterator[Gathered]:
    """The frames that need no asking; objects are read where other people's questions come in."""
    for relation in dataset.relations:
        strange = further or relation.id in given
        objects = dataset.object_names(relation.id, aliases=True) if strange else ()
        gathered = Gathered(relation=relation, recipe=recipe, objects=objects)
        gathered.offer([t for t in relation.templates if t.style == "question"], "own")
        gathered.offer(given.get(relation.id, ()), "file")
        yield gathered


def _ask(gathered: Sequence[Gathered], asker: Asker, progress: Progress) -> None:
    """Have the missing frames written; where the model fails, says which relations lack some."""
    for done, each in enumerate(gathered):
        progress(done, len(gathered))
        try:
            for turn in range(1, each.recipe.turns + 1):
                if each.missing > 0:
                    found = questions(asker, each.relation, each.texts, each.missing, turn)
                    each.offer(found, "endpoint")
        except EndpointError as error:
            lacking = [other.relation.id for other in gathered[done:] if other.missing > 0]
            more = f" and {len(lacking) - NAMED} more" if len(lacking) > NAMED else ""
            raise EndpointError(
                f"{error}; frames are missing for {len(lacking)} relations: "
                f"{', '.join(lacking[:NAMED])}{more}"
            ) from None
    progress(len(gathered), len(gathered))


def question_of(text: str) -> str:
    """A question without the place of its answer, spare spaces dropped.

    >>> question_of("Where was  [X] born? [Y].")
    'Where was [X] born?'
    """
    return _ANSWER.sub("", " ".join(text.split()))


def fault_of(text: str, kept: Sequence[str], bleu: float, objects: Sequence[str]) -> Fault | None:
    """Why a question cannot join the frames that are kept; None where it can."""
    if not _sound(text):
        return "malformed"
    if bare(text) in map(bare, kept):
        return "repeated"
    if any(likeness(text, other) >= bleu for other in kept):
        return "alike"
    return "telling" if any(stands_in(name, text) for name in objects) else None


def _sound(text: str) -> bool:
    return (
        text.count(SUBJECT_SLOT) == 1
        and ANSWER_SLOT not in text
        and text.endswith(QUESTION_MARKS)
        and len(text) <= LONGEST
        and text.isprintable()
        and LOST not in text
    )


def need_bleu() -> None:
    """Refuse clearly where sacrebleu is not installed."""
    if find_spec("sacrebleu") is None:
        raise MissingExtra(
            "sacrebleu, which compares frames, is not installed; run: "
            "pip install 'sonde[paraphrase]'"
        )


def likeness(one: str, other: str) -> float:
    """Sentence BLEU of two questions, 0 to 100: the larger of both directions.

    The subject's slot counts as one word, not as a word in brackets.
    """
    return max(_directed(one, other), _directed(other, one))


@cache
def _directed(said: str, meant: str) -> float:
    said, meant = (text.replace(SUBJECT_SLOT, "X") for text in (said, meant))
    score = _metric().sentence_score(said, [meant]).score
    return min(float(score), 100.0)  # rounding leaves a trace above


@cache
def _metric() -> Any:
    need_bleu()
    from sacrebleu.metrics.bleu import BLEU

    return BLEU(effective_order=True)  # short questions may have no four words in a row in common


def _with_wrong(dataset: Dataset, gathered: Gathered) -> Iterator[Fact]:
    """The facts of a relation with their wrong objects, which are counted."""
    pool = Pool(dataset, gathered.relation.id)
    for fact in dataset.facts(gathered.relation.id):
        wrong, mistaken = pool.wrong(fact, gathered.recipe)
        gathered.wrong[len(wrong)] += 1
        gathered.mistaken += mistaken
        yield replace(fact, wrong=wrong)


class Pool:
    """The objects of a relation, and what is right for its subjects over all facts and splits."""

    def __init__(self, dataset: Dataset, relation: str) -> None:
        self._right = names_correct_for_repeated_subjects(dataset, relation)
        self._entities: dict[str, Entity] = {}
        for fact in dataset.facts(relation):
            for entity in fact.objects:
                shown = Entity(id=entity.id, names=entity.names[:1])
                self._entities.setdefault(entity.name, shown)
        self._owners: dict[str, set[str]] = {}
        for usual, names in aliases_by_usual_name(dataset, relation).items():
            for name in names:
                self._owners.setdefault(name, set()).add(usual)

    def wrong(self, fact: Fact, recipe: Recipe) -> tuple[tuple[Entity, ...], int]:
        """Wrong objects: those that the dataset names first, drawn where there are too many.

        Others of the relation make up for what is lacking. No name of any is right.
        """
        right = names_correct_for(fact, self._right)
        barred = right.union(*(self._owners.get(name, ()) for name in right))
        named = {entity.name: entity for entity in fact.wrong}
        sound = {n: e for n, e in named.items() if n not in barred and barred.isdisjoint(e.names)}
        if len(sound) > recipe.negatives:
            names = _drawn(fact, barred, sound, recipe.seed, recipe.negatives)
        else:
            others = [name for name in self._entities if name not in sound]
            lacking = recipe.negatives - len(sound)
            names = (*sound, *_drawn(fact, barred, others, recipe.seed, lacking))
        entities = {**self._entities, **sound}
        return tuple(entities[name] for name in names), len(named) - len(sound)


def _drawn(
    fact: Fact, barred: frozenset[str], pool: Iterable[str], seed: int, count: int
) -> tuple[str, ...]:
    """Names of a pool that are wrong for a fact, as MONITOR draws them where there are none."""
    return draw_wrong_names(replace(fact, wrong=()), barred, tuple(pool), seed, count)[0]


def _card(dataset: Dataset, recipe: Recipe, name: str, sources: Sequence[str]) -> Card:
    return Card(
        name=name,
        licence=dataset.card.licence,
        sources=tuple(dict.fromkeys((*dataset.card.sources, *sources))),
        description=f"{dataset.name} under question frames, in the manner of FKTC: up to "
        f"{recipe.frames} of a relation, BLEU of any two under {recipe.bleu:g}; up to "
        f"{recipe.negatives} wrong objects of a fact; seed {recipe.seed}.",
    )
