"""Render chat templates in a child process with limits on time, memory and length.

A chat template comes with a model and is a program: it may loop for hours, or build a text of many
gigabytes in one operation, which nothing in this process could stop. One child renders for all
threads of a process; it is started again after a template has exceeded a limit.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import IO, Any

SECONDS = 2
"""Processor time that a rendering may take."""

MEMORY = 2**29
"""Bytes that renderings may take beyond what the child has when it is ready."""

LENGTH = 2**20
"""Characters that a template may write, besides four times those of the conversation."""


class RenderError(Exception):
    """Why a template does not render."""


class Renderer:
    """The child process, as this process sees it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0

    def render(self, template: str, messages: Sequence[Mapping[str, str]], **more: object) -> str:
        """A conversation as the template writes it; raises RenderError."""
        request = {"template": template, "messages": messages, "more": more}
        with self._lock:
            process = self._ready()
            assert process.stdin and process.stdout
            try:
                process.stdin.write(json.dumps(request, default=str).encode() + b"\n")
                process.stdin.flush()
                reply = process.stdout.readline()
            except BrokenPipeError:
                reply = b""
            except BaseException:  # an interrupt: the reply would be taken for the next one's
                self._end()
                raise
            if not reply.endswith(b"\n"):
                raise RenderError(self._end())
        found = json.loads(reply)
        if "error" in found:
            raise RenderError(found["error"])
        return str(found["text"])

    def _ready(self) -> subprocess.Popen[bytes]:
        """The child; another one where there is none, or where it is that of a parent process."""
        if self._process is None or self._owner != os.getpid():
            self._owner = os.getpid()
            self._process = subprocess.Popen(
                [sys.executable, "-c", f"from {__name__} import serve; serve()"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
        return self._process

    def _end(self) -> str:
        """End the child, and say why it ended by itself, if it did."""
        process, self._process = self._process, None
        assert process is not None
        process.kill()
        process.communicate()
        if process.returncode == -signal.SIGXCPU:
            return f"it takes more than {SECONDS} s to render"
        return f"the process that renders it ended with code {process.returncode}"


RENDERER = Renderer()


def serve() -> None:
    """Be the child: answer requests until the parent closes its end."""
    requests, replies = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what else is printed is no reply
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent hears it too, and decides
    _answer({"template": "{{ messages }}", "messages": [], "more": {}})  # loads what it takes
    with suppress(OSError):  # not on macOS
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        most = pages * resource.getpagesize() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _serve(requests, replies)


def _serve(requests: IO[bytes], replies: IO[bytes]) -> None:
    for line in requests:
        used = resource.getrusage(resource.RUSAGE_SELF)
        seconds = int(used.ru_utime + used.ru_stime) + 1 + SECONDS
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.RLIM_INFINITY))
        replies.write(json.dumps(_answer(json.loads(line))).encode() + b"\n")
        replies.flush()


def _answer(request: Mapping[str, Any]) -> dict[str, str]:
    from transformers.utils.chat_template_utils import render_jinja_template

    messages, more = request["messages"], request["more"]
    try:
        found: Any = render_jinja_template([messages], chat_template=request["template"], **more)
        text = str(found[0][0])
    except MemoryError:
        return {"error": f"it takes more than {MEMORY // 2**20} MiB to render"}
    except Exception as error:  # whatever a template raises
        return {"error": (str(error).strip().splitlines() or [type(error).__name__])[0]}
    most = LENGTH + 4 * sum(len(message["content"]) for message in messages)
    if len(text) > most:
        return {"error": f"it writes {len(text):,} characters, and {most:,} are the most"}
    return {"text": text}
