"""What MONITOR asks: each fact in every frame, and in the base frame after right and wrong names.

Knows facts and texts, nothing of answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import islice

from sonde.core.errors import UsageError
from sonde.core.facts import Dataset, Relation
from sonde.core.prompts import Generate, Key, Prompt, Score
from sonde.core.settings import setting
from sonde.metrics.distance import EQUAL, Rule
from sonde.prompting.few_shot import question
from sonde.prompting.frames import AskedFacts, Form, Item, LeftOut, Told, asked, frames, shown, told

TOGETHER = 64
"""Facts whose probabilities are asked for, then their answers, so that texts meet in a shard."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How prompts look, how many there are, and how answers are read."""

    frame: Form = setting("plain", "put questions as they are, or as 'Q: …' and 'A:' (qa)")
    shots: int = setting(
        0, "answered questions of the relation in front; small models need some", least=0
    )
    anchor: Rule = setting(
        "exact",
        "whose anchor counts: the answer after the right name is the object (exact), begins with "
        "it (prefix), or any prompt is answered so (any)",
        reads=True,
    )
    alphas: tuple[float, ...] = setting(
        EQUAL, "weights of PFD², IRD² and PFD·IRD in MONITOR", reads=True
    )
    frames: int = setting(0, "the most frames of a relation; 0 for all that it has", least=0)
    negatives: int = setting(5, "the most wrong names for a fact", least=1)
    most: int = setting(15, "the most tokens of an answer", least=1)
    full: bool = setting(
        False, "also write answers in every frame after every wrong name, to compare the cost"
    )

    def __post_init__(self) -> None:
        if len(self.alphas) != 3:
            raise UsageError(f"setting alphas takes three numbers, not {len(self.alphas)}")
        if min(self.alphas) < 0 or max(self.alphas) <= 0:
            given = ", ".join(f"{alpha:g}" for alpha in self.alphas)
            raise UsageError(f"setting alphas: none below 0 and one above it, not {given}")


@dataclass(slots=True, kw_only=True)
class Census(LeftOut):
    """What had to be left out or made smaller, by reason."""

    without_frames: list[str] = field(default_factory=list)
    one_frame: list[str] = field(default_factory=list)
    uneven: int = 0

    def counts(self) -> dict[str, int]:
        """Everything by name, as the report gives it."""
        return {
            "relations_without_frames": len(self.without_frames),
            "relations_with_one_frame": len(self.one_frame),
            **LeftOut.counts(self),
            "facts_cut_into_other_tokens": self.uneven,
        }


Place = tuple[int, Told, str]
"""A prompt of a fact: the number of its frame, which object stands in front, and its name."""


class Asking:
    """What is asked in one relation; its base frame comes first."""

    def __init__(self, dataset: Dataset, relation: Relation, settings: Settings) -> None:
        self.relation, self._settings = relation, settings
        self.frames = frames(relation, settings.frames)
        self._facts = AskedFacts(dataset, relation.id, settings.shots, settings.negatives)

    def items(self, census: Census) -> Iterator[Item]:
        """The facts that are asked about."""
        return self._facts.items(census)

    def prompts(self, census: Census) -> Iterator[Prompt]:
        """Some facts at a time: the probabilities of their objects, then written answers."""
        waiting = self.items(census)
        while some := list(islice(waiting, TOGETHER)):
            written = [(item, prompt) for item in some for prompt in self._written(item)]
            for item, prompt in written:
                if prompt.own["told"] != "wrong" or prompt.key.template == self.frames[0].id:
                    yield replace(prompt, want=Score(options=(item.gold,)))
            yield from (prompt for _, prompt in written)

    def places(self, item: Item) -> Iterator[Place]:
        """The anchor, the frames, the wrong names; with `full` these in every frame."""
        yield 0, "right", item.gold
        yield from ((j, "none", "") for j in range(len(self.frames)))
        for j in range(len(self.frames) if self._settings.full else 1):
            yield from ((j, "wrong", name) for name in item.wrong)

    def _written(self, item: Item) -> Iterator[Prompt]:
        subject, form, base = item.fact.subject.name, self._settings.frame, self.frames[0]
        before = "".join(
            shown(question(base, f.subject.name, "qa"), f.objects[0].name, form)
            for f in item.before
        )
        for j, kind, name in self.places(item):
            text = question(self.frames[j], subject, "qa")
            yield Prompt(
                key=Key(
                    fact=item.fact.id,
                    relation=item.fact.relation,
                    template=self.frames[j].id,
                    subject=subject,
                ),
                own={"told": kind, "object": name},
                prefix=before + asked(told(name, text) if name else text, form),
                want=Generate(most=self._settings.most),
            )


def every(dataset: Dataset, settings: Settings, census: Census) -> Iterator[Asking]:
    """What is asked, relation by relation."""
    for relation in dataset.asked_relations():
        own = frames(relation, settings.frames)
        if not own:
            census.without_frames.append(relation.id)
            continue
        if len(own) == 1:
            census.one_frame.append(relation.id)
        yield Asking(dataset, relation, settings)
