"""Which runs belong to the smallest and largest model of a family, which to a base model and one
fine-tuned from it. Knows where models come from, nothing of what they answered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sonde.analysis.runs import UNKNOWN, Compared


@dataclass(frozen=True, slots=True, kw_only=True)
class Kin:
    """Two runs that were asked in the same way: the `lesser` is of the smallest model or of the
    fine-tuned one, the `other` of the largest or of the base. Both are places among the runs."""

    family: str
    lesser: int
    other: int


def sizes(runs: Sequence[Compared]) -> list[Kin]:
    """The smallest and the largest model of each family.

    Base and fine-tuned models are kept apart, and so are settings: a family can come several times.
    """
    families: dict[tuple[str, str, str], list[int]] = {}
    for i, run in enumerate(runs):
        if run.lineage.family != UNKNOWN and run.lineage.size is not None:
            key = (run.lineage.family, run.lineage.stage, run.setting)
            families.setdefault(key, []).append(i)
    made = []
    for (family, _, _), members in sorted(families.items()):
        members.sort(key=lambda i: runs[i].name)  # the first of several of one size
        small = min(members, key=lambda i: runs[i].lineage.size or 0)
        large = max(members, key=lambda i: runs[i].lineage.size or 0)
        if runs[small].lineage.size != runs[large].lineage.size:
            made.append(Kin(family=family, lesser=small, other=large))
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
