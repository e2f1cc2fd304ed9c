"""How builds ask a chat model: its address as options, and what is said of the answers."""

from __future__ import annotations

import os
from dataclasses import dataclass

from sonde.cli.console import say
from sonde.cli.options import matching, option
from sonde.core.errors import UsageError
from sonde.data.builders.endpoint import KEY, Chat, Endpoint
from sonde.data.builders.journal import Journal


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointOptions:
    """Where a model is asked for more sentences, and how patiently."""

    endpoint: str = option("Ask for more questions at this OpenAI-compatible address.", "")
    model: str = option("The model to ask there.", "")
    turns: int = option("Times it is asked about a relation.", 5, least=1)
    retries: int = option("New tries where it fails.", 5, least=0)
    wait: float = option("Seconds before the first new try; doubles.", 1.0, least=0)
    timeout: float = option("Seconds to wait for an answer.", 60.0, least=0.1)

    def __post_init__(self) -> None:
        if bool(self.endpoint) != bool(self.model):
            raise UsageError("--endpoint URL and --model NAME go together; give both or neither")

    def place(self) -> Endpoint | None:
        """Where to ask, if anywhere."""
        if not self.endpoint:
            return None
        key = os.environ.get(KEY, "").strip()
        return matching(Endpoint, self, url=self.endpoint, key=key)


def show_asked(journal: Journal, chat: Chat) -> None:
    """Print how often the model was asked, and what failed on the way."""
    failed = ", ".join(f"{kind} {count}" for kind, count in sorted(chat.failures.items()))
    say(
        f"endpoint: {len(journal) - journal.before} answers, {journal.before} kept from before; "
        f"failed tries: {failed or 'none'}"
    )
