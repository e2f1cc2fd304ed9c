"""A chat model behind an address: what it says, what is tried again, and what is told at once."""

from __future__ import annotations

import json
import socket
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from sonde.core.errors import EndpointError, UsageError
from sonde.data.builders.endpoint import Chat, Endpoint, opened
from sonde.http.server import connected

from .chat_server import Answer, Server, said, serving
from .loopback import Reply, noted

BAD = Reply(body="<html>busy</html>")


def first_bad(*replies: Reply) -> Answer:
    """These replies, then sound ones."""
    return lambda number, text: replies[number - 1] if number <= len(replies) else said("well")


def asked(
    server: Server, *, retries: int = 5, key: str = "", timeout: float = 600
) -> tuple[str, list[float], Chat]:
    """The answer to a question, the waits on the way, and the conversation."""
    place = Endpoint(url=server.url, model="m", key=key, retries=retries, wait=1, timeout=timeout)
    waits: list[float] = []
    with connected(place.address, "--endpoint", sleep=noted(waits)) as replying:
        chat = Chat("m", replying)
        return chat.ask("how?").text, waits, chat


def test_a_sound_answer_comes_at_the_first_try() -> None:
    with serving(lambda number, text: said(f"to {text}")) as server:
        answer, waits, chat = asked(server)
    assert (answer, waits, chat.failures) == ("to how?", [], {})
    [request] = server.requests
    assert request["path"] == "/v1/chat/completions" and request["model"] == "m"


def test_the_key_is_sent_and_not_shown() -> None:
    with serving(lambda number, text: said("yes")) as server:
        place = Endpoint(url=server.url, model="m", key="sesame")
        with opened(place) as chat:
            chat.ask("open?")
    assert server.keys == ["Bearer sesame"]
    assert "sesame" not in repr(place)
    assert (
        Endpoint(url="http://me:pw@here/v1", model="m").address.shown
        == "http://here/v1/chat/completions"
    )


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (BAD, "no chat completion"),
        (Reply(body="[]"), "no chat completion"),
        (Reply(body=json.dumps({"choices": []})), "no chat completion"),
        (Reply(body=json.dumps({"choices": [{"message": None}]})), "no chat completion"),
        (
            Reply(body=json.dumps({"choices": [{"message": {"content": " "}}]})),
            "no chat completion",
        ),
        (Reply(body=b"\xff\xfe{"), "no chat completion"),
        (Reply(body="{}", cut=True), "no connection"),
        (Reply(body="", headers={"Content-Encoding": "gzip"}, status=503), "HTTP 503"),
        (Reply(body="no gzip", headers={"Content-Encoding": "gzip"}), "no connection"),
        (Reply(body="oh", status=500), "HTTP 500"),
        (Reply(body="slow down", status=429), "HTTP 429"),
        (Reply(body="", hang=True), "no answer in time"),
    ],
)
def test_what_may_pass_is_tried_again(reply: Reply, kind: str) -> None:
    with serving(first_bad(reply, reply)) as server:
        # as short as a busy machine allows: the third reply must come within it
        answer, waits, chat = asked(server, timeout=2 if reply.hang else 600)
    assert answer == "well"
    assert waits == [1, 2]
    assert chat.failures == {kind: 2}
    assert len(server.requests) == 3


def test_a_server_says_how_long_to_wait() -> None:
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=500), usegmt=True)
    replies = [
        Reply(body="", status=429, headers={"Retry-After": text}) for text in ("7", soon, "later")
    ]
    with serving(first_bad(*replies)) as server:
        _, waits, _ = asked(server)
    assert waits[0] == 7
    assert 0 < waits[1] <= 500
    assert waits[2] == 4, "what cannot be read is our own wait"


def test_a_wait_beyond_all_patience_is_told() -> None:
    reply = Reply(body="", status=429, headers={"Retry-After": "86400"})
    with serving(first_bad(reply)) as server, pytest.raises(EndpointError, match="wait 86,400 s"):
        asked(server)
    assert len(server.requests) == 1


def test_the_last_try_says_why_it_failed() -> None:
    complaint = pytest.raises(EndpointError, match="gave no chat completion but '<html>busy")
    with serving(lambda number, text: BAD) as server, complaint as error:
        asked(server, retries=2)
    assert "given up after 3 tries" in str(error.value)
    assert len(server.requests) == 3


@pytest.mark.parametrize(("status", "hint"), [(400, "HTTP 400"), (401, "SONDE_API_KEY"), (404, "")])
def test_what_will_not_pass_is_told_at_once(status: int, hint: str) -> None:
    reply = Reply(body="no such model", status=status)
    complaint = pytest.raises(EndpointError, match="no such model")
    with serving(lambda number, text: reply) as server, complaint as error:
        asked(server)
    assert hint in str(error.value)
    assert len(server.requests) == 1


def test_nobody_there_is_told_after_the_last_try() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: refuses every connection
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(EndpointError, match=r"cannot be reached: .*given up after 2 tries"):
            asked(Server(url=url), retries=1)


def test_half_a_character_is_marked_as_lost() -> None:
    with serving(lambda number, text: said("a\ud800b")) as server:
        assert asked(server)[0].encode().decode() == "a\ufffdb"


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://here", ""])
def test_an_address_begins_with_http(url: str) -> None:
    with pytest.raises(UsageError, match="must begin with http"):
        Endpoint(url=url, model="m")


@pytest.mark.parametrize("url", ["http://here:port/v1", "http:///v1"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with (
        pytest.raises(UsageError, match="is no address"),
        opened(Endpoint(url=url, model="m")),
    ):
        pass


def test_a_key_that_cannot_be_sent_is_refused() -> None:
    with pytest.raises(UsageError, match="SONDE_API_KEY"):
        Endpoint(url="http://here", model="m", key="clé")
