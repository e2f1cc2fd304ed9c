"""Seconds of four model workloads at an earlier commit and now, in turn on one machine.

Samples, options behind a long prefix, MONITOR's prompts scored and generated together, and LAMA's
masks, each as its own benchmark does it (`samples`, `ic_lke`, `together`, `lama_fill`). Those
compare sonde with other programs, this one with itself. Each side runs a script of its own from
`children/`, so that names may change between the two. Needs SONDE_SHARED (see README.md).
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from statistics import median

from benchmarks.common import BEFORE, ROOT, Result, checkout, parser, run_child, tell

WORK = {
    "samples": "100 samples of each of 16 prompts, SmolLM2",
    "ic_lke": "100 options of each of 40 facts behind 700 tokens, SmolLM2",
    "together": "180 prompts of monitor, scored and generated, SmolLM2",
    "lama_fill": "3,000 masks of LAMA, encoder-24m",
}

Times = dict[str, list[tuple[float, float]]]


def main() -> None:
    """Measure, print, and store where asked."""
    options = parser(__doc__.splitlines()[0])
    options.add_argument("--turns", type=int, default=3, help="how often each is measured (3)")
    given = options.parse_args()
    before: Times = {name: [] for name in WORK}
    now: Times = {name: [] for name in WORK}
    with (
        tempfile.TemporaryDirectory() as folder,
        checkout(Path(folder) / "before", BEFORE) as old,
    ):
        for turn in range(given.turns):
            sides = [(before, old, BEFORE), (now, ROOT, "now")]
            for times, root, side in sides if turn % 2 == 0 else sides[::-1]:
                cache = Path(folder) / f"cache-{side}"  # each unpacks the model by itself
                printed = run_child(f"before_{side}", root, SONDE_CACHE=str(cache))
                for name, took in json.loads(printed).items():
                    times[name].append(tuple(took))
    tell(as_result(before, now, given.turns), write=given.write)


def as_result(before: Times, now: Times, turns: int) -> Result:
    """Medians of wall seconds, with those of the processor in brackets."""

    def shown(times: list[tuple[float, float]]) -> str:
        wall, spent = (median(column) for column in zip(*times, strict=True))
        return f"{wall:.2f} s ({spent:.2f})"

    def ratio(name: str) -> float:
        return median(t[0] for t in now[name]) / median(t[0] for t in before[name])

    rows = tuple(
        (f"{name}: {what}", shown(before[name]), shown(now[name]), f"{ratio(name):.2f}×")
        for name, what in WORK.items()
    )
    walls = "; ".join(
        f"{name} {', '.join(f'{wall:.2f}' for wall, _ in before[name])} before and "
        f"{', '.join(f'{wall:.2f}' for wall, _ in now[name])} now"
        for name in WORK
    )
    return Result(
        name="before",
        title=f"sonde at {BEFORE} and now, in turn",
        columns=("work", "before", "now", "ratio"),
        rows=rows,
        findings=(f"Medians of {turns} turns; processor seconds in brackets.", f"{walls}."),
    )


if __name__ == "__main__":
    main()
