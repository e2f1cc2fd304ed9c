"""Make one run over and over, dying before its first file operation, its second, its third, …

Run as a script in a process of its own, since it forks: nothing may have used a thread before, so
the facts are opened in each child. Prints how often it died.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy.ma  # noqa: F401
import polars  # noqa: F401
import pyarrow.compute
import pyarrow.parquet  # noqa: F401

from sonde.api import dataset, probe
from sonde.models.controls import majority
from sonde.probes import PROBES
from sonde.runs.run import run
from sonde.store.manifest import versions

CHANGES = {"os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.truncate", "os.link"}
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
DEATH = 9


def attempt(place: str, out: Path, die_before: int = 0) -> int:
    """Run in a child that ends, as if killed, before its n-th change to the folder."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    seen = 0

    def count(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal seen
        changes = event in CHANGES or (event == "open" and arguments[2] & WRITES)
        if changes and str(arguments[0]).startswith(str(out)):
            seen += 1
            if seen == die_before:
                os._exit(DEATH)

    sys.addaudithook(count)
    facts = dataset(place)
    run(probe("lama", answer="score"), majority(facts), facts, out, shard_weight=8)
    os._exit(0)


def main(facts: str, folder: Path) -> int:
    """Die before each operation in turn, resume, and compare; gives back how often."""
    assert attempt(facts, folder / "calm") == 0
    calm = kept(folder / "calm")
    deaths = 0
    while attempt(facts, folder / f"{deaths}", deaths + 1) == DEATH:
        out = folder / f"{deaths}"
        assert attempt(facts, out) == 0, f"a run that died before change {deaths + 1} is stuck"
        assert kept(out) == calm, f"dying before change {deaths + 1} changed the run"
        deaths += 1
    return deaths


def kept(folder: Path) -> dict[str, bytes]:
    """Every file's content, but for what tells the time of a session or the order of events."""
    names = ("shards/*", "dataset/**/*", "complete.json", "*.partial")
    paths = (path for name in names for path in folder.glob(name) if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


if __name__ == "__main__":
    PROBES["lama"]  # imported once, for all children, and read once
    versions()
    print(main(sys.argv[1], Path(sys.argv[2])))
