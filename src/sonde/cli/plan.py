"""`sonde plan PROBE`: what a run would cost, counted and measured, without making it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from sonde.cli.console import output, print_json, waiting
from sonde.cli.run import command, flags_of, prepare, run_probe
from sonde.core.abilities import Model, Probe
from sonde.core.facts import Dataset
from sonde.runs.plan import SECONDS, plan
from sonde.runs.run import probes

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help=(
        "Say what a run would cost, without making it.\n\n"
        "Example: sonde plan lama -m smollm2 -d atlas --limit 10"
    ),
)

Json = Annotated[bool, typer.Option("--json", help="Print the plan for other programs.")]
Exact = Annotated[
    bool, typer.Option("--exact", help="Count every token, also of a very large run.")
]
Measure = Annotated[
    float, typer.Option(help="Seconds to measure the model's speed for; 0 only counts.", min=0)
]


def plan_probe(
    probe: Callable[..., Probe],
    settings: dict[str, Any],
    *,
    out: Path | None = None,
    html: bool = True,
    as_json: Json = False,
    exact: Exact = False,
    measure: Measure = SECONDS,
    **names: Any,
) -> None:
    """Plan one probe; `names` say which model and which facts, and `html` changes nothing."""
    chosen, model, dataset = prepare(probe, settings, **names)
    show_plan(chosen, model, dataset, out, as_json=as_json, exact=exact, seconds=measure)


def show_plan(
    probe: Probe,
    model: Model,
    dataset: Dataset,
    out: Path | None,
    *,
    as_json: bool = False,
    exact: bool = False,
    seconds: float = SECONDS,
) -> None:
    """Make a plan and print it."""
    from sonde.cli import planned

    with waiting(f"counting, then measuring for about {seconds:.0f} s"):
        made = plan(probe, model, dataset, out, exact=exact, seconds=seconds)
    if as_json:
        print_json(planned.as_json(made))
    else:
        planned.show(made, output())


def flags() -> list[inspect.Parameter]:
    """The flags of `sonde run`, and what only a plan has."""
    own = {flag.name: flag for flag in flags_of(plan_probe)}
    shared = [p for p in flags_of(run_probe) if p.name not in ("plan", "controls")]
    return shared + [own[name] for name in ("as_json", "exact", "measure")]


for _name, _probe in sorted(probes().items()):
    app.command(_name)(command("plan", _probe, plan_probe, flags()))
