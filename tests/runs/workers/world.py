"""Runs of workers that may die, and what the same runs leave where one process makes them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest

import sonde
from sonde.core.components import _plugins
from sonde.core.facts import Dataset
from tests.command import PATIENCE
from tests.worlds import numbered

from .mortal import mark

FACTS = 12
WEIGHTS = {"masked": 1, "causal": 24}
"""With which tiny models have six shards or more."""


def facts() -> Dataset:
    return numbered(FACTS)


@contextmanager
def installed(folder: Path) -> Iterator[None]:
    """As on a machine on which the package with `mortal:` is installed."""
    home = folder / "installed"
    info = home / "mortal-1.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mortal\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[sonde.models]\nmortal = mortal:COMPONENT\n")
    (home / "mortal.py").write_text((Path(__file__).parent / "mortal.py").read_text())
    paths = [str(home), *filter(None, [os.environ.get("PYTHONPATH")])]
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(home))
        patch.setenv("PYTHONPATH", os.pathsep.join(paths))
        _plugins.cache_clear()
        yield
    _plugins.cache_clear()


def plan(folder: Path, model: str, **asks: Any) -> str:
    """The name of a model to which such things happen."""
    path = folder / "plan.json"
    path.write_text(json.dumps({"model": model, **asks}))
    return f"mortal:{path}"


def ask(model: sonde.Model | str, out: Path, on: str = "", **more: Any) -> sonde.Run:
    """A run of options of a counting model, a dozen shards unless told otherwise."""
    probe = sonde.probe("lama", answer="score")
    settings: dict[str, Any] = {"shard_weight": 24} | more
    return sonde.run(probe, model, facts(), out, on=on, **settings)


def tiny_model(kind: str, folder: Path) -> str:
    """The name of a tiny model."""
    from tests import tiny  # torch takes seconds, which most drivers do not need

    return f"hf:{(tiny.bert if kind == 'masked' else tiny.llama)(folder)}"


def ask_tiny(kind: str, model: str, out: Path, on: str = "") -> None:
    """A run of a tiny model, tokens filled in or options scored; alone with a worker's threads."""
    probe = sonde.probe("lama", answer="fill" if kind == "masked" else "score")
    with threads(1) if not on else nullcontext():
        sonde.run(probe, model, facts(), out, on=on, shard_weight=WEIGHTS[kind])


@contextmanager
def threads(count: int) -> Iterator[None]:
    """So many threads of torch in this process."""
    import torch  # takes seconds, which most drivers do not need

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    yield
    torch.set_num_threads(before)


def kept(out: Path) -> dict[str, bytes]:
    """Every file of a finished run but the one that tells how long it took, byte for byte.

    The checkout's state, which may change meanwhile, is in none: tests ask no git.
    """
    assert (out / "complete.json").exists() and (out / "manifest.json").exists()
    found = (path for path in out.rglob("*") if path.is_file() and path.name != "timings.jsonl")
    return {str(path.relative_to(out)): path.read_bytes() for path in found}


def workers_of(driver: int) -> list[int]:
    """The worker processes of a driver that are alive."""
    words = ["ps", "-eo", "pid=,ppid=,args="]
    lines = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
    rows = [line.split(None, 2) for line in lines]
    return [int(r[0]) for r in rows if int(r[1]) == driver and "sonde.runs.workers" in r[2]]


def alive(process: int) -> bool:
    """Whether a process is there and not only waited for."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def await_that(happens: Callable[[], bool]) -> None:
    """Look again and again."""
    deadline = time.monotonic() + PATIENCE
    while not happens():
        assert time.monotonic() < deadline, f"nothing happened for {PATIENCE} seconds"
        time.sleep(0.01)


DRIVE = (
    "import sys; from pathlib import Path; from tests.runs.workers import world; "
    "kind, model, out, on = sys.argv[1:]; "
    "world.ask_tiny(kind, model, Path(out), on) if kind else world.ask(model, Path(out), on)"
)


def driver(model: str, out: Path, on: str, kind: str = "") -> subprocess.Popen[str]:
    """A driver in a process of its own; `kind`: of a tiny model that it asks."""
    command = [sys.executable, "-c", DRIVE, kind, model, str(out), on]
    root = Path(__file__).parents[3]
    return subprocess.Popen(command, cwd=root, stderr=subprocess.PIPE, text=True)


def kill_half_way(kind: str, folder: Path, on: str) -> tuple[str, list[int]]:
    """Kill the driver of a run into `folder`/out, in which one worker waits and others go on.

    Gives the name of the model, and the processes that the driver had started.
    """
    out, there = folder / "out", tiny_model(kind, folder / "model")
    ask_tiny(kind, there, folder / "alone")
    model = plan(folder, there, waits={"P2:2": 1})
    running = driver(model, out, on, kind)
    await_that(mark(folder / "plan.json", "waits", "P2:2").exists)
    await_that(lambda: len([*(out / "shards").glob("*.parquet")]) > 1)
    left = descendants(running.pid)
    running.kill()
    running.communicate()
    assert not (out / "complete.json").exists()
    return model, left


def descendants(process: int) -> list[int]:
    """The processes that a process started, and those that they did."""
    words = ["ps", "-eo", "pid=,ppid="]
    lines = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
    above = {int(pid): int(parent) for pid, parent in map(str.split, lines)}
    found = [process]
    for each in found:
        found += [pid for pid, parent in above.items() if parent == each]
    return found[1:]


def listening(processes: Sequence[int]) -> list[str]:
    """The addresses, as the system writes them, at which processes take connections."""
    sockets = set()
    for process in processes:
        for number in Path(f"/proc/{process}/fd").glob("*"):
            with suppress(OSError):
                sockets.add(os.readlink(number).removeprefix("socket:[").removesuffix("]"))
    lines = [line for name in ("tcp", "tcp6") for line in _lines(Path("/proc/net") / name)]
    return [line[1].partition(":")[0] for line in lines if line[3] == "0A" and line[9] in sockets]


def _lines(path: Path) -> list[list[str]]:
    return [line.split() for line in path.read_text().splitlines()[1:]]
