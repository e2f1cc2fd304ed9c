"""The folder of a world: a dataset, and beside it what is true of it and the text.

    dataset.json …  an ordinary dataset (see sonde/data/format.py)
    truth.jsonl     what the text holds about each fact, one a line
    text.txt        the text, one sentence a line, as a masked model reads it
    world.json      format, version, settings, used templates, fingerprint, hash of text.txt

Knows files, nothing of how worlds are made or models are trained.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

import msgspec

import sonde
from sonde.core.components import build
from sonde.core.errors import DataError, UsageError
from sonde.core.fingerprints import file_hash
from sonde.data.builders import placed
from sonde.data.format import open_dataset, write_dataset
from sonde.data.lines import Row, read_object, read_rows, write_rows
from sonde.lab.worlds.settings import WorldSettings
from sonde.lab.worlds.text import all_mentions, documents, introductions
from sonde.lab.worlds.world import Taught, World

FORMAT = 1
WORLD, TRUTH, TEXT = "world.json", "truth.jsonl", "text.txt"
STEP = 10_000

Tick = Callable[[int, int], None]
"""Told how many sentences are written, of how many."""


def write_world(
    world: World, folder: Path, *, force: bool = False, tick: Tick = lambda done, total: None
) -> None:
    """Write a world, whole or not at all; `force` replaces a dataset that is there."""
    with placed(folder, force=force) as build:
        write_dataset(world.dataset, build)
        write_rows(build / TRUTH, (asdict(taught) for taught in world.truth.values()))
        hashed = _write_text(world, build / TEXT, tick)
        head = {
            "format": FORMAT,
            "sonde": sonde.__version__,
            "settings": world.settings.record(),
            "used": world.used,
            "fingerprint": world.fingerprint,
            "text": hashed,
        }
        text = json.dumps(head, indent=2, ensure_ascii=False) + "\n"
        (build / WORLD).write_text(text, encoding="utf-8")


def open_world(folder: Path) -> World:
    """Open a world; refuses one that is not what it was when it was written."""
    if not (folder / WORLD).is_file():
        raise DataError(
            f"{folder} holds no world: it has no {WORLD}; make one with: sonde lab world -o FOLDER"
        )
    head = read_object(folder / WORLD)
    if head.values.get("format") != FORMAT:
        raise head.fault(f"'format' must be {FORMAT}", head.values.get("format"))
    used = head.row("used")
    world = World(
        settings=_settings(head.row("settings")),
        dataset=open_dataset(folder),
        truth={taught.fact: taught for taught in _truth(folder / TRUTH)},
        used={relation: used.texts(relation) for relation in used.values},
    )
    _check(world, head, folder)
    return world


def _write_text(world: World, path: Path, tick: Tick) -> str:
    digest = hashlib.sha256()
    total = len(all_mentions(world)) + len(introductions(world))
    with path.open("wb") as file:
        for number, document in enumerate(documents(world, seed=world.settings.seed), 1):
            line = f"{document.text}\n".encode()
            file.write(line)
            digest.update(line)
            if number % STEP == 0 or number == total:
                tick(number, total)
    return digest.hexdigest()


def _check(world: World, head: Row, folder: Path) -> None:
    told = "was changed or damaged after it was written; make it again: sonde lab world -o FOLDER"
    if world.truth.keys() != world.facts.keys():
        raise DataError(f"{folder / TRUTH} and the facts beside it differ; the world {told}")
    if world.fingerprint != head.text("fingerprint"):
        raise DataError(
            f"{folder}: the world has fingerprint {world.fingerprint} but {WORLD} says "
            f"{head.text('fingerprint')}; it {told}"
        )
    text = folder / TEXT
    if not text.is_file():
        raise DataError(f"{text} is missing; the world {told}")
    if file_hash(text) != head.text("text"):
        raise DataError(f"{text} is not the text that {WORLD} names; it {told}")


def _settings(row: Row) -> WorldSettings:
    values: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in row.values.items()
    }
    try:
        return cast(WorldSettings, build(WorldSettings, values))
    except (UsageError, TypeError) as error:
        raise DataError(f"{row.where}: {error}") from None


def _truth(path: Path) -> Iterator[Taught]:
    for row in read_rows(path):
        try:
            yield msgspec.convert(row.values, Taught)
        except msgspec.ValidationError as error:
            raise row.fault(f"what is taught of a fact is wrong ({error})", row.values) from None
