"""Workers of a Ray cluster: of one that runs already, or of one that this machine is alone.

Each is an actor that Ray never starts again: what becomes of a lost worker's shards is for the
driver to decide. The same messages go to and fro as with processes. Ray is imported when it is
used.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from queue import SimpleQueue
from threading import Thread
from typing import Any

from sonde.core.errors import WorkerError
from sonde.core.threads import cores
from sonde.models.options import needs_extra
from sonde.runs.workers.channels import Channel, Lost
from sonde.runs.workers.spec import Workers
from sonde.runs.workers.worker import serve

TRIES = 3
"""How often a cluster of this machine is started before that is given up."""

PATIENCE = 300.0
"""Seconds in which a cluster must find room for a worker."""

LOOPBACK = "127.0.0.1"

KNOCK = 20.0
"""Seconds in which a cluster must take a connection."""

MOMENT = 5.0
"""Seconds after which who waits sees whether room was found."""

log = logging.getLogger(__name__)

Resources = Mapping[str, float]
"""What a machine of a cluster has: CPU, GPU and more."""


class RayPlace:
    """Starts actors, and hears which of them have something to say."""

    def __init__(self, workers: Workers, *, cpu: bool, spread: bool) -> None:
        self._ray = ray = _imported(workers)
        self._ours = not ray.is_initialized()
        if self._ours:
            _connect(ray, workers)
        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        cpus, gpus = shares(workers, nodes, cpu=cpu, spread=spread)
        log.debug("each worker has %s CPUs and %s GPUs", cpus, gpus)
        self.cores = int(_sum(nodes, "CPU"))
        if room(nodes, cpus, gpus) < workers.count:
            self._too_small(workers, nodes, cpus, gpus)
        # two threads: one gives what the worker says, one takes what it is told
        self._options = {
            "num_cpus": cpus,
            "num_gpus": gpus,
            "max_concurrency": 2,
            "max_restarts": 0,
            "max_task_retries": 0,
        }

    def _too_small(
        self, workers: Workers, nodes: Sequence[Resources], cpus: float, gpus: float
    ) -> None:
        """Refuse what this machine cannot hold; another cluster may grow, and is waited for."""
        has = ", ".join(f"{_sum(nodes, kind):g} {kind}s" for kind in ("CPU", "GPU"))
        told = (
            f"{workers.count} workers with {cpus:g} CPUs and {gpus:g} GPUs each do not fit into "
            f"the Ray cluster, which has {has}"
        )
        if self._ours and not _address(workers):
            self.close()
            raise WorkerError(f"{told}; give fewer workers, or less to each, as in gpus=0.5")
        log.warning("%s; waiting up to %.0f s for it to grow", told, PATIENCE)

    def start(self, number: int) -> Actor:
        """A new actor in the place of worker `number`."""
        kind = self._ray.remote(RayWorker).options(name=None, **self._options)
        return Actor(self._ray, kind.remote(), number)

    def wait(self, channels: Sequence[Channel], seconds: float) -> list[Channel]:
        """Those that have something to say, have ended, or found no room."""
        actors = [each for each in channels if isinstance(each, Actor)]
        refs = [each.coming for each in actors]
        found, _ = self._ray.wait(refs, num_returns=1, timeout=min(seconds, MOMENT))
        return [each for each in actors if each.coming in found or each.homeless()]

    def close(self) -> None:
        """Leave the cluster; one that was started here ends."""
        if self._ours:
            self._ray.shutdown()


class RayWorker:
    """What an actor is: a worker with a box for what it is told and one for what it says."""

    def __init__(self) -> None:
        self._in: SimpleQueue[bytes] = SimpleQueue()
        self._out: SimpleQueue[bytes] = SimpleQueue()
        Thread(target=serve, args=(self._in.get, self._out.put), daemon=True).start()

    def tell(self, data: bytes) -> None:
        """Give it something to do."""
        self._in.put(data)

    def hear(self) -> bytes:
        """What it has to say next."""
        return self._out.get()


class Actor:
    """One worker, as the driver reaches it."""

    def __init__(self, ray: Any, handle: Any, number: int) -> None:
        self._ray, self._handle, self._number = ray, handle, number
        self._began = time.monotonic()
        self._first: Any = None
        self.coming = handle.hear.remote()

    @property
    def told(self) -> str:
        """Which actor it is."""
        return f"actor {self._handle._actor_id.hex()[:8]}"

    def send(self, data: bytes) -> None:
        """Give it something to do."""
        try:
            sent = self._handle.tell.remote(data)
        except self._ray.exceptions.RayError as error:
            raise Lost(_how(error)) from None
        self._first = self._first or sent

    def receive(self) -> bytes:
        """What it has to say."""
        if self.homeless():
            raise Lost(f"the cluster found no room for it within {PATIENCE:.0f} s")
        try:
            data: bytes = self._ray.get(self.coming)
            self.coming = self._handle.hear.remote()
        except self._ray.exceptions.RayError as error:
            raise Lost(_how(error)) from None
        return data

    def homeless(self) -> bool:
        """Whether it should have been started by now, and was not."""
        if self._first is None or time.monotonic() - self._began < PATIENCE:
            return False
        done, _ = self._ray.wait([self._first], timeout=0)
        if done:
            self._first = None  # it runs: not to be looked at again
        return not done

    def close(self) -> None:
        """End it."""
        with suppress(Exception):  # it may be gone, and the cluster too
            self._ray.kill(self._handle, no_restart=True)


def shares(
    workers: Workers, nodes: Sequence[Resources], *, cpu: bool = False, spread: bool = False
) -> tuple[float, float]:
    """CPUs and GPUs of each worker: as many as the user says, or else as leave room for all.

    Without a GPU a worker has one CPU: the number of threads moves last digits, which are not to
    depend on how many workers there are. Several GPUs are of use only to a model that is `spread`.

    >>> shares(Workers(place="ray", count=3), [{"CPU": 8.0, "GPU": 1.0}, {"CPU": 8.0}], cpu=True)
    (1.0, 0.0)
    >>> shares(Workers(place="ray", count=4), [{"CPU": 8.0, "GPU": 2.0}])
    (2.0, 0.5)
    >>> shares(Workers(place="ray", count=3), [{"CPU": 8.0, "GPU": 4.0}] * 2, spread=True)
    (4.0, 2.0)
    """
    have = 0.0 if cpu else _sum(nodes, "GPU")
    gpus = workers.gpus
    if gpus is None:  # one each, or parts of one
        gpus = min(1.0, int(100 * have / workers.count) / 100)
        several = range(int(have // workers.count) if spread else 0, 1, -1)
        gpus = next((float(g) for g in several if room(nodes, 0, g) >= workers.count), gpus)
    if workers.threads is not None or not gpus:
        return float(workers.threads or 1), gpus
    most = int(max((node.get("CPU", 0) for node in nodes), default=1))
    fitting = (c for c in range(most, 0, -1) if room(nodes, c, gpus) >= workers.count)
    return float(next(fitting, 1)), gpus


def room(nodes: Sequence[Resources], cpus: float, gpus: float) -> int:
    """How many workers a cluster holds, each with so many CPUs and GPUs of one machine.

    >>> room([{"CPU": 8.0, "GPU": 1.0}, {"CPU": 8.0}], 3, 0), room([{"CPU": 8.0}], 1, 0.5)
    (4, 0)
    """
    wanted = {"CPU": cpus, "GPU": gpus}
    return sum(
        min(int(node.get(kind, 0) / each + 1e-9) for kind, each in wanted.items() if each)
        for node in nodes
    )


def _sum(nodes: Sequence[Resources], kind: str) -> float:
    return sum(node.get(kind, 0) for node in nodes)


def _address(workers: Workers) -> str:
    return workers.address or os.environ.get("RAY_ADDRESS", "")


def _imported(workers: Workers) -> Any:
    needs_extra("ray", f"--on {workers}", "ray")
    try:
        import ray
    except ImportError as error:  # a part of it, or something that it needs
        raise WorkerError(
            f"Ray is installed but cannot be imported ({_line(error)}); install it again with all "
            "that it needs (pip install 'sonde[ray]'), or use local:N, which needs no Ray"
        ) from error
    return ray


def _connect(ray: Any, workers: Workers) -> None:
    """Join the cluster that is named, or start one."""
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR, "include_dashboard": False}
    if address := _address(workers):
        quiet.pop("include_dashboard")
        try:
            _knock(address)
            with _signals_kept():
                ray.init(address=address, **quiet)
        except Exception as error:  # of many kinds, by what it stumbles over
            ray.shutdown()
            raise WorkerError(
                f"no Ray cluster could be joined at {address} ({_line(error)}); see that one runs "
                "there ('ray status'), with the same versions of Python and Ray and the same token "
                "if it has one (RAY_AUTH_MODE=token), or leave out the address"
            ) from error
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    cpus = max(cores(), workers.count * (workers.threads or 1))
    # local: not one that 'ray start' has started here
    here = {"address": "local", "_node_ip_address": LOOPBACK}
    with _unreachable(ray):
        _start(ray, {**quiet, **here, "num_cpus": cpus})
    if any(node["NodeManagerAddress"] != LOOPBACK for node in ray.nodes()):
        log.warning("Ray %s listens on the network, not on this machine alone", ray.__version__)


def _knock(address: str) -> None:
    """Raise OSError where nobody listens, which Ray would take minutes to find out."""
    host, colon, port = address.rpartition(":")
    if colon and "/" not in address and port.isdigit():
        socket.create_connection((host, int(port)), timeout=KNOCK).close()


def _start(ray: Any, settings: Mapping[str, Any]) -> None:
    """Start a cluster of this machine, which nobody else can reach."""
    for attempt in range(1, TRIES + 1):
        try:
            with _signals_kept():
                ray.init(**settings)
            return
        except Exception as error:  # of many kinds, by which of its processes was late
            ray.shutdown()
            if attempt == TRIES:
                raise WorkerError(
                    f"Ray did not start in {TRIES} attempts ({_line(error)}); it gives its own "
                    "processes some seconds only, which a busy machine may not have: try again, "
                    "name a cluster that runs with address=…, or use local:N, which needs no Ray"
                ) from error
            log.warning(
                "Ray did not start (%s), as happens on a busy machine; attempt %d of %d",
                _line(error),
                attempt + 1,
                TRIES,
            )


@contextmanager
def _unreachable(ray: Any) -> Iterator[None]:
    """Let a cluster that is started listen on this machine alone.

    Ray replaces a loopback address by one that others reach, unless it is told that there are no
    clusters, as on systems on which it has none.
    """
    constants, name = ray._private.ray_constants, "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
    before, given = constants.ENABLE_RAY_CLUSTER, os.environ.get(name)
    constants.ENABLE_RAY_CLUSTER, os.environ[name] = False, "0"  # here, and in what is started
    try:
        yield
    finally:
        constants.ENABLE_RAY_CLUSTER = before
        del os.environ[name]
        os.environ |= {} if given is None else {name: given}


@contextmanager
def _signals_kept() -> Iterator[None]:
    """Leave signals with those who have them: Ray takes SIGTERM for itself."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        with suppress(ValueError):  # not on a thread of its own
            for number, handler in before.items():
                signal.signal(number, handler)


def _line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0].rstrip(".") if lines else type(error).__name__


def _how(error: BaseException) -> str:
    """How an actor ended, in Ray's words: the cause comes last where it never began."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if "creation" in str(error) and lines:
        return lines[-1].rstrip(".")
    return _line(error)
