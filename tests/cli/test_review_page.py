"""The page on which templates are judged: what it serves, what it takes, and whom it refuses."""

from __future__ import annotations

import json
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from sonde.cli.review import SCALE
from sonde.cli.review_page import PageServer, serve
from sonde.core.errors import UsageError
from sonde.data.review.judgements import Ask, Session, items_of, read_judgements
from tests.worlds import dataset_of, fact, relation

TEXTS = ("[X] lives in [Y].", "[X] <b>of</b> [Y].")


def session(path: Path, ask: Ask = "keep") -> Session:
    world = dataset_of([fact("P1", "Ann", "Ghent")], relation("P1", *TEXTS), name="secret")
    return Session(path, "ann", items_of([world]), ask)


@pytest.fixture
def server(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[PageServer]:
    """A page that asks to keep or drop, or what a test asks for."""
    with PageServer(session(tmp_path / "j", getattr(request, "param", "keep")), 0, SCALE) as page:
        thread = threading.Thread(target=page.serve_forever, args=(0.01,))
        thread.start()
        yield page
        page.shutdown()
        thread.join()


def asked(server: PageServer, path: str, body: Any = None, host: str = "") -> tuple[int, Any]:
    """The status and the content of an answer."""
    line = HTTPConnection("127.0.0.1", server.server_port)
    text = body if body is None or isinstance(body, str) else json.dumps(body)
    headers = {"Host": host} if host else {}
    line.request("GET" if body is None else "POST", path, text, headers)
    answer = line.getresponse()
    content = answer.read()
    return answer.status, content if b"<html" in content else json.loads(content)


def test_the_page_needs_nothing_from_elsewhere_and_tells_no_source(server: PageServer) -> None:
    status, page = asked(server, f"/{server.key}/")
    assert status == 200 and b"http" not in page and b"src=" not in page
    status, shown = asked(server, f"/{server.key}/items")
    assert [item["shown"] for item in shown["items"]] == [
        "Ann lives in ___.",
        "Ann <b>of</b> ___.",
    ]
    assert "secret" not in json.dumps(shown)


def test_a_judgement_is_on_disk_before_it_is_answered(server: PageServer, tmp_path: Path) -> None:
    judge, item = f"/{server.key}/judge", f"P1|{TEXTS[0]}"
    kept = {"keep": True, "answers": None}
    assert asked(server, judge, {"item": item, "keep": True}) == (200, {"stands": kept})
    assert [(j.item, j.keep) for j in read_judgements(tmp_path / "j")] == [(item, True)]
    assert asked(server, judge, {"item": item, "keep": False})[0] == 200
    assert [j.keep for j in read_judgements(tmp_path / "j")] == [False]
    assert asked(server, judge, {"item": item, "undo": True}) == (200, {"stands": kept})
    assert [j.keep for j in read_judgements(tmp_path / "j")] == [True]
    assert asked(server, judge, {"item": item, "undo": True}) == (200, {"stands": None})
    assert read_judgements(tmp_path / "j") == []


@pytest.mark.parametrize(
    "body",
    [
        "{",
        "[]",
        {"item": "P1|other", "keep": True},
        {"item": f"P1|{TEXTS[0]}"},
        {"item": f"P1|{TEXTS[0]}", "keep": "yes"},
        {"item": f"P1|{TEXTS[0]}", "keep": 1},
        {"item": f"P1|{TEXTS[0]}", "keep": 0.0},
        {"item": f"P1|{TEXTS[0]}", "keep": True, "answers": [1, 1, 1, True]},
        "[" * 90_000,
        '{"item": ' + "9" * 5000 + "}",
        " " * 100_001,
        {"item": f"P1|{TEXTS[0]}", "keep": True, "answers": [1, 1, 0, 0]},
        {"item": f"P1|{TEXTS[0]}", "keep": True, "answers": [1]},
    ],
)
def test_what_is_no_judgement_is_refused(server: PageServer, tmp_path: Path, body: Any) -> None:
    status, said = asked(server, f"/{server.key}/judge", body)
    assert status == 400 and said["error"]
    assert not (tmp_path / "j").exists()


def raw(server: PageServer, request: str) -> bytes:
    """The answer to bytes that no client library would send."""
    with socket.create_connection(("127.0.0.1", server.server_port), 5) as line:
        line.sendall(request.encode())
        return b"".join(iter(lambda: line.recv(65536), b""))


@pytest.mark.parametrize("length", ["-1", "+5", "1e3", "", "100001", "9" * 5000])
def test_a_length_that_cannot_be_is_answered_at_once(server: PageServer, length: str) -> None:
    head = f"POST /{server.key}/judge HTTP/1.1\r\nHost: 127.0.0.1:{server.server_port}\r\n"
    answer = raw(server, f"{head}Content-Length: {length}\r\n\r\n{{}}")
    assert answer.startswith(b"HTTP/1.0 400") and b"Content-Length must be" in answer


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("path", ["x", "*", "/", "//", "/\u00e9", "http://evil.example"])
def test_a_path_that_is_none_is_answered(
    server: PageServer, method: str, path: str, capfd: pytest.CaptureFixture[str]
) -> None:
    answer = raw(
        server, f"{method} {path} HTTP/1.1\r\nHost: localhost:{server.server_port}\r\n\r\n"
    )
    assert answer.startswith(b"HTTP/1.0 403") and "Traceback" not in capfd.readouterr().err


def test_a_slow_reviewer_holds_up_no_other(server: PageServer) -> None:
    judge, item = f"/{server.key}/judge", f"P1|{TEXTS[0]}"
    with socket.create_connection(("127.0.0.1", server.server_port), 5) as slow:
        head = f"POST {judge} HTTP/1.1\r\nHost: 127.0.0.1:{server.server_port}\r\n"
        slow.sendall(f"{head}Content-Length: 50\r\n\r\n".encode())
        time.sleep(0.2)
        line = HTTPConnection("127.0.0.1", server.server_port, timeout=5)
        line.request("POST", judge, json.dumps({"item": item, "keep": True}))
        assert line.getresponse().status == 200


def test_no_other_page_may_frame_the_page_and_it_loads_nothing(server: PageServer) -> None:
    for path in (f"/{server.key}/", f"/{server.key}/items", "/"):
        line = HTTPConnection("127.0.0.1", server.server_port)
        line.request("GET", path)
        headers = line.getresponse().headers
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert headers["X-Frame-Options"] == "DENY"


def test_only_who_has_the_address_is_answered(server: PageServer) -> None:
    assert asked(server, "/")[0] == asked(server, "/guess/items")[0] == 403
    assert asked(server, f"/{server.key}/items", host="evil.example")[0] == 403
    assert asked(server, "/guess/stop", {})[0] == 403
    assert asked(server, f"/{server.key}/other")[0] == 404


def test_a_disk_that_takes_nothing_is_told(server: PageServer, tmp_path: Path) -> None:
    (tmp_path / "j").mkdir()
    status, said = asked(server, f"/{server.key}/judge", {"item": f"P1|{TEXTS[0]}", "keep": True})
    assert status == 500 and "cannot be written" in said["error"]


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(UsageError, match=f"--port {port} cannot be taken"):
            serve(session(tmp_path / "j"), port, SCALE)
    with pytest.raises(UsageError, match="--port 70000"):
        serve(session(tmp_path / "j"), 70000, SCALE)


@pytest.mark.browser
@pytest.mark.parametrize("server", ["both"], indirect=True)
def test_keys_judge_template_after_template_and_stop_ends_it(
    server: PageServer, tmp_path: Path
) -> None:
    from playwright.sync_api import expect, sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page()
        complaints: list[str] = []
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(server.url)
        expect(page.locator("li.now")).to_contain_text("Ann lives in ___.")
        for key in "ak":
            page.keyboard.press(key)
        expect(page.locator("li.now")).to_contain_text("Ann <b>of</b> ___.")
        for key in "112334d":
            page.keyboard.press(key)
        expect(page.locator("#count")).to_have_text("2 of 2 judged")
        page.keyboard.press("k")
        page.keyboard.press("u")  # what was said before stands again
        drop = page.get_by_role("button", name="Drop").nth(1)
        expect(drop).to_have_attribute("aria-pressed", "true")
        page.keyboard.press("u")
        expect(page.locator("#count")).to_have_text("1 of 2 judged")
        page.get_by_role("button", name="Keep").nth(1).click()
        page.get_by_role("button", name="Stop").click()
        expect(page.locator("body")).to_contain_text("can be closed")
        assert not complaints, "the content security policy allows all that the page does"
        browser.close()
    assert [(j.keep, j.answers) for j in read_judgements(tmp_path / "j")] == [
        (True, (1, 1, 1, 1))
    ], "what is not answered whole is not kept"
    lines = [json.loads(line) for line in (tmp_path / "j").read_text().splitlines()]
    assert lines[1]["keep"] is False and lines[1]["overlap"] == 1 and lines[1]["fluent"] == 0
    assert [line.get("undo", False) for line in lines[1:]] == [False, False, True, True]
