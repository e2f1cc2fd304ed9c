"""Work on other threads: made ahead of who uses it, beside it, or done behind who asked for it."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Self, TypeVar

Item = TypeVar("Item")
Made = TypeVar("Made")

_END = object()

DEEP = 2
"""Things that are made at once, one more being kept, before who asks for more must wait."""


def cores() -> int:
    """CPU cores that this process may use."""
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed else os.cpu_count() or 1


def side_by_side(make: Callable[[Item], Made], items: Iterable[Item]) -> list[Made]:
    """What is made of each item, in order; two at a time, for work that leaves the interpreter.

    >>> side_by_side(abs, [-1, 2])
    [1, 2]
    """
    every = list(items)
    if len(every) < 2:
        return list(map(make, every))
    with ThreadPoolExecutor(2, "beside") as threads:
        return list(threads.map(make, every))


def prefetch(items: Iterator[Item], ahead: int = 1) -> Iterator[Item]:
    """The same items, made on another thread while others are used: so many ahead, the first now.

    >>> list(prefetch(iter("abc")))
    ['a', 'b', 'c']
    """
    thread = ThreadPoolExecutor(1, "ahead")
    coming = deque(thread.submit(next, items, _END) for _ in range(ahead))
    return _prefetched(thread, items, coming)


def _prefetched(
    thread: ThreadPoolExecutor, items: Iterator[Item], coming: deque[Future[object]]
) -> Iterator[Item]:
    with thread:
        while (item := coming.popleft().result()) is not _END:
            coming.append(thread.submit(next, items, _END))
            yield item  # type: ignore[misc]


class Behind:
    """Makes things on threads of its own and keeps them in order, behind who asks for it."""

    def __init__(self) -> None:
        self._making = ThreadPoolExecutor(DEEP, "making")
        self._keeping = ThreadPoolExecutor(1, "keeping")
        self._left: deque[Future[Any]] = deque()

    def __enter__(self) -> Self:
        return self

    def do(self, make: Callable[[], Item], keep: Callable[[Item], object]) -> None:
        """Make something, and keep it once what came before is kept.

        Raises what went wrong with something earlier.
        """
        while len(self._left) > DEEP:
            self._left.popleft().result()
        made = self._making.submit(make)
        self._left.append(self._keeping.submit(lambda: keep(made.result())))

    def wait(self) -> None:
        """Until nothing is left to do; raises what went wrong."""
        while self._left:
            self._left.popleft().result()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._making.shutdown()
        self._keeping.shutdown()
        if kind is None:
            self.wait()
