"""Runs that are compared, brought to the prompts that all of them were asked; which are kin.

Knows judged prompts and where models come from, nothing of files or of how prompts were put.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Literal

import numpy as np

from sonde.core.errors import UsageError
from sonde.core.facts import Relation
from sonde.metrics.distance import Monitored
from sonde.metrics.estimates import Sample, samples_of
from sonde.metrics.grid import Floats, Grid, Ints
from sonde.metrics.judged import Judged

UNKNOWN = "unknown"
"""The family of a model of which nothing is known."""


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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Compared:
    """A run: a model in a setting. `dataset` names what it was asked, content and all.

    Runs with equal `setting` were asked in the same way, so that only their models differ.
    `monitored` is there for a run whose probe measures MONITOR.
    """

    name: str
    judged: Judged
    dataset: str
    group: str = ""
    seconds: float | None = None
    lineage: Lineage = Lineage()
    setting: str = ""
    monitored: Monitored | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Aligned:
    """Runs with the same prompts in the same order, and how many each had beside them."""

    runs: tuple[Compared, ...]
    left_out: tuple[int, ...]

    @property
    def first(self) -> Judged:
        """Any of the runs: pairs, templates and relations have the same numbers in all."""
        return self.runs[0].judged

    @property
    def names(self) -> list[str]:
        """What the runs are called."""
        return [run.name for run in self.runs]


def relation_name(relation: Relation) -> str:
    """What a relation is called, its id where it has no label."""
    return relation.label or relation.id


def with_counts(names: Sequence[str], counts: Sequence[int]) -> str:
    """How many each has, those that have any.

    >>> with_counts(["a", "b"], [1200, 0])
    'a 1,200'
    """
    both = zip(names, counts, strict=True)
    return ", ".join(f"{name} {count:,}" for name, count in both if count)


def pair_shares(judged: Judged) -> Floats:
    """Share of each pair's prompts that are right; every pair was asked; [pairs]."""
    asked = np.bincount(judged.grid.pair, minlength=len(judged.pairs))
    right = np.bincount(judged.grid.pair, judged.grid.right, minlength=len(judged.pairs))
    return np.asarray(right / asked)


def samples(
    judged: Judged, values: Floats, minus: Floats | None = None, clusters: Ints | None = None
) -> dict[str, Sample]:
    """One value per pair, less another where there is one, by relation."""
    ids = [relation.id for relation in judged.relations]
    return samples_of(values, judged.grid.relations, minus, clusters=clusters, ids=ids)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kin:
    """Two runs that were asked in the same way: the `lesser` is of the smallest model or of the
    fine-tuned one, the `other` of the largest or of the base. Both are places among the runs."""

    family: str
    lesser: int
    other: int


Family = tuple[str, str, str]
"""A family, base or fine-tuned models of it, and the setting in which they were asked."""


def families(runs: Sequence[Compared]) -> dict[Family, list[int]]:
    """The runs of each family whose sizes are known, from the smallest to the largest.

    Base and fine-tuned models are kept apart, and so are settings: a family can come several times.
    Families without two sizes are left out.
    """
    members: dict[Family, list[int]] = {}
    for i, run in enumerate(runs):
        of = run.lineage
        if of.family != UNKNOWN and of.size is not None:
            members.setdefault((of.family, of.stage, run.setting), []).append(i)
    sizes = [run.lineage.size or 0 for run in runs]
    return {
        family: sorted(own, key=lambda i: sizes[i])
        for family, own in members.items()
        if len({sizes[i] for i in own}) > 1
    }


def smallest_and_largest(runs: Sequence[Compared]) -> list[Kin]:
    """The smallest and the largest model of each family; of several of one size the first named."""
    made = []
    for (family, _, _), members in sorted(families(runs).items()):
        ends = []
        for size in (runs[members[0]].lineage.size, runs[members[-1]].lineage.size):
            equal = [i for i in members if runs[i].lineage.size == size]
            ends.append(min(equal, key=lambda i: runs[i].name))
        made.append(Kin(family=family, lesser=ends[0], other=ends[1]))
    return made


def tuned(runs: Sequence[Compared]) -> list[Kin]:
    """Every fine-tuned model with the run of its base, where both are there."""
    made = [
        Kin(family=run.lineage.family, lesser=i, other=j)
        for i, run in enumerate(runs)
        for j, base in enumerate(runs)
        if run.lineage.base
        and run.lineage.base == base.lineage.model
        and run.setting == base.setting
    ]
    return sorted(made, key=lambda kin: (kin.family, runs[kin.other].name, runs[kin.lesser].name))


def align(runs: Sequence[Compared]) -> Aligned:
    """The runs on the prompts they share: same pair, same template, same name of the subject.

    Refuses runs on different datasets and runs that share nothing.
    """
    _check(runs)
    pairs = _numbers([_keys(run.judged)[0] for run in runs])
    templates = _numbers([_keys(run.judged)[1] for run in runs])
    names = 1 + max(int(run.judged.grid.name.max(initial=0)) for run in runs)
    codes = [_codes(run.judged, pairs, templates, names) for run in runs]
    shared = reduce(lambda a, b: np.intersect1d(a, b), codes)
    if not len(shared):
        raise UsageError(
            "the runs share no prompt: not one pair was asked in the same template in all of them; "
            "compare runs of the same facts ('--limit', '--relations', the seed) and templates"
        )
    first = _rows(codes[0], shared)
    told = _Numbering(runs[0].judged, first)
    kept = [told.apply(r.judged.rows(_rows(c, shared))) for r, c in zip(runs, codes, strict=True)]
    return Aligned(
        runs=tuple(replace(run, judged=judged) for run, judged in zip(runs, kept, strict=True)),
        left_out=tuple(len(run.judged.grid) - len(shared) for run in runs),
    )


def _check(runs: Sequence[Compared]) -> None:
    if len(runs) < 2:
        raise UsageError(f"an analysis compares at least two runs; {len(runs)} was given")
    for run in runs:
        if run.dataset != runs[0].dataset:
            raise UsageError(
                f"{runs[0].name!r} was asked {runs[0].dataset}, {run.name!r} {run.dataset}; only "
                "runs on the same dataset, in the same version, can be compared"
            )
        if not len(run.judged.grid):
            raise UsageError(f"{run.name!r} has no prompt that could be judged; leave it out")
    names = [run.name for run in runs]
    if len(set(names)) < len(names):
        raise UsageError(f"two runs have the same name: {', '.join(names)}")


Keys = list[tuple[str, str]]


def _keys(judged: Judged) -> tuple[Keys, Keys]:
    """The pairs and the templates of a run by what they are called in every run."""
    ids, grid = [relation.id for relation in judged.relations], judged.grid
    pairs = zip(grid.relations.tolist(), judged.pairs, strict=True)
    templates = zip(grid.template_relations.tolist(), judged.templates, strict=True)
    return [(ids[r], fact) for r, fact in pairs], [(ids[r], t.id) for r, t in templates]


def _numbers(runs: Sequence[Keys]) -> dict[tuple[str, str], int]:
    """A number for everything that occurs in any run, in the order it is met."""
    return {key: i for i, key in enumerate(dict.fromkeys(k for keys in runs for k in keys))}


def _codes(
    judged: Judged,
    pairs: dict[tuple[str, str], int],
    templates: dict[tuple[str, str], int],
    names: int,
) -> Ints:
    """One number for each prompt, equal in two runs if pair, template and name are."""
    of_pairs, of_templates = _keys(judged)
    pair = np.array([pairs[key] for key in of_pairs], dtype=np.int64)
    template = np.array([templates[key] for key in of_templates], dtype=np.int64)
    grid = judged.grid
    return (pair[grid.pair] * len(templates) + template[grid.template]) * names + grid.name


def _rows(codes: Ints, wanted: Ints) -> Ints:
    """Where the wanted codes stand, in their order; all of them are there."""
    order = np.argsort(codes, kind="stable")
    return np.asarray(order[np.searchsorted(codes[order], wanted)], dtype=np.int64)


class _Numbering:
    """The numbers of what is left, in the order of one run."""

    def __init__(self, judged: Judged, rows: Ints) -> None:
        grid = judged.grid
        pairs, self._pair = np.unique(grid.pair[rows], return_inverse=True)
        templates, self._template = np.unique(grid.template[rows], return_inverse=True)
        relations, self._owners = np.unique(grid.relations[pairs], return_inverse=True)
        self._template_owners = np.searchsorted(relations, grid.template_relations[templates])
        self._relations = tuple(judged.relations[r] for r in relations)
        self._pairs = tuple(judged.pairs[p] for p in pairs)
        self._templates = tuple(judged.templates[t] for t in templates)

    def apply(self, judged: Judged) -> Judged:
        """The same prompts of any run under these numbers."""
        old = judged.grid
        grid = Grid(
            pair=self._pair.astype(np.int64),
            template=self._template.astype(np.int64),
            name=old.name,
            right=old.right,
            answer=old.answer,
            confidence=old.confidence,
            relations=self._owners.astype(np.int64),
            template_relations=self._template_owners.astype(np.int64),
        )
        return replace(
            judged,
            grid=grid,
            relations=self._relations,
            pairs=self._pairs,
            templates=self._templates,
        )
