"""Make the next of several things while one is used. Knows nothing of what they are."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")

END = object()


def prefetch(items: Iterator[Item], count: int) -> Iterator[Item]:
    """The same items, each made on another thread while the one before it is used.

    `count`: how many there are; a single one is made here.

    >>> list(prefetch(iter("abc"), 3))
    ['a', 'b', 'c']
    """
    if count < 2:
        yield from items
        return
    with ThreadPoolExecutor(1, "ahead") as thread:
        coming = thread.submit(next, items, END)
        while (item := coming.result()) is not END:
            coming = thread.submit(next, items, END)
            yield item  # type: ignore[misc]
