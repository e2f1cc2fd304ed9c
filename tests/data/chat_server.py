"""A chat model behind a real loopback address, which answers by the book or misbehaves by plan."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from .loopback import Reply, Request, listening

OPENINGS = tuple(
    f"{first}{second}:"
    for second in ("", ", I think", ", they write", ", we are told", ", books say")
    for first in ("Truly", "Briefly", "Indeed", "In short", "As we know", "Once again")
)
"""How paraphrases begin that `rewording` makes; unlike each other, and true to their template."""

Answer = Callable[[int, str], Reply]
"""Makes a reply to the request of that number, from 1, with that text."""


@dataclass(slots=True)
class Server:
    """Where it listens, and everything that it was asked."""

    url: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    came: threading.Event = field(default_factory=threading.Event)

    @property
    def texts(self) -> list[str]:
        """The questions."""
        return [request["messages"][0]["content"] for request in self.requests]


def said(text: str, *, sent: int | None = None, received: int = 0) -> Reply:
    """A sound chat completion, with the tokens that it took, where they are given."""
    message = {"role": "assistant", "content": text}
    usage = {"prompt_tokens": sent, "completion_tokens": received}
    more = {} if sent is None else {"usage": usage}
    return Reply(body=json.dumps({"choices": [{"index": 0, "message": message}], **more}))


def rewording(number: int, text: str) -> Reply:
    """As many paraphrases as are asked for, none that is there already; a token a word."""
    asked = re.search(r"(\d+) times:\n(.*)\n", text)
    assert asked is not None, text
    lines = [f"{opening} {asked[2]}" for opening in OPENINGS]
    new = [line for line in lines if line not in text][: int(asked[1])]
    answer = "\n".join(f"{n}. {line}" for n, line in enumerate(new, 1))
    return said(answer, sent=len(text.split()), received=len(answer.split()))


def failing(answer: Answer, reply: Reply, *numbers: int) -> Answer:
    """The same answers, but for the requests of these numbers."""
    return lambda number, text: reply if number in numbers else answer(number, text)


@contextmanager
def serving(answer: Answer, port: int = 0) -> Iterator[Server]:
    """Listen on a loopback port, of the system's choice unless one is named."""
    server = Server()

    def replied(request: Request) -> Reply:
        body = json.loads(request.body)
        server.requests.append({"path": request.path, **body})
        server.keys.append(request.headers.get("Authorization"))
        reply = answer(len(server.requests), body["messages"][0]["content"])
        server.came.set()
        return reply

    with listening(replied, port) as address:
        server.url = f"{address}/v1"
        yield server
