"""Where a server is and how patiently it is asked; what may be printed of it. Sends nothing."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from sonde.core.errors import UsageError

HIDDEN = "…"


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A `url`, and how patiently it is asked: `retries` after the first, times in seconds.

    `kind` is what is asked, in words; `denied` what to do where it will not let us in. `timeout`
    holds for a request as a whole, however slowly its answer trickles in. `concurrency`: requests
    at once. `away`: how long a server that is not there, or still loading, is waited for, asked at
    `health`; 0 counts it as any other failure. `advice` is what to do once it is given up; `key`
    is sent, and hidden wherever a server repeats it.
    """

    url: str
    kind: str = "the endpoint"
    retries: int = 5
    wait: float = 1.0
    timeout: float = 60.0
    denied: str = ""
    concurrency: int = 1
    away: float = 0.0
    health: str = ""
    advice: str = ""
    key: str = field(default="", repr=False)

    @property
    def shown(self) -> str:
        """The address as it may be printed: without a password and a query."""
        return re.sub(r"//[^/]*@", "//", self.url).partition("?")[0]

    @property
    def headers(self) -> dict[str, str]:
        """What every request says of who asks."""
        return {"Authorization": f"Bearer {self.key}"} if self.key else {}

    def hide(self, text: str) -> str:
        """A text without what nobody may see.

        >>> Address(url="http://me:pw@here", key="sesame").hide("bad key sesame at me:pw@here")
        'bad key … at …@here'
        """
        found = re.match(r"https?://([^/]*)@", self.url)
        login = found[1] if found else ""
        for secret in (self.key, login, login.partition(":")[2], self.url.partition("?")[2]):
            text = text.replace(secret, HIDDEN) if secret else text
        return text


def check_url(url: str, flag: str) -> None:
    """Refuse what does not begin as an address does."""
    if not url.startswith(("http://", "https://")):
        raise UsageError(f"{flag} must begin with http:// or https://, not {url!r}")
