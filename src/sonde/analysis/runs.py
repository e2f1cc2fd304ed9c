"""Runs that are compared: how each was made, what all of them share, which are kin.

Knows judged prompts and where models come from, nothing of files or of how prompts were put.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from sonde.core.facts import Relation
from sonde.core.reports import Report
from sonde.metrics.accuracy import right_shares
from sonde.metrics.distance import Monitored
from sonde.metrics.estimates import ByFact
from sonde.metrics.judged import Floats, Grid, Ints, Judged, resampled_in

if TYPE_CHECKING:
    from polars import DataFrame

UNKNOWN = "unknown"
"""The family of a model of which nothing is known."""

BILLION = 1e9

KNOWN = 0.5
"""A fact is known where more than this share of its prompts is right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How numbers are computed: the draws of the fluctuation, how many one-token answers a template
    needs for an Overconf of its own, how many frames MONITOR keeps in an ablation and how often
    these are drawn."""

    draw: Literal["relation", "pair"] = "relation"
    draws: int = 50_000
    floor: int = 100
    frames: int = 4
    subsets: int = 5
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Lineage:
    """Where a run's model comes from. `size` counts parameters; `base` names the model that a
    fine-tuned one was made from. "" and None are not known."""

    model: str = ""
    family: str = UNKNOWN
    size: int | None = None
    stage: str = ""
    base: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """How a run was made: by which probe of which version of sonde, with which settings, in words;
    on what, from how many prompts in how many seconds. `tokenizer` names what the model reads with.
    `offered`: what may be answered, by relation, where the dataset decides it. `numerics`: why its
    numbers are not known to be those of its model, empty where nothing speaks against it.
    A `control` has no settings that matter.
    """

    probe: str = ""
    version: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    tokenizer: str = ""
    device: str = ""
    parameters: str = ""
    dtype: str = ""
    prompts: int | None = None
    seconds: float | None = None
    offered: Mapping[str, frozenset[str]] = field(default_factory=dict)
    numerics: str = ""
    control: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Compared:
    """A run: a model in a setting. `dataset` names what it was asked, content and all; `source` is
    equal for datasets that hold the same facts, whatever their templates.

    Runs with equal `setting` were asked in the same way, so that only their models differ.
    `monitored` is there for a run whose probe measures MONITOR, `report` where all runs are of one
    probe: its own report on the facts that all of them were asked. `facts`: what its pairs are
    about (`differences/facts.py`), where that is known.
    """

    name: str
    judged: Judged
    dataset: str
    source: str = ""
    group: str = ""
    seconds: float | None = None
    lineage: Lineage = Lineage()
    setting: str = ""
    monitored: Monitored | None = None
    report: Report | None = None
    made: Made = Made()
    facts: DataFrame | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Aligned:
    """Runs with the same facts in the same order, and how many prompts each had of other facts;
    `asked`: the same runs with all their prompts.

    With `same_prompts` every run has the same prompts in the same order, too. Otherwise runs have
    prompts and templates of their own, which are averaged over each fact.
    """

    asked: tuple[Compared, ...]
    runs: tuple[Compared, ...]
    left_out: Mapping[str, int]
    same_prompts: bool = True

    @property
    def first(self) -> Judged:
        """Any of the runs: pairs and relations have the same numbers in all."""
        return self.runs[0].judged

    def grids(self) -> list[Grid]:
        """Of each run a grid with the same rows as all others: its prompts, or one for each fact,
        right where the fact is known."""
        grids = [run.judged.grid for run in self.runs]
        return grids if self.same_prompts else [_one_each(grid) for grid in grids]

    @property
    def names(self) -> list[str]:
        """What the runs are called."""
        return [run.name for run in self.runs]

    def shares(self) -> list[Floats]:
        """Of each run the share of each pair's prompts that are right; every pair was asked."""
        return [right_shares(run.judged.grid) for run in self.runs]

    def by_pair(self, seed: int, subjects: Mapping[str, str] | None = None) -> ByFact:
        """The pairs by relation, for means with intervals. Pairs of one subject are resampled
        together; `subjects` of facts by their ids, as the first run has them unless given."""
        about = subjects_of(self.runs[0]) if subjects is None else subjects
        subject = subject_numbers(self.first.pairs, about)
        return ByFact.of(self.first.relations, self.first.grid.relations, subject, seed)


def subjects_of(run: Compared) -> dict[str, str]:
    """The subject of each fact of a run by the fact's id, where it is known."""
    return {} if run.facts is None else dict(run.facts.select("fact", "cluster").iter_rows())


def subject_numbers(pairs: Sequence[str], subjects: Mapping[str, str]) -> Ints:
    """A number for the subject of each pair. Subjects are numbered in sorted order, so that
    intervals do not depend on the order of the facts; a pair of unknown subject has its own."""
    names = sorted({subjects[id] for id in pairs if id in subjects})
    numbers: dict[str | int, int] = {name: number for number, name in enumerate(names)}
    named = (subjects.get(id, place) for place, id in enumerate(pairs))
    return np.array([numbers.setdefault(name, len(numbers)) for name in named], dtype=np.int64)


def with_subjects(judged: Judged, subjects: Mapping[str, str]) -> Judged:
    """The same with the subjects of its pairs in its grid, and the ids of its relations."""
    numbers, ids = subject_numbers(judged.pairs, subjects), tuple(r.id for r in judged.relations)
    return replace(judged, grid=replace(judged.grid, subjects=numbers, ids=ids))


def _one_each(grid: Grid) -> Grid:
    """One prompt for each pair, right if more than half of its prompts are."""
    pairs, nothing = np.arange(len(grid.relations)), np.zeros(len(grid.relations), dtype=np.int64)
    return Grid(
        pair=pairs,
        template=grid.relations,
        name=nothing,
        right=right_shares(grid) > KNOWN,
        answer=nothing,
        confidence=np.full(len(pairs), np.nan),
        relations=grid.relations,
        template_relations=np.arange(int(grid.relations.max()) + 1),
    )


def relation_name(relation: Relation) -> str:
    """What a relation is called, its id where it has no label."""
    return relation.label or relation.id


def with_counts(counts: Mapping[str, int]) -> str:
    """How many each has, those that have any.

    >>> with_counts({"a": 1200, "b": 0})
    'a 1,200'
    """
    return ", ".join(f"{name} {count:,}" for name, count in counts.items() if count)


def drawn_sums(
    columns: Floats,
    relations: Ints,
    streams: Sequence[str],
    seed: int,
    subjects: Ints | None = None,
) -> Iterator[Floats]:
    """Sums of columns [facts, k] over each relation, [1 + draws, k]: as they are, then with facts,
    or all facts of a subject together, drawn anew and scaled to the relation's number of facts.

    `relations`: of each fact, by its number; each has a stream of its own, the same whatever the
    columns are.
    """
    for number, name in enumerate(streams):
        own = relations == number
        if own.any():
            of = None if subjects is None else [subjects[own]]
            (drawn,) = resampled_in(name, [columns[own]], seed, of)
            yield np.concatenate([columns[own].sum(axis=0)[None], drawn])


class Kin(NamedTuple):
    """Two runs, by name, that were asked in the same way: of the smallest and of the largest model
    of a family, or of a base model and of one that was fine-tuned from it."""

    family: str
    first: str
    second: str


Family = tuple[str, str, str]
"""A family, base or fine-tuned models of it, and the setting in which they were asked."""


def families(runs: Sequence[Compared]) -> dict[Family, list[Compared]]:
    """The runs of each family whose sizes are known, from the smallest to the largest.

    Base and fine-tuned models are kept apart, and so are settings: a family can come several times.
    Families without two sizes are left out.
    """
    members: dict[Family, list[Compared]] = {}
    for run in sorted(runs, key=lambda run: run.lineage.size or 0):
        if run.lineage.family != UNKNOWN and run.lineage.size is not None:
            family = (run.lineage.family, run.lineage.stage, run.setting)
            members.setdefault(family, []).append(run)
    return {f: own for f, own in members.items() if len({run.lineage.size for run in own}) > 1}


def family_names(keys: list[Family]) -> list[str]:
    """A name for each line: its family, with the stage where a family has two, then a number."""
    named = [family for family, _, _ in keys]
    names: list[str] = []
    for family, stage, _ in keys:
        name = f"{family} ({stage})" if named.count(family) > 1 and stage else family
        same = sum(other == name or other.startswith(f"{name}, ") for other in names)
        names.append(f"{name}, setting {same + 1}" if same else name)
    return names


def smallest_and_largest(runs: Sequence[Compared]) -> list[Kin]:
    """The smallest and the largest model of each family; of several of one size the first named."""

    def end(members: Sequence[Compared], sign: int) -> str:
        return min(members, key=lambda run: (sign * (run.lineage.size or 0), run.name)).name

    return [
        Kin(family, end(members, 1), end(members, -1))
        for (family, _, _), members in sorted(families(runs).items())
    ]


def tuned(runs: Sequence[Compared]) -> list[Kin]:
    """Every fine-tuned model with the run of its base, where both are there."""
    return sorted(
        Kin(run.lineage.family, base.name, run.name)
        for base, run in product(runs, runs)
        if run.lineage.base
        and run.lineage.base == base.lineage.model
        and run.setting == base.setting
    )
