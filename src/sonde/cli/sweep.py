"""`sonde sweep PROBE`: a probe over a grid of its settings, read side by side."""

from __future__ import annotations

from dataclasses import MISSING, dataclass
from typing import Any

from sonde.cli.console import progress, waiting
from sonde.cli.options import RunOptions, argument, listed, option, verb
from sonde.cli.report import show_report
from sonde.core.errors import UsageError
from sonde.core.settings import parse
from sonde.runs.run import default_folder, describe, find_probe
from sonde.runs.shards import SHARD_WEIGHT
from sonde.runs.sweep import sweep as make_sweep


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepOptions:
    """Which probe is run over which grid."""

    probe: str = argument("The probe, such as belief-icl ('sonde probes').")
    over: list[str] = option(
        "A setting and its values, separated by commas: KEY=V1,V2; repeatable.", MISSING
    )
    html: bool = option("Write report.html into the folder.", True, "--html/--no-html")


@verb
def sweep(wanted: SweepOptions, asked: RunOptions) -> None:
    """Run a probe with every combination of some settings, and show the runs side by side.

    Example: sonde sweep ic-lke -m smollm2 -d atlas --limit 5 --over n=1,5,20
    """
    kind = find_probe(wanted.probe)
    over = axes(kind, wanted.over)
    probe, model, dataset = asked.prepare(kind())
    folder = asked.out or default_folder(describe(probe, model, dataset, SHARD_WEIGHT))
    if asked.out is None:
        folder = folder.with_name(f"sweep-{folder.name}")
    done = make_sweep(probe, model, dataset, over, folder, watch=progress)
    with waiting("reading the answers"):
        report = done.report()
    page = folder / "report.html" if wanted.html else None
    show_report(report, done.provenance(), [f"sweep: {folder}"], html=page)


def axes(kind: type, texts: list[str]) -> dict[str, list[Any]]:
    """Settings with the values that KEY=V1,V2 texts give them."""
    over: dict[str, list[Any]] = {}
    for text in texts:
        key, equals, values = text.partition("=")
        if not equals or not listed(values):
            raise UsageError(f"--over takes KEY=V1,V2, not {text!r}")
        for value in listed(values):
            [(name, found)] = parse(kind, {key: value}).items()
            over.setdefault(name, []).append(found)
    return over
