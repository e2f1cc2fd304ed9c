"""How a driver reaches a worker, wherever that is: what `local` and `ray` have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Lost(Exception):
    """A worker has ended; says how."""


class Channel(Protocol):
    """Carries bytes to one worker and back."""

    @property
    def told(self) -> str:
        """What the worker is called where it runs."""

    def send(self, data: bytes) -> None:
        """Give it something to do; raises Lost if it has ended."""

    def receive(self) -> bytes:
        """What it has to say, once `Place.wait` names it; raises Lost if it has ended."""

    def close(self) -> None:
        """End it, in good order or not; nothing of it is left."""


class Place(Protocol):
    """Where workers are started; it has so many CPU cores."""

    cores: int

    def start(self, number: int) -> Channel:
        """A new worker in the place of worker `number`."""

    def wait(self, channels: Sequence[Channel], seconds: float) -> list[Channel]:
        """Those that have something to say or have ended; none where that takes longer."""

    def close(self) -> None:
        """Give back what workers needed."""
