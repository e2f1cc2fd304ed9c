"""Runs without a model or a folder, for tests of reports."""

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl

from sonde.core.facts import Dataset
from sonde.evaluation.estimate import Contrast, Group, estimate
from sonde.evaluation.tables import Results, collect_results
from sonde.probes.base import Probe
from sonde.probes.lama import Lama
from sonde.reports.build import build
from sonde.reports.further import estimate_with_breakdowns
from sonde.reports.model import Report
from tests.probes.shares import Model, answer
from tests.worlds import dataset_of, fact, relation

MANIFEST = {
    "model": {"name": "hf:models/tiny", "details": {}},
    "dataset": {"name": "world"},
    "certificate": {},
    "selection": {"seed": 0},
}


def world(relations: int = 1, facts: int = 12, objects: Sequence[str] = "abcd") -> Dataset:
    """Facts whose objects take turns."""
    made = [
        fact(f"P{r}", f"subject {r}-{n}", objects[n % len(objects)])
        for r in range(relations)
        for n in range(facts)
    ]
    named = [relation(f"P{r}", f"[X] of {r} is [Y].", label=f"label {r}") for r in range(relations)]
    return dataset_of(made, *named)


def say(**names: str) -> Model:
    """A model that answers each fact with the name of its id, or else with `default`."""

    def model(prompt: dict[str, Any]) -> dict[str, float]:
        return {names.get(prompt["fact"], names.get("default", "a")): 0.6}

    return model


def sample_run(
    data: Dataset, says: Model, probe: Probe | None = None, **manifest: Any
) -> tuple[Results, Any]:
    """The results of a probe, and what a report reads of a run."""
    probe = probe or Lama(answer="score")
    answers = [answer(batch, says) for batch in probe.prompts(data)]
    run = SimpleNamespace(
        path=Path("runs/sample"),
        manifest=SimpleNamespace(**{**MANIFEST, **manifest}),
        answers=lambda: iter(answers),
        dataset=lambda: data,
        provenance=lambda: {"probe": {"name": probe.name}, "seed": 0},
    )
    return collect_results(probe, data, answers), run


def sample_report(
    data: Dataset,
    says: Model,
    probe: Probe | None = None,
    groups: Sequence[str | Group] = (),
    contrasts: Sequence[Contrast] = (),
    **manifest: Any,
) -> Report:
    results, run = sample_run(data, says, probe, **manifest)
    estimates = estimate_with_breakdowns(results)
    if groups or contrasts:
        more = estimate(results, results.probe.metrics, groups=groups, contrasts=contrasts)
        estimates = pl.concat([estimates, more.filter(pl.col("group_by").list.len() > 0)])
    return build(results, estimates, run=run)
