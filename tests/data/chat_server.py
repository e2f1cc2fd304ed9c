"""A chat model behind a real loopback address, which answers by the book or misbehaves by plan."""

from __future__ import annotations

import json
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


def said(text: str) -> Reply:
    """A sound chat completion."""
    message = {"role": "assistant", "content": text}
    return Reply(body=json.dumps({"choices": [{"index": 0, "message": message}]}))


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
