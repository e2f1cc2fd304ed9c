"""An HTTP server behind a real loopback address, which answers, breaks off or keeps silent."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from sonde.http.failures import Sleep


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What is sent back; `hang` keeps the line silent until the server is closed.

    `stall` does so after the headers; `drip` sends a byte at a time, so many seconds apart;
    `reset` breaks off after half the body, as a process does that is killed.
    """

    body: str | bytes
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    hang: bool = False
    cut: bool = False
    stall: bool = False
    drip: float = 0.0
    reset: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What came in."""

    path: str
    headers: Message
    body: bytes


def noted(waits: list[float]) -> Sleep:
    """Waits that are written down and not waited."""

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    return sleep


@contextmanager
def listening(answer: Callable[[Request], Reply], port: int = 0) -> Iterator[str]:
    """Listen on a loopback port, of the system's choice unless one is named; gives the address.

    Connections are kept; all are broken off at the end, as those of a process that is killed.
    """
    closed = threading.Event()
    connections: set[socket.socket] = set()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # else every body waits 40 ms for its headers to be received

        def setup(self) -> None:
            connections.add(self.request)
            super().setup()

        def finish(self) -> None:
            connections.discard(self.request)
            with suppress(OSError):
                super().finish()

        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            reply = answer(Request(path=self.path, headers=self.headers, body=body))
            with suppress(OSError):
                self._send(reply)

        do_POST = do_GET  # noqa: N815, the name that the library looks for

        def _send(self, reply: Reply) -> None:
            if reply.hang:
                closed.wait()
                return
            content = reply.body if isinstance(reply.body, bytes) else reply.body.encode()
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content) + 100 * reply.cut))
            self.end_headers()
            self.close_connection |= reply.cut or reply.reset
            if reply.stall:
                closed.wait()
            elif reply.drip:
                for byte in content:
                    self.wfile.write(bytes([byte]))
                    if closed.wait(reply.drip):
                        return
            elif reply.reset:
                self.wfile.write(content[: len(content) // 2])
                at_once = struct.pack("ii", 1, 0)
                self.request.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)
                self.request.close()
            else:
                self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    class Listener(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False
        request_queue_size = 128

        def handle_error(self, request: Any, client_address: Any) -> None:
            pass

    listener = Listener(("127.0.0.1", port), Handler)
    thread = threading.Thread(target=listener.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.server_port}"
    finally:
        closed.set()
        listener.shutdown()
        listener.server_close()
        for connection in list(connections):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        thread.join()
