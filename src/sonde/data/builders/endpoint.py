"""Ask a chat model behind an OpenAI-compatible address; the only file that knows httpx.

Knows nothing of what is asked. What may pass (no connection, no answer in time, HTTP 408, 429 and
5xx, an answer that is no chat completion) is tried again after a wait that doubles, or as long as
the server says; what will not pass is told at once.
"""

from __future__ import annotations

import logging
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from sonde.core.errors import EndpointError, MissingExtra, UsageError

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
        own = min(self._endpoint.wait * 2**tried, LONGEST)
        wait = own if failure.wait is None else failure.wait
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
