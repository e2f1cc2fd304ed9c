"""`sonde profile`: what models know of facts, by every way to ask that they are capable of."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sonde.cli.console import progress, resumable, say, tell, waiting
from sonde.cli.options import CHANGE, DATA, DEVICE, RELATIONS, SEED, listed, option, pairs, verb
from sonde.cli.report import FileOptions, print_report
from sonde.core.components import parse
from sonde.core.errors import SondeError, UsageError
from sonde.probes import PROBES

if TYPE_CHECKING:
    from sonde.runs.run import Run
    from sonde.studies import Cell


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileOptions:
    """Models, datasets, and how to ask."""

    model: list[str] | None = option(
        "Model, such as smollm2 or hf:FOLDER; repeat it to compare models.", None, "--model", "-m"
    )
    data: list[str] | None = option(f"{DATA} Repeatable.", None, "--data", "-d")
    config: Path | None = option("A study: models, datasets, probes and flags as TOML.", None)
    dry_run: bool = option("Print the commands and what they compute.", False, "--dry-run")
    out: Path | None = option("Folder of the runs; resumes by itself.", None, "--out", "-o")
    columns: str | None = option("Which column is what: subject=Wine,object=Region.", None)
    template: list[str] | None = option(
        'Sentence such as "The capital of [X] is [Y]."; repeatable.', None
    )
    limit: int | None = option("Ask about at most this many facts per relation.", None)
    relations: str | None = option(RELATIONS, None)
    seed: int | None = option(SEED, None)
    device: str | None = option(DEVICE, None)
    chat: str | None = option(
        "Ask the question in the model's chat format: auto, never or always.", None
    )
    settings: list[str] | None = option(CHANGE, None, "--set")

    def study(self) -> dict[str, Any]:
        """The same as the mapping of a study."""
        names = ("model", "data", "columns", "template", "limit", "seed", "device", "chat")
        values = {name: getattr(self, name) for name in names}
        values |= {"out": self.out and str(self.out), "relations": listed(self.relations or "")}
        study = {name: value for name, value in values.items() if value not in (None, (), [])}
        if self.settings:
            study["set"] = {"profile": parse(PROBES.find("profile"), pairs(self.settings))}
        return study


@verb
@resumable()
def profile(wanted: ProfileOptions) -> None:
    """Measure what a model knows, by every way to ask it.

    One run shows how far accuracy depends on the prompt, and what chance would give.

    Example: sonde profile -m smollm2 -d atlas --limit 10

    Example: sonde profile -m smollm2 -m hf:FOLDER -d facts.csv -o runs/two
    """
    from sonde.cli.plan import PlanOptions, show_plan
    from sonde.studies import prepare, read_study

    study = wanted.study()
    if wanted.config and study:
        given = ", ".join(f"--{name}" for name in study)
        raise UsageError(f"--config states the whole study; leave out {given}, or write it there")
    if not wanted.config:
        study.setdefault("data", ["atlas"])
    cells = read_study(wanted.config or study)
    if wanted.dry_run:
        for cell in cells:
            try:
                probe, model, data = prepare(cell)
            except SondeError as error:
                tell(f"error: {cell.probe} of {cell.model} on {cell.data}: {error}", "bold red")
                continue
            chat = {"chat": "always"} if model.identity.chat else {}
            how = {name: value for name, value in cell.load.items() if name != "chat"}
            say(cell._replace(load=how | chat).command(), soft_wrap=True)
            show_plan(probe, model, data, cell.out, PlanOptions(measure=0))
        return
    runs: dict[tuple[str, str], list[Run]] = {}
    failed = []
    for cell in cells:
        try:
            run = _make(cell, len(cells) == 1)
        except SondeError as error:
            if len(cells) == 1:
                raise
            tell(f"error: {cell.probe} of {cell.model} on {cell.data}: {error}", "bold red")
            failed.append(cell)
        else:
            runs.setdefault((cell.probe, cell.data), []).append(run)
    probes = {cell.probe for cell in cells}
    for (name, table), several in runs.items():
        if len(several) > 1:
            import sonde

            names = ["compare", *([name] if len(probes) > 1 else []), Path(table).stem]
            page = several[0].path.parent / f"{'-'.join(names)}.html"
            with waiting("comparing the runs"):
                report = sonde.compare(*several).report
            print_report(report, [], FileOptions(html=page))
    if failed:
        raise UsageError(
            f"{len(failed)} of {len(cells)} runs failed; the others are stored, and the same "
            "command goes on with those that are missing"
        )


def _make(cell: Cell, alone: bool) -> Run:
    from sonde.core.plain import json_text
    from sonde.studies import run_cell

    with progress(f"{cell.probe} of {cell.model} on {cell.data}", "prompts") as tick:
        run = run_cell(cell, tick)
    with waiting("reading the answers"):
        report = run.report()
    (run.path / "results.json").write_text(json_text(report.to_json()), encoding="utf-8")
    files = FileOptions(html=run.path / "report.html")
    print_report(report, [f"run: {run.path}"], files)
    return run
