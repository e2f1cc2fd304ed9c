"""A run answered by two processes against one, on the same cores: a masked and a causal model.

Together is what `--on local:2` does, with half of the cores for each worker; alone is the same run
in one process with all of them. Both in turns, in the same session, after the models are loaded;
how long it takes until workers are ready is told beside how long one model takes to load. The
shards must be the same bytes.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import torch

import sonde
from benchmarks.common import Result, parser, tell
from sonde.core.abilities import Model, Probe
from sonde.models.options import LoadOptions
from sonde.runs.workers.hiring import hire, released
from sonde.runs.workers.local import cores

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
    """Seconds: until one model is loaded, until workers are ready, and of every turn of a run."""

    prompts: int
    shards: int
    loading: float
    hiring: float
    alone: list[float]
    together: list[float]

    @property
    def times(self) -> list[float]:
        """How many times as fast workers were, by turn."""
        return [one / two for one, two in zip(self.alone, self.together, strict=True)]


def main() -> None:
    """Measure, print, and store where asked."""
    options = parser(__doc__.splitlines()[0])
    options.add_argument("--masked", default="", help="a masked model, such as hf:FOLDER")
    options.add_argument("--causal", default="smollm2")
    options.add_argument("--turns", type=int, default=3)
    given = options.parse_args()
    torch.set_num_threads(cores())
    cases = {}
    if given.masked:
        fill = sonde.probe("lama", answer="fill")
        cases["masked"] = Case(
            reference=given.masked, probe=fill, limit=100, relations=(), shard_weight=128
        )
    score = sonde.probe("lama", answer="score")
    cases["causal"] = Case(
        reference=given.causal, probe=score, limit=30, relations=("P30",), shard_weight=24
    )
    tell(
        as_result({k: measured(case, given.turns) for k, case in cases.items()}), write=given.write
    )


def measured(case: Case, turns: int) -> Measured:
    """Load one model here and one in each worker, and make the run with them in turns."""
    data = sonde.dataset("atlas", limit=case.limit, relations=case.relations)
    began = time.perf_counter()
    with released(hire(on(), case.reference, LoadOptions(device="cpu"), None)) as crew:
        hired = time.perf_counter()
        model = sonde.model(case.reference, device="cpu")
        loaded = time.perf_counter()
        with tempfile.TemporaryDirectory() as place:
            alone, together = [], []
            for turn in range(turns):
                one, two = Path(place, f"one-{turn}"), Path(place, f"two-{turn}")
                alone.append(timed(case, model, data, one))
                together.append(timed(case, crew, data, two))
                assert kept(one) == kept(two), "workers left other bytes"
            run = sonde.open_run(one).provenance()["run"]
    return Measured(
        prompts=run["prompts"],
        shards=run["shards"],
        loading=loaded - hired,
        hiring=hired - began,
        alone=alone,
        together=together,
    )


def on() -> str:
    """The workers, who share the cores."""
    return f"local:{WORKERS},threads={max(cores() // WORKERS, 1)}"


def timed(case: Case, model: Model, data: sonde.Dataset, out: Path) -> float:
    """Seconds that a run takes, from its first question to its last byte."""
    began = time.perf_counter()
    sonde.run(case.probe, model, data, out, shard_weight=case.shard_weight)
    return time.perf_counter() - began


def kept(out: Path) -> list[bytes]:
    """The shards of a run."""
    return [path.read_bytes() for path in sorted((out / "shards").glob("*.parquet"))]


def as_result(found: dict[str, Measured]) -> Result:
    """The table."""
    rows = [
        (
            kind,
            f"{one.prompts:,} in {one.shards}",
            f"{one.loading:.1f}",
            f"{one.hiring:.1f}",
            f"{median(one.alone):.1f}",
            f"{median(one.together):.1f}",
            f"{median(one.times):.2f}×",
            f"{min(one.times):.2f} to {max(one.times):.2f}",
        )
        for kind, one in found.items()
    ]
    columns = (
        "model",
        "prompts in shards",
        "one model loaded, s",
        "workers ready, s",
        "alone, s",
        f"{WORKERS} workers, s",
        "times as fast",
        "by turn",
    )
    title = f"{WORKERS} workers against one process, {cores()} cores"
    return Result(name=NAME, title=title, columns=columns, rows=tuple(rows))


if __name__ == "__main__":
    main()
