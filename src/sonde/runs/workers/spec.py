"""How many workers answer, and where: local:2, or ray:4,gpus=1. Starts nothing."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast

from sonde.core.errors import UsageError
from sonde.core.words import counted

log = logging.getLogger(__name__)

Place = Literal["local", "ray"]

MOST = 10_000

FORM = re.compile(r"(local|ray):([0-9]+)")

NUMBERS = {"threads": r"[1-9][0-9]*", "gpus": r"[0-9]+(\.[0-9]+)?"}

ADVICE = (
    "write local:N for N processes here, or ray:N for N workers of a Ray cluster, with settings "
    "behind commas: local:4,threads=2 or ray:4,gpus=1,address=10.0.0.1:6379"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workers:
    """Where workers are and how many.

    `threads`: how many CPU threads each computes with (None: one; where it has a GPU, its share of
    them). `gpus`: how many GPUs each has (None: one, where there are any; its share, where a model
    is spread over several). `address`: of a Ray cluster that runs already; without one, that of
    RAY_ADDRESS, or else a cluster of this machine alone is started.
    """

    place: Place
    count: int
    threads: int | None = None
    gpus: float | None = None
    address: str = ""

    def __str__(self) -> str:
        return f"{self.place}:{self.count}"


def parse_workers(text: str) -> Workers:
    """What a text says of workers.

    >>> str(parse_workers("local:2")), parse_workers("ray:4,gpus=0.5,address=auto").gpus
    ('local:2', 0.5)
    """
    first, *rest = text.split(",")
    found = FORM.fullmatch(first.strip())
    if found is None or not 1 <= int(found[2]) <= MOST:
        raise UsageError(f"{text!r} does not say where workers are and how many; {ADVICE}")
    settings = dict(_setting(text, part) for part in rest)
    return _checked(text, cast(Place, found[1]), int(found[2]), settings)


def _setting(text: str, part: str) -> tuple[str, str]:
    name, _, value = (word.strip() for word in part.partition("="))
    known = name in NUMBERS and re.fullmatch(NUMBERS[name], value)
    if not known and (name != "address" or not value):
        raise UsageError(f"{part.strip()!r} (in {text!r}) is no setting of workers; {ADVICE}")
    return name, value


def _checked(text: str, place: Place, count: int, settings: Mapping[str, str]) -> Workers:
    gpus = float(settings["gpus"]) if "gpus" in settings else None
    if place == "local" and "address" in settings:
        raise UsageError(f"local workers have no address (in {text!r}); write ray:{count} for Ray")
    if gpus is not None and gpus % 1 and (place == "local" or gpus > 1):
        raise UsageError(
            f"gpus={settings['gpus']} (in {text!r}) must be a whole number; with Ray a worker may "
            "also have less than one, as in gpus=0.5"
        )
    threads = int(settings["threads"]) if "threads" in settings else None
    address = settings.get("address", "")
    return Workers(place=place, count=count, threads=threads, gpus=gpus, address=address)


def tell_idle(workers: Workers, threads: int, cores: int) -> None:
    """Say so where workers that compute on a CPU leave most cores with nothing to do."""
    if workers.threads is None and 0 < 2 * threads * workers.count <= cores:
        log.warning(
            "%s computes with %s in all, and there are %d cores; %s:%d uses all of them, and so "
            "does %s,threads=%d",
            workers,
            counted(threads * workers.count, "thread", "threads"),
            cores,
            workers.place,
            cores,
            workers,
            cores // workers.count,
        )


def dealt_devices(devices: Sequence[str], worker: int, each: int) -> tuple[str, ...]:
    """The devices of a worker, `each` of them, dealt out in turn to one worker after the other.

    >>> [dealt_devices(["0", "1", "2"], worker, 1) for worker in range(4)]
    [('0',), ('1',), ('2',), ('0',)]
    """
    first = worker * each
    return tuple(devices[(first + i) % len(devices)] for i in range(min(each, len(devices))))
