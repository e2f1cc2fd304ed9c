"""One try: a request sent and its answer read, within a deadline. The only file that knows httpx.

Knows nothing of what is asked, nor whether it is asked again.
"""

from __future__ import annotations

import asyncio
import json
import re
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol

from sonde.core.errors import EndpointError, MissingExtra, UsageError
from sonde.http.address import Address
from sonde.http.failures import Failure, Refused, asked_wait

if TYPE_CHECKING:
    import httpx

NEEDED = ("httpx", "tenacity")

PASSING = (408, 425, 429)
"""Besides 5xx: statuses that another try may not meet."""

BUSY = (429, 503)
MOVED = (307, 308)
"""Redirects that keep the method and the body."""

HOPS = 5
"""Redirects that are followed, one after the other."""

GONE = (502, 503, 504)
TROUBLED = (500, *GONE)
"""Statuses of a server with too much to do, and of one that may not be there."""

UNKNOWN = 501
"""The status of a server that does not know what is asked, as good as 404."""

DENIED = (401, 403)
"""Statuses of a server that wants to know who asks."""

KNOCK = 10.0
"""Seconds for a connection, and for an answer about health."""

LOOK = 60.0
"""Seconds for what a server that is asked for its health says of itself, at most."""

LAST_PORT = 65535

COMPLAINT = re.compile(r'"(?:message|error|detail)"\s*:\s*"((?:[^"\\]|\\.)+)"')
"""Where servers write what is wrong, in the JSON of an error."""

DIRECT = ("all://127.0.0.1", "all://localhost", "all://[::1]")
"""What is reached without a proxy, whatever the surroundings say."""


class Asked(Protocol):
    """What is asked: a path behind the address, and the JSON that is sent; None only gets."""

    @property
    def path(self) -> str:
        """What follows the address."""

    @property
    def body(self) -> Mapping[str, Any] | None:
        """What is sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a server answered: the value of its JSON, None where it is none, and how it begins.

    `wait`: seconds that it asks to wait, if any.
    """

    value: Any
    said: str
    wait: float | None


class Client:
    """Sends requests to an address."""

    def __init__(self, address: Address, headers: Mapping[str, str]) -> None:
        import httpx

        self._address = address
        self._client = httpx.AsyncClient(
            timeout=httpx.Timeout(None, connect=min(KNOCK, address.timeout)),
            limits=httpx.Limits(keepalive_expiry=None),
            headers={**address.headers, **headers},
            mounts=dict.fromkeys(DIRECT),
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def trouble(self) -> str:
        """Why a server cannot be asked just now; empty where something answers and is ready."""
        import httpx

        url = self._address.url + self._address.health
        try:
            answer = await asyncio.wait_for(self._client.get(url), KNOCK)
        except (TimeoutError, httpx.TimeoutException):
            return f"gave no answer in {KNOCK:g} s"
        except httpx.RequestError as error:
            return self._unreached(error)
        return self._refusal(answer) if answer.status_code in TROUBLED else ""

    async def ask(self, call: Asked) -> Reply:
        """The answer to a request; Failure where another try may bring one."""
        answer = await self._answer(call)
        wait = asked_wait(answer.headers.get("Retry-After", ""))
        self._check_status(answer, wait)
        return Reply(value=_json(answer), said=self._said(answer, 80), wait=wait)

    async def _answer(self, call: Asked) -> httpx.Response:
        """The whole answer to a request, within its deadline."""
        import httpx

        address, query = self._address, getattr(call, "query", None)
        url = address.url + call.path
        looks = call.body is None and address.health
        limit = min(LOOK, address.timeout) if looks else address.timeout
        try:
            async with asyncio.timeout(limit):
                if call.body is None:
                    return await self._redirected(await self._client.get(url, params=query))
                return await self._redirected(await self._client.post(url, json=call.body))
        except httpx.ConnectTimeout:
            raise Failure("no connection", "gives no connection", lost=True) from None
        except (TimeoutError, httpx.TimeoutException):
            why = f"gave no answer in {limit:g} s"
            raise Failure("no answer in time", why) from None
        except httpx.RequestError as error:
            lost = isinstance(error, httpx.TransportError)
            raise Failure("no connection", self._unreached(error), lost=lost) from None

    async def _redirected(self, answer: httpx.Response) -> httpx.Response:
        """The answer after redirects within the origin of the address, which has the key."""
        for _ in range(HOPS):
            further = answer.next_request
            if answer.status_code not in MOVED or further is None:
                break
            if _origin(further.url) != _origin(answer.url):
                break
            answer = await self._client.send(further)
        return answer

    def _unreached(self, error: httpx.RequestError) -> str:
        """Why there is no connection; raises where there will be none."""
        why = f"cannot be reached: {self._address.hide(str(error)) or type(error).__name__}"
        if advice := _never(error):
            raise EndpointError(f"{self._address.shown} {why}; {advice}") from None
        return why

    def _check_status(self, answer: httpx.Response, wait: float | None) -> None:
        status = answer.status_code
        if status == 200:
            return
        why = self._refusal(answer)
        if status in PASSING or (status >= 500 and status != UNKNOWN):
            raise Failure(f"HTTP {status}", why, wait, busy=status in BUSY, lost=status in GONE)
        if status in DENIED and self._address.denied:
            why += f"; {self._address.denied}"
        raise Refused(f"{self._address.shown} {why}", status=status, why=why)

    def _refusal(self, answer: httpx.Response) -> str:
        said = self._said(answer, 160)
        if answer.next_request is not None:
            place = replace(self._address, url=self._address.hide(str(answer.next_request.url)))
            said = f"it redirects to {place.shown}, which sonde does not follow; give that address"
        return f"answers with HTTP {answer.status_code}" + (f": {said}" if said else "")

    def _said(self, answer: httpx.Response, most: int) -> str:
        """What an answer says is wrong, or how it begins; what is long is not looked at whole."""
        text = answer.content[: 20 * most].decode(errors="replace")
        if found := COMPLAINT.search(text):
            text = found[1]
        return self._address.hide(" ".join(text.split()))[:most]


def check_address(address: Address, flag: str, extra: str) -> None:
    """Refuse where a package is missing, or where the address of a flag is none."""
    if missing := [name for name in NEEDED if find_spec(name) is None]:
        raise MissingExtra(
            f"sonde asks servers through {' and '.join(missing)}, which must be installed; run: "
            f"pip install 'sonde[{extra}]'"
        )
    import httpx

    try:
        url = httpx.URL(address.url)
        named = bool(url.host) and (url.port or 0) <= LAST_PORT
    except httpx.InvalidURL:
        named = False
    if not named:
        raise UsageError(f"{flag}: {address.shown} is no address, as http://localhost:8000/v1 is")


def _never(error: BaseException) -> str:
    """What to do about a connection that no further try will make; empty where one may."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, socket.gaierror) and cause.errno != socket.EAI_AGAIN:
            return "no machine has this name; check the address"
        if isinstance(cause, ssl.SSLCertVerificationError):
            return "its certificate is not trusted; name one that is in SSL_CERT_FILE"
        cause = cause.__cause__ or cause.__context__
    return ""


def _origin(url: httpx.URL) -> tuple[str, str, int | None]:
    """What decides who is asked: scheme, host and port."""
    return url.scheme, url.host, url.port


def _json(answer: httpx.Response) -> Any:
    """The value of an answer; None where it is no JSON."""
    try:
        return json.loads(answer.content)
    except (ValueError, RecursionError):
        return None
