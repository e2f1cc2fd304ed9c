"""sonde: what does this language model actually know, and how far can you trust it?

    import sonde
    run = sonde.run(sonde.probe("lama"), sonde.model("smollm2"), sonde.dataset("atlas"), out="run")
    print(run.report().estimates["p_at_1.mean_over_relations"])

Everything heavy is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sonde.api import analyse as analyse
    from sonde.api import dataset as dataset
    from sonde.api import learning as learning
    from sonde.api import model as model
    from sonde.api import probe as probe
    from sonde.runs.plan import Plan as Plan
    from sonde.runs.plan import plan as plan
    from sonde.runs.run import Run as Run
    from sonde.runs.run import open_run as open_run
    from sonde.runs.run import run as run

__version__ = "0.1.0"

_LAZY = {
    "analyse": "sonde.api",
    "dataset": "sonde.api",
    "learning": "sonde.api",
    "model": "sonde.api",
    "probe": "sonde.api",
    "Plan": "sonde.runs.plan",
    "Run": "sonde.runs.run",
    "open_run": "sonde.runs.run",
    "plan": "sonde.runs.plan",
    "run": "sonde.runs.run",
}

__all__ = [
    "Plan",
    "Run",
    "__version__",
    "analyse",
    "dataset",
    "learning",
    "model",
    "open_run",
    "plan",
    "probe",
    "run",
]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        import importlib

        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'sonde' has no attribute {name!r}")
