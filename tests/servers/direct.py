"""A server that is asked without HTTP: the same replies, at once. For tests of dialects alone."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from email.message import Message
from typing import Any, TypeVar

from sonde.models.served.dialect import Request
from sonde.models.served.transport import Read, Split, Untaken
from tests.data import loopback
from tests.servers.answering import Face, answer

T = TypeVar("T")


class Direct:
    """Carries requests to a face in this process; what is malformed is raised as it is."""

    def __init__(self, face: Face) -> None:
        self.face = face

    def look(self, path: str) -> Any:
        """What lies under a path."""
        return self.face.gets().get(path)

    def send(
        self, requests: Iterable[Request], read: Read[T], split: Split
    ) -> Iterator[tuple[Request, T]]:
        """Each request with what is read of its reply."""
        waiting = list(requests)
        while waiting:
            request = waiting.pop()
            body = json.dumps(dict(request.body)).encode()
            sent = loopback.Request(path=request.path, headers=Message(), body=body)
            reply = answer(self.face, sent)
            if reply.status == 200:
                yield request, read(request, json.loads(reply.body))
            elif parts := split(request):
                waiting += parts
            else:
                raise Untaken(f"HTTP {reply.status}: {reply.body!r}", request)
