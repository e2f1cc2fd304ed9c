"""What is shown where: progress on a terminal, silence elsewhere, help that helps."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

import sonde as package
from sonde.cli import console
from sonde.core import errors
from sonde.core.errors import SondeError
from sonde.core.progress import advance, begin
from tests.command import Sonde, on_a_terminal, process, with_slow_model
from tests.written import many_shards


def shown_by(words: tuple[object, ...], env: dict[str, str]) -> str:
    """Everything a command shows on a terminal, less colours and moves of the cursor."""
    code, shown = on_a_terminal(*words, env=env)
    assert code == 0, shown
    return re.sub(r"\x1b\[[0-9;?]*\w", "", shown)


def test_a_terminal_sees_counts_and_the_time_left(tmp_path: Path) -> None:
    data, out = many_shards(tmp_path / "data", facts=40, objects=40), tmp_path / "out"
    env = with_slow_model(tmp_path)
    words = ("run", "lama", "-m", "slow:0.12", "-d", data, "-o", out, "--no-html")
    shown = shown_by(words, env)
    assert len([*out.glob("shards/*.parquet")]) == 1
    lines = [
        line for line in re.split(r"[\r\n]+", shown) if re.search("lama on world .*prompts", line)
    ]
    assert "0%  0/40 prompts" in lines[0], "the total is there from the first moment"
    counts = [int(n) for n in re.findall(r"\b(\d+)/40 prompts", shown)]
    assert counts == sorted(counts)
    assert counts[-1] == 40
    assert len(set(counts)) > 5, "the count moves within a shard"
    assert re.search(r"[\d.]+/s  \d+ s left", shown)
    assert re.search(r"100%  40/40 prompts  in \d+ s", lines[-1])


def test_a_warning_stands_above_the_bar(tmp_path: Path) -> None:
    data, out = many_shards(tmp_path / "data", facts=10), tmp_path / "out"
    env = with_slow_model(tmp_path)
    words = ("run", "lama", "-m", "slow:0", "-d", data, "-o", out, "--no-html")
    shown_by(words, env)
    (out / "shards" / "00001.parquet").write_bytes(b"")
    assert f"warning: shard {out / 'shards' / '00001.parquet'}" in shown_by(words, env)


def test_without_a_terminal_a_run_is_quiet(data: Path, tmp_path: Path) -> None:
    done = process("run", "lama", "-m", "scripted:", "-d", data, "-o", tmp_path / "out")
    assert done.code == 0
    assert done.err == ""
    assert "\x1b" not in done.out
    assert "\r" not in done.out
    assert str(tmp_path / "out" / "report.html") in done.out.replace("\n", "")


def test_without_a_terminal_a_line_says_now_and_then_how_far_it_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert console.EVERY == 30
    monkeypatch.setattr(console, "EVERY", 0.01)
    monkeypatch.setattr(console, "SETTLED", 1e-9)
    monkeypatch.setattr(console, "TRUSTED", 0.0)
    shown = ""
    with console.progress("lama on atlas", "prompts") as tick:
        tick(1, 8)
        time.sleep(0.02)
        tick(2, 8)
        while not re.search(r"^lama on atlas: 25%  2/8 prompts  \S+  \d+ s left$", shown, re.M):
            shown += capsys.readouterr().err
    with console.waiting("loading") as _:
        begin("counting tokens", 4)
        advance(3)
        while not re.search(r"^counting tokens: 75%  3/4", shown, re.M):
            shown += capsys.readouterr().err
    assert "\x1b" not in shown and capsys.readouterr().out == ""


def test_the_version_is_printed(sonde: Sonde) -> None:
    assert sonde("--version").out == f"{package.__version__}\n"


VERBS = (
    ("profile",),
    ("run",),
    ("run", "profile"),
    ("run", "bear"),
    ("run", "counterfact"),
    ("run", "lama"),
    ("run", "belief"),
    ("run", "belief-icl"),
    ("run", "ic-lke"),
    ("run", "eic-lke"),
    ("run", "lke-baselines"),
    ("run", "lke-sequence"),
    ("run", "lke-shots"),
    ("run", "framing"),
    ("run", "monitor"),
    ("run", "qa"),
    ("show",),
    ("optimise",),
    ("optimise", "autoprompt"),
    ("optimise", "finetune"),
    ("optimise", "lpaqa"),
    ("optimise", "optiprompt"),
    ("plan",),
    ("plan", "lama"),
    ("plan", "belief"),
    ("plan", "belief-icl"),
    ("report",),
    ("compare",),
    ("attribute",),
    ("data",),
    ("data", "ls"),
    ("data", "show"),
    ("data", "convert"),
    ("data", "paraphrase"),
    ("data", "review"),
    ("data", "card"),
    ("data", "check"),
    ("data", "stats"),
    ("data", "vocabulary"),
    ("data", "build"),
    ("data", "build", "trex-mc"),
    ("data", "build", "nobel"),
    ("data", "build", "fktc"),
    ("data", "build", "myriadlama"),
    ("lab",),
    ("lab", "world"),
    ("lab", "train"),
    ("lab", "validate"),
    ("models",),
    ("probes",),
    ("demo",),
    ("doctor",),
)


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_the_help_of_every_verb_has_an_example(sonde: Sonde, verb: tuple[str, ...]) -> None:
    done = sonde(*verb, "--help")
    assert done.code == 0
    assert re.search(r"Example: sonde \w+", done.out), done.out


def test_the_list_of_verbs_is_whole(sonde: Sonde) -> None:
    """A new verb belongs in VERBS."""
    for above in ((), ("run",), ("optimise",), ("data",), ("data", "build"), ("lab",)):
        listed = sonde(*above, "--help").out.split("Commands:")[1]
        names = re.findall(r"^  (\w[\w-]*)", listed.split("\n\n")[0], re.MULTILINE)
        assert {(*above, name) for name in names} <= set(VERBS)


def test_lists_are_printed(sonde: Sonde) -> None:
    assert "atlas" in sonde("data", "ls").out
    assert "41 relations" in sonde("data", "stats", "atlas").out
    assert "[Y]" in sonde("data", "show", "atlas", "--relation", "P36").out
    assert "control:NAME" in sonde("models").out
    assert "template" in sonde("probes").out


def test_each_family_of_errors_has_an_exit_code_of_its_own() -> None:
    families = [c for c in SondeError.__subclasses__() if c.__module__ == errors.__name__]
    codes = [family.exit_code for family in families]
    assert len({*codes, SondeError.exit_code, 0, 70, 130, 143}) == len(codes) + 5
    for family in families:
        assert all(c.exit_code == family.exit_code for c in family.__subclasses__())
