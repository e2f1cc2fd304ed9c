"""Ask a server something to see whether it works: Fails says why it does not.

Knows requests and replies by their dialect, nothing of what is tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from sonde.core.errors import EndpointError
from sonde.http.client import DENIED
from sonde.models.served.asks import Ask, Result
from sonde.models.served.dialect import ODD, Dialect, Malformed, Request
from sonde.models.served.transport import Split, Transport

FAILS = "HTTP 500"
"""What some servers answer to what they do not know."""


class Fails(Exception):
    """What was tried does not work; says why. `denied`: a server that would not let us in."""

    def __init__(self, why: str, denied: EndpointError | None = None) -> None:
        super().__init__(why)
        self.denied = denied


def whole(request: Request) -> Sequence[Request]:
    """The parts of a request that is not to be divided."""
    return ()


def ask_all(
    transport: Transport,
    dialect: Dialect,
    asks: Sequence[Ask],
    split: Split = whole,
    *,
    again: bool = False,
) -> list[Any]:
    """The results of asks; Fails where one is refused, or answered otherwise than it should be.

    `again`: what is answered otherwise is asked again, as in a run.
    """
    kinds = (list(own) for _, own in groupby(asks, type))
    requests = [request for own in kinds for request in dialect.requests(own)]
    found = answered(transport, dialect, requests, split, again=again)
    return [found[ask] for ask in asks]


def answered(
    transport: Transport,
    dialect: Dialect,
    requests: Sequence[Request],
    split: Split = whole,
    *,
    again: bool = False,
) -> dict[Ask, Any]:
    """What the asks of requests are answered with."""

    def read(request: Request, reply: Any) -> list[Result] | Malformed:
        try:
            return dialect.read(request, reply)
        except Malformed as error:
            if again:
                raise
            return error  # not raised: it would be asked again and again
        except ODD as error:
            return Malformed(f"it is of a form that no server's has: {reply!r:.80} ({error!r:.80})")

    found: dict[Ask, Result] = {}
    try:
        for request, results in transport.send(requests, read, split):
            if isinstance(results, Malformed):
                raise Fails(str(results))
            found.update(zip(request.asks, results, strict=True))
    except EndpointError as error:
        # a server that fails for good over one thing may answer others; one that is busy may not
        if getattr(error, "kind", FAILS) != FAILS:
            raise
        denied = error if getattr(error, "status", 0) in DENIED else None
        raise Fails(str(error), denied) from None
    return found
