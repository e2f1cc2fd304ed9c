"""Workers that are processes of this machine, each with its own threads and its own GPU.

`python -m sonde.runs.workers.local FILE` is one: it answers what comes through that file, and ends
when the other end is closed, whatever became of the driver.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path

from sonde.core.errors import WorkerError
from sonde.core.threads import cores
from sonde.runs.workers.channels import Channel, Lost
from sonde.runs.workers.spec import Workers, dealt_devices
from sonde.runs.workers.worker import serve

THREADS = ("OMP_NUM_THREADS", "RAYON_NUM_THREADS", "POLARS_MAX_THREADS")
"""What says to torch, tokenizers and polars how many threads they may have."""

VISIBLE = "CUDA_VISIBLE_DEVICES"

PATIENCE = 5.0
"""Seconds that a worker which was told to end may take before it is killed."""


class LocalPlace:
    """Starts processes, and hears which of them have something to say."""

    def __init__(self, workers: Workers, *, cpu: bool, spread: bool) -> None:
        self._gpus = [] if cpu else gpus()
        each = gpus_of_each(workers, len(self._gpus), spread=spread)
        self._workers = replace(workers, gpus=each)
        self.cores = cores()

    def start(self, number: int) -> Process:
        """A new process in the place of worker `number`."""
        return Process(surroundings(self._workers, number, os.environ, self._gpus))

    def wait(self, channels: Sequence[Channel], seconds: float) -> list[Channel]:
        """Those that have something to say, or have ended."""
        by_end = {each.end: each for each in channels if isinstance(each, Process)}
        return [by_end[end] for end in wait(list(by_end), seconds) if isinstance(end, Connection)]

    def close(self) -> None:
        """Nothing is left."""


class Process:
    """One worker."""

    def __init__(self, surroundings: Mapping[str, str]) -> None:
        self.end, theirs = Pipe()
        self._process = subprocess.Popen(
            # -P: what lies in the folder one stands in is not ours
            [sys.executable, "-P", "-m", "sonde.runs.workers.local", str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=2,  # results are the driver's alone
            env=surroundings,
            pass_fds=[theirs.fileno()],
            start_new_session=True,  # an interrupt is for the driver to deal with
        )
        theirs.close()

    @property
    def told(self) -> str:
        """Which process it is."""
        return f"process {self._process.pid}"

    def send(self, data: bytes) -> None:
        """Give it something to do."""
        try:
            self.end.send_bytes(data)
        except OSError:
            raise Lost(self._how()) from None

    def receive(self) -> bytes:
        """What it has to say."""
        try:
            return self.end.recv_bytes()
        except (EOFError, OSError):
            raise Lost(self._how()) from None

    def close(self) -> None:
        """End it, in good order or not."""
        self.end.close()
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _how(self) -> str:
        """How it ended."""
        with suppress(subprocess.TimeoutExpired):
            code = self._process.wait(PATIENCE)
            if code == -9:
                return "killed with signal 9, as the system does where memory runs out"
            return f"killed with signal {-code}" if code < 0 else f"ended with exit code {code}"
        return "it does not answer"


def surroundings(
    workers: Workers, number: int, given: Mapping[str, str], devices: Sequence[str]
) -> dict[str, str]:
    """The environment of a worker: its threads, unless they are set, and its GPUs.

    On CPUs it has one thread, however many workers there are, because the number moves last digits;
    beside GPUs, where it does not, a share of the cores.
    """
    share = workers.threads or (max(cores() // workers.count, 1) if devices else 1)
    found = {**dict.fromkeys(THREADS, str(share)), **given}
    if workers.threads:
        found |= dict.fromkeys(THREADS, str(share))
    if devices or workers.gpus == 0:
        found[VISIBLE] = ",".join(dealt_devices(devices, number, int(workers.gpus or 0)))
    # as here: a module of one's own may hold a model
    found["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    return found


def gpus_of_each(workers: Workers, there: int, *, spread: bool) -> int:
    """GPUs of each worker: as many as the user says, or one; its share, where a model is spread.

    >>> four = Workers(place="local", count=4)
    >>> [gpus_of_each(four, 8, spread=spread) for spread in (False, True)]
    [1, 2]
    """
    if workers.gpus is None:
        return max(there // workers.count, 1) if spread else 1
    if workers.gpus > there:
        raise WorkerError(
            f"each worker of {workers} is to have {workers.gpus:g} GPUs, and this machine has "
            f"{there}; give fewer, or list the GPUs in {VISIBLE}"
        )
    return int(workers.gpus)


def gpus() -> list[str]:
    """The GPUs that this process may use, found without a library that would use one."""
    if (chosen := os.environ.get(VISIBLE)) is not None:
        return [name.strip() for name in chosen.split(",") if name.strip()]
    nodes = (path.name for path in Path("/dev").glob("nvidia*"))
    return [str(i) for i, _ in enumerate(n for n in nodes if re.fullmatch(r"nvidia\d+", n))]


def main() -> None:
    """Be a worker until the driver closes its end or is no more."""
    end = Connection(int(sys.argv[1]))
    try:
        serve(end.recv_bytes, end.send_bytes)
    finally:
        os._exit(0)  # in the middle of a shard too


if __name__ == "__main__":
    main()
