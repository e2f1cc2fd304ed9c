"""Carry requests to a server over HTTP."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from sonde.http.failures import Failure, Refused
from sonde.http.server import Server
from sonde.models.served.dialect import ODD, Malformed, Request, shown
from sonde.models.served.transport import Read, Split, Untaken

T = TypeVar("T")

ABSENT = (400, 404, 405, 422, 501)
"""Statuses of a server that does not know a path, or will not take what is sent there."""


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
            if isinstance(refused.call, Request) and refused.status not in (401, 403):
                raise Untaken(str(refused), refused.call) from None
            raise
