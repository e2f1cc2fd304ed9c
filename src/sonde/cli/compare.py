"""`sonde compare RUN RUN …`: which of finished runs is better, and on what; no model is needed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from sonde.cli.console import tell, waiting, writing
from sonde.cli.options import ALL_TABLES, JSON, argument, listed, matching, option, verb
from sonde.cli.report import PictureOptions, show_report
from sonde.core.errors import UsageError

if TYPE_CHECKING:
    from sonde.core.reports import Report
    from sonde.runs.run import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareOptions:
    """Which runs are compared, and how."""

    folders: list[Path] = argument(
        "The folders of finished runs, or NAME=FOLDER; the first is what others are compared with."
    )
    groups: str = option(
        "Runs that belong together: family, model, stage, architecture, corpus, probe, a setting "
        "such as context, or a name for each run: a,a,b.",
        "family",
    )
    models: Path | None = option("Your own table of models: families, sizes, stages.", None)
    draw: Literal["relation", "pair"] = option(
        "Fluctuation: a template per relation, or a prompt per pair, is drawn.", "relation"
    )
    floor: int = option("One-token answers a template needs for an Overconf.", 100, least=1)
    frames: int = option("Runs of monitor: frames that the prompt ablation keeps.", 4, least=1)
    learning: bool = option(
        "Runs of lama: how much may be learnt from the training facts.", False, "--learning"
    )
    easy: str = option(
        "With --learning: runs whose right answers make a fact easy, separated by commas "
        "(default: those of naive Bayes and of fine-tuned random models).",
        "",
    )
    seed: int = option("Of the draws and the intervals.", 0)
    out: Path | None = option("Write report.html into this folder.", None, "-o", "--out")
    pictures: PictureOptions
    all_tables: bool = option(ALL_TABLES, False, "--all-tables")
    as_json: bool = option(JSON, False, "--json")


@verb
def compare(wanted: CompareOptions) -> None:
    """Say which of two or more finished runs is better, and on what.

    Example: sonde compare runs/small runs/large -o runs/both
    """
    from sonde.runs.compare import opened

    runs, out = opened(wanted.folders, "sonde compare RUN RUN …"), wanted.out
    found = _compared(runs, wanted)
    if out is not None:
        with writing(out):
            out.mkdir(parents=True, exist_ok=True)
    show_report(
        found,
        {name: run.provenance() for name, run in runs.items()},
        [f"run: {run.path} ({name})" for name, run in runs.items()],
        html=None if out is None else out / "report.html",
        pictures=wanted.pictures,
        as_json=wanted.as_json,
        brief=not wanted.all_tables,
    )


def _compared(runs: dict[str, Run], wanted: CompareOptions) -> Report:
    from sonde.analysis import report
    from sonde.analysis.differences.report import cares
    from sonde.analysis.runs import Reading
    from sonde.runs.compare import asked_of, compared, load_learning

    if wanted.easy and not wanted.learning:
        raise UsageError("--easy says what is easy for --learning; give both")
    if wanted.seed < 0:
        raise UsageError(f"seed must not be negative, found {wanted.seed}")
    if wanted.learning:
        from sonde.analysis.learning.report import learning_report

        with waiting("reading the answers"):
            learning = load_learning(runs, listed(wanted.easy))
        with waiting("comparing the runs"):
            return learning_report(learning, asked_of(runs), wanted.seed)
    with waiting("reading the answers"):
        found = compared(runs, wanted.groups, wanted.models)
    for care in cares(found):
        tell(f"take care: {care}")
    with waiting("comparing the runs"):
        return report.compare(found, matching(Reading, wanted)).report
