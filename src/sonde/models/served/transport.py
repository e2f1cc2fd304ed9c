"""What carries requests to a server and replies back, and sends again what failed in passing.

Knows nothing of what is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

from sonde.core.errors import EndpointError
from sonde.models.served.dialect import Request

T = TypeVar("T")

Read = Callable[[Request, Any], T]
"""What a reply says; raises Malformed where it is not what was asked for."""

Split = Callable[[Request], Sequence[Request]]
"""The parts in which a request may be sent instead; none where it has none."""


class Untaken(EndpointError):
    """A server that will not take a `request`, which could not be divided further."""

    def __init__(self, message: str, request: Request) -> None:
        super().__init__(message)
        self.request = request


class Transport(Protocol):
    """Carries requests, over a network or to a library in this process."""

    def look(self, path: str) -> Any:
        """What lies under a path (by GET); None where there is nothing."""

    def send(
        self, requests: Iterable[Request], read: Read[T], split: Split
    ) -> Iterator[tuple[Request, T]]:
        """Each request with what is read of its reply, in any order; all of them, or an error."""
