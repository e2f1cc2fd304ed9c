"""Why a try came to nothing, whether another may do better, and how long to wait before it.

The only file that knows tenacity; knows nothing of how a request is sent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from sonde.core.errors import EndpointError
from sonde.http.address import Address

if TYPE_CHECKING:
    from tenacity import AsyncRetrying, RetryCallState

Sleep = Callable[[float], Coroutine[Any, Any, None]]
"""Waits for so many seconds."""

LONGEST = 60.0
PATIENCE = 600.0
"""Seconds: the longest wait of our own choice, and the longest that a server may ask for."""


@dataclass(eq=False)
class Failure(Exception):
    """Why a try came to nothing; `wait` is what the server asks for, in seconds.

    `busy`: it has too much to do. `lost`: it may be gone, or another may have come in its place.
    `tried`: how often it was asked.
    """

    kind: str
    why: str
    wait: float | None = None
    busy: bool = False
    lost: bool = False
    tried: int = 1


class GivenUp(EndpointError):
    """A server was given up for now, after failures of a `kind`; it may well answer later."""

    def __init__(self, message: str, kind: str = "") -> None:
        super().__init__(message)
        self.kind = kind


class Refused(EndpointError):
    """A server will not answer this `call`, however often it is asked; `why` has its words."""

    def __init__(self, message: str, *, status: int, why: str) -> None:
        super().__init__(message)
        self.status, self.why = status, why
        self.call: object = None


def asked_wait(text: str) -> float | None:
    """The seconds that a Retry-After header asks for, as a number or as a date; None for neither.

    >>> asked_wait("20"), asked_wait("soon")
    (20.0, None)
    """
    if re.fullmatch(r"\s*[0-9]+(\.[0-9]+)?\s*", text):
        return float(text)
    try:
        until = parsedate_to_datetime(text)
        until = until if until.tzinfo else until.replace(tzinfo=UTC)
        return max((until - datetime.now(UTC)).total_seconds(), 0.0)
    except (ValueError, OverflowError):
        return None


def backoff(address: Address, tried: int) -> float:
    """Seconds to wait after so many tries: twice as long after each.

    >>> [backoff(Address(url="", wait=10), tried) for tried in (1, 2, 3, 4, 5000)]
    [10.0, 20.0, 40.0, 60.0, 60.0]
    """
    return min(address.wait * 2.0 ** min(tried - 1, 60), LONGEST)


def retrying(
    address: Address,
    sleep: Sleep,
    failed: Callable[[Failure, float | None], None],
    progressing: Callable[[float], bool],
) -> AsyncRetrying:
    """Try again what failed, as often as the address says; then refuse.

    Raises the failure itself where the server is lost and may be waited for: at once, unless it
    says that it is busy. `failed` hears of each failure, and how long is waited if there is
    another try. `progressing` says whether other requests were answered in the last so many
    seconds: a server that is busy is not given up then, within all patience.
    """
    from tenacity import AsyncRetrying, retry_if_exception

    def asked(state: RetryCallState) -> float:
        wait = _failure(state).wait
        return backoff(address, state.attempt_number) if wait is None else wait

    def over(state: RetryCallState) -> bool:
        failure, since = _failure(state), state.seconds_since_start or 0.0
        if asked(state) > PATIENCE or (failure.lost and not failure.busy and address.away):
            return True
        waits = failure.busy and since < PATIENCE and progressing(since)
        return state.attempt_number > address.retries and not waits

    def give_up(state: RetryCallState) -> None:
        failure, wait = _failure(state), asked(state)
        failed(failure, None)
        if wait > PATIENCE:
            raise given_up(address, f"{failure.why} and asks to wait {wait:,.0f} s")
        if failure.lost and address.away:
            failure.tried = state.attempt_number
            raise failure
        raise given_up(address, f"{failure.why} ({tries(state.attempt_number)})", failure.kind)

    return AsyncRetrying(
        sleep=sleep,
        retry=retry_if_exception(lambda error: isinstance(error, Failure)),
        wait=asked,
        stop=over,
        before_sleep=lambda state: failed(_failure(state), asked(state)),
        retry_error_callback=give_up,
    )


def given_up(address: Address, why: str, kind: str = "") -> GivenUp:
    """What is told of a server that was asked in vain."""
    return GivenUp(f"{address.shown} {why}" + f"; {address.advice}" * bool(address.advice), kind)


def tries(count: int) -> str:
    """How often something was tried, in words."""
    return f"given up after {f'{count} tries' if count > 1 else 'one try'}"


def _failure(state: RetryCallState) -> Failure:
    error = state.outcome.exception() if state.outcome else None
    assert isinstance(error, Failure)
    return error
