"""A world of two relations, and the command that is run on it, in this process or in its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sonde.cli.main import main

COMMAND = str(Path(sys.executable).parent / "sonde")
HERE = Path(__file__).parent

CAPITALS = {"France": "Paris", "Italy": "Rome", "Spain": "Madrid", "Chile": "Santiago"}
LANGUAGES = {"France": "French", "Italy": "Italian", "Spain": "Spanish", "Chile": "Spanish"}


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


def process(*words: object, **more: Any) -> Done:
    """Run the command as a user does, in a process of its own."""
    done = subprocess.run(
        [COMMAND, *map(str, words)], capture_output=True, text=True, timeout=60, **more
    )
    return Done(done.returncode, done.stdout, done.stderr)


def in_this_process(capsys: Any) -> Sonde:
    """A quick `sonde` that skips only the start of the interpreter and the signals."""

    def sonde(*words: object) -> Done:
        code = main([str(word) for word in words])
        said = capsys.readouterr()
        return Done(code, said.out, said.err)

    return sonde


def rows(values: Iterable[Mapping[str, Any]]) -> str:
    """JSON lines."""
    return "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values)


def fact(relation: str, subject: str, answer: str, split: str = "test") -> dict[str, Any]:
    """A fact's line."""
    return {
        "id": f"{relation}:{subject}",
        "subject": {"id": f"s:{subject}", "names": [subject]},
        "objects": [{"id": f"o:{answer}", "names": [answer]}],
        "split": split,
    }


def template(relation: str, text: str) -> dict[str, Any]:
    """A template's line."""
    return {"id": f"{relation}-1", "relation": relation, "text": text}


def dataset(folder: Path, relations: Mapping[str, tuple[str, Mapping[str, str]]]) -> Path:
    """Write a dataset by hand: for each relation a template, and an object for each subject."""
    (folder / "facts").mkdir(parents=True)
    (folder / "dataset.json").write_text('{"format": 1, "name": "world"}\n')
    heads = ({"id": id, "label": f"label of {id}", "kind": "N-1"} for id in relations)
    (folder / "relations.jsonl").write_text(rows(heads))
    texts = (template(id, text) for id, (text, _) in relations.items())
    (folder / "templates.jsonl").write_text(rows(texts))
    for id, (_, pairs) in relations.items():
        lines = rows(fact(id, subject, answer) for subject, answer in pairs.items())
        (folder / "facts" / f"{id}.jsonl").write_text(lines)
    return folder


def two_relations(folder: Path) -> Path:
    """Capitals and languages of four countries."""
    return dataset(
        folder,
        {
            "P36": ("The capital of [X] is [Y].", CAPITALS),
            "P37": ("The language of [X] is [Y].", LANGUAGES),
        },
    )


def many_shards(folder: Path, facts: int = 100, objects: int = 1024) -> Path:
    """One relation with so many options that a shard holds 4096 / `objects` prompts."""
    asked = {f"subject {i}": f"object {i}" for i in range(facts)}
    folder = dataset(folder, {"P1": ("The thing of [X] is [Y].", asked)})
    others = (fact("P1", f"other {i}", f"object {i}", "train") for i in range(facts, objects))
    with (folder / "facts" / "P1.jsonl").open("a") as file:
        file.write(rows(others))
    return folder


def with_slow_model(folder: Path) -> dict[str, str]:
    """The environment of a machine on which the package with `slow:` is installed."""
    home = folder / "installed"
    info = home / "slow_model-1.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: slow-model\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[sonde.models]\nslow = slow_model:COMPONENT\n")
    (home / "slow_model.py").write_text((HERE / "slow_model.py").read_text())
    paths = [str(home), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def files(folder: Path) -> dict[str, bytes]:
    """What a run keeps: its shards and its dataset, byte for byte."""
    kept = sorted([*folder.glob("shards/*.parquet"), *folder.glob("dataset/**/*.json*")])
    assert kept, f"{folder} holds nothing"
    return {str(path.relative_to(folder)): path.read_bytes() for path in kept}


def leftovers(folder: Path) -> list[Path]:
    """What a killed process may have left half written."""
    return [path for path in folder.rglob("*") if re.search("partial|tmp", path.name)]
