"""Whatever others wrote into datasets, names, paths and messages, a terminal only shows it.

Each of `HOSTILE` does something to a terminal, or to rich, when it is printed as it is.
"""

from __future__ import annotations

import http.server
import json
import logging
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from sonde.cli.console import Messages, errors, output, say
from sonde.cli.doctor import column
from sonde.core.abilities import Identity
from sonde.core.words import legible
from sonde.evaluation.layout import Exhibit
from sonde.models.scripted import Scripted
from sonde.reports.model import Report, Section
from sonde.reports.terminal import show
from tests.command import Done, Sonde, on_a_terminal
from tests.written import rows

HOSTILE = {
    "CSI, blinking": "\x1b[5;7m",
    "CSI, clears the screen": "\x1b[2J\x1b[H",
    "OSC 8, a link": "\x1b]8;;http://a.example\x1b\\link\x1b]8;;\x1b\\",
    "OSC 52, the clipboard": "\x1b]52;c;cm0gLXJmIC8=\x07",
    "OSC 0, the title": "\x1b]0;title\x07",
    "DCS": "\x1bP+q544e\x1b\\",
    "C1 CSI": "\x9b5;7m",
    "C1 OSC": "\x9d52;c;cm0gLXJmIC8=\x9c",
    "line feeds of C1": "\x84\x85\x8d",
    "backspace and bell": "\x08\x08\x07",
    "return": "\r   ",
    "form feed": "\x0c\x0b",
    "delete": "\x7f",
    "bidi override": "\u202etxt.exe\u202c",
    "bidi isolate": "\u2066x\u2069",
    "markup": "[bold red]red[/bold red]",
    "markup that closes nothing": "[/INST]",
    "a link in markup": "[link=http://a.example]x[/link]",
    "emoji": ":train:",
}
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
OURS = re.compile(r"\x1b\[[0-9;]*m|\x1b\[\?25[lh]|\x1b\[1A|\x1b\[2K|\r")
"""What rich itself sends: styles, and how it moves in its progress bars."""


def hostile_dataset(folder: Path, evil: str) -> Path:
    """A dataset of two relations with hostile text wherever there is text."""
    (folder / "facts").mkdir(parents=True)
    head = {"format": 1, "name": f"D{evil}", "version": f"V{evil}", "licence": f"L{evil}"}
    head |= {"sources": [f"S{evil}"], "description": f"T{evil}"}
    (folder / "dataset.json").write_text(json.dumps(head))
    relations = [{"id": id, "label": f"R{evil}", "kind": "N-1"} for id in ("P1", "P2")]
    (folder / "relations.jsonl").write_text(rows(relations))
    texts = [
        {"id": f"{id}-{n}{evil}", "relation": id, "text": f"W{evil} {n} of [X] is [Y]."}
        for id in ("P1", "P2")
        for n in (1, 2)
    ]
    (folder / "templates.jsonl").write_text(rows(texts))
    for id in ("P1", "P2"):
        facts = [
            {
                "id": f"{id}:train:{n}{evil}",
                "subject": {"id": f"s{n}", "names": [f"X{n}{evil}"]},
                "objects": [{"id": f"o{n}", "names": [f"Y{n}{evil}"]}],
                "split": "test",
            }
            for n in range(4)
        ]
        (folder / "facts" / f"{id}.jsonl").write_text(rows(facts))
    return folder


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A dataset with every kind of hostile text."""
    return hostile_dataset(tmp_path / "data", "".join(HOSTILE.values()))


@pytest.fixture
def run(sonde: Sonde, hostile: Path, tmp_path: Path) -> Path:
    """A run on it, in a folder that has a name of the same kind."""
    out = tmp_path / f"run{''.join(HOSTILE.values()).replace('/', '|')}"[:200]
    assert sonde("run", "lama", "-m", "control:majority", "-d", hostile, "-o", out).code == 0
    return out


def harmless(done: Done, *words: str) -> None:
    """Assert that nothing printed can be obeyed, and that these words are in it as they are."""
    assert not OBEYED.search(done.out + done.err), done
    assert "internal error" not in done.err and done.code != 70, done
    shown = re.sub(r"\s", "", done.out + done.err)  # tables are wrapped
    for word in words:
        assert re.sub(r"\s", "", legible(word)) in shown, (word, done)


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_dataset_is_shown_as_it_is(sonde: Sonde, tmp_path: Path, kind: str) -> None:
    evil = HOSTILE[kind]
    data = hostile_dataset(tmp_path / "data", evil)
    harmless(sonde("data", "show", data), *(f"{letter}{evil}" for letter in "DVLST"), f"R{evil[0]}")
    words = (f"P1:train:1{evil}", f"X1{evil}->Y1{evil}", f"R{evil}", f"W{evil}")
    harmless(sonde("data", "show", data, "--relation", "P1"), *words)


def test_every_verb_of_data_shows_it_as_it_is(
    sonde: Sonde, hostile: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = "".join(HOSTILE.values())
    harmless(sonde("data", "stats", hostile), "R" + every[0])
    harmless(sonde("data", "stats", hostile, hostile), "D" + every[0])
    harmless(sonde("data", "check", hostile))
    harmless(
        sonde("data", "convert", hostile, "-o", tmp_path / f"D{every.replace('/', '|')}"[:200])
    )
    judged = tmp_path / "judged.jsonl"
    monkeypatch.setattr("sys.stdin.readline", lambda: "1\n", raising=False)
    harmless(sonde("data", "review", hostile, "--ask", "both", "-o", judged), f"R{every}")
    harmless(sonde("data", "review", "--table", judged), "D" + every[0])
    facts = hostile / "facts" / "P1.jsonl"
    facts.write_text(facts.read_text() + facts.read_text())
    harmless(sonde("data", "check", hostile), "P1:train:1")
    facts.write_text(f'{{"id": "{every}"')
    harmless(sonde("data", "check", hostile))


def test_runs_and_reports_show_it_as_it_is(
    sonde: Sonde, hostile: Path, run: Path, tmp_path: Path
) -> None:
    every = "".join(HOSTILE.values())
    harmless(sonde("report", run), f"D{every}", f"run:{run}")
    harmless(sonde("report", run, "--html", f"{run}.html"), f"report:{run}.html")
    for probe in ("lama", "belief"):
        out = tmp_path / f"{probe}[/INST]\x1b[5m"
        words = ("-m", "control:majority", "--answer", "score", "-d", hostile, "-o", out)
        harmless(sonde("plan", probe, *words), f"D{every}", f"R{every}")
        harmless(sonde("run", probe, *words), f"D{every}")
        harmless(sonde("run", probe, *words, "--seed", "1"), "holds a different run")
    one = tmp_path / "belief[/INST]\x1b[5m"
    two = shutil.copytree(one, f"{one}2")
    harmless(sonde("compare", f"a{every.replace('=', ' ')}={one}", two), "a" + every[:6], str(two))


def test_json_means_the_same_and_is_harmless(sonde: Sonde, run: Path) -> None:
    every = "".join(HOSTILE.values())
    done = sonde("report", run, "--json")
    harmless(done)
    assert json.loads(done.out)["provenance"]["dataset"]["licence"] == f"L{every}"


REFUSED: list[tuple[str, ...]] = [
    ("report", "{}"),
    ("compare", "{}", "{}"),
    ("run", "lama", "-m", "{}"),
    ("run", "lama", "-m", "hf:./{}"),
    ("run", "lama", "-m", "gguf:./{}"),
    ("run", "lama", "-m", "scripted:{}"),
    ("run", "lama", "-m", "scripted:", "-d", "{}"),
    ("run", "lama", "-m", "scripted:", "-d", "lama:{}"),
    ("run", "lama", "-m", "scripted:", "--relations", "{}"),
    ("run", "lama", "-m", "scripted:", "--set", "{}"),
    ("run", "lama", "-m", "scripted:", "--limit", "{}"),
    ("run", "lama", "-m", "scripted:", "--{}"),
    ("run", "{}"),
    ("data", "show", "atlas", "--relation", "{}"),
    ("doctor", "-m", "scripted:", "--probe", "{}"),
    ("{}",),
]


@pytest.mark.parametrize("words", REFUSED, ids=" ".join)
def test_a_refusal_repeats_it_as_it_is(sonde: Sonde, words: tuple[str, ...]) -> None:
    for evil in (*HOSTILE.values(), "\udcff"):
        done = sonde(*(word.format(evil) for word in words))
        assert done.code in (2, 3, 4, 5)
        harmless(done)
        assert "\udcff" not in done.err


def test_a_stack_trace_and_an_internal_error_are_harmless(
    sonde: Sonde, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("".join(HOSTILE.values()))

    monkeypatch.setattr("sonde.runs.run.open_run", fail)
    monkeypatch.setenv("SONDE_DEBUG", "1")
    done = sonde("report", "x")
    assert done.code == 70 and "Traceback" in done.err and "[/INST]" in done.err
    assert not OBEYED.search(done.err)


def test_a_warning_is_harmless() -> None:
    code = (
        "import sys, warnings; from sonde.cli import main, verbs\n"
        "verbs.VERBS['warn'] = '__main__:warn', ''\n"
        "def warn() -> None:\n"
        "    warnings.warn(sys.stdin.read())\n"
        "main.main(['warn'])\n"
    )
    every = "".join(HOSTILE.values())
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, input=every.encode(), capture_output=True, check=True)
    assert not OBEYED.search(done.stderr.decode()) and "[/INST]" in done.stderr.decode()


def test_a_manifest_is_harmless(sonde: Sonde, run: Path) -> None:
    path = run / "manifest.json"
    every = "".join(HOSTILE.values())
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": every}))
    harmless(sonde("report", run), f"run format {every}, of another version")


@pytest.fixture
def rude_server() -> Iterator[str]:
    """The address of a server that fails with hostile words."""

    class Rude(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.dumps({"error": {"message": "".join(HOSTILE.values())}}).encode()
            self.send_response(400, "Bad")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Rude) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        server.shutdown()


def test_what_a_server_answers_is_harmless(
    sonde: Sonde, hostile: Path, tmp_path: Path, rude_server: str
) -> None:
    more = ("--endpoint", rude_server, "--model", f"m{HOSTILE['OSC 8, a link']}", "--retries", "0")
    done = sonde("data", "build", "fktc", "-d", hostile, *more, "-o", tmp_path / "frames")
    assert done.code == 4
    harmless(done)
    assert "cm0gLXJmIC8=" in done.err


def test_a_name_that_is_not_utf8_is_shown_and_kept(
    sonde: Sonde, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    identity = Identity(name="hf:caf\udce9", architecture="table")
    monkeypatch.setattr(Scripted, "identity", identity)
    # such a name in a log that pytest keeps would stop its workers, which send UTF-8
    monkeypatch.setattr(logging.getLogger("sonde"), "propagate", False)
    out = tmp_path / "out\udce9"
    words = ("run", "lama", "-m", "scripted:", "-d", data, "-o", out)
    for done in (sonde(*words), sonde(*words), sonde("report", out)):
        assert done.code == 0, done
        harmless(done, "caf\udce9", f"run:{out}")
    told = json.loads(sonde("report", out, "--json").out)
    assert told["provenance"]["model"]["name"] == identity.name
    assert "caf\\udce9" in (out / "report.html").read_text()


def test_nothing_gets_past_a_console_however_it_is_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for evil in HOSTILE.values():
        table = Table(evil, title=evil)
        table.add_row(evil)
        for console in (output(), errors()):
            for printed in (evil, Text(evil), table, Panel(evil), Padding(Text(evil), 1)):
                console.print(printed, style="bold")
            with console.status(Text(evil)):
                console.print(evil)
        Messages().emit(logging.LogRecord("x", logging.ERROR, "", 0, evil, None, None))
        said = capsys.readouterr()
        assert not OBEYED.search(said.out + said.err)
        assert f"error: {legible(evil)}" in said.err
    assert said.out.count(":train:") == 8


def test_tokens_are_shown_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    """Those of the doctor's pictures and of heat strips."""
    pieces = ("a", *HOSTILE.values())
    text: Any = SimpleNamespace(ids=(1,) * len(pieces), pieces=pieces, start=1, stop=2)
    for i in range(len(pieces)):
        say(column(text, i)[0])
    frame = pl.DataFrame({"y": pieces[1], "label": pieces, "color": [0.5] * len(pieces)})
    strip = Exhibit("s", pieces[2], frame, {"color": "number"}, "strip", limit=1.0)
    show(Report(title="t", sections=[Section("a", "b", [strip])]), output())
    said = capsys.readouterr().out
    assert not OBEYED.search(said)
    assert said.count(legible(pieces[1])) >= 3 and said.count("[/INST]") == 2


def test_on_a_terminal_only_our_own_styles_are_obeyed(hostile: Path, tmp_path: Path) -> None:
    every = "".join(HOSTILE.values())
    out = tmp_path / "run[/INST]:train:\x1b[5;7m\x9b5;7m\u202e"
    commands = [
        ("run", "lama", "-m", "control:majority", "-d", hostile, "-o", out),
        ("report", out),
        ("data", "show", hostile),
        ("report", tmp_path / every.replace("/", "|")[:200]),
        ("--debug", "data", "show", hostile, "--relation", every),
    ]
    shown = ""
    for words in commands:
        code, sent = on_a_terminal(*words, columns=2000)
        assert code in (0, 2, 5), sent
        assert not OBEYED.search(OURS.sub("", sent)), words
        assert "\x1b[5;7m" not in sent and not re.search(r"\x1b\[[0-9;]*[Hn]", sent), words
        shown += sent
    assert "\x1b[" in shown, "there are styles"
    assert f"lama on D{legible(every)}" in shown, "the progress bar names the dataset"
    assert f"R{legible(every)}" in shown
    assert "P1:train:" not in shown or "🚆" not in shown
