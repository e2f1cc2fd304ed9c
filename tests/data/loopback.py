"""An HTTP server behind a real loopback address, which answers, breaks off or keeps silent."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import Message
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What came in."""

    path: str
    headers: Message
    body: bytes


@contextmanager
def listening(answer: Callable[[Request], Reply], port: int = 0) -> Iterator[str]:
    """Listen on a loopback port, of the system's choice unless one is named; gives the address."""
    closed = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            reply = answer(Request(path=self.path, headers=self.headers, body=body))
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

        do_POST = do_GET  # noqa: N815, the name that the library looks for

        def log_message(self, format: str, *args: Any) -> None:
            pass

    class Listener(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False

    listener = Listener(("127.0.0.1", port), Handler)
    thread = threading.Thread(target=listener.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.server_port}"
    finally:
        closed.set()
        listener.shutdown()
        listener.server_close()
        thread.join()
