"""The driver names the shard that ends workers, also where what they said is lost with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

import sonde
from sonde.core.abilities import Identity
from sonde.core.errors import WorkerError
from sonde.core.prompts import Prompts
from sonde.models.options import LoadOptions
from sonde.runs.shards import Effort, asked, shards
from sonde.runs.workers.channels import Channel, Lost
from sonde.runs.workers.crew import Crew
from sonde.runs.workers.messages import Answered, Order, Ready, Task, pack, unpack
from sonde.runs.workers.spec import Workers

from .world import facts


class Mute:
    """A worker that says nothing of any shard once it has a deadly one."""

    told = "a channel"

    def __init__(self, deadly: Sequence[int]) -> None:
        self._deadly = deadly
        self._ready = False
        self._tasks: list[int] = []

    def send(self, data: bytes) -> None:
        message = unpack(data)
        if isinstance(message, Task):
            self._tasks.append(message.number)

    def receive(self) -> bytes:
        if not self._ready:
            self._ready = True
            identity = Identity(name="mute", architecture="none")
            return pack(Ready(identity=identity, abilities=frozenset(), batching=None, versions={}))
        if any(number in self._deadly for number in self._tasks):
            raise Lost("dead")
        return pack(Answered(number=self._tasks.pop(0), data=b"", tokens={}))

    def speaks(self) -> bool:
        return bool(self._tasks) or not self._ready

    def close(self) -> None:
        pass


class Here:
    def __init__(self, deadly: Sequence[int]) -> None:
        self._deadly, self.cores = deadly, 1

    def start(self, number: int) -> Channel:
        return Mute(self._deadly)

    def wait(self, channels: Sequence[Channel], seconds: float) -> list[Channel]:
        return [each for each in channels if isinstance(each, Mute) and each.speaks()]

    def close(self) -> None:
        pass


def cut() -> Iterator[tuple[int, Prompts]]:
    probe, model = sonde.probe("lama", answer="score"), sonde.model("scripted:")
    return enumerate(shards(asked(probe, model, facts()), 24))


@pytest.mark.parametrize("deadly", range(12))
@pytest.mark.parametrize("count", [1, 2, 3])
def test_the_shard_that_ends_workers_is_named_and_all_others_are_answered_around_it(
    deadly: int, count: int
) -> None:
    workers = Workers(place="local", count=count)
    crew = Crew(
        workers, Here([deadly]), Order(reference="mute", options=LoadOptions(), dataset=None)
    )
    effort = Effort(prompts=24, work=24, told=lambda _done, _total: None)
    done: list[int] = []
    with pytest.raises(
        WorkerError, match=f"3 workers were lost while they answered shard {deadly},"
    ):
        done.extend(number for number, _ in crew.answer_shards(cut(), effort))
    assert len(done) == len(set(done)) and deadly not in done
