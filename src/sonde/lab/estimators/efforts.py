"""How much every estimator spends: settings of probes and methods, quick or full.

Quick is for models of a few million parameters on two cores, seconds each; full leaves nothing out.
Knows numbers, nothing of models or worlds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Effort = Literal["quick", "full"]

MANY = 10_000
"""More options than a relation has objects: all are offered, as LAMA does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """Settings by the name of the probe or the method of `sonde optimise`, also in other variants.

    limit: the most facts asked about per relation; learning: the most facts that a method learns
    from, per relation and split. None is all.
    """

    probes: Mapping[str, Mapping[str, Any]]
    methods: Mapping[str, Mapping[str, Any]]
    limit: int | None = None
    learning: int | None = None


# a world's words have no lemmas; its lists have 5 to 40 lines and no comma, its questions 3 to 8
# examples; an answer is one word and a full stop. OptiPrompt and fine-tuning learn from few dozen
# facts: a start from random vectors, or a rate ten times higher, loses facts that LAMA finds
QUICK = Spending(
    probes={
        "lama": {},
        "belief": {"templates": "manual", "names": "original", "bias": False},
        "belief-icl": {"samples": 0, "most": 3, "language": "none"},
        "ic-lke": {"n": 20, "options": MANY},
        "eic-lke": {"training": 20, "start": 10, "stride": 1, "options": MANY, "between": " "},
        "monitor": {"frame": "qa", "shots": 4, "frames": 2, "negatives": 3, "most": 3},
    },
    methods={
        "optiprompt": {"start": "manual", "epochs": 30, "rate": 3e-3, "checks": 1},
        "optiprompt-free": {"epochs": 30, "rate": 3e-2, "checks": 1},
        "autoprompt": {"iterations": 30, "batch": 24, "candidates": 8},
        "lpaqa": {"choose": "weighted", "k": 3},
        "finetune": {"epochs": 8, "batch": 8, "rate": 1e-4},
    },
)

FULL = Spending(
    probes={
        "lama": {},
        "belief": {"bias": False},
        "belief-icl": {"templates": "all", "samples": 0, "most": 3, "language": "none"},
        "ic-lke": {"n": 40, "options": MANY},
        "eic-lke": {"training": 40, "start": 20, "stride": 2, "options": MANY, "between": " "},
        "monitor": {"frame": "qa", "shots": 4, "most": 3},
    },
    methods={
        "optiprompt": {"start": "manual", "epochs": 60, "rate": 3e-3, "checks": 1},
        "optiprompt-free": {"epochs": 60, "rate": 3e-2, "checks": 1},
        "autoprompt": {"iterations": 300, "batch": 56, "candidates": 20},
        "lpaqa": {"choose": "weighted"},
        "finetune": {"epochs": 20, "batch": 8, "rate": 1e-4},
    },
)

EFFORTS: Mapping[Effort, Spending] = {"quick": QUICK, "full": FULL}
