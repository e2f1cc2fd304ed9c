"""What sonde takes on this machine now, beside what it took at an earlier commit.

Both are run in turn from checkouts of their own: samples drawn, options scored behind a long
prefix, MONITOR's prompts scored and written together, and LAMA's filled, each as its own benchmark
(`samples`, `ic_lke`, `together`, `lama_fill`) does it. Those set sonde beside other programs; this
one sees whether it became slower itself. Needs SONDE_SHARED (see README.md).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from benchmarks.common import ROOT, Result, checkout, parser, tell

NAME = "before"
COMMIT = "47e37c86"
"""The last commit before small models were made fast on GPUs."""

WORK = {
    "samples": "100 samples of each of 16 prompts, SmolLM2",
    "ic_lke": "100 options of each of 40 facts behind 700 tokens, SmolLM2",
    "together": "180 prompts of monitor, scored and written, SmolLM2",
    "lama_fill": "3,000 prompts of LAMA filled, encoder-24m",
}

CHILD = """
import json, logging, os, sys, time
from pathlib import Path
import sonde
from benchmarks import ic_lke, lama_fill, samples, together
from sonde.core.prompts import Sample

assert Path(sonde.__file__).is_relative_to(os.getcwd()), sonde.__file__
logging.disable(logging.WARNING)
took = {}

def timed(name, work):
    wall, spent = time.perf_counter(), time.process_time()
    work()
    took[name] = (time.perf_counter() - wall, time.process_time() - spent)

model = sonde.model("smollm2")
drawn = list(samples.prompts(sonde.dataset("atlas"), Sample(count=100, most=16), 16))
samples.ours(model, drawn[:1])
model.prefixes.clear()
timed("samples", lambda: samples.ours(model, drawn))
asked = ic_lke.questions(model, "P190", 40, 100, 700)
ic_lke.by_sonde(model, asked[:2])
timed("ic_lke", lambda: ic_lke.by_sonde(model, asked))
both = together.asked(6)
together.turn(together.together, model, both[:4])
timed("together", lambda: together.turn(together.together, model, both))
shared = Path(os.environ["SONDE_SHARED"])
masked = sonde.model(f"hf:{shared / 'models/encoder-24m'}")
prompts = lama_fill.questions(shared / "data/lama", 3000)
timed("lama_fill", lambda: lama_fill.by_sonde(masked, prompts))
print(json.dumps(took))
"""

Times = dict[str, list[tuple[float, float]]]


def main() -> None:
    """Measure, print, and store where asked."""
    options = parser(__doc__.splitlines()[0])
    options.add_argument("--commit", default=COMMIT, help=f"the earlier one ({COMMIT})")
    options.add_argument("--turns", type=int, default=3, help="how often each is measured (3)")
    given = options.parse_args()
    before: Times = {name: [] for name in WORK}
    now: Times = {name: [] for name in WORK}
    with (
        tempfile.TemporaryDirectory() as folder,
        checkout(Path(folder) / "before", given.commit) as old,
    ):
        for turn in range(given.turns):
            sides = [(before, old), (now, ROOT)]
            for times, root in sides if turn % 2 == 0 else sides[::-1]:
                add(times, root, Path(folder) / f"cache-{root.name}")
    tell(as_result(before, now, given.commit, given.turns), write=given.write)


def add(times: Times, root: Path, cache: Path) -> None:
    """One turn of a checkout, with models unpacked by itself."""
    paths = {**os.environ, "PYTHONPATH": str(root / "src"), "SONDE_CACHE": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", CHILD], env=paths, cwd=root, check=True, stdout=subprocess.PIPE
    )
    for name, took in json.loads(done.stdout.splitlines()[-1]).items():
        times[name].append(tuple(took))


def as_result(before: Times, now: Times, commit: str, turns: int) -> Result:
    """Seconds by the clock, with those of the processor in brackets; medians."""

    def shown(times: list[tuple[float, float]]) -> str:
        wall, spent = (median(column) for column in zip(*times, strict=True))
        return f"{wall:.2f} s ({spent:.2f})"

    def ratio(name: str, column: int) -> float:
        return median(t[column] for t in now[name]) / median(t[column] for t in before[name])

    rows = tuple(
        (f"{name}: {what}", shown(before[name]), shown(now[name]), f"{ratio(name, 0):.2f}×")
        for name, what in WORK.items()
    )
    walls = "; ".join(
        f"{name} {', '.join(f'{wall:.2f}' for wall, _ in before[name])} before and "
        f"{', '.join(f'{wall:.2f}' for wall, _ in now[name])} now"
        for name in WORK
    )
    return Result(
        name=NAME,
        title=f"sonde at {commit} and now, in turn",
        columns=("work", "before", "now", "of before"),
        rows=rows,
        findings=(f"Medians of {turns} turns; processor seconds in brackets.", f"{walls}."),
    )


if __name__ == "__main__":
    main()
