"""A run answered by two processes against one, on the same cores: a masked and a causal model.

Workers are those of `--on local:2`, with a thread each; one process has one thread, and then one
for each core. All in turns, in the same session, after the models are loaded; how long it takes
until workers are ready is told beside how long one model takes to load. Seconds on the clock mean
something on a machine that does nothing else; those of the processors, of the driver and its
workers together, also elsewhere. The shards must be the same bytes.
"""

from __future__ import annotations

import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import torch

import sonde
from benchmarks.common import Result, parser, tell
from sonde.core.abilities import Model, Probe
from sonde.core.threads import cores
from sonde.models.options import LoadOptions
from sonde.runs.run import released
from sonde.runs.workers.hiring import start_workers

NAME = "workers"
WORKERS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A model, and what it is asked."""

    reference: str
    probe: Probe
    limit: int
    relations: tuple[str, ...]
    shard_weight: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Seconds until one model is loaded and until workers are ready; those of each way's turns.

    `ways`: by name, seconds on the clock and of the processors.
    """

    prompts: int
    shards: int
    loading: float
    hiring: float
    ways: dict[str, list[tuple[float, float]]]


def main() -> None:
    """Measure, print, and store where asked."""
    options = parser(__doc__.splitlines()[0])
    options.add_argument("--masked", default="", help="a masked model, such as hf:FOLDER")
    options.add_argument("--causal", default="smollm2")
    options.add_argument("--turns", type=int, default=3)
    given = options.parse_args()
    found = {}
    if given.masked:
        probe = sonde.probe("lama", answer="fill")
        case = Case(reference=given.masked, probe=probe, limit=100, relations=(), shard_weight=64)
        found["masked"] = measured(case, given.turns)
    probe = sonde.probe("lama", answer="score")
    case = Case(reference=given.causal, probe=probe, limit=30, relations=("P30",), shard_weight=24)
    found["causal"] = measured(case, given.turns)
    tell(as_result(found), write=given.write)


def measured(case: Case, turns: int) -> Measured:
    """Load one model here and one in each worker, and make the run with them in turns."""
    data = sonde.dataset("atlas", limit=case.limit, relations=case.relations)
    began = time.perf_counter()
    on = f"local:{WORKERS},threads=1"
    with released(start_workers(on, case.reference, LoadOptions(device="cpu"), None)) as crew:
        hired = time.perf_counter()
        model = sonde.model(case.reference, device="cpu")
        loading = time.perf_counter() - hired
        ways = {
            "one process, one thread": (model, 1),
            f"one process, {cores()} threads": (model, cores()),
            f"{WORKERS} workers, a thread each": (crew, 1),
        }
        found: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
        with tempfile.TemporaryDirectory() as place:
            for turn in range(turns):
                left = []
                for way, (asked, threads) in ways.items():
                    torch.set_num_threads(threads)
                    out = Path(place, f"{way}-{turn}")
                    found[way].append(timed(case, asked, data, out))
                    left.append(kept(out))
                assert left.count(left[0]) == len(left), "other bytes were left"
            run = sonde.open_run(out).provenance()["run"]
    return Measured(
        prompts=run["prompts"],
        shards=run["shards"],
        loading=loading,
        hiring=hired - began,
        ways=found,
    )


def timed(case: Case, model: Model, data: sonde.Dataset, out: Path) -> tuple[float, float]:
    """Seconds that a run takes, from its first question to its last byte: clock, processors."""
    began, busy = time.perf_counter(), processors()
    sonde.run(case.probe, model, data, out, shard_weight=case.shard_weight)
    return time.perf_counter() - began, processors() - busy


def processors() -> float:
    """Seconds that processors spent on this process and on those that it started and that live."""
    ticks = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        if str(os.getpid()) in (path.parent.name, fields[1]):
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def kept(out: Path) -> list[bytes]:
    """The shards of a run."""
    return [path.read_bytes() for path in sorted((out / "shards").glob("*.parquet"))]


def as_result(found: dict[str, Measured]) -> Result:
    """The table."""
    rows, findings = [], []
    for kind, one in found.items():
        clock, busy = (
            {way: median(each[i] for each in turns) for way, turns in one.ways.items()}
            for i in (0, 1)
        )
        *_, threads, workers = clock
        rows += [(f"{kind}: {way}", f"{clock[way]:.1f}", f"{busy[way]:.1f}") for way in clock]
        times = clock[threads] / clock[workers]
        findings.append(
            f"{kind}, {one.prompts:,} prompts in {one.shards} shards: workers are {times:.2f} "
            f"times as fast as one process with {cores()} threads. They were ready after "
            f"{one.hiring:.1f} s; one model was loaded in {one.loading:.1f} s. All shards have the "
            "same bytes."
        )
    findings.append(f"The machine's load was {os.getloadavg()[1]:.1f} on {cores()} cores.")
    columns = ("run", "seconds (median)", "processor seconds (median)")
    title = f"{WORKERS} workers against one process, {cores()} cores"
    return Result(
        name=NAME, title=title, columns=columns, rows=tuple(rows), findings=tuple(findings)
    )


if __name__ == "__main__":
    main()
