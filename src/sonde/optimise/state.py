"""How far the relations that are searched or trained have come, written down every so often.

A killed command goes on from there, and ends as if it had never stopped. Knows nothing of what a
step does.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from math import isfinite
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from sonde.core.errors import StoreError
from sonde.core.files import write_whole
from sonde.optimise.folder import STATE
from sonde.optimise.making import Job, Task

log = logging.getLogger("sonde")

SECONDS = 60.0  # after which it is written down again how far a group has come
BROKEN = "training broke off: its loss was no longer a finite number; the best until then is kept"


@dataclass(slots=True, kw_only=True)
class Standing:
    """How one relation stands: what dev facts said first, and at best."""

    before: float | None = None
    best: tuple[float, float] | None = None
    idle: int = 0
    problem: str = ""

    @classmethod
    def read(cls, written: Mapping[str, Any]) -> Standing:
        """As it was before it was written down."""
        best = written["best"]
        return cls(**{**written, "best": None if best is None else tuple(best)})

    def look(self, share: float | None, loss: float) -> bool:
        """Whether what there is now is the best: it answers more, or as many with a smaller loss.

        A loss that is no finite number ends it: how many facts are right says nothing then.
        """
        if not isfinite(loss):
            self.problem = BROKEN
            return False
        if share is None:  # nothing to choose by: the last stands
            return True
        self.idle += 1
        if self.best is None:
            self.before, self.best, self.idle = share, (share, -loss), 0
        elif (share, -loss) > self.best:
            self.best, self.idle = (share, -loss), 0
        return self.idle == 0


class State(NamedTuple):
    """How far a group of relations had come when that was written down, a row each relation."""

    relations: list[str]
    step: int
    standings: list[Standing]
    tensors: dict[str, Any]

    @classmethod
    def read(cls, folder: Path) -> State | None:
        """What a folder holds, if anything."""
        path = folder / STATE
        if not path.exists():
            return None
        try:
            with safe_open(path, "pt") as file:
                body = json.loads(file.metadata()["state"])
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            standings = [Standing.read(each) for each in body["standings"]]
            return cls(body["relations"], body["step"], standings, tensors)
        except (SafetensorError, ValueError, KeyError, TypeError) as error:
            raise StoreError(
                f"{path} does not read back ({error}); delete it, and the relations that were at "
                "work begin anew"
            ) from None

    def write(self, folder: Path) -> None:
        """Keep it in place of what was kept before."""
        standings = [asdict(each) for each in self.standings]
        body = {"relations": self.relations, "step": self.step, "standings": standings}
        write_whole(folder / STATE, save(self.tensors, {"state": json.dumps(body)}))


class Keeper:
    """Writes down every so often how far a group has come, and takes it back to there.

    `parts`: all that a step of the learner changes, by name, tensors with a row each relation.
    """

    def __init__(self, folder: Path, parts: Mapping[str, Any]) -> None:
        self.folder, self.parts, self.written = folder, parts, monotonic()

    def keep(self, relations: list[str], step: int, standings: list[Standing]) -> None:
        """Write down how far it is, if that was long ago."""
        if monotonic() - self.written >= SECONDS:
            tensors = {name: part.detach().cpu() for name, part in self.parts.items()}
            State(relations, step, standings, tensors).write(self.folder)
            self.written = monotonic()

    @torch.no_grad()
    def restore(self, relations: list[str]) -> State | None:
        """Take the relations back to where they were; None where they had not begun."""
        state = State.read(self.folder)
        if state is None or not set(relations) <= set(state.relations):
            return None
        rows = [state.relations.index(name) for name in relations]
        for name, part in self.parts.items():
            # a relation that has ended since may have been the widest
            part.copy_(state.tensors[name][rows][tuple(map(slice, part.shape))])
        log.info("going on after step %d, relations at work: %d", state.step, len(relations))
        return state._replace(standings=[state.standings[i] for i in rows])


def groups(job: Job, size: int) -> Iterator[list[Task]]:
    """The relations that go side by side, so many at a time; first those that were at work."""
    state = State.read(job.folder)
    names = set(state.relations) if state else set()
    begun = [task for task in job.tasks if task.relation.id in names]
    others = [task for task in job.tasks if task.relation.id not in names]
    if begun:
        yield begun
    for i in range(0, len(others), size):
        yield others[i : i + size]
