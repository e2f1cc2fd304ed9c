"""How builds ask a chat model: its address as options, and what is said of the answers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sonde.cli.console import say
from sonde.cli.options import matching, option
from sonde.core.errors import EndpointError, UsageError
from sonde.data.builders.endpoint import KEY, Asker, Chat, Endpoint, Exhausted, opened
from sonde.data.builders.work import Answer, Journal, working

ANSWERS = "answers.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointOptions:
    """Where a model is asked for more sentences, and how patiently."""

    endpoint: str = option("Have sentences written at this OpenAI-compatible address.", "")
    model: str = option("The model to ask there.", "")
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


@contextmanager
def asking(
    endpoint: Endpoint | None, out: Path, advice: str = ""
) -> Iterator[tuple[Asker | None, Chat | None]]:
    """Open the endpoint and the working folder of a build, which nobody else has meanwhile."""
    if endpoint is None:
        yield None, None
        return
    with working(out) as work, asking_in(work, endpoint, advice) as both:
        yield both


@contextmanager
def asking_in(work: Path, endpoint: Endpoint, advice: str = "") -> Iterator[tuple[Asker, Chat]]:
    """Open the endpoint and the journal of a build; a failure says that nothing is lost.

    `advice` is what else can be done where it does not answer.
    """
    with opened(endpoint) as chat:
        journal = Journal(work / ANSWERS)
        try:
            yield Asker(ask=chat.ask, model=endpoint.model, journal=journal), chat
        except EndpointError as error:
            kept = f"the {len(journal)} answers so far are kept in {journal.path}; " * bool(journal)
            again = "run the same command again once it answers" + f", or {advice}" * bool(advice)
            then = "" if isinstance(error, Exhausted) else again
            raise EndpointError(f"{error}; {kept}{then}".rstrip("; ")) from None


def show_asked(journal: Journal, chat: Chat) -> None:
    """Print how often the model was asked, what failed on the way, and what it cost."""
    failed = ", ".join(f"{kind} {count}" for kind, count in sorted(chat.failures.items()))
    now = journal.answers(journal.before)
    say(
        f"endpoint: {len(now)} answers, {journal.before} kept from before; "
        f"failed tries: {failed or 'none'}"
    )
    more = f"; with those from before {cost(journal.answers())}" if journal.before else ""
    say(f"cost, as the endpoint counts it: {cost(now)}{more}")


def cost(answers: list[Answer]) -> str:
    """Requests that were answered and the tokens that the endpoint told.

    >>> from sonde.data.builders.work import Tokens
    >>> cost([Answer("a", Tokens(1000, 20)), Answer("b", Tokens(500, 2))])
    '2 requests, 1,500 tokens sent, 22 received'
    >>> cost([Answer("a", Tokens(1000, 20)), Answer("b")])
    '2 requests, 1,000 tokens sent, 20 received (1 without tokens)'
    """
    told = [answer.tokens for answer in answers if answer.tokens is not None]
    if not told:
        return f"{len(answers):,} requests" + ", tokens not told" * bool(answers)
    untold = f" ({len(answers) - len(told):,} without tokens)" if len(told) < len(answers) else ""
    sent, received = sum(t.sent for t in told), sum(t.received for t in told)
    return f"{len(answers):,} requests, {sent:,} tokens sent, {received:,} received{untold}"
