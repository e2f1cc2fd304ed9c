"""`sonde data paraphrase`: a real server that answers, repeats itself, talks nonsense and dies."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest

from sonde.data.format import open_dataset
from tests.command import COMMAND, PATIENCE, Sonde
from tests.data.chat_server import Answer, failing, rewording, said, serving
from tests.data.loopback import Reply

QUICK = ("--wait", 0, "--timeout", PATIENCE, "--paraphrases", 19)


def command(data: Path, out: Path, url: str, *more: object) -> tuple[object, ...]:
    asked = ("--endpoint", url, "--model", "m", *QUICK, *more)
    return ("data", "paraphrase", data, "-o", out, *asked)


def content(folder: Path) -> dict[str, bytes]:
    """Everything in a dataset folder, byte for byte."""
    return {
        str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()
    }


@pytest.fixture
def whole(sonde: Sonde, data: Path, tmp_path: Path) -> Path:
    """What a server makes of the dataset that never fails."""
    with serving(rewording) as server:
        done = sonde(*command(data, tmp_path / "whole", server.url))
    assert done.code == 0, done
    return tmp_path / "whole"


def test_every_template_gets_nineteen_and_the_cost_is_told_before_and_after(
    sonde: Sonde, data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with serving(rewording) as server:
        done = sonde(*command(data, out, server.url))
    assert done.code == 0, done
    told = " ".join(done.out.split())
    assert "38 paraphrases of 2 templates are wanted: at least 2 requests, roughly" in told
    sent = sum(len(text.split()) for text in server.texts)
    assert f"cost, as the endpoint counts it: 2 requests, {sent:,} tokens sent" in told
    assert "P36 (1 by hand, no question)" in told
    for relation in open_dataset(out).relations:
        assert len(relation.templates) == 20
        assert {t.group for t in relation.templates} == {relation.templates[0].id}
    assert "paraphrases written by m" in open_dataset(out).card.sources
    assert sonde("data", "check", out).code == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["data", "out"], "nothing else is left"


def test_too_few_and_repeated_sentences_are_asked_for_again(
    sonde: Sonde, data: Path, tmp_path: Path
) -> None:
    def seven(number: int, text: str) -> Reply:
        """Seven sentences at most, the first one twice."""
        message = json.loads(rewording(number, text).body)["choices"][0]["message"]["content"]
        lines = message.splitlines()[:7]
        return said("\n".join([*lines, lines[0]]))

    with serving(seven) as server:
        done = sonde(*command(data, tmp_path / "out", server.url))
        assert len(server.requests) == 6
    assert done.code == 0, done
    assert "6 requests, tokens not told" in done.out
    assert all(len(r.templates) == 20 for r in open_dataset(tmp_path / "out").relations)


def test_the_same_sentence_for_ever_stops_the_work_with_what_to_do(
    sonde: Sonde, data: Path, tmp_path: Path
) -> None:
    with serving(lambda number, text: said("The capital that [X] has is [Y].")) as server:
        done = sonde(*command(data, tmp_path / "out", server.url, "--patience", 3))
        assert len(server.requests) == 4
        message = done.refused(
            4, "nothing new 3 times in a row", "has 1 of 19 paraphrases", "--fewer", "4 answers"
        )
        assert "run the same command again" not in message
        assert not (tmp_path / "out").exists()
        done = sonde(*command(data, tmp_path / "out", server.url, "--patience", 3, "--fewer"))
        assert len(server.requests) == 8, "what was said before is not asked again"
    assert done.code == 0, done
    assert "fewer than 19 paraphrases: " in done.out


@pytest.mark.parametrize(
    "reply",
    [
        Reply(body='{"choices": [{"mess'),
        Reply(body='{"choices": []}'),
        Reply(body="slow down", status=429, headers={"Retry-After": "0"}),
        Reply(body="oh", status=500),
        Reply(body="{}", cut=True),
        said("I cannot help with that.\n[X] and [X] in [Y].\n[Y]"),
        said('["Truly: [X]'),
        Reply(body='{"choices": [{"message": {"content": "n\xe9 [X], [Y]"}}]}'.encode("latin-1")),
    ],
)
def test_what_passes_changes_nothing(
    sonde: Sonde, data: Path, tmp_path: Path, whole: Path, reply: Reply
) -> None:
    with serving(failing(rewording, reply, 1)) as server:
        done = sonde(*command(data, tmp_path / "out", server.url))
        assert len(server.requests) == 3
    assert done.code == 0, done
    assert content(tmp_path / "out") == content(whole)


def test_a_server_that_dies_loses_nothing(
    sonde: Sonde, data: Path, tmp_path: Path, whole: Path
) -> None:
    dead: Answer = failing(rewording, Reply(body="gone", status=503), *range(2, 99))
    with serving(dead) as server:
        done = sonde(*command(data, tmp_path / "out", server.url, "--retries", 1))
    done.refused(4, "HTTP 503: gone", "the 1 answers so far are kept", "run the same command again")
    assert "--fewer" not in done.err, "that is for a model that answers"
    assert not (tmp_path / "out").exists()
    with serving(rewording) as server:
        done = sonde(*command(data, tmp_path / "out", server.url))
        assert len(server.requests) == 1
    assert "1 answers are kept from before" in done.out
    assert "with those from before 2 requests" in " ".join(done.out.split())
    assert content(tmp_path / "out") == content(whole)


def listen() -> None:
    """Hear an interrupt, though whoever runs the tests in the background does not."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_a_kill_loses_one_answer_at_most(
    sonde: Sonde, data: Path, tmp_path: Path, whole: Path
) -> None:
    out, silent = tmp_path / "out", Reply(body="", hang=True)
    with serving(failing(rewording, silent, 2)) as server:
        words = [str(w) for w in command(data, out, server.url)]
        process = subprocess.Popen([COMMAND, *words], stdout=subprocess.DEVNULL, preexec_fn=listen)
        while len(server.requests) < 2:
            server.came.wait(1)
            server.came.clear()
            assert process.poll() is None
        busy = sonde(*words)
        busy.refused(5, "is being built by another process")
        process.kill()
        assert process.wait() == -signal.SIGKILL
    assert not out.exists()
    with serving(rewording) as server:
        assert sonde(*command(data, out, server.url)).code == 0
        assert len(server.requests) == 1
    assert content(out) == content(whole)


def test_hints_and_instructions_come_from_files(sonde: Sonde, data: Path, tmp_path: Path) -> None:
    hints, words = tmp_path / "hints.jsonl", tmp_path / "words.txt"
    hints.write_text('{"relation": "P36", "text": "[Y] is a town."}\n')
    words.write_text("Bitte {count} times:\n{sentence}\n{hint}\nDanke.\n")
    more = ("--hints", hints, "--instruction", words, "--relations", "P36")
    with serving(rewording) as server:
        done = sonde(*command(data, tmp_path / "out", server.url, *more))
    assert done.code == 0, done
    [text] = server.texts
    assert text.startswith("Bitte 19 times:\n") and text.endswith("[Y] is a town.\nDanke.")
    sizes = {r.id: len(r.templates) for r in open_dataset(tmp_path / "out").relations}
    assert sizes == {"P36": 20, "P37": 1}


def test_a_review_and_a_second_round_fill_up_what_was_dropped(
    sonde: Sonde, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged, kept, full = tmp_path / "judged.jsonl", tmp_path / "kept", tmp_path / "full"
    keys = iter("kkkddd" + "k" * 99)
    monkeypatch.setattr("sys.stdin.readline", lambda: next(keys) + "\n", raising=False)
    assert "40 of 40 judged" in sonde("data", "review", whole, "-o", judged).out
    assert sonde("data", "review", whole, "-o", judged, "--apply", kept).code == 0
    with serving(rewording) as server:
        done = sonde(*command(kept, full, server.url, "--dropped", judged))
    assert done.code == 0, done
    first, before = (open_dataset(folder).relations[0].templates for folder in (full, whole))
    gone = {t.text for t in before[3:6]}
    assert len(first) == 20 and gone.isdisjoint(t.text for t in first)


def test_requests_that_make_no_sense_are_refused(sonde: Sonde, data: Path, tmp_path: Path) -> None:
    paraphrase = ("data", "paraphrase", data, "-o", tmp_path / "out")
    sonde(*paraphrase).refused(2, "--endpoint URL with --model NAME")
    asked = (*paraphrase, "--endpoint", "http://127.0.0.1:1", "--model", "m")
    hints, words = tmp_path / "hints.jsonl", tmp_path / "words.txt"
    hints.write_text('{"relation": "P99", "text": "a"}\n')
    words.write_text("Say it otherwise.")
    sonde(*asked, "--hints", hints).refused(3, "'P99' is no relation")
    sonde(*asked, "--instruction", words).refused(2, "no {sentence}")
    sonde(*asked, "--instruction", tmp_path / "none").refused(3, "none is missing")
    sonde(*asked, "--dropped", tmp_path / "none").refused(3, "none is missing")
    sonde(*asked, "--relations", "P99").refused(2, "no relation 'P99'")
    sonde("data", "paraphrase", data, "-o", data, *asked[5:]).refused(2, "--force")
