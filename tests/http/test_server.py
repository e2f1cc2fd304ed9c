"""A server asked many things at once: it is busy, breaks off, goes away, comes back as another."""

from __future__ import annotations

import json
import logging
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from sonde.core.errors import EndpointError, ModelError
from sonde.http.address import Address
from sonde.http.failures import Failure, GivenUp, Refused
from sonde.http.server import Server, connected
from tests.data.loopback import Reply, Request, listening, noted

LONG = 600.0
"""Seconds that no test waits."""


@dataclass(frozen=True)
class Sum:
    """Numbers to add up, in one request."""

    numbers: tuple[int, ...]
    path: str = "/sum"

    @property
    def body(self) -> dict[str, Any]:
        return {"numbers": self.numbers}


def halves(call: Sum) -> Sequence[Sum]:
    half = len(call.numbers) // 2
    return (Sum(call.numbers[:half]), Sum(call.numbers[half:])) if half else ()


def read(call: Sum, value: Any) -> int:
    if not isinstance(value, dict) or "sum" not in value:
        raise Failure("no sum", "")
    return int(value["sum"])


def well(request: Request) -> Reply:
    if request.path != "/sum":
        return Reply(body="{}")
    return Reply(body=json.dumps({"sum": sum(json.loads(request.body)["numbers"])}))


def asked_for(request: Request) -> tuple[int, ...]:
    return tuple(json.loads(request.body)["numbers"]) if request.path == "/sum" else ()


def often(fault: Reply, times: int) -> Callable[[Request], Reply]:
    """A server that answers every question with a fault so many times first."""
    lock, met = threading.Lock(), dict[tuple[int, ...], int]()

    def answer(request: Request) -> Reply:
        numbers = asked_for(request)
        with lock:
            met[numbers] = met.get(numbers, 0) + 1
        return fault if numbers and met[numbers] <= times else well(request)

    return answer


def address(url: str, **more: Any) -> Address:
    return Address(**{"url": url, "concurrency": 4, "wait": 0.001, "timeout": LONG, **more})


@contextmanager
def asking(answer: Callable[[Request], Reply], **more: Any) -> Iterator[Server]:
    with listening(answer) as url, connected(address(url, **more), "-m") as server:
        yield server


CALLS = [Sum((n, n + 1)) for n in range(12)]
SUMS = {call: sum(call.numbers) for call in CALLS}


def test_many_are_under_way_at_once_and_never_more_than_allowed() -> None:
    together, under_way, most = threading.Barrier(4), 0, 0
    lock = threading.Lock()

    def answer(request: Request) -> Reply:
        nonlocal under_way, most
        with lock:
            under_way += 1
            most = max(most, under_way)
        together.wait(60)  # broken unless four come together
        with lock:
            under_way -= 1
        return well(request)

    with asking(answer) as server:
        assert dict(server.many(CALLS, read)) == SUMS
    assert most == 4


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (Reply(body="", status=408), "HTTP 408"),
        (Reply(body="", status=429), "HTTP 429"),
        (Reply(body="", status=429, headers={"Retry-After": "0"}), "HTTP 429"),
        (Reply(body="oh", status=500), "HTTP 500"),
        (Reply(body="<html>bad gateway</html>", status=502), "HTTP 502"),
        (Reply(body="loading", status=503), "HTTP 503"),
        (Reply(body='{"sum":'), "no JSON"),
        (Reply(body="<html>busy</html>"), "no JSON"),
        (Reply(body=""), "no JSON"),
        (Reply(body="[" * 100_000), "no JSON"),
        (Reply(body='{"error": "out of memory"}'), "no sum"),
        (Reply(body='{"sum": 1}', cut=True), "no connection"),
        (Reply(body='{"sum": 1}', reset=True), "no connection"),
        (Reply(body='{"sum": 1}', headers={"Content-Encoding": "gzip"}), "no connection"),
    ],
)
@pytest.mark.parametrize("away", [0, LONG])
def test_what_passes_is_survived_with_the_same_answers(
    fault: Reply, kind: str, away: float
) -> None:
    with asking(often(fault, 2), away=away) as server:
        assert dict(server.many(CALLS, read)) == SUMS
    assert server.failures == {kind: 2 * len(CALLS)}


@pytest.mark.parametrize(
    "fault",
    [
        Reply(body="", hang=True),
        Reply(body='{"sum": 1}', stall=True),
        Reply(body='{"sum": 1}' + " " * 1000, drip=0.05),
    ],
)
def test_a_deadline_ends_a_request_wherever_it_hangs(fault: Reply) -> None:
    # a sound reply that a busy machine is late with is asked for again
    with asking(often(fault, 1), concurrency=12, timeout=1, retries=10) as server:
        assert dict(server.many(CALLS, read)) == SUMS
        assert server.failures["no answer in time"] >= len(CALLS)


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (Reply(body="oh", status=500), r"answers with HTTP 500: oh \(given up after 3 tries\)"),
        (Reply(body="<html>"), r"gave no JSON but '<html>' \(given up after 3 tries\)"),
        (Reply(body="", status=503), r"answers with HTTP 503 \(given up after"),
        (Reply(body="", status=502), r"answers with HTTP 502 \(given up after"),
        (Reply(body="{}", reset=True), r"cannot be reached: .* \(given up after"),
        (Reply(body="{}", drip=1), r"gave no answer in 0.2 s \(given up after 3 tries\)"),
        (
            Reply(body="", status=429, headers={"Retry-After": "86400"}),
            "answers with HTTP 429 and asks to wait 86,400 s",
        ),
    ],
)
@pytest.mark.parametrize("away", [0, LONG])
def test_what_does_not_pass_is_told_in_one_sentence(fault: Reply, told: str, away: float) -> None:
    timeout = 0.2 if fault.drip else LONG
    with (
        asking(
            lambda r: fault if r.path == "/sum" else well(r),
            away=away,
            retries=2,
            timeout=timeout,
            advice="run it again",
        ) as server,
        pytest.raises(EndpointError, match=rf"^http://127[^ ]* {told}.*; run it again$"),
    ):
        list(server.many(CALLS, read))


def test_a_server_says_how_long_to_wait() -> None:
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=500), usegmt=True)
    asked = iter(["7", soon, "later", "2.5", "²"])

    def answer(request: Request) -> Reply:
        wait = next(asked, None)
        return well(request) if wait is None else busy(wait)

    def busy(wait: str) -> Reply:
        return Reply(body="", status=429, headers={"Retry-After": wait})

    waits: list[float] = []
    with (
        listening(answer) as url,
        connected(address(url, concurrency=1, wait=1), "-m", sleep=noted(waits)) as server,
    ):
        assert dict(server.many(CALLS[:1], read)) == {CALLS[0]: 1}
    assert waits[0] == 7 and 0 < waits[1] <= 500
    assert waits[2:] == [4, 2.5, 16], "what cannot be read is our own wait"


def test_a_server_that_bears_few_at_once_is_asked_for_less_and_not_given_up() -> None:
    lock, inside = threading.Lock(), 0

    def answer(request: Request) -> Reply:
        nonlocal inside
        with lock:
            inside += 1
            crowded = inside > 2
        try:
            return Reply(body="", status=429) if crowded else well(request)
        finally:
            with lock:
                inside -= 1

    calls = [Sum((n,)) for n in range(200)]
    with asking(answer, concurrency=32, retries=1) as server:
        assert dict(server.many(calls, read)) == {call: call.numbers[0] for call in calls}


def test_what_is_refused_among_many_is_named() -> None:
    def answer(request: Request) -> Reply:
        bad = 17 in asked_for(request)
        return Reply(body="too long", status=400) if bad else well(request)

    with asking(answer) as server, pytest.raises(Refused, match="HTTP 400: too long") as error:
        list(server.many([Sum(tuple(range(n, n + 8))) for n in (0, 8, 16, 24)], read, halves))
    assert error.value.call == Sum((17,))


def test_a_server_that_takes_smaller_requests_is_sent_smaller_ones() -> None:
    def answer(request: Request) -> Reply:
        return Reply(body="", status=413) if len(asked_for(request)) > 3 else well(request)

    with asking(answer) as server:
        found = list(server.many([Sum(tuple(range(50)))], read, halves))
    assert sum(sum for _, sum in found) == sum(range(50))
    assert sorted(n for call, _ in found for n in call.numbers) == list(range(50))


@pytest.mark.parametrize("status", [401, 403, 404, 501])
def test_what_is_refused_whole_is_told_at_once(status: int) -> None:
    asked = []

    def answer(request: Request) -> Reply:
        asked.append(request)
        return Reply(body="no", status=status)

    with asking(answer, concurrency=1) as server, pytest.raises(Refused, match=f"HTTP {status}"):
        list(server.many(CALLS, read, halves))
    assert len(asked) == 1


def test_a_key_is_never_shown(caplog: pytest.LogCaptureFixture) -> None:
    def answer(request: Request) -> Reply:
        said = f"bad key {request.headers['Authorization']}"
        return Reply(body=said, status=500 if asked_for(request) == (0, 1) else 401)

    caplog.set_level(logging.DEBUG, "sonde")
    with asking(answer, retries=1, key="sesame") as server:
        assert "sesame" not in repr(server.address)
        for call in CALLS[:2]:
            with pytest.raises(EndpointError, match="bad key Bearer …") as error:
                list(server.many([call], read))
            assert "sesame" not in str(error.value)
    assert "bad key" in caplog.text and "sesame" not in caplog.text


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def test_a_server_that_does_not_come_back_is_told() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    told = r"cannot be reached: .*, and was not back in 0.1 s; start it$"
    with connected(address(url, away=0.1, advice="start it"), "-m") as server:
        with pytest.raises(GivenUp, match=told):
            list(server.many(CALLS, read))
        with pytest.raises(GivenUp, match=r"cannot be reached: .*, and was not back in 0\.1 s"):
            server.wait_until_ready()


class Restarting:
    """A server that dies over its third request and comes back, maybe as another."""

    def __init__(self) -> None:
        self.port, self.asked, self.deaths, self.alive = free_port(), 0, 0, threading.Event()
        self.dying = threading.Event()
        self.loading = 2

    def answer(self, request: Request) -> Reply:
        if request.path == "/health":
            self.loading -= self.deaths > 0
            return Reply(body="", status=503 if self.deaths and self.loading > 0 else 200)
        if request.path == "/name":
            return Reply(body=json.dumps({"name": self.deaths}))
        self.asked += 1
        if self.asked == 3:
            self.dying.set()
            return Reply(body="", hang=True)
        return well(request)

    def live(self) -> None:
        with listening(self.answer, self.port):
            self.alive.set()
            self.dying.wait(60)
        self.deaths += 1
        with listening(self.answer, self.port):
            self.dying.clear()
            self.dying.wait(60)


@contextmanager
def restarting(greet: Callable[[Server], None], **more: Any) -> Iterator[Server]:
    life = Restarting()
    thread = threading.Thread(target=life.live)
    thread.start()
    life.alive.wait(60)
    where = address(f"http://127.0.0.1:{life.port}", away=LONG, health="/health", **more)
    try:
        with connected(where, "-m") as server:
            server.greet = lambda: greet(server)
            yield server
    finally:
        life.dying.set()
        thread.join()


@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_server_that_comes_back_is_asked_who_it_is_and_goes_on(concurrency: int) -> None:
    names = []
    with restarting(
        lambda server: names.append(server.get({}, lambda value: value["name"], "/name")),
        concurrency=concurrency,
    ) as server:
        assert dict(server.many(CALLS, read)) == SUMS
    assert names[0] == 1 and set(names) == {1}


def test_another_server_that_comes_back_is_refused() -> None:
    def greet(server: Server) -> None:
        if server.get({}, lambda value: value["name"], "/name") != 0:
            raise ModelError("another one")

    with restarting(greet) as server, pytest.raises(ModelError, match="another one"):
        list(server.many(CALLS, read))


def test_a_server_that_was_replaced_unseen_is_asked_who_it_is() -> None:
    port, greeted = free_port(), []
    with connected(address(f"http://127.0.0.1:{port}"), "-m") as server:
        for name in ("first", "second"):
            server.greet = lambda name=name: greeted.append(name)
            with listening(well, port):
                assert dict(server.many(CALLS, read)) == SUMS
    assert greeted == ["first", "second"], "after all that was asked"


def test_a_request_that_always_kills_its_server_is_given_up() -> None:
    with (
        asking(
            lambda r: Reply(body="{}", reset=True) if 5 in asked_for(r) else well(r),
            away=LONG,
            retries=3,
        ) as server,
        pytest.raises(GivenUp, match="given up after 4 tries"),
    ):
        list(server.many([Sum((n,)) for n in range(12)], read))


def test_who_stops_listening_leaves_nothing_under_way() -> None:
    with asking(well) as server:
        next(server.many(CALLS, read))
        assert dict(server.many(CALLS, read)) == SUMS


def test_a_name_that_nobody_has_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: Any, **__: Any) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with (
        connected(address("http://here", away=LONG), "-m") as server,
        pytest.raises(EndpointError, match=r"service not known; no machine has this name"),
    ):
        list(server.many(CALLS, read))


def test_loopback_is_reached_without_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    with asking(well) as server:
        assert dict(server.many(CALLS, read)) == SUMS


@pytest.mark.parametrize("status", [307, 308])
def test_a_redirect_within_the_same_origin_is_followed_with_the_body_and_the_key(
    status: int,
) -> None:
    seen: list[Request] = []

    def answer(request: Request) -> Reply:
        seen.append(request)
        if request.path == "/sum":
            return Reply(body="", status=status, headers={"Location": "/sum/"})
        return Reply(body=json.dumps({"sum": sum(json.loads(request.body)["numbers"])}))

    with asking(answer, key="sesame") as server:
        assert dict(server.many(CALLS[:1], read)) == {CALLS[0]: SUMS[CALLS[0]]}
    assert [request.path for request in seen] == ["/sum", "/sum/"]
    assert {request.headers["Authorization"] for request in seen} == {"Bearer sesame"}
    assert len({request.body for request in seen}) == 1


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_to_another_origin_is_reported_and_never_followed(status: int) -> None:
    seen: list[Request] = []

    def elsewhere(request: Request) -> Reply:
        seen.append(request)
        return well(request)

    with listening(elsewhere) as other:
        place = other.replace("//", "//me:pw@") + "/sum?key=sesame"
        moved = Reply(body="", status=status, headers={"Location": place})
        with asking(lambda _: moved, key="sesame") as server, pytest.raises(Refused) as error:
            dict(server.many(CALLS[:1], read))
    said = f"HTTP {status}: it redirects to {other}/sum, which sonde does not follow"
    assert said in str(error.value) and "sesame" not in str(error.value)
    assert "pw" not in str(error.value) and not seen


def test_redirects_that_lead_in_a_circle_end() -> None:
    circle = Reply(body="", status=307, headers={"Location": "/sum"})
    with asking(lambda _: circle) as server, pytest.raises(Refused, match="redirects to"):
        dict(server.many(CALLS[:1], read))
