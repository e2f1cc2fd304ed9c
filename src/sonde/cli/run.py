"""`sonde run PROBE`: put a probe to a model. Each probe's settings become flags of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from sonde.cli.console import progress
from sonde.cli.options import RunOptions, group, option, verb
from sonde.cli.plan import PlanOptions, show_plan
from sonde.cli.report import show_run
from sonde.core.abilities import Probe, abilities
from sonde.runs.controls import chosen, run_controls
from sonde.runs.run import probes, run
from sonde.runs.shards import SHARD_WEIGHT


@dataclass(frozen=True, slots=True, kw_only=True)
class BesideOptions:
    """What is done beside asking the model."""

    controls: str = option(
        "Controls to run beside the model, separated by commas: majority, class-prior, "
        "naive-bayes, random, random-embeddings, or all.",
        "",
    )
    html: bool = option("Write report.html into the folder.", True, "--html/--no-html")
    plan: bool = option("Print what the run would cost, as 'sonde plan' does.", False, "--plan")


def run_probe(probe: Probe, asked: RunOptions, beside: BesideOptions) -> None:
    """Run one probe; what every probe's command has in common."""
    names = chosen(beside.controls)
    probe, model, dataset = asked.prepare(probe)
    if beside.plan:
        show_plan(probe, model, dataset, asked.out, PlanOptions())
        return
    with progress(f"{probe.name} on {dataset.name}") as tick:
        done = run(probe, model, dataset, asked.out, progress=tick, shard_weight=SHARD_WEIGHT)
    settled = probe.suited(abilities(model))
    del model  # a control may be as large
    load = partial(asked.load.load, data=dataset)
    run_controls(names, asked.ask.model, settled, dataset, done.path, load=load, watch=progress)
    show_run(done, html=done.path / "report.html" if beside.html else None)


def _of(name: str) -> Callable[..., None]:
    example = f"Example: sonde run {name} -m smollm2 -d atlas --limit 10"
    return verb(run_probe, probes()[name], example)


app = group(
    "Put a probe's questions to a model and report what it knows.\n\n"
    "Example: sonde run lama -m smollm2 -d atlas --limit 10",
    sorted(probes()),
    _of,
)
