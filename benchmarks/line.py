"""Seconds of everything but the model at an earlier commit and now, in turn on one machine.

Whole commands (`sonde run belief`, `sonde report`), then a masked model that answers at once: how
long prompts, storing, judging and the report take, and in how much memory. Each side runs a script
of its own from `children/`, so that names may change between the two. Needs SONDE_SHARED.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.common import BEFORE, ROOT, Result, checkout, parser, run_child, tell

NAMES = 258
LARGE = 2_000_000


def main() -> None:
    """Measure, print, and store where asked."""
    options = parser(__doc__.splitlines()[0])
    options.add_argument("--names", type=int, default=NAMES, help="targets of a prompt")
    options.add_argument("--pairs", type=int, default=24_643, help="pairs at full size")
    options.add_argument("--skip-large", action="store_true", help="leave 6.5 million prompts out")
    given = options.parse_args()
    shared = Path(os.environ["SONDE_SHARED"]) / "data"
    data = f"lama:{shared / 'lama'}+pararel:{shared / 'pararel'}"
    work = [
        ("answered at once, no targets", {"data": data, "pairs": 0, "watched": 0, "prompts": 0}),
        (
            f"answered at once, {given.names} targets",
            {"data": data, "pairs": 0, "watched": given.names, "prompts": 0},
        ),
        (
            "a million prompts in 30,000 pairs",
            {"data": "", "pairs": 30_000, "watched": 0, "prompts": 1_000_000},
        ),
    ]
    if not given.skip_large:
        size = {"data": "", "pairs": given.pairs, "watched": 0, "prompts": 6_500_000}
        work.append(("MyriadLAMA's size", size))
    with tempfile.TemporaryDirectory() as folder, checkout(Path(folder) / "before", BEFORE) as old:
        rows = [*commands(Path(folder), old, data)]
        for title, settings in work:
            argument = json.dumps(settings)
            sides = ((BEFORE, old), ("now", ROOT), ("now", ROOT), (BEFORE, old))
            took: dict[str, list[dict[str, float]]] = {BEFORE: [], "now": []}
            for side, root in sides:
                took[side].append(json.loads(run_child(f"line_{side}", root, argument)))
            rows += as_rows(title, took[BEFORE], took["now"])
    result = Result(
        name="line",
        title=f"Everything but the model: belief on LAMA × ParaRel, at {BEFORE} and now",
        columns=("work", "before", "now", "ratio"),
        rows=tuple(rows),
        findings=("The better of two turns each; processor seconds in brackets.",),
    )
    tell(result, write=given.write)


def as_rows(
    title: str, before: list[dict[str, float]], now: list[dict[str, float]]
) -> Iterator[tuple[str, ...]]:
    """One line for each thing that was measured; the better of the turns."""
    prompts = int(now[0]["prompts"])
    assert prompts == before[0]["prompts"], "the two sides answered different prompts"
    parts = {
        "asking": "answered and stored",
        "judging": "judged, one estimate",
        "reading": "report",
    }
    for name, label in parts.items():
        if name == "judging" and prompts >= LARGE:
            continue  # a frame with all names is no way to hold millions of prompts
        old, new = (min(turn[name] for turn in side) for side in (before, now))
        yield f"{title} ({prompts:,}): {label}", f"{old:.2f} s", f"{new:.2f} s", f"{new / old:.2f}"
    old, new = (min(turn["peak"] for turn in side) / 2**20 for side in (before, now))
    yield f"{title}: peak memory", f"{old:.0f} MiB", f"{new:.0f} MiB", f"{new / old:.2f}"


def commands(folder: Path, old: Path, data: str) -> Iterator[tuple[str, ...]]:
    """`sonde run` and `sonde report` of both sides, in turn."""
    times: dict[str, list[tuple[float, float]]] = {}
    for side, root in ((BEFORE, old), ("now", ROOT), ("now", ROOT), (BEFORE, old)):
        out = folder / f"run-{side}"
        shutil.rmtree(out, ignore_errors=True)
        run = ["run", "belief", "-m", "control:majority", "-d", data, "-o", str(out)]
        times.setdefault(f"run {side}", []).append(command(root, run))
        times.setdefault(f"report {side}", []).append(command(root, ["report", str(out)]))
    for verb, title in (
        ("run", "sonde run belief -m control:majority"),
        ("report", "sonde report"),
    ):
        sides = (map(min, zip(*times[f"{verb} {side}"], strict=True)) for side in (BEFORE, "now"))
        (wall, spent), (wall_now, spent_now) = sides
        yield (
            title,
            f"{wall:.1f} s ({spent:.1f})",
            f"{wall_now:.1f} s ({spent_now:.1f})",
            f"{wall_now / wall:.2f}",
        )


def command(root: Path, words: list[str]) -> tuple[float, float]:
    """Wall and processor seconds of a whole command.

    Modules stay compiled from one command to the next, as those of an installed program do.
    """
    code = "from sonde.cli.main import entry; entry()"
    paths = {**os.environ, "PYTHONPATH": str(root / "src")}
    paths.pop("PYTHONDONTWRITEBYTECODE", None)
    before, began = spent_by_children(), time.perf_counter()
    subprocess.run(
        [sys.executable, "-c", code, *words], env=paths, check=True, capture_output=True, cwd=root
    )
    return time.perf_counter() - began, spent_by_children() - before


def spent_by_children() -> float:
    """Processor seconds of all commands so far."""
    spent = os.times()
    return spent.children_user + spent.children_system


if __name__ == "__main__":
    main()
