"""Run the controls of a run into its folder, and put them beside its report.

A control is asked what the model was asked, by the same probe with the same settings, and kept in
`controls/NAME` of the run's folder. A report finds its controls there and nowhere else; reading
writes nothing. Knows nothing of how a control answers.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sonde.core.abilities import Model, Probe
from sonde.core.errors import DataError, ModelError, StoreError, UsageError, nearest
from sonde.core.facts import Dataset
from sonde.core.fingerprints import canonical
from sonde.runs.run import Run, open_run, released, run
from sonde.runs.shards import Progress

if TYPE_CHECKING:
    import polars

    from sonde.evaluation.tables import Results

CONTROLS: Mapping[str, str] = {
    "majority": "control:majority",
    "class-prior": "control:class-prior",
    "naive-bayes": "control:naive-bayes",
    "random": "random:{model}",
    "random-embeddings": "random-embeddings:{model}",
}
"""The model that each control is; {model} is the one that is probed."""

FOLDER = "controls"

log = logging.getLogger(__name__)

Load = Callable[[str], Model]
Watch = Callable[[str], AbstractContextManager[Progress]]


def chosen(text: str) -> tuple[str, ...]:
    """The controls that a text names: some, separated by commas, or all.

    >>> chosen("majority,random"), len(chosen("all"))
    (('majority', 'random'), 5)
    """
    names = [name.strip() for name in text.split(",") if name.strip()]
    if names == ["all"]:
        return tuple(CONTROLS)
    for name in names:
        if name not in CONTROLS:
            raise UsageError(f"no control called {name!r}; {nearest(name, ['all', *CONTROLS])}")
    return tuple(dict.fromkeys(names))


def run_controls(
    names: Sequence[str],
    model: str,
    probe: Probe,
    dataset: Dataset,
    out: Path,
    *,
    load: Load,
    watch: Watch,
) -> dict[str, Run]:
    """Run each control into the run's folder `out`; one that cannot answer is left out, aloud.

    `probe` is as it was settled for the model, so that controls are asked in the same way.
    """
    done = {}
    for name in names:
        place = out / FOLDER / name
        try:
            found = load(CONTROLS[name].format(model=model))
            with released(found) as loaded, watch(f"control {name}") as tick:
                done[name] = run(probe, loaded, dataset, place, progress=tick)
        except (ModelError, DataError, UsageError) as error:
            log.warning("control %s is left out: %s", name, error)
    return done


def control_runs(of: Run) -> tuple[dict[str, Run], list[str]]:
    """The finished controls of a run, and what is wrong with others that lie there."""
    found: dict[str, Run] = {}
    faults: list[str] = []
    for name in CONTROLS:
        place = of.path / FOLDER / name
        if not place.is_dir():
            continue
        try:
            control = open_run(place)
        except StoreError as error:
            faults.append(f"Control {name} is not shown: {error}.")
            continue
        if _asked(control) == _asked(of):
            found[name] = control
        else:
            faults.append(f"Control {name} is not shown: it was asked other prompts ({place}).")
    return found, faults


def estimate_with_controls(
    of: Run, results: Results, analysis: Mapping[str, Any]
) -> polars.DataFrame:
    """The estimates of a run, those of its controls, and the differences between them.

    A control's estimates have its name as `run`; a difference to it has its name as `reference`.
    """
    import polars as pl

    from sonde.evaluation.estimate import estimate, paired_differences
    from sonde.reports.further import estimate_with_breakdowns

    probe, seed = results.probe, of.manifest.selection["seed"]
    parts = [estimate_with_breakdowns(results, seed)]
    headlines = [
        metric for metric in probe.metrics if getattr(metric, "id", "") in probe.layout.headlines
    ]
    for name, control in of.controls().items():
        reference = control.results(**analysis)
        alone = estimate(reference, headlines, groups=("relation",), seed=seed)
        difference = paired_differences(results, reference, headlines, seed=seed)
        parts += [
            alone.with_columns(run=pl.lit(name)),
            difference.with_columns(reference=pl.lit(name)),
        ]
    return pl.concat(parts)


def _asked(run: Run) -> str:
    """What decides a run's prompts: everything but its model; lists and tuples are the same."""
    return canonical({k: v for k, v in run.manifest.decides.items() if k != "model"})
