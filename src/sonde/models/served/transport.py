"""What carries requests to a server and replies back, sending again what failed; one over HTTP.

Knows nothing of what is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeVar, runtime_checkable

from sonde.core.errors import EndpointError
from sonde.http.client import DENIED
from sonde.http.failures import Failure, Refused
from sonde.http.server import Server
from sonde.models.served.dialect import ODD, Malformed, Request, shown

T = TypeVar("T")

Read = Callable[[Request, Any], T]
"""What a reply says; raises Malformed where it is not what was asked for."""

Split = Callable[[Request], Sequence[Request]]
"""The parts in which a request may be sent instead; none where it has none."""

ABSENT = (400, 404, 405, 422, 501)
"""Statuses of a server that does not know a path, or will not take what is sent there."""


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


@runtime_checkable
class Returns(Protocol):
    """A transport to what may be lost and come back as another."""

    def vouch(self, check: Callable[[], None] | None) -> None:
        """Have this called after every set of requests; it raises where answers are not good."""


class HttpTransport:
    """Carries requests over a network."""

    def __init__(self, server: Server) -> None:
        self.server = server

    def look(self, path: str) -> Any:
        """What lies under a path; None where there is nothing."""
        try:
            return self.server.get({}, lambda value: value, path)
        except Refused as refused:
            if refused.status in ABSENT:
                return None
            raise

    def vouch(self, check: Callable[[], None] | None) -> None:
        """Have this called after every set of requests."""
        self.server.vouch = check

    def send(
        self, requests: Iterable[Request], read: Read[T], split: Split
    ) -> Iterator[tuple[Request, T]]:
        """Each request with what is read of its reply, as many at once as the server bears."""

        def checked(request: Request, value: Any) -> T:
            try:
                return read(request, value)
            except Malformed as error:
                why = f"gives a reply that cannot be taken: {error}"
                raise Failure("a reply that cannot be taken", why) from None
            except ODD as error:
                why = f"gives a reply of a form that no server has: {shown(value)} ({error!r:.80})"
                raise Failure("a reply of a strange form", why) from None

        try:
            yield from self.server.many(requests, checked, split)
        except Refused as refused:
            if isinstance(refused.call, Request) and refused.status not in DENIED:
                raise Untaken(str(refused), refused.call) from None
            raise
