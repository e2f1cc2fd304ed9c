"""Ask a server, one thing or many at once, and again where that may help.

What may pass (no connection, no answer in time, HTTP 408, 429 and 5xx, an answer in which what was
asked for is not found) is tried again after a wait that doubles, or as long as the server says;
what will not pass is told at once. Requests are sent on a thread with an event loop, where a
deadline ends a request wherever it hangs; answers are handed out on the caller's thread. Knows
nothing of what is asked.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

from sonde.http.address import Address
from sonde.http.client import KNOCK, Asked, Client, check_address
from sonde.http.failures import Failure, Refused, Sleep, backoff, given_up, retrying, tries
from sonde.http.gate import Gate

A = TypeVar("A", bound=Asked)
T = TypeVar("T")

DIVISIBLE = (400, 413, 422)
"""Statuses with which a request of many parts is refused, maybe for one of them."""

HEARS = 0.1
"""Seconds after which a wait looks whether it is to end."""

REST = 0.05
"""Seconds between two looks for a server that is away, at least, however short its pauses are."""

log = logging.getLogger("sonde")


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One thing asked."""

    path: str = ""
    body: Mapping[str, Any] | None = None
    query: Mapping[str, str] | None = None


@dataclass(slots=True, eq=False)
class _Sent(Generic[A]):
    """Something asked, how often its server was lost over it, and when it was sent last."""

    call: A
    losses: int = 0
    began: float = 0.0


class Server:
    """Answers requests, sooner or later; `failures` counts tries that came to nothing, by kind.

    `greet` is called, where it is set, once a lost server is back and after many things were
    asked: it may ask whether this is still the same one, and raise if not. `vouch` is called only
    after many things were asked, when nothing else is under way.
    """

    def __init__(self, address: Address, client: Client, sleep: Sleep) -> None:
        self.address, self.failures = address, Counter[str]()
        self.greet: Callable[[], None] | None = None
        self.vouch: Callable[[], None] | None = None
        self._client, self._sleep = client, sleep
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._live, daemon=True, name="http").start()
        self._gate = Gate(address.concurrency, sleep)
        self._greeting = False
        self._answered = self._returned = 0.0

    def close(self) -> None:
        """Give up what is under way, and the connections; without waiting, as a collector must."""
        with suppress(RuntimeError):  # closed before
            self._loop.call_soon_threadsafe(self._loop.stop)

    def _live(self) -> None:
        """What the thread does: send until it is closed, then clear up."""

        async def end() -> None:
            left = asyncio.all_tasks() - {asyncio.current_task()}
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)
            await self._client.close()

        self._loop.run_forever()
        self._loop.run_until_complete(end())
        self._loop.close()

    def post(self, body: Mapping[str, Any], read: Callable[[Any], T], path: str = "") -> T:
        """What is read of the answer to some JSON; `read` raises Failure where it is not there."""
        return self._alone(Call(path=path, body=body), read)

    def get(self, query: Mapping[str, str], read: Callable[[Any], T], path: str = "") -> T:
        """What is read of the answer to a query."""
        return self._alone(Call(path=path, query=query), read)

    def _alone(self, call: Call, read: Callable[[Any], T]) -> T:
        [(_, answer)] = self._answers([call], lambda _, value: read(value), lambda call: ())
        return answer

    def many(
        self,
        calls: Iterable[A],
        read: Callable[[A, Any], T],
        split: Callable[[A], Sequence[A]] = lambda call: (),
    ) -> Iterator[tuple[A, T]]:
        """What is read of the answer to each, in any order, as many at once as the server bears.

        Where a server refuses something as malformed or too large, its parts are asked instead,
        as `split` makes them; where it has none, `Refused` says which it was. The answers may be
        used once all have come: only then is it sure that one server gave them.
        """
        yield from self._answers(calls, lambda call, value: read(call, _found(value)), split)
        # another may have come up unseen: behind a proxy, or between two requests
        self._ask_who(self.greet, self.vouch)

    def wait_until_ready(self) -> None:
        """Return once the server is there and has loaded; refuses where it takes too long."""
        if why := self._run(self._client.trouble()):
            self._wait_for_return(why)

    def _answers(
        self,
        calls: Iterable[A],
        read: Callable[[A, Any], T],
        split: Callable[[A], Sequence[A]],
    ) -> Iterator[tuple[A, T]]:
        left, again = map(_Sent, calls), deque[_Sent[A]]()
        done: SimpleQueue[tuple[_Sent[A], Future[T]]] = SimpleQueue()
        under_way: set[Future[T]] = set()
        try:
            while True:
                while len(under_way) < self.address.concurrency and (
                    sent := again.popleft() if again else next(left, None)
                ):
                    under_way.add(self._send(sent, read, done))
                if not under_way:
                    return
                sent, future = _next(done)
                under_way.discard(future)
                try:
                    answer = future.result()
                except Failure as failure:
                    self._recover(sent, failure)
                    again.append(sent)
                except Refused as refused:
                    again.extend(map(_Sent, self._parts(sent.call, refused, split)))
                else:
                    yield sent.call, answer
        finally:
            for future in under_way:
                future.cancel()

    def _send(
        self,
        sent: _Sent[A],
        read: Callable[[A, Any], T],
        done: SimpleQueue[tuple[_Sent[A], Future[T]]],
    ) -> Future[T]:
        sent.began = time.monotonic()
        future = asyncio.run_coroutine_threadsafe(self._patiently(sent.call, read), self._loop)
        future.add_done_callback(lambda future: done.put((sent, future)))
        return future

    def _parts(self, call: A, refused: Refused, split: Callable[[A], Sequence[A]]) -> Sequence[A]:
        """The parts to ask instead of what was refused; raises where there are none."""
        parts = split(call) if refused.status in DIVISIBLE else ()
        if len(parts) < 2:
            refused.call = call
            raise refused
        log.info("%s %s; asking in %d parts", self.address.kind, refused.why, len(parts))
        return parts

    def _recover(self, sent: _Sent[Any], failure: Failure) -> None:
        """Return once a lost server is back and is the same; refuses where it is not."""
        if sent.began < self._returned:
            return  # it was sent to the server that was lost before
        sent.losses += 1
        if self._run(self._client.trouble()):
            self._wait_for_return(failure.why)
        elif failure.busy or sent.losses > self.address.retries:
            times = max(sent.losses, failure.tried)
            raise given_up(self.address, f"{failure.why} ({tries(times)})", failure.kind)
        else:
            self._run(self._sleep(backoff(self.address, sent.losses)))
        self._returned = time.monotonic()
        self._ask_who(self.greet)

    def _wait_for_return(self, why: str) -> None:
        address, began, knocks = self.address, time.monotonic(), 0
        log.warning("%s %s; waiting up to %g s for it", address.shown, why, address.away)
        while self._run(self._client.trouble()):
            if time.monotonic() - began >= address.away:
                raise given_up(address, f"{why}, and was not back in {address.away:g} s")
            knocks += 1
            self._run(self._sleep(max(REST, min(backoff(address, knocks), KNOCK))))

    def _ask_who(self, *checks: Callable[[], None] | None) -> None:
        """Have it checked that this is still the same server."""
        if self._greeting:
            return
        self._greeting = True
        try:
            for check in filter(None, checks):
                check()
        finally:
            self._greeting = False

    async def _patiently(self, call: A, read: Callable[[A, Any], T]) -> T:
        def progressing(seconds: float) -> bool:
            return time.monotonic() - self._answered < seconds

        ask = retrying(self.address, self._sleep, self._note, progressing)
        answer: T = await ask(self._once, call, read)
        return answer

    async def _once(self, call: A, read: Callable[[A, Any], T]) -> T:
        async with self._gate:
            began = time.monotonic()
            try:
                reply = await self._client.ask(call)
            except Failure as failure:
                if failure.busy and self._gate.busy(began) and self.address.concurrency > 1:
                    log.info("%s is busy; %d at once", self.address.kind, int(self._gate.width))
                raise
        try:
            found = read(call, reply.value)
        except Failure as failure:
            what = failure.kind.removeprefix("no ")
            why = failure.why or f"gave no {what} but {reply.said!r}"
            raise Failure(failure.kind, why, reply.wait) from None
        self._gate.well()
        self._answered = time.monotonic()
        return found

    def _note(self, failure: Failure, wait: float | None) -> None:
        """Count a failure, and tell the first ones of a kind."""
        self.failures[failure.kind] += 1
        if failure.wait is not None and wait and self.address.concurrency > 1:
            self._gate.pause(wait)
        count = self.failures[failure.kind]
        if wait is not None and count & (count - 1) == 0:  # 1, 2, 4, 8: many fail at once
            log.warning("%s %s; trying again in %.3g s", self.address.kind, failure.why, wait)

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        done: SimpleQueue[Future[T]] = SimpleQueue()
        asyncio.run_coroutine_threadsafe(work, self._loop).add_done_callback(done.put)
        return _next(done).result()


@contextmanager
def connected(
    address: Address,
    flag: str,
    headers: Mapping[str, str] | None = None,
    *,
    extra: str = "server",
    sleep: Sleep = asyncio.sleep,
) -> Iterator[Server]:
    """Talk to a server; refuses where a package is missing or the address of a flag is none."""
    check_address(address, flag, extra)
    server = Server(address, Client(address, headers or {}), sleep)
    try:
        yield server
    finally:
        server.close()


def _next(queue: SimpleQueue[T]) -> T:
    """What comes next; the wait is cut up, since a library's handler may keep Ctrl-C from it."""
    while True:
        with suppress(Empty):
            return queue.get(timeout=HEARS)


def _found(value: Any) -> Any:
    """What a server answers; Failure where that is no JSON."""
    if value is None:
        raise Failure("no JSON", "")
    return value
