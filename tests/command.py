"""The command, run in this process or in its own, and what it leaves behind."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sonde.cli.main import main

COMMAND = str(Path(sys.executable).parent / "sonde")
SLOW_MODEL = Path(__file__).parent / "cli" / "slow_model.py"

PATIENCE = 600
"""Seconds; only what hangs takes so long, however busy the machine."""


@dataclass(frozen=True, slots=True)
class Done:
    """What a command left behind."""

    code: int
    out: str
    err: str

    def refused(self, code: int, *parts: str) -> str:
        """Assert one clear message with these parts, this exit code, and no stack trace."""
        assert self.code == code, self
        assert "Traceback" not in self.out + self.err
        assert "internal error" not in self.err
        assert self.err.count("rror: ") == 1, self.err
        for part in parts:
            assert part in self.err, f"{part!r} is not in: {self.err}"
        return self.err


Sonde = Callable[..., Done]
"""Runs the command in this process: `sonde("report", folder)`."""


def override(defaults: Sequence[object], words: Sequence[object]) -> list[object]:
    """The words behind those default options that they do not give again."""
    merged: list[object] = []
    flags = [str(word).replace("--no-", "--") for word in words]
    skip = False
    for word in defaults:
        if str(word).startswith("--"):
            skip = str(word).replace("--no-", "--") in flags
        if not skip:
            merged.append(word)
    return [*merged, *words]


def process(*words: object, **more: Any) -> Done:
    """Run the command as a user does, in a process of its own."""
    done = subprocess.run(
        [COMMAND, *map(str, words)], capture_output=True, text=True, timeout=PATIENCE, **more
    )
    return Done(done.returncode, done.stdout, done.stderr)


def on_a_terminal(
    *words: object, columns: int = 120, env: Mapping[str, str] = os.environ
) -> tuple[int, str]:
    """The exit code of a command and everything it sends to a terminal."""
    ours, theirs = pty.openpty()
    more = {**env, "TERM": "xterm-256color", "COLUMNS": str(columns), "LINES": "40"}
    command = [COMMAND, *map(str, words)]
    running = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=more)
    os.close(theirs)
    shown = b""
    try:
        while piece := os.read(ours, 65536):
            shown += piece
    except OSError:  # the other end is closed
        pass
    os.close(ours)
    return running.wait(), shown.decode()


def in_this_process(capsys: Any) -> Sonde:
    """A quick `sonde` that skips only the start of the interpreter and the signals."""

    def sonde(*words: object) -> Done:
        code = main([str(word) for word in words])
        said = capsys.readouterr()
        return Done(code, said.out, said.err)

    return sonde


def ran(*words: object) -> None:
    """Run a command in this process, for what several tests look at; it must end well."""
    assert main([str(word) for word in words]) == 0


def with_slow_model(folder: Path, most: int | None = None) -> dict[str, str]:
    """The environment of a machine on which the package with `slow:` is installed.

    most: after so many answers a run gives no other and waits to be stopped; see `silent`.
    """
    home = folder / "installed"
    info = home / "slow_model-1.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: slow-model\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[sonde.models]\nslow = slow_model:COMPONENT\n")
    (home / "slow_model.py").write_text(SLOW_MODEL.read_text())
    paths = [str(home), *filter(None, [os.environ.get("PYTHONPATH")])]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    if most is not None:
        env |= {"SLOW_MOST": str(most), "SLOW_SILENT": str(silent(folder))}
    return env


def silent(folder: Path) -> Path:
    """The file that a slow model makes when it has given all the answers that it may."""
    return folder / "silent"


def await_that(happens: Callable[[], bool], running: subprocess.Popen[Any]) -> None:
    """Look again and again, while a process runs."""
    deadline = time.monotonic() + PATIENCE
    while not happens():
        assert running.poll() is None, "the process ended before"
        assert time.monotonic() < deadline, f"nothing happened for {PATIENCE} seconds"
        time.sleep(0.001)


def files(folder: Path) -> dict[str, bytes]:
    """What a run keeps: its shards and its dataset, byte for byte."""
    kept = sorted([*folder.glob("shards/*.parquet"), *folder.glob("dataset/**/*.json*")])
    assert kept, f"{folder} holds nothing"
    return {str(path.relative_to(folder)): path.read_bytes() for path in kept}


def leftovers(folder: Path) -> list[Path]:
    """What a killed process may have left half written."""
    return [path for path in folder.rglob("*") if re.search("partial|tmp", path.name)]
