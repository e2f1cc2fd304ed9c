"""Have questions written by a chat model behind an OpenAI-compatible address, and keep its answers.

The only file that knows httpx. What may pass (no connection, no answer in time, HTTP 408, 429 and
5xx, an answer that is no chat completion) is tried again after a wait that doubles, or as long as
the server says; what will not pass is told at once. Knows nothing of what becomes of the questions.
"""

from __future__ import annotations

import json
import logging
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sonde.core.errors import EndpointError, MissingExtra, StoreError, UsageError
from sonde.core.facts import ANSWER_SLOT, SUBJECT_SLOT, Relation
from sonde.core.fingerprints import fingerprint
from sonde.data.lines import read_rows

if TYPE_CHECKING:
    import httpx

INSTALL = "pip install 'sonde[paraphrase]'"
PATH = "/chat/completions"
KEY = "SONDE_API_KEY"

PASSING = (408, 429)
"""Besides 5xx: statuses that another try may not meet."""

LONGEST = 60.0
PATIENCE = 600.0
"""Seconds: the longest wait of our own choice, and the longest that a server may ask for."""

SPARE = 3
"""Questions asked for beyond those that are missing: some will be too alike."""

_MARK = re.compile(r"^\s*(?:[-*•]+|\(?\d+[.):]|Q\d*:)\s*")
_THOUGHT = re.compile(r"<think>.*?</think>", re.DOTALL)

log = logging.getLogger("sonde")


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where a model is asked, and how patiently: `retries` after the first, times in seconds."""

    url: str
    model: str
    key: str = field(default="", repr=False)
    retries: int = 5
    wait: float = 1.0
    timeout: float = 60.0

    def __post_init__(self) -> None:
        if not self.url.startswith(("http://", "https://")):
            raise UsageError(f"--endpoint must begin with http:// or https://, not {self.url!r}")
        if not (self.key.isascii() and self.key.isprintable()):
            raise UsageError(f"{KEY} holds a character that no key has; set it again")

    @property
    def address(self) -> str:
        """Where completions are asked for."""
        base = self.url.rstrip("/")
        return base if base.endswith(PATH) else base + PATH

    @property
    def shown(self) -> str:
        """The address as it may be printed: without a password."""
        return re.sub(r"//[^/]*@", "//", self.address)


@dataclass(frozen=True, slots=True)
class _Failure(Exception):
    """Why a try came to nothing; `wait` is what the server asks for, in seconds."""

    kind: str
    why: str
    wait: float | None = None


class Chat:
    """A conversation of single questions; `failures` counts tries that came to nothing, by kind."""

    def __init__(
        self, endpoint: Endpoint, client: httpx.Client, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self.failures: Counter[str] = Counter()
        self._endpoint, self._client, self._sleep = endpoint, client, sleep

    def ask(self, text: str) -> str:
        """What the model writes; refuses after the last try, saying why."""
        for tried in range(self._endpoint.retries + 1):
            try:
                return self._once(text)
            except _Failure as failure:
                self.failures[failure.kind] += 1
                self._wait(failure, tried)
        raise AssertionError("unreachable")

    def _wait(self, failure: _Failure, tried: int) -> None:
        """Wait before the next try; refuse where there is none."""
        doubled = min(self._endpoint.wait * 2**tried, LONGEST)
        wait = doubled if failure.wait is None else failure.wait
        if tried == self._endpoint.retries:
            tries = f"{tried + 1} tries" if tried else "one try"
            raise EndpointError(f"{self._endpoint.shown} {failure.why} (given up after {tries})")
        if wait > PATIENCE:
            raise EndpointError(
                f"{self._endpoint.shown} {failure.why} and asks to wait {wait:,.0f} s"
            )
        log.warning("the endpoint %s; trying again in %.3g s", failure.why, wait)
        self._sleep(wait)

    def _once(self, text: str) -> str:
        import httpx

        body = {"model": self._endpoint.model, "messages": [{"role": "user", "content": text}]}
        try:
            answer = self._client.post(self._endpoint.address, json=body)
        except httpx.TimeoutException:
            why = f"gave no answer in {self._endpoint.timeout:g} s"
            raise _Failure("no answer in time", why) from None
        except httpx.RequestError as error:
            raise _Failure("no connection", f"cannot be reached: {error}") from None
        _check_status(self._endpoint.shown, answer)
        return _content(answer)


@contextmanager
def opened(endpoint: Endpoint) -> Iterator[Chat]:
    """Talk to an endpoint; refuses clearly where httpx is missing or the address is none."""
    if find_spec("httpx") is None:
        raise MissingExtra(f"httpx, which talks to endpoints, is not installed; run: {INSTALL}")
    import httpx

    try:
        named = bool(httpx.URL(endpoint.address).host)
    except httpx.InvalidURL:
        named = False
    if not named:
        raise UsageError(
            f"--endpoint: {endpoint.shown} is no address, as http://localhost:8000/v1 is"
        )
    headers = {"Authorization": f"Bearer {endpoint.key}"} if endpoint.key else {}
    with httpx.Client(timeout=endpoint.timeout, headers=headers) as client:
        yield Chat(endpoint, client)


def _check_status(address: str, answer: httpx.Response) -> None:
    status = answer.status_code
    if status == 200:
        return
    said = " ".join(answer.text.split())[:160]
    why = f"answers with HTTP {status}" + (f": {said}" if said else "")
    if status in PASSING or status >= 500:
        raise _Failure(f"HTTP {status}", why, _asked_wait(answer.headers.get("Retry-After", "")))
    if status in (401, 403):
        why += f"; the key is taken from the environment variable {KEY}"
    raise EndpointError(f"{address} {why}")


def _asked_wait(text: str) -> float | None:
    """The seconds that a Retry-After header asks for, as a number or as a date; None for neither.

    >>> _asked_wait("20"), _asked_wait("soon")
    (20.0, None)
    """
    if text.strip().isdigit():
        return float(text)
    try:
        until = parsedate_to_datetime(text)
    except ValueError:
        return None
    until = until if until.tzinfo else until.replace(tzinfo=UTC)
    return max((until - datetime.now(UTC)).total_seconds(), 0.0)


def _content(answer: httpx.Response) -> str:
    """The text of the first choice of a chat completion."""
    try:
        value: Any = answer.json()
        text = value["choices"][0]["message"]["content"]
    except (ValueError, KeyError, IndexError, TypeError, RecursionError):
        text = None
    if not isinstance(text, str) or not text.strip():
        said = " ".join(answer.text.split())[:80]
        raise _Failure("no chat completion", f"gave no chat completion but {said!r}")
    return text.encode(errors="replace").decode()  # half a character cannot be stored


class Journal:
    """Answers by key, a JSON object a line, each written whole and forced to disk.

    What was kept before is there again; half a line, left by a kill, is cut off.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._kept = _read(path)
        self.before = len(self._kept)

    def __len__(self) -> int:
        return len(self._kept)

    def find(self, key: str) -> str | None:
        """The answer kept under a key."""
        return self._kept.get(key)

    def keep(self, key: str, text: str) -> None:
        """Write an answer to disk."""
        line = json.dumps({"key": key, "text": text}) + "\n"
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise StoreError(f"{self.path} cannot be written: {error.strerror}") from None
        self._kept[key] = text


def _read(path: Path) -> dict[str, str]:
    if not path.exists():
        return {}
    try:
        whole, end, half = path.read_bytes().rpartition(b"\n")
        if half:
            os.truncate(path, len(whole + end))
    except OSError as error:
        raise StoreError(f"{path} cannot be continued: {error.strerror}") from None
    return {row.text("key"): row.text("text") for row in read_rows(path)}


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionWriter:
    """Asks a model for questions, and keeps its answers, so that nothing is asked twice."""

    ask: Callable[[str], str]
    model: str
    journal: Journal

    def write(
        self, relation: Relation, kept: Sequence[str], missing: int, turn: int
    ) -> tuple[str, ...]:
        """Some questions, unlike those that are kept, if there are any; `turn` counts from 1."""
        text = request(relation, kept, missing + SPARE)
        key = fingerprint([self.model, str(turn), relation.id, text])
        answer = self.journal.find(key)
        if answer is None:
            answer = self.ask(text)
            self.journal.keep(key, answer)
        return tuple(candidates(answer))


def request(relation: Relation, kept: Sequence[str], count: int) -> str:
    """What a model is asked: to reword the questions there are, or to make some of a statement."""
    if kept:
        task = f"Reword this question in {count} different ways:\n{kept[0]}\n"
    else:
        task = f"Write {count} different questions that ask for the answer to: {_told(relation)}\n"
    if kept[1:]:
        task += "These are there already; use other words and another order:\n"
        task += "".join(f"{text}\n" for text in kept[1:])
    return (
        f"{task}\n"
        f"{SUBJECT_SLOT} stands for a name. Write {SUBJECT_SLOT} exactly once in every question, "
        "name no other thing, and end each with a question mark. Every question must ask for "
        f"exactly the same thing ({relation.label}). Write one question a line and nothing else."
    )


def candidates(answer: str) -> Iterator[str]:
    """The lines of an answer that may be questions, without numbers, dashes and quotes.

    >>> list(candidates("Sure:\\n1. \\"Where is [X]?\\"\\n- **Whence is [X]?**"))
    ['Sure:', 'Where is [X]?', 'Whence is [X]?']
    """
    text = _THOUGHT.sub("", answer)
    for line in _listed(text) or text.splitlines():
        question = _MARK.sub("", line).strip(" \t\r\n\"'`*_“”‘’,")
        if question and not question.startswith("```"):
            yield question


def _told(relation: Relation) -> str:
    """The statement that a question is made of; the bare label where there is none."""
    for template in relation.templates:
        if template.style == "statement":
            return f"{template.text} ({ANSWER_SLOT} is the answer, the {relation.label})"
    return f"the {relation.label} of {SUBJECT_SLOT}"


def _listed(text: str) -> list[str]:
    """The texts of an answer that is a JSON list of texts; none where it is not."""
    bare = re.sub(r"^```\w*|```$", "", text.strip()).strip()
    try:
        value = json.loads(bare) if bare.startswith("[") else None
    except (ValueError, RecursionError):
        return []
    return [entry for entry in value if isinstance(entry, str)] if isinstance(value, list) else []
