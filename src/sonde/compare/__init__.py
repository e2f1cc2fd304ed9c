"""Compare finished runs on what they share: `sonde.compare(RUN, RUN)`."""

import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from sonde.core.errors import UsageError

if TYPE_CHECKING:
    from sonde.compare.report import Comparison
    from sonde.reports.model import Report
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

    _check_seed(seed)
    opened = open_runs(_flat(runs))
    slices = conditions(opened, groups=groups, models=models, relations=relations)
    return comparison(align(slices), seed)


def learning(
    *runs: "Run | str | Path | Sequence[Run | str | Path]", easy: Sequence[str] = (), seed: int = 0
) -> "Report":
    """How much of the accuracy of runs of `lama` may be learned from training facts.

    Args:
        runs: the first is the reference; names METHOD@MODEL have one reference per model.
        easy: names of the runs whose correct answers make a fact easy. By default naive Bayes and
            random models that were fine-tuned.
        seed: of the intervals.

    Example:
        >>> sonde.learning("manual=runs/manual", "bayes=runs/bayes").to_json()["counts"]
        {}
    """
    from sonde.compare.conditions import open_runs
    from sonde.compare.learned import learn

    _check_seed(seed)
    return learn(open_runs(_flat(runs), "sonde.learning(RUN, RUN)"), easy, seed)


def _check_seed(seed: int) -> None:
    if seed < 0:
        raise UsageError(f"seed must not be negative; got {seed}")


def _flat(
    runs: "Sequence[Run | str | Path | Sequence[Run | str | Path]]",
) -> "list[Run | str | Path]":
    from sonde.runs.run import Run

    return [
        run for item in runs for run in ([item] if isinstance(item, Run | str | Path) else item)
    ]


class _Callable(ModuleType):
    """This package, called as its function: an import sets `sonde.compare` to the package."""

    def __call__(self, *runs: Any, **options: Any) -> "Comparison":
        return compare(*runs, **options)


sys.modules[__name__].__class__ = _Callable
