"""`sonde lab validate MODEL …`: hold every estimator against what models of a world do know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sonde.cli.console import training, waiting
from sonde.cli.report import Figures, Json, PictureFormat
from sonde.cli.show import show_report, write_html
from sonde.core.errors import DataError, UsageError
from sonde.core.reports import Column, Report, Table
from sonde.lab.estimators.efforts import Effort

if TYPE_CHECKING:
    from sonde.lab.evaluation.validating import Order, Validated

SHIPPED = Path(__file__).parents[1] / "lab" / "shipped"
KINDS = ("causal", "masked")
OUT = Path("runs/lab")


def validate(
    models: Annotated[
        list[Path] | None,
        typer.Argument(metavar="MODEL…", help="Folders that 'sonde lab train' made."),
    ] = None,
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", help="Folder for everything asked; a killed command goes on there."
        ),
    ] = OUT,
    shipped: Annotated[
        bool, typer.Option("--shipped", help="The two small models that come with sonde.")
    ] = False,
    estimators: Annotated[
        str, typer.Option(help="Only these, separated by commas; all that fit if none is named.")
    ] = "",
    effort: Annotated[
        Effort, typer.Option(help="quick: seconds each on a small model; full: nothing left out.")
    ] = "quick",
    limit: Annotated[
        int | None, typer.Option(help="Ask about at most this many facts per relation.")
    ] = None,
    world: Annotated[
        Path | None, typer.Option(help="Where the models' world is, if it was moved.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of which facts are asked, shown and learnt from.")] = 0,
    timeline: Annotated[
        bool, typer.Option("--timeline", help="Also ask the checkpoints, with a few estimators.")
    ] = False,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    html: Annotated[
        Path | None, typer.Option(help="Where the HTML report goes; OUT/report.html if not named.")
    ] = None,
    figures: Figures = None,
    format: PictureFormat = "svg",
    as_json: Json = False,
) -> None:
    """Ask every estimator about models whose knowledge is known, and say how far it is right.

    Example: sonde lab validate models/causal models/masked -o runs/lab
    """
    from sonde.lab.evaluation.keeping import alone
    from sonde.lab.evaluation.validating import Order
    from sonde.lab.evaluation.validating import validate as ask

    chosen = [*(models or ()), *(shipped_models() if shipped else ())]
    if not chosen:
        raise UsageError("name the folder of a model that 'sonde lab train' made, or --shipped")
    order = Order(
        effort=effort,
        names=tuple(name.strip() for name in estimators.split(",") if name.strip()),
        limit=limit,
        seed=seed,
        world=world,
        timeline=timeline,
        device=device,
    )
    found = ask(chosen, out, order, training)
    with waiting("comparing with the truth"):
        report = reported(found)
    made_of, page = provenance(chosen, order, found), html or out / "report.html"
    with alone(out):
        write_html(report, made_of, page)
    show_report(
        report,
        made_of,
        html=None,
        figures=figures,
        format=format,
        as_json=as_json,
        lines=[f"folder: {out}", f"report: {page}"],
    )


def shipped_models(folder: Path = SHIPPED) -> list[Path]:
    """The models that come with sonde."""
    found = [folder / kind for kind in KINDS]
    for path in found:
        if not (path / "lab.json").is_file():
            raise DataError(
                f"the models that come with sonde are not in this installation ({path} is "
                "missing); install sonde anew, or train some with 'sonde lab train'"
            )
    return found


def reported(found: Validated) -> Report:
    """The report, with what had to be left out among its notes."""
    from sonde.lab.report.report import lab_report

    report = lab_report(found.trials, found.timeline)
    asked = dict.fromkeys(v.estimator for trial in found.trials for v in trial.verdicts)
    return replace(
        report,
        tables=(*report.tables, what_they_say(tuple(asked))),
        notes=(*report.notes, *(f"{left}." for left in found.left)),
    )


def what_they_say(names: Sequence[str]) -> Table:
    """What the score and the decision of each estimator are."""
    from sonde.lab.estimators.catalogue import estimators

    rows = tuple((name, each.says) for name, each in estimators().items() if name in names)
    return Table(
        id="estimators",
        title="What each estimator says of a fact",
        columns=(Column(title="estimator"), Column(title="score; and when it is known")),
        rows=rows,
    )


def provenance(models: Sequence[Path], order: Order, found: Validated) -> dict[str, object]:
    """Where the numbers come from: models, worlds, settings and what was left out."""
    settings = {name: str(v) if isinstance(v, Path) else v for name, v in asdict(order).items()}
    return {
        "settings": settings,
        "folders": [str(path) for path in models],
        "models": [
            {
                "model": trial.model,
                "kind": trial.kind,
                "world": trial.world,
                "steps": trial.step,
                "facts": len(trial.known),
                "estimators": [verdicts.estimator for verdicts in trial.verdicts],
            }
            for trial in found.trials
        ],
        "left_out": [asdict(left) for left in found.left],
    }
