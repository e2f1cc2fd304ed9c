"""Answers of MONITOR put in their places, whatever order they come in. Knows no estimates.

Probabilities are put there a block at a time; written answers are compared one by one.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from sonde.core.answers import Generated
from sonde.core.columns import Answers, Given, in_blocks
from sonde.core.errors import AbilityError
from sonde.core.facts import Dataset, commonest_objects
from sonde.metrics.distance import RULES, Monitored, Rule
from sonde.metrics.grid import Bools, Floats, Ints
from sonde.probes.monitor.ask import Asking, Census, Settings, every
from sonde.prompting.frames import Item, cleaned

PARTS = ("monitor", "accuracy", "grid")
"""What a prompt is for: MONITOR itself, the accuracies beside it, or the rest of the grid."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcomes:
    """What a run measured, and what else is told of it, one entry per fact where not said.

    `grid[c]` [frames, wrong names]: whether the answer is right in each frame after each wrong
    name, the base frame first, and nothing without `full`. `by_majority`: whether the relation's
    commonest object is right. `subjects`: facts with the same number have the same subject.
    `read`, `written`: characters and tokens of each of the PARTS.
    """

    monitored: Monitored
    census: Census
    grid: tuple[Bools, ...]
    by_majority: Bools
    subjects: Ints
    read: Mapping[str, int]
    written: Mapping[str, int]


class Slots:
    """All prompts in a row: of each fact the anchor, the frames, wrong names frame by frame."""

    def __init__(self, asked: Sequence[tuple[Asking, Item]], full: bool) -> None:
        self.frames = np.array([len(asking.frames) for asking, _ in asked], dtype=np.int64)
        self.wrong = np.array([len(item.wrong) for _, item in asked], dtype=np.int64)
        sizes = 1 + self.frames + self.wrong * (self.frames if full else 1)
        self.total = int(sizes.sum())
        self.start = np.cumsum(sizes) - sizes
        self.stop = self.start + 1 + self.frames + self.wrong
        keys = [(item.fact.relation, item.fact.id) for _, item in asked]
        self._facts = {key: c for c, key in enumerate(keys)}
        self._frames = {
            (asking.relation.id, frame.id): j
            for asking in dict.fromkeys(asking for asking, _ in asked)
            for j, frame in enumerate(asking.frames)
        }
        self._wrong = {
            (*key, name): m
            for key, (_, item) in zip(keys, asked, strict=True)
            for m, name in enumerate(item.wrong)
        }

    def of(self, block: Answers) -> tuple[Ints, Ints]:
        """The slot of each prompt, and which of the PARTS it is for."""
        fact = block.numbers(("relation", "fact"), self._facts)
        frame = block.numbers(("relation", "template"), self._frames)
        name = block.numbers(("relation", "fact", "object"), self._wrong, lambda _: 0)
        codes, words = block.codes("told")
        bare, right = (
            np.isin(codes, [words.index(w)] if w in words else []) for w in ("none", "right")
        )
        misled = 1 + self.frames[fact] + frame * self.wrong[fact] + name
        place = np.where(right, 0, np.where(bare, 1 + frame, misled))
        of_grid = ~bare & ~right & (frame > 0)
        part = np.where(of_grid, 2, np.where(right | (block.kind == "scored"), 0, 1))
        return self.start[fact] + place, part


def judge(dataset: Dataset, answers: Given, settings: Settings) -> Outcomes:
    """Take answers in any order; of two to the same prompt the later one counts."""
    census = Census()
    relations = every(dataset, settings, census)
    asked = [(asking, item) for asking in relations for item in asking.items(census)]
    slots = Slots(asked, settings.full)
    taken = _Taken(slots)
    for block in in_blocks(answers):
        taken.add(block)
    table = _table(taken.scored, slots.total)
    lengths = (~np.isnan(table)).sum(axis=1)
    bounds = zip(slots.start.tolist(), slots.stop.tolist(), strict=True)
    kept = [c for c, (a, b) in enumerate(bounds) if len(set(lengths[a:b].tolist())) == 1]
    census.uneven = len(asked) - len(kept)
    names = [frozenset(map(cleaned, item.correct)) - {""} for _, item in asked]
    monitored = _monitored(dataset, settings, asked, slots, kept, table, taken.said, names)
    common = {relation.id: _commonest(dataset, relation.id) for relation in monitored.relations}
    majority = [common[asked[c][1].fact.relation] in names[c] for c in kept]
    owners: dict[tuple[str, str], int] = {}
    subjects = ((fact.relation, fact.subject.id) for fact in monitored.facts)
    return Outcomes(
        monitored=monitored,
        census=census,
        grid=tuple(_grid(slots, c, taken.said, names[c], settings.full) for c in kept),
        by_majority=np.array(majority, dtype=np.bool_),
        subjects=np.array([owners.setdefault(s, len(owners)) for s in subjects], dtype=np.int64),
        read=dict(zip(PARTS, taken.read.tolist(), strict=True)),
        written=dict(zip(PARTS, taken.written.tolist(), strict=True)),
    )


class _Taken:
    """What was answered in each slot, and how much was read and written for it."""

    def __init__(self, slots: Slots) -> None:
        self._slots = slots
        self.said = np.full(slots.total, "", dtype=object)
        self.scored: list[tuple[Ints, Ints, Floats]] = []
        self.read, self.written = np.zeros((2, len(PARTS)), dtype=np.int64)

    def add(self, block: Answers) -> None:
        """Take the answers of a block."""
        at, part = self._slots.of(block)
        read = block.frame["prefix"].str.len_chars().to_numpy()
        np.add.at(self.read, part, read.astype(np.int64))
        if block.kind == "scored":
            self.scored.append((at, np.diff(block.rated.tokens), block.rated.logps))
        elif block.kind == "generated":
            texts = cast(list[Generated], block.columns)
            self.said[at] = [cleaned(answer.text) for answer in texts]
            np.add.at(self.written, part, [len(answer.logps) for answer in texts])
        else:
            raise AbilityError("monitor reads scored and written answers, not other ones")


def _table(scored: Sequence[tuple[Ints, Ints, Floats]], slots: int) -> Floats:
    """The probability of each token of each prompt's object; [slots, tokens], nan behind."""
    at, counts, logps = (
        np.concatenate([part[i] for part in scored]) if scored else np.zeros(0, dtype=np.int64)
        for i in range(3)
    )
    table = np.full((slots, int(counts.max(initial=0))), np.nan)
    latest = np.full(slots, -1)
    latest[at] = np.arange(len(at))
    owner = np.repeat(np.arange(len(at)), counts)
    token = np.arange(len(owner)) - (np.cumsum(counts) - counts)[owner]
    kept = latest[at[owner]] == owner
    table[at[owner[kept]], token[kept]] = np.exp(logps[kept].astype(np.float64))
    return table


def _monitored(
    dataset: Dataset,
    settings: Settings,
    asked: Sequence[tuple[Asking, Item]],
    slots: Slots,
    kept: Sequence[int],
    table: Floats,
    said: np.ndarray,
    names: Sequence[frozenset[str]],
) -> Monitored:
    askings = list(dict.fromkeys(asking for asking, _ in asked))
    owner = np.array([askings.index(asking) for asking, _ in asked], dtype=np.int64)[kept]
    bounds = list(zip(slots.start[kept], slots.stop[kept], slots.frames[kept], strict=True))
    items = [asked[c][1] for c in kept]
    wide = [table[a:b, ~np.isnan(table[a])] for a, b, _ in bounds]
    texts = tuple(tuple(said[a:b].tolist()) for a, b, _ in bounds)
    one, two, three = settings.alphas
    return Monitored(
        relations=tuple(asking.relation for asking in askings),
        frames=tuple(a.frames if (owner == i).any() else () for i, a in enumerate(askings)),
        facts=tuple(item.fact for item in items),
        relation=owner,
        anchor=tuple(own[0] for own in wide),
        framed=tuple(own[1 : 1 + r] for own, (_, _, r) in zip(wide, bounds, strict=True)),
        misled=tuple(own[1 + r :] for own, (_, _, r) in zip(wide, bounds, strict=True)),
        wrong=tuple(item.wrong for item in items),
        said=texts,
        right=tuple(
            np.array([text in names[c] for text in own], dtype=np.bool_)
            for c, own in zip(kept, texts, strict=True)
        ),
        valid={rule: _valid(rule, items, texts) for rule in RULES},
        rule=settings.anchor,
        alphas=(one, two, three),
        seed=dataset.selection.seed,
    )


def _grid(slots: Slots, fact: int, said: np.ndarray, names: frozenset[str], full: bool) -> Bools:
    frames, wrong = int(slots.frames[fact]), int(slots.wrong[fact])
    if not full:
        return np.zeros((0, wrong), dtype=np.bool_)
    first = slots.start[fact] + 1 + frames
    right = [text in names for text in said[first : first + frames * wrong]]
    return np.array(right, dtype=np.bool_).reshape(frames, wrong)


def begins(text: str, name: str) -> bool:
    """Whether a text begins with a name as a word: Nigeria does not begin with Niger.

    >>> begins("Niger, in Africa", "Niger"), begins("Nigeria", "Niger")
    (True, False)
    """
    rest = text.removeprefix(name)
    goes_on = rest and (rest[0].isalnum() or unicodedata.category(rest[0])[0] == "M")
    return text.startswith(name) and not goes_on


def _valid(rule: Rule, items: Sequence[Item], said: tuple[tuple[str, ...], ...]) -> Bools:
    golds = [cleaned(item.gold) for item in items]
    if rule == "any":
        found = [gold in own for gold, own in zip(golds, said, strict=True)]
    else:
        same = str.__eq__ if rule == "exact" else begins
        found = [same(own[0], gold) for gold, own in zip(golds, said, strict=True)]
    return np.array(found, dtype=np.bool_)


def _commonest(dataset: Dataset, relation: str) -> str:
    objects = commonest_objects(dataset.split_frame(relation))
    return cleaned(objects[0][0]) if objects else ""
