"""Ask a server patiently. The only file that knows httpx; knows nothing of what is asked.

What may pass (no connection, no answer in time, HTTP 408, 429 and 5xx, an answer in which what was
asked for is not found) is tried again after a wait that doubles, or as long as the server says;
what will not pass is told at once.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeVar

from sonde.core.errors import EndpointError, MissingExtra, UsageError

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")

INSTALL = "pip install 'sonde[paraphrase]'"

PASSING = (408, 429)
"""Besides 5xx: statuses that another try may not meet."""

REFUSED = (401, 403)
"""Statuses of a server that wants to know who asks."""

LONGEST = 60.0
PATIENCE = 600.0
"""Seconds: the longest wait of our own choice, and the longest that a server may ask for."""

log = logging.getLogger("sonde")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """An address, and how patiently it is asked: `retries` after the first, times in seconds.

    `kind` is what is asked, in words; `denied` what to do where it will not let us in.
    """

    address: str
    kind: str = "the endpoint"
    retries: int = 5
    wait: float = 1.0
    timeout: float = 60.0
    denied: str = ""

    @property
    def shown(self) -> str:
        """The address as it may be printed: without a password."""
        return re.sub(r"//[^/]*@", "//", self.address)


@dataclass(frozen=True, slots=True)
class Failure(Exception):
    """Why a try came to nothing; `wait` is what the server asks for, in seconds."""

    kind: str
    why: str
    wait: float | None = None


class Server:
    """Answers requests, sooner or later; `failures` counts tries that came to nothing, by kind."""

    def __init__(
        self, place: Place, client: httpx.Client, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self.failures: Counter[str] = Counter()
        self.place = place
        self._client, self._sleep = client, sleep

    def post(self, body: Mapping[str, Any], read: Callable[[Any], T]) -> T:
        """What is read of the answer to some JSON; `read` raises Failure where it is not there."""
        return self._ask(lambda: self._client.post(self.place.address, json=body), read)

    def get(self, query: Mapping[str, str], read: Callable[[Any], T]) -> T:
        """What is read of the answer to a query."""
        return self._ask(lambda: self._client.get(self.place.address, params=query), read)

    def _ask(self, send: Callable[[], httpx.Response], read: Callable[[Any], T]) -> T:
        for tried in range(self.place.retries + 1):
            try:
                return self._once(send, read)
            except Failure as failure:
                self.failures[failure.kind] += 1
                self._wait(failure, tried)
        raise AssertionError("unreachable")

    def _once(self, send: Callable[[], httpx.Response], read: Callable[[Any], T]) -> T:
        import httpx

        try:
            answer = send()
        except httpx.TimeoutException:
            why = f"gave no answer in {self.place.timeout:g} s"
            raise Failure("no answer in time", why) from None
        except httpx.RequestError as error:
            raise Failure("no connection", f"cannot be reached: {error}") from None
        self._check_status(answer)
        try:
            return read(_json(answer.text))
        except Failure as failure:
            asked = asked_wait(answer.headers.get("Retry-After", ""))
            why = failure.why or f"gave no {failure.kind.removeprefix('no ')} but {_said(answer)!r}"
            raise Failure(failure.kind, why, asked) from None

    def _check_status(self, answer: httpx.Response) -> None:
        status, said = answer.status_code, _said(answer, 160)
        if status == 200:
            return
        why = f"answers with HTTP {status}" + (f": {said}" if said else "")
        if status in PASSING or status >= 500:
            raise Failure(f"HTTP {status}", why, asked_wait(answer.headers.get("Retry-After", "")))
        if status in REFUSED and self.place.denied:
            why += f"; {self.place.denied}"
        raise EndpointError(f"{self.place.shown} {why}")

    def _wait(self, failure: Failure, tried: int) -> None:
        """Wait before the next try; refuse where there is none."""
        place = self.place
        wait = min(place.wait * 2**tried, LONGEST) if failure.wait is None else failure.wait
        if tried == place.retries:
            tries = f"{tried + 1} tries" if tried else "one try"
            raise EndpointError(f"{place.shown} {failure.why} (given up after {tries})")
        if wait > PATIENCE:
            raise EndpointError(f"{place.shown} {failure.why} and asks to wait {wait:,.0f} s")
        log.warning("%s %s; trying again in %.3g s", place.kind, failure.why, wait)
        self._sleep(wait)


@contextmanager
def connected(place: Place, headers: Mapping[str, str], flag: str) -> Iterator[Server]:
    """Talk to a server; refuses clearly where httpx is missing or the address of a flag is none."""
    if find_spec("httpx") is None:
        raise MissingExtra(f"httpx, which talks to servers, is not installed; run: {INSTALL}")
    import httpx

    try:
        named = bool(httpx.URL(place.address).host)
    except httpx.InvalidURL:
        named = False
    if not named:
        raise UsageError(f"{flag}: {place.shown} is no address, as http://localhost:8000/v1 is")
    with httpx.Client(timeout=place.timeout, headers=dict(headers)) as client:
        yield Server(place, client)


def check_url(url: str, flag: str) -> None:
    """Refuse what does not begin as an address does."""
    if not url.startswith(("http://", "https://")):
        raise UsageError(f"{flag} must begin with http:// or https://, not {url!r}")


def asked_wait(text: str) -> float | None:
    """The seconds that a Retry-After header asks for, as a number or as a date; None for neither.

    >>> asked_wait("20"), asked_wait("soon")
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


def _json(text: str) -> Any:
    """The value of an answer; None where it is no JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _said(answer: httpx.Response, most: int = 80) -> str:
    return " ".join(answer.text.split())[:most]
