"""Keep texts that begin alike in one slot of a server, whose slots share nothing with each other.

Requests are sorted by their tokens and laid into as many lanes as a server has slots; the next of a
lane is sent once the one before is answered. A server gives a request to the free slot whose last
text begins most like it, so that a lane stays where its beginnings are. Knows token ids alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from sonde.engine.prefixes import shared
from sonde.models.served.dialect import Request
from sonde.models.served.transport import Read, Returns, Split, Transport

T = TypeVar("T")

SHARE = 0.25
"""The most that lanes may add, by computing beginnings again, of what must be computed anyway."""


class Lanes:
    """A transport to a server with so many slots."""

    def __init__(self, transport: Transport, slots: int) -> None:
        self.transport, self.slots = transport, slots

    def look(self, path: str) -> Any:
        """What lies under a path."""
        return self.transport.look(path)

    def vouch(self, check: Callable[[], None] | None) -> None:
        """Have this called after every set of requests."""
        if isinstance(self.transport, Returns):
            self.transport.vouch(check)

    def send(
        self, requests: Iterable[Request], read: Read[T], split: Split
    ) -> Iterator[tuple[Request, T]]:
        """Each request with what is read of its reply, lanes side by side."""
        queue = Queue(in_lanes(list(requests), self.slots))

        def noted(request: Request, reply: Any) -> T:
            found = read(request, reply)
            queue.done(request)
            return found

        def parted(request: Request) -> Sequence[Request]:
            queue.done(request)
            return split(request)

        while queue.left:  # a transport may take a pause of the queue for its end
            queue.begin()
            yield from self.transport.send(queue, noted, parted)


class Queue(Iterator[Request]):
    """Hands out requests, one of each lane at a time; it stops while all lanes have one under way.

    A lane that has come to its end goes on with the end of the longest.
    """

    def __init__(self, lanes: Iterable[Sequence[Request]]) -> None:
        self._lanes = [deque(lane) for lane in lanes]
        self.begin()

    def begin(self) -> None:
        """Nothing is under way."""
        self._numbers: dict[int, int] = {}
        self._free = deque(range(len(self._lanes)))

    @property
    def left(self) -> bool:
        """Whether there are requests that were not handed out."""
        return any(self._lanes)

    def __next__(self) -> Request:
        if not self.left or not self._free:
            raise StopIteration
        number = self._free.popleft()
        lane = self._lanes[number]
        request = lane.popleft() if lane else max(self._lanes, key=len).pop()
        self._numbers[id(request)] = number
        return request

    def done(self, request: Request) -> None:
        """Say that a lane may go on."""
        number = self._numbers.pop(id(request), None)
        if number is not None:
            self._free.append(number)


def in_lanes(requests: Sequence[Request], slots: int) -> list[Sequence[Request]]:
    """Requests in the order of their tokens, in as many lanes as are worth it, of like work each.

    A lane computes for itself what its first text shares with the one before.
    """
    if not requests:
        return []
    order = sorted(requests, key=lambda request: request.asks[0].ids)
    texts = [request.asks[0].ids for request in order]
    common = np.array([0, *(shared(one, other) for one, other in pairwise(texts))])
    work = np.cumsum([len(ids) for ids in texts] - common)
    for count in range(min(slots, len(order)), 1, -1):
        shares = work[-1] * np.arange(1, count) / count
        # where little is computed again, and lanes are of like length
        costs = common[1:] + np.abs(work[:-1] - shares[:, None]) / 2
        cuts = np.unique(1 + costs.argmin(axis=1))
        if common[cuts].sum() <= SHARE * work[-1]:
            return [order[a:b] for a, b in pairwise([0, *cuts.tolist(), len(order)])]
    return [order]
