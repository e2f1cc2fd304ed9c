"""How far long work has come, told to whoever listens. Knows nothing of how it is shown.

What does the work calls `begin` and `advance`; whoever wants to know stands around it with `heard`.
Other threads are not listened to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol, TypeVar

Item = TypeVar("Item")


class Listener(Protocol):
    """Hears how far work has come."""

    def begin(self, what: str, total: float) -> None:
        """Something begins that is so much; 0 where nobody knows how much."""

    def advance(self, count: float) -> None:
        """So much more of it is done."""


class Part:
    """Passes on what it hears as a part of something larger, whose beginning was told."""

    def __init__(self, whole: Listener, share: float) -> None:
        self.whole, self.share = whole, share

    def begin(self, what: str, total: float) -> None:
        """Nothing new: it is a part."""

    def advance(self, count: float) -> None:
        """A share of it."""
        self.whole.advance(self.share * count)


_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def heard(listener: Listener | None) -> Iterator[None]:
    """Let a listener hear what is told within, or nobody."""
    before = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(before)


@contextmanager
def part(share: float) -> Iterator[None]:
    """Count what is told within for so much of itself only."""
    listener = _listener.get()
    with heard(None if listener is None else Part(listener, share)):
        yield


def begin(what: str, total: float = 0) -> None:
    """Tell that something begins, and how much it is, where that is known."""
    if (listener := _listener.get()) is not None:
        listener.begin(what, total)


def advance(count: float = 1) -> None:
    """Tell that so much more is done of what began last."""
    if (listener := _listener.get()) is not None:
        listener.advance(count)


def told(items: Iterable[Item], what: str, total: int) -> Iterator[Item]:
    """The same items, each told when it has been used; what makes them is not heard."""
    begin(what, total)
    coming = iter(items)
    while True:
        with heard(None):
            try:
                item = next(coming)
            except StopIteration:
                return
        yield item
        advance()
