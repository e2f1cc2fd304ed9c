"""Runs that are compared, brought to the prompts that all of them were asked.

Knows judged prompts, nothing of files or of how they were asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from sonde.core.errors import UsageError
from sonde.metrics.distance import Monitored
from sonde.metrics.grid import Bools, Grid, Ints
from sonde.metrics.judged import Judged

UNKNOWN = "unknown"
"""The family of a model of which nothing is known."""


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
    def manual(self) -> Bools:
        """Which templates are written by hand."""
        return np.array([t.source == "manual" for t in self.first.templates], dtype=np.bool_)


def align(runs: Sequence[Compared]) -> Aligned:
    """The runs on the prompts they share: same pair, same template, same name of the subject.

    Refuses runs on different datasets and runs that share nothing.
    """
    _check(runs)
    pairs = _numbers([_pair_keys(run.judged) for run in runs])
    templates = _numbers([_template_keys(run.judged) for run in runs])
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


def _pair_keys(judged: Judged) -> list[tuple[str, str]]:
    owners = judged.grid.relations.tolist()
    return [(judged.relations[r].id, fact) for r, fact in zip(owners, judged.pairs, strict=True)]


def _template_keys(judged: Judged) -> list[tuple[str, str]]:
    owners = judged.grid.template_relations.tolist()
    return [(judged.relations[r].id, t.id) for r, t in zip(owners, judged.templates, strict=True)]


def _numbers(runs: Sequence[list[tuple[str, str]]]) -> dict[tuple[str, str], int]:
    """A number for everything that occurs in any run, in the order it is met."""
    return {key: i for i, key in enumerate(dict.fromkeys(k for keys in runs for k in keys))}


def _codes(
    judged: Judged,
    pairs: dict[tuple[str, str], int],
    templates: dict[tuple[str, str], int],
    names: int,
) -> Ints:
    """One number for each prompt, equal in two runs if pair, template and name are."""
    pair = np.array([pairs[key] for key in _pair_keys(judged)], dtype=np.int64)
    template = np.array([templates[key] for key in _template_keys(judged)], dtype=np.int64)
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
