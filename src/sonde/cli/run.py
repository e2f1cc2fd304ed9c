"""`sonde run PROBE`: prompt a model with a probe, with one or several values of a setting.

Each probe's settings become flags of `run`. `sonde demo` is the whole line once, on what comes with
sonde; `sonde models` and `sonde probes` list what there is. What makes a run is imported when one
is made, so that help texts and refusals come at once.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from sonde.cli.console import print_table, progress, resumable, roughly, say, waiting
from sonde.cli.options import (
    ALL_TABLES,
    ON,
    AnswerOptions,
    AskOptions,
    FactOptions,
    RunOptions,
    SelectOptions,
    option,
    verb,
)
from sonde.cli.verbs import components
from sonde.core.components import settings_of
from sonde.probes import PROBES, SUMMARIES

if TYPE_CHECKING:
    from sonde.cli.console import Tick
    from sonde.core.abilities import Model, Probe
    from sonde.core.certificates import Certificate
    from sonde.core.facts import Dataset


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswererOptions:
    """Who answers for the model, and what is known of its numbers."""

    certificate: Path | None = option(
        "The model's certificate ('sonde doctor --against'), where it is not found by itself.", None
    )
    on: str = option(ON, "")

    def certified(self) -> Certificate | None:
        """The certificate that is given, which is read before any work."""
        from sonde.runs.certificates import read

        return None if self.certificate is None else read(self.certificate)


@dataclass(frozen=True, slots=True, kw_only=True)
class BesideOptions:
    """What is done beside asking the model."""

    controls: str = option(
        "Controls to run beside the model, separated by commas: majority, class-prior, "
        "naive-bayes, random, random-embeddings, or all.",
        "",
    )
    html: bool = option("Write report.html into the folder.", True, "--html/--no-html")
    all_tables: bool = option(ALL_TABLES, False, "--all-tables")
    by: AnswererOptions = field(default_factory=AnswererOptions)
    plan: bool = option("Print what the run would cost, as 'sonde plan' does.", False, "--plan")


@resumable()
def run_probe(probe: Probe, asked: RunOptions, beside: BesideOptions) -> None:
    """Run one probe; what every probe's command has in common."""
    asked.check(probe, beside.by.on)
    from sonde.cli.plan import PlanOptions, show_plan
    from sonde.cli.report import FileOptions, print_report
    from sonde.models.load import reads_facts
    from sonde.runs.controls import chosen, run_controls
    from sonde.runs.refusals import suited
    from sonde.runs.run import released, run
    from sonde.runs.shards import SHARD_WEIGHT

    names = chosen(beside.controls)
    certificate = beside.by.certified()
    probe, model, dataset = asked.prepare(probe, "" if beside.plan else beside.by.on)
    if beside.plan:
        show_plan(probe, model, dataset, asked.out, PlanOptions())
        return
    warn = partial(_long, probe, dataset)
    with released(model), progress(f"{probe.name} on {dataset.name}", "prompts", warn) as tick:
        settled = suited(probe, model, dataset)
        done = run(
            settled,
            model,
            dataset,
            asked.out,
            progress=_with_workers(tick, model),
            shard_weight=SHARD_WEIGHT,
            certificate=certificate,
        )
    del model  # a control may be as large

    def load(reference: str) -> Model:  # what counts facts is quicker than workers get ready
        counts = reads_facts(reference)
        how = asked.load.without_turns() if counts else asked.load
        return how.load(reference, dataset, "" if counts else beside.by.on)

    run_controls(names, asked.ask.model, settled, dataset, done.path, load=load, watch=progress)
    page = done.path / "report.html" if beside.html else None
    with waiting("reading the answers"):
        report = done.report()
    files = FileOptions(html=page, all_tables=beside.all_tables)
    print_report(report, [f"run: {done.path}"], files)


def _with_workers(tick: Tick, model: Model) -> Tick:
    """Tell with how much is done how many workers are at it."""
    from sonde.runs.workers.crew import Crew

    if not isinstance(model, Crew):
        return tick
    return lambda done, total: tick(done, total, model.standing)


def _long(probe: Probe, dataset: Dataset, left: float, whole: float) -> str:
    """What is said of a run that takes long: how long, and what would be shorter."""
    from sonde.runs.throughput import shorter

    ways = [f"{flag} about {roughly(each)}" for flag, each in shorter(probe, dataset, whole)]
    instead = f" ({'; '.join(ways)})" if ways else ""
    return (
        f"about {roughly(left)} left at this rate{instead}; Ctrl-C stops and keeps what is stored"
    )


app = components(
    "Put a probe's questions to a model and report what it knows.\n\n"
    "Example: sonde run lama -m smollm2 -d atlas --limit 5\n\n"
    'Example: sonde run lama -m smollm2 -d facts.csv --template "The capital of [X] is [Y]."',
    run_probe,
    PROBES,
    "sonde run {name} -m smollm2 -d atlas --relations P30 --limit 3",
    SUMMARIES,
)


NEXT = """
What to try next:
  look at the report    open {run}/report.html in a browser
  ask your own table    sonde run lama -m smollm2 -d my.csv --template "The capital of [X] is [Y]."
  ask another model     sonde run lama -m hf:FOLDER --limit 12 -o runs/other
  compare the two       sonde compare {run} runs/other
  more probes           sonde probes"""


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoOptions:
    """How much is asked, and where it is kept."""

    out: Path = option("Where to keep the run.", Path("runs/demo"), "--out", "-o")
    limit: int = option("Facts asked of SmolLM2 per relation; more take longer.", 12)


@verb
@resumable()
def demo(wanted: DemoOptions) -> None:
    """Probe SmolLM2-135M, a real model, on the bundled facts.

    Then a small model whose knowledge is known, to see how far the probe is right.

    Example: sonde demo --limit 5 -o runs/shorter
    """
    asked = RunOptions(
        ask=AskOptions(model="smollm2", facts=FactOptions()),
        out=wanted.out,
        select=SelectOptions(limit=wanted.limit),
        load=AnswerOptions(),
    )
    run_probe(PROBES["lama"](), asked, BesideOptions())
    show_known(wanted.out / "lab")
    say(NEXT.format(run=wanted.out), soft_wrap=True)


def show_known(out: Path) -> None:
    """Put the same probe to the masked model that comes with sonde, and show it with the truth."""
    from sonde.cli.lab import shipped_models
    from sonde.cli.report import show_report
    from sonde.lab.evaluation.validating import Order, validate
    from sonde.lab.report.report import brief

    masked = next(path for path in shipped_models() if path.name == "masked")
    [trial] = validate([masked], out, Order(names=("lama",)), progress).trials
    if trial.verdicts:  # else a warning has said why not
        show_report(brief(trial, beside="SmolLM2"), {}, [f"folder: {out}"])


def models() -> None:
    """List the ways to name a model.

    Example: sonde run lama -m hf:./my-model --limit 10
    """
    from sonde.models.load import schemes

    rows = [(scheme.usage, scheme.summary) for _, scheme in sorted(schemes().items())]
    print_table(("name", "what it is"), rows)


def probes() -> None:
    """List the probes and their settings.

    Example: sonde run lama -m smollm2 --template-no 2 --limit 5
    """
    for name, probe in sorted(PROBES.items()):
        say(f"{name}: {inspect.getdoc(probe)}")
        rows = [("  " + s.name, shown(s.default), s.help) for s in settings_of(probe)]
        print_table(("setting", "default", "meaning"), rows)


def shown(default: object) -> str:
    """A default as it is written, in quotes where it begins or ends with a space."""
    text = str(default)
    return repr(text) if isinstance(default, str) and text.strip() != text else text
