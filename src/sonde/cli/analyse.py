"""`sonde analyse RUN RUN …`: set finished runs side by side; no model is needed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sonde.cli.console import waiting
from sonde.cli.report import Figures, Json, PictureFormat
from sonde.cli.show import show_report
from sonde.core.errors import StoreError, UsageError
from sonde.core.reports import Report
from sonde.runs.compare import asked_of, compared, load_learning, opened
from sonde.runs.run import Run

if TYPE_CHECKING:
    from sonde.analysis.comparison.numbers import Reading


def analyse(
    folders: Annotated[
        list[Path],
        typer.Argument(
            help="The folders of finished runs, or NAME=FOLDER; the first is what others stand "
            "beside."
        ),
    ],
    groups: Annotated[
        str,
        typer.Option(
            help="Runs that belong together: family, model, stage, architecture, corpus, probe, a "
            "setting such as context, or a name for each run: a,a,b."
        ),
    ] = "family",
    models: Annotated[
        Path | None, typer.Option(help="Your own table of models: families, sizes, stages.")
    ] = None,
    draw: Annotated[
        Literal["relation", "pair"],
        typer.Option(help="Fluctuation: a template per relation, or a prompt per pair, is drawn."),
    ] = "relation",
    floor: Annotated[
        int, typer.Option(help="One-token answers a template needs for an Overconf.", min=1)
    ] = 100,
    frames: Annotated[
        int, typer.Option(help="Runs of monitor: frames that the prompt ablation keeps.", min=1)
    ] = 4,
    learning: Annotated[
        bool,
        typer.Option(
            "--learning", help="Runs of lama: how much may be learnt from the training facts."
        ),
    ] = False,
    easy: Annotated[
        str,
        typer.Option(
            help="With --learning: runs whose right answers make a fact easy, separated by commas "
            "(default: those of naive Bayes and of fine-tuned random models)."
        ),
    ] = "",
    seed: Annotated[int, typer.Option(help="Of the draws and the intervals.")] = 0,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="Write report.html into this folder.")
    ] = None,
    figures: Figures = None,
    format: PictureFormat = "svg",
    as_json: Json = False,
) -> None:
    """Compare finished runs: what they share, where they differ.

    Example: sonde analyse runs/zero-shot runs/four-shot -o runs/both
    """
    from sonde.analysis.comparison.numbers import Reading

    runs = opened(folders)
    reading = Reading(draw=draw, floor=floor, frames=frames, seed=seed)
    if learning:
        report = _learning(runs, easy, seed)
    else:
        _refuse_easy(easy)
        report = _report(runs, groups, models, reading)
    if out is not None:
        _make(out)
    show_report(
        report,
        {name: run.provenance() for name, run in runs.items()},
        html=None if out is None else out / "report.html",
        figures=figures,
        format=format,
        as_json=as_json,
        lines=[f"run: {run.path} ({name})" for name, run in runs.items()],
    )


def _report(runs: dict[str, Run], groups: str, models: Path | None, reading: Reading) -> Report:
    from sonde.analysis.comparison.report import analyse as compare

    if reading.seed < 0:
        raise UsageError(f"seed must not be negative, found {reading.seed}")
    with waiting("reading the answers"):
        made = compared(runs, groups, models)
    with waiting("comparing the runs"):
        return compare(made, reading)


def _learning(runs: dict[str, Run], easy: str, seed: int) -> Report:
    from sonde.analysis.learning.report import learning_report

    if seed < 0:
        raise UsageError(f"seed must not be negative, found {seed}")
    with waiting("reading the answers"):
        found = load_learning(runs, [name.strip() for name in easy.split(",") if name.strip()])
    with waiting("comparing the runs"):
        return learning_report(found, asked_of(runs), seed)


def _refuse_easy(easy: str) -> None:
    if easy:
        raise UsageError("--easy says what is easy for --learning; give both")


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"{folder} cannot be written: {error.strerror or error}") from error
