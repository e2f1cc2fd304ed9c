"""What MONITOR asks: each fact in every frame, and in the base frame after right and wrong names.

Knows facts and texts, nothing of answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from sonde.core.facts import Dataset, Fact, Relation, Template
from sonde.core.prompts import Generate, Key, Prompt, Score, Want
from sonde.prompting.few_shot import question
from sonde.prompting.frames import Form, Shots, asked, draw_shots, frames, negatives, shown, told
from sonde.prompting.options import correct_for, correct_names

Told = Literal["none", "right", "wrong"]
"""What stands in front of a question: nothing, the right object's name or a wrong one's."""

Way = Literal["score", "write"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How prompts look and how many there are; 0 frames are all that a relation has."""

    form: Form
    shots: int
    frames: int
    negatives: int
    most: int
    full: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One prompt of a fact: the frame's number, what is told before it, and which name it is."""

    frame: int
    told: Told = "none"
    name: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A fact with its relation's frames, the wrong names for it, and everything that is right.

    `before` are the examples in front of every prompt.
    """

    fact: Fact
    frames: tuple[Template, ...]
    wrong: tuple[str, ...]
    correct: frozenset[str]
    before: str

    @property
    def gold(self) -> str:
        """The name whose probability is taken."""
        return self.fact.objects[0].name

    def places(self) -> Iterator[Place]:
        """The prompts that MONITOR needs: the anchor, the frames, the wrong names."""
        yield Place(frame=0, told="right")
        yield from (Place(frame=j) for j in range(len(self.frames)))
        yield from (Place(frame=0, told="wrong", name=m) for m in range(len(self.wrong)))

    def others(self) -> Iterator[Place]:
        """What the grid of all frames with all wrong names has besides."""
        for j in range(1, len(self.frames)):
            yield from (Place(frame=j, told="wrong", name=m) for m in range(len(self.wrong)))

    def text(self, place: Place, form: Form) -> str:
        """Everything up to where the answer begins."""
        text = question(self.frames[place.frame], self.fact.subject.name, "qa")
        if place.told != "none":
            text = told(self.gold if place.told == "right" else self.wrong[place.name], text)
        return self.before + asked(text, form)


@dataclass(slots=True, kw_only=True)
class Census:
    """What had to be left out or made smaller, by reason."""

    without_frames: list[str] = field(default_factory=list)
    one_frame: list[str] = field(default_factory=list)
    held: int = 0
    few_shots: int = 0
    without_wrong: int = 0
    few_wrong: int = 0
    correct_after_all: int = 0
    uneven: int = 0

    def counts(self) -> dict[str, int]:
        """Everything by name, as the report gives it."""
        return {
            "relations_without_frames": len(self.without_frames),
            "relations_with_one_frame": len(self.one_frame),
            "facts_held_back_as_examples": self.held,
            "facts_fewer_examples": self.few_shots,
            "facts_without_wrong_names": self.without_wrong,
            "facts_fewer_wrong_names": self.few_wrong,
            "wrong_names_correct_after_all": self.correct_after_all,
            "facts_cut_into_other_tokens": self.uneven,
        }


def items(dataset: Dataset, shape: Shape, census: Census) -> Iterator[tuple[Relation, Item]]:
    """Every fact that is asked about, relation by relation."""
    for relation in dataset.asked_relations():
        own = frames(relation, shape.frames)
        if not own:
            census.without_frames.append(relation.id)
            continue
        if len(own) == 1:
            census.one_frame.append(relation.id)
        for item in _of_relation(dataset, relation, own, shape, census):
            yield relation, item


def _of_relation(
    dataset: Dataset, relation: Relation, own: tuple[Template, ...], shape: Shape, census: Census
) -> Iterator[Item]:
    names = correct_names(dataset, relation.id)
    pool = dataset.object_names(relation.id)
    shots = draw_shots(dataset, relation.id, shape.shots)
    seed = dataset.selection.seed
    for fact in dataset.asked(relation.id):
        if fact.id in shots.held:
            census.held += 1
            continue
        correct = correct_for(fact, names)
        wrong, right_after_all = negatives(fact, correct, pool, seed, shape.negatives)
        census.correct_after_all += right_after_all
        census.without_wrong += not wrong
        census.few_wrong += 0 < len(wrong) < shape.negatives
        before = _before(shots, fact, own[0], shape, census)
        yield Item(fact=fact, frames=own, wrong=wrong, correct=correct, before=before)


def _before(shots: Shots, fact: Fact, base: Template, shape: Shape, census: Census) -> str:
    """The examples, all in the base frame with nothing told."""
    chosen = shots.before(fact.subject, shape.shots)
    census.few_shots += len(chosen) < shape.shots
    return "".join(
        shown(question(base, f.subject.name, "qa"), f.objects[0].name, shape.form) for f in chosen
    )


def prompts(item: Item, shape: Shape) -> Iterator[Prompt]:
    """Everything that is asked about a fact: probabilities of its object, and written answers."""
    for place in item.places():
        prefix = item.text(place, shape.form)
        yield _prompt(item, place, "score", prefix, Score(options=(item.gold,)))
        yield _prompt(item, place, "write", prefix, Generate(most=shape.most))
    for place in item.others() if shape.full else ():
        prefix = item.text(place, shape.form)
        yield _prompt(item, place, "write", prefix, Generate(most=shape.most))


def _prompt(item: Item, place: Place, way: Way, prefix: str, want: Want) -> Prompt:
    name = f":{item.wrong[place.name]}" if place.told == "wrong" else ""
    key = Key(
        fact=item.fact.id,
        relation=item.fact.relation,
        template=item.frames[place.frame].id,
        subject=item.fact.subject.name,
        context=f"{way}:{place.told}{name}",
    )
    return Prompt(key=key, prefix=prefix, want=want)


def place_of(item: Item, key: Key) -> Place:
    """Which of the fact's prompts a key names."""
    _, _, rest = key.context.partition(":")
    told, _, name = rest.partition(":")
    frame = next(j for j, template in enumerate(item.frames) if template.id == key.template)
    if told == "wrong":
        return Place(frame=frame, told="wrong", name=item.wrong.index(name))
    return Place(frame=frame, told="right" if told == "right" else "none")
