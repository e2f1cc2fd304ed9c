"""How many requests are under way at once: fewer for a busy server, slowly more again."""

from __future__ import annotations

import asyncio
import time

from sonde.http.failures import Sleep


class Gate:
    """Lets `width` requests through at a time, never more than `most` nor fewer than one.

    The width is halved when a server says that it is busy, once for all requests that were under
    way by then, and grows by one for as many good answers as it is wide.
    """

    def __init__(self, most: int, sleep: Sleep) -> None:
        self.most, self.width = most, float(most)
        self._sleep, self._inside = sleep, 0
        self._lowered = self._until = 0.0
        self._left = asyncio.Condition()

    async def __aenter__(self) -> None:
        async with self._left:
            await self._left.wait_for(lambda: self._inside < int(self.width))
            self._inside += 1
        try:
            if (left := self._until - time.monotonic()) > 0:
                await self._sleep(left)
        except BaseException:  # given up meanwhile
            await self.__aexit__()
            raise

    async def __aexit__(self, *_: object) -> None:
        async with self._left:
            self._inside -= 1
            self._left.notify_all()

    def well(self) -> None:
        """A good answer came."""
        self.width = min(self.most, self.width + 1 / self.width)

    def busy(self, began: float) -> bool:
        """A request that began then met a busy server; whether the width was halved for it."""
        if began < self._lowered:
            return False
        self.width, self._lowered = max(1.0, self.width / 2), time.monotonic()
        return True

    def pause(self, seconds: float) -> None:
        """Let nobody through for so long."""
        self._until = max(self._until, time.monotonic() + seconds)
