"""Work on another thread: made ahead of who uses it, or done behind who asked for it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Self, TypeVar

Item = TypeVar("Item")

_END = object()

DEEP = 2
"""Pieces of work that may be left to do before who asks for more must wait."""


def prefetch(items: Iterator[Item]) -> Iterator[Item]:
    """The same items, each made on another thread while the one before it is used, the first now.

    >>> list(prefetch(iter("abc")))
    ['a', 'b', 'c']
    """
    thread = ThreadPoolExecutor(1, "ahead")
    return _prefetched(thread, items, thread.submit(next, items, _END))


def _prefetched(
    thread: ThreadPoolExecutor, items: Iterator[Item], coming: Future[object]
) -> Iterator[Item]:
    with thread:
        while (item := coming.result()) is not _END:
            coming = thread.submit(next, items, _END)
            yield item  # type: ignore[misc]


class Behind:
    """Does one thing after the other on a thread of its own, a little behind who asks for it."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "behind")
        self._left: deque[Future[Any]] = deque()

    def __enter__(self) -> Self:
        return self

    def do(self, work: Callable[..., object], *given: Any) -> None:
        """Some work, once what came before is done; raises what went wrong with that."""
        while len(self._left) >= DEEP:
            self._left.popleft().result()
        self._left.append(self._thread.submit(work, *given))

    def wait(self) -> None:
        """Until nothing is left to do; raises what went wrong."""
        while self._left:
            self._left.popleft().result()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._thread.shutdown()
        if kind is None:
            self.wait()
