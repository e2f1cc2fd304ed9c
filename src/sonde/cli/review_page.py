"""A page to judge templates on, served on this machine alone while the command runs.

Each judgement is posted when it is made, and on disk before the page shows it as saved. The address
holds a key that nobody else on the machine knows, and only requests for this host are answered, so
that no other page can reach it. The page itself, review.html, needs nothing from elsewhere, which
its content security policy enforces; no other page may show it in a frame.
"""

from __future__ import annotations

import json
import re
import secrets
import sys
import threading
from base64 import b64encode
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import groupby
from pathlib import Path
from types import NoneType
from typing import Any

from sonde.cli.console import say, tell
from sonde.core.errors import SondeError, UsageError
from sonde.data.review.judgements import Judgement, Session, answers_of

HOST = "127.0.0.1"
PAGE = Path(__file__).with_name("review.html")
LONGEST = 100_000
"""Bytes of a request."""


def serve(session: Session, port: int, questions: Sequence[str]) -> None:
    """Let a reviewer judge in the browser, until the page or the terminal says stop."""
    try:
        server = PageServer(session, port, questions)
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or error
        raise UsageError(f"--port {port} cannot be taken: {why}") from None
    with server:
        say(f"{len(session.items)} templates, {len(session.done)} judged. Open in a browser:")
        say(server.url, soft_wrap=True)
        tell("Ctrl-C ends it; what is judged is kept")
        server.serve_forever(poll_interval=0.1)


class PageServer(ThreadingHTTPServer):
    """Holds what the requests are about; one judgement is written at a time."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, session: Session, port: int, questions: Sequence[str]) -> None:
        super().__init__((HOST, port), _Handler)
        self.session, self.questions = session, tuple(questions)
        self.key = secrets.token_urlsafe(12)
        self.writing = threading.Lock()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing where the browser has closed the connection."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)

    @property
    def url(self) -> str:
        """The address of the page."""
        return f"http://{HOST}:{self.server_port}/{self.key}/"


class _Handler(BaseHTTPRequestHandler):
    """Gives the page and its templates, and takes judgements."""

    server: PageServer
    timeout = 30

    def do_GET(self) -> None:
        """The page, or what it shows."""
        if not self._known():
            return
        if self.path == f"/{self.server.key}/":
            self._send(200, PAGE.read_bytes(), "text/html; charset=utf-8")
        elif self.path == f"/{self.server.key}/items":
            with self.server.writing:
                shown = _shown(self.server.session, self.server.questions)
            self._json(200, shown)
        else:
            self._json(404, {"error": "nothing here"})

    def do_POST(self) -> None:
        """A judgement, one taken back, or the end."""
        if not self._known():
            return
        if self.path == f"/{self.server.key}/stop":
            self._json(200, {})
            threading.Thread(target=self.server.shutdown).start()
            return
        try:
            given = json.loads(self._body())
            with self.server.writing:
                stands = _take(self.server.session, given)
            self._json(200, {"stands": stands and _said(stands)})
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            self._json(400, {"error": f"no judgement: {error}"})
        except SondeError as error:
            self._json(500, {"error": str(error)})

    def _body(self) -> bytes:
        length = self.headers.get("Content-Length", "")
        if not re.fullmatch("[0-9]{1,9}", length) or int(length) > LONGEST:
            raise ValueError(f"Content-Length must be a number up to {LONGEST:,}, not {length!r}")
        return self.rfile.read(int(length))

    def _known(self) -> bool:
        """Whether a request has the key and names this host; refuses it where not."""
        hosts = {f"{name}:{self.server.server_port}" for name in (HOST, "localhost")}
        key = self.path.removeprefix("/").partition("/")[0].encode()
        if self.headers.get("Host") in hosts and secrets.compare_digest(
            key, self.server.key.encode()
        ):
            return True
        self._json(403, {"error": "open the address that the command printed"})
        return False

    def _json(self, status: int, value: object) -> None:
        self._send(status, json.dumps(value).encode(), "application/json")

    def _send(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Content-Security-Policy", _policy())
        self.send_header("X-Frame-Options", "DENY")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the terminal shows the address alone."""


@cache
def _policy() -> str:
    """Allow the page's own script and style, its requests to this server, and nothing else."""
    text = PAGE.read_text(encoding="utf-8")
    sources = {}
    for tag in ("script", "style"):
        [inside] = re.findall(f"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        sources[tag] = b64encode(sha256(inside.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{sources['script']}'; "
        f"style-src 'sha256-{sources['style']}'; connect-src 'self'; img-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def _shown(session: Session, questions: Sequence[str]) -> dict[str, Any]:
    """What the page needs; where templates come from is not among it."""
    names = ("id", "relation", "label", "text", "shown", "answer", "parent")
    relations = [item.relation for item in session.items]
    return {
        "mixed": len(list(groupby(relations))) > len(set(relations)),
        "items": [{name: getattr(item, name) for name in names} for item in session.items],
        "judged": {id: _said(judgement) for id, judgement in session.done.items()},
        "ask": session.ask,
        "questions": questions,
        "reviewer": session.reviewer,
        "file": str(session.path),
    }


def _said(judgement: Judgement) -> dict[str, Any]:
    return {"keep": judgement.keep, "answers": judgement.answers}


def _take(session: Session, given: Any) -> Judgement | None:
    """Keep what the page says of a template, or take it back; what stands of it then."""
    item = given["item"]
    if item not in {each.id for each in session.items}:
        raise ValueError("no such template")
    if given.get("undo"):
        session.undo(item)
        return session.done.get(item)
    keep, answers = given.get("keep"), answers_of(given.get("answers") or [None] * 4)
    if isinstance(answers, str) or type(keep) not in (bool, NoneType):
        raise ValueError(answers if isinstance(answers, str) else "keep is neither yes nor no")
    if (keep is None and session.ask != "quality") or (answers is None and session.ask != "keep"):
        raise ValueError("not everything is answered")
    session.judge(item, keep, answers)
    return session.done[item]
