"""A chat model behind a real loopback address, which answers by the book or misbehaves by plan."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What is sent back; `hang` keeps the line silent until the server is closed."""

    body: str | bytes
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    hang: bool = False
    cut: bool = False


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
    server, closed = Server(), threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            server.requests.append({"path": self.path, **body})
            server.keys.append(self.headers.get("Authorization"))
            reply = answer(len(server.requests), body["messages"][0]["content"])
            server.came.set()
            if reply.hang:
                closed.wait()
                return
            content = reply.body if isinstance(reply.body, bytes) else reply.body.encode()
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content) + 100 * reply.cut))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    class Listener(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False

    listener = Listener(("127.0.0.1", port), Handler)
    server.url = f"http://127.0.0.1:{listener.server_port}/v1"
    thread = threading.Thread(target=listener.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        closed.set()
        listener.shutdown()
        listener.server_close()
        thread.join()
