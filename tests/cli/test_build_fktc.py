"""`sonde data build fktc`: with a real server that answers, talks nonsense, dies and comes back."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from pathlib import Path

import pytest

from sonde.data.builders import fktc
from sonde.data.format import open_dataset
from sonde.http import client
from sonde.prompting.cues import question_templates
from tests.command import COMMAND, PATIENCE, Sonde, files, override
from tests.data.chat_server import failing, said, serving
from tests.data.loopback import Reply

QUESTIONS = (
    "What do people in [X] call theirs?",
    "Tell me, which one belongs to [X]?",
    "For [X], what would the answer be?",
    "Could you say what [X] has got?",
    "If someone mentions [X], what comes next?",
    "Whatever happened to that of [X]?",
    "Is there a name for what [X] keeps?",
    "Under which heading does one file [X]?",
)
QUICK = ("--wait", 0, "--timeout", PATIENCE)


def well(number: int, text: str) -> Reply:
    """Three questions at a time, whichever are not there yet."""
    return said("\n".join([q for q in QUESTIONS if q not in text][:3]))


def command(data: Path, out: Path, url: str, *more: object) -> tuple[object, ...]:
    asked = ("--endpoint", url, "--model", "m", *override(QUICK, more))
    return ("data", "build", "fktc", "-d", data, "-o", out, *asked)


def content(folder: Path) -> dict[str, bytes]:
    """Everything in a dataset folder, byte for byte."""
    return {
        str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()
    }


def test_the_bundled_atlas_needs_nothing_else(sonde: Sonde, tmp_path: Path) -> None:
    out = tmp_path / "frames"
    done = sonde("data", "build", "fktc", "-o", out)
    assert done.code == 0, done
    printed = " ".join(done.out.split())
    assert "P17 country 7 0 0 7" in printed
    assert "fewer than 7 frames: P31 (4), P36 (3)" in printed
    assert f"{out.name}: 41 relations, 226 frames, 3,784 facts" in printed.replace(
        f"{tmp_path}/", ""
    )
    assert sonde("data", "check", out).code == 0
    assert open_dataset(out).name == "atlas-frames"


def test_a_model_brings_the_frames_that_are_missing(
    sonde: Sonde, data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "frames"
    with serving(well) as server:
        done = sonde(*command(data, out, server.url))
    assert done.code == 0, done
    assert "endpoint: 6 answers, 0 kept from before; failed tries: none" in done.out
    built = open_dataset(out)
    assert [len(question_templates(r)) for r in built.relations] == [7, 7]
    assert "questions written by m" in built.card.sources
    assert sorted(p.name for p in tmp_path.iterdir()) == ["data", "frames"], "nothing else is left"
    assert sonde("data", "check", out).code == 0
    assert "The capital of [X] is [Y]." in server.texts[0], "there is no question to begin with"


def test_a_server_that_dies_halfway_loses_nothing(sonde: Sonde, data: Path, tmp_path: Path) -> None:
    whole, out = tmp_path / "whole", tmp_path / "out"
    with serving(well) as server:
        assert sonde(*command(data, whole, server.url)).code == 0
        asked = len(server.requests)
    dead = Reply(body="gone", status=503)
    with serving(failing(well, dead, *range(5, 99))) as server:
        done = sonde(*command(data, out, server.url, "--retries", 2))
        assert len(server.requests) == 4 + 3
    done.refused(
        4,
        "HTTP 503: gone (given up after 3 tries)",
        "frames are missing for 1 relations: P37",
        f"the 4 answers so far are kept in {out}.work/answers.jsonl",
        "run the same command again once it answers, or bring the questions",
        "--paraphrases FILE",
    )
    assert not out.exists()
    with serving(well) as server:
        done = sonde(*command(data, out, server.url))
        assert len(server.requests) == asked - 4, "nothing is asked twice"
    assert done.code == 0, done
    assert "4 kept from before" in done.out
    assert content(out) == content(whole)
    assert not (tmp_path / "out.work").exists()


def test_a_server_that_is_gone_is_told_with_what_to_do(
    sonde: Sonde, data: Path, tmp_path: Path
) -> None:
    with serving(well) as server:
        url = server.url
    brought = tmp_path / "own.jsonl"
    lines = ({"relation": "P37", "text": question} for question in QUESTIONS)
    brought.write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = sonde(*command(data, tmp_path / "out", url, "--retries", 0, "--paraphrases", brought))
    done.refused(4, "given up after one try", "missing for 1 relations: P36;")
    done = sonde(*command(data, tmp_path / "out", url, "--retries", 1))
    done.refused(
        4, "cannot be reached", "missing for 2 relations: P36, P37", "run the same command"
    )


@pytest.mark.parametrize(
    "reply",
    [
        Reply(body="<html>"),
        Reply(body=json.dumps({"choices": []})),
        Reply(body="slow", status=429, headers={"Retry-After": "0"}),
    ],
)
def test_a_passing_failure_changes_nothing_but_the_count(
    sonde: Sonde, data: Path, tmp_path: Path, reply: Reply, caplog: pytest.LogCaptureFixture
) -> None:
    with serving(well) as server:
        assert sonde(*command(data, tmp_path / "whole", server.url)).code == 0
    with serving(failing(well, reply, 2, 3)) as server:
        done = sonde(*command(data, tmp_path / "out", server.url))
    assert done.code == 0, done
    kind = "HTTP 429" if reply.status == 429 else "no chat completion"
    assert f"failed tries: {kind} 2" in " ".join(done.out.split())
    assert caplog.text.count("trying again in 0 s") == 2
    assert content(tmp_path / "out") == content(tmp_path / "whole")


def test_nonsense_without_end_is_reported_as_a_lack(
    sonde: Sonde, data: Path, tmp_path: Path
) -> None:
    brought = tmp_path / "own.jsonl"
    brought.write_text('{"relation": "P36", "text": "Which town is first in [X]?"}\n')
    with serving(lambda number, text: said("blah\nblah?\n[X]")) as server:
        done = sonde(
            *command(data, tmp_path / "out", server.url, "--turns", 2, "--paraphrases", brought)
        )
        assert len(server.requests) == 4
    assert done.code == 0, done
    assert "fewer than 7 frames: P36 (1), P37 (0)" in done.out
    assert re.search(r"P36 +label of P36 +0 +1 +0 +1 +0 +6 ", done.out), done.out


def listen() -> None:
    """Hear an interrupt, though whoever runs the tests in the background does not."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.parametrize(
    ("how", "code"),
    [(signal.SIGKILL, -signal.SIGKILL), (signal.SIGINT, 130), (signal.SIGTERM, 143)],
)
def test_a_killed_build_goes_on_where_it_was(
    sonde: Sonde, data: Path, tmp_path: Path, how: signal.Signals, code: int
) -> None:
    whole, out = tmp_path / "whole", tmp_path / "out"
    with serving(well) as server:
        assert sonde(*command(data, whole, server.url)).code == 0
    silent = Reply(body="", hang=True)
    with serving(failing(well, silent, 5)) as server:
        words = [str(w) for w in command(data, out, server.url, "--timeout", PATIENCE)]
        process = subprocess.Popen([COMMAND, *words], stdout=subprocess.DEVNULL, preexec_fn=listen)
        while len(server.requests) < 5:
            server.came.wait(1)
            server.came.clear()
            assert process.poll() is None
        process.send_signal(how)
        assert process.wait() == code
    assert not out.exists()
    with serving(well) as server:
        done = sonde(*command(data, out, server.url))
        assert len(server.requests) == 2
    assert done.code == 0, done
    assert content(out) == content(whole)


def test_the_key_comes_from_the_environment(
    sonde: Sonde, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SONDE_API_KEY", "sesame")
    with serving(lambda number, text: Reply(body="who?", status=401)) as server:
        done = sonde(*command(data, tmp_path / "out", server.url))
    assert "sesame" not in done.refused(4, "HTTP 401: who?", "SONDE_API_KEY")
    assert server.keys == ["Bearer sesame"]


def test_requests_that_make_no_sense_are_refused(sonde: Sonde, data: Path, tmp_path: Path) -> None:
    build = ("data", "build", "fktc", "-d", data, "-o", tmp_path / "out")
    sonde(*build, "--endpoint", "http://here").refused(2, "go together")
    sonde(*build, "--model", "m").refused(2, "go together")
    sonde(*build, "--endpoint", "here", "--model", "m").refused(2, "http://")
    sonde(*build, "--bleu", 0).refused(2, "--bleu")
    sonde(*build, "--paraphrases", tmp_path / "none.jsonl").refused(3, "none.jsonl is missing")
    sonde(*build).refused(3, "no relation of 'world' has a question", "--paraphrases FILE")
    sonde(*build[:-1], data).refused(2, "holds a dataset", "--force")


@pytest.mark.parametrize("package", ["httpx", "sacrebleu"])
def test_a_missing_package_is_named_with_what_to_install(
    sonde: Sonde, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    for module in (fktc, client):
        monkeypatch.setattr(module, "find_spec", lambda name: None if name == package else object())
    done = sonde(*command(data, tmp_path / "out", "http://127.0.0.1:1"))
    done.refused(4, package, "pip install 'sonde[paraphrase]'")


def test_fktc_itself_is_checked_counted_shown_and_built(sonde: Sonde, tmp_path: Path) -> None:
    folder = tmp_path / "fktc"
    folder.mkdir()
    head = {"relations": ["Where is [X]?", "Where is [X]?"]}
    rows = [
        {"subject": "Ulm", "object": "Germany", "taxonomy": ["Peru", "Germany"]},
        {"subject": "Ulm", "object": "Germany", "taxonomy": ["Peru"]},
        {"subject": "Cusco", "object": "Peru", "taxonomy": ["Germany"]},
    ]
    text = "".join(json.dumps(line) + "\n" for line in (head, *rows))
    (folder / "P17-subclass..json").write_text(text)
    told = "rows_read 3, duplicate_rows 1, rows_with_a_right_object_as_wrong 1"
    assert told in " ".join(sonde("data", "stats", folder).out.split())
    shown = sonde("data", "show", folder, "--relation", "P17")
    assert "P17:Ulm:Germany [test] Ulm -> Germany" in shown.out
    checked = sonde("data", "check", folder)
    assert checked.code == 0
    assert "warning: fact 'P17:Ulm:Germany' lists as wrong what is correct" in checked.out
    assert told in " ".join(checked.out.split())
    done = sonde("data", "build", "fktc", "-d", folder, "-o", tmp_path / "out")
    assert "objects that the dataset called wrong and that are right: 1, left out" in done.out
    assert sonde("data", "check", tmp_path / "out").code == 0
    ran = sonde("run", "lama", "-m", "control:majority", "-d", folder, "-o", tmp_path / "run")
    assert ran.code == 0, ran
    assert files(tmp_path / "run")
