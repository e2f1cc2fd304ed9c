"""Single facts with every run's answer, and objects that runs answer too often.

Knows sheets alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sonde.analysis.learning.sheets import Learning, Sheet
from sonde.core.fingerprints import draw_key
from sonde.core.reports import Estimate
from sonde.metrics.estimates import Resampled, Sample

DRAWN = 10
NEARLY_ALWAYS = 0.95
TOO_OFTEN = 0.1
"""Answers beyond an object's share of the facts from which it counts as over-predicted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A fact as it is shown, in the words of the first run, with the answer of every run."""

    subset: str
    relation: str
    sentence: str
    object: str
    answers: tuple[tuple[str, bool] | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Often:
    """An object that a run answers more often than the facts have it."""

    run: str
    relation: str
    template: str
    object: str
    majority: bool
    answered: Estimate
    train: float | None
    test: float


def drawn_facts(found: Learning, seed: int, count: int = DRAWN) -> list[Drawn]:
    """So many easy and so many hard facts, drawn by the seed, of those that some run answers right
    and whose object is not the commonest training object."""
    shown = []
    for subset in ("easy", "hard"):
        places = [(sheet, i) for sheet in found.split for i in _worth(sheet, subset == "easy")]
        places.sort(key=lambda place: (draw_key(seed, place[0].facts[place[1]].id), place[0].id))
        shown += [_drawn(found.names, subset, sheet, i) for sheet, i in places[:count]]
    return shown


def _worth(sheet: Sheet, easy: bool) -> Iterator[int]:
    assert sheet.easy is not None
    some = np.any(list(sheet.right.values()), axis=0)
    kept = some & ~sheet.of(sheet.lesson.majority) & (sheet.easy == easy)
    yield from np.flatnonzero(kept).tolist()


def _drawn(names: Sequence[str], subset: str, sheet: Sheet, i: int) -> Drawn:
    fact = sheet.facts[i]
    template = next(iter(sheet.templates.values()))
    object = fact.objects[0].name
    return Drawn(
        subset=subset,
        relation=sheet.id,
        sentence=template.replace("[X]", fact.subject.name).replace("[Y]", object),
        object=object,
        answers=tuple(
            (sheet.answers[name][i], bool(sheet.right[name][i])) if name in sheet.right else None
            for name in names
        ),
    )


def answered_too_often(found: Learning, seed: int) -> list[Often]:
    """The commonest training object where a prompt elicits it nearly always, and other objects
    that are answered clearly more often than the facts have them; the worst first."""
    told = [
        often
        for method in found.methods
        if not method.counting
        for sheet in found.having(method.name)
        for often in _too_often(sheet, method.name, seed)
    ]
    return sorted(told, key=lambda o: (-((o.answered.value or 0.0) - o.test), o.run, o.relation))


def _too_often(sheet: Sheet, run: str, seed: int) -> Iterator[Often]:
    for name, count in Counter(sheet.answers[run]).most_common():
        share, test = count / len(sheet.facts), float(sheet.of(name).mean())
        majority = name == sheet.lesson.majority
        if share <= NEARLY_ALWAYS if majority else share - test < TOO_OFTEN:
            continue
        values = sheet.answered(run, name).astype(np.float64)
        sample = Sample(values=values, clusters=sheet.clusters)
        answered = Resampled({sheet.id: sample}, seed).relation(sheet.id)
        if majority or (answered.low is not None and answered.low > test):
            yield Often(
                run=run,
                relation=sheet.id,
                template=sheet.templates[run],
                object=name,
                majority=majority,
                answered=answered,
                train=sheet.lesson.train_share(name),
                test=test,
            )


def elicited(often: Sequence[Often], run: str) -> list[str]:
    """The relations in which a run's prompt elicits the commonest training object nearly always."""
    return [one.relation for one in often if one.run == run and one.majority]
