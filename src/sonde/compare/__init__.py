"""Compare finished runs on what they share: `sonde.compare(RUN, RUN)`."""

import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from sonde.core.errors import UsageError

if TYPE_CHECKING:
    from sonde.compare.report import Comparison
    from sonde.runs.run import Run


def compare(
    *runs: "Run | str | Path | Sequence[Run | str | Path]",
    groups: str = "family",
    models: str | Path | None = None,
    relations: Sequence[str] = (),
    seed: int = 0,
) -> "Comparison":
    """Compare two or more finished runs, or the folders of them.

    Args:
        runs: one by one or as a list; NAME=FOLDER names one. Others are compared with the first.
        groups: runs that belong together, by family, stage, architecture, corpus, model, probe, a
            setting, or names separated by commas.
        models: your own table of models.
        relations: ids of relations to compare on.
        seed: of the intervals.

    Returns:
        The verdict, the report and the facts that changed.

    Example:
        >>> sonde.compare("runs/small", "runs/large").verdict.word
        'better'
    """
    from sonde.compare.conditions import align, conditions, open_runs
    from sonde.compare.report import comparison

    if seed < 0:
        raise UsageError(f"seed must not be negative; got {seed}")
    flat: Any = [
        run for item in runs for run in (item if isinstance(item, list | tuple) else [item])
    ]
    every = conditions(open_runs(flat), groups=groups, models=models, relations=relations)
    return comparison(align(every), seed)


class _Callable(ModuleType):
    """This package, called as its function: an import sets `sonde.compare` to the package."""

    def __call__(self, *runs: Any, **options: Any) -> "Comparison":
        return compare(*runs, **options)


sys.modules[__name__].__class__ = _Callable
