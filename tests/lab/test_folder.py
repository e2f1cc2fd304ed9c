"""A world on disk: a dataset with its truth and its text, read back as it was."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from sonde.core.errors import DataError, UsageError
from sonde.data.catalog import load
from sonde.lab.worlds.folder import open_world, write_world
from sonde.lab.worlds.text import documents
from sonde.lab.worlds.world import World, make_world

from .worlds import small


@pytest.fixture
def world() -> World:
    return make_world(small(seed=3, skew=1.0, cues=0.3))


@pytest.fixture
def folder(world: World, tmp_path: Path) -> Path:
    write_world(world, tmp_path / "world")
    return tmp_path / "world"


def test_a_world_reads_back_as_it_was_written(world: World, folder: Path) -> None:
    found = open_world(folder)
    assert found.settings == world.settings
    assert found.fingerprint == world.fingerprint
    assert found.facts == world.facts
    assert found.truth == world.truth
    assert found.used == world.used
    assert found.words() == world.words()
    assert list(documents(found, 0.3, 1)) == list(documents(world, 0.3, 1))
    text = "".join(f"{document.text}\n" for document in documents(world, seed=3))
    assert (folder / "text.txt").read_text(encoding="utf-8") == text


def test_a_world_is_an_ordinary_dataset(world: World, folder: Path) -> None:
    dataset = load(str(folder))
    assert dataset.relations == world.dataset.relations
    assert dataset.vocabulary == world.dataset.vocabulary
    assert "invented" in dataset.card.description


def test_two_writings_are_the_same_byte_for_byte(
    world: World, folder: Path, tmp_path: Path
) -> None:
    write_world(make_world(world.settings), tmp_path / "again")
    files = sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    assert Path("truth.jsonl") in files
    for path in files:
        assert (folder / path).read_bytes() == (tmp_path / "again" / path).read_bytes()


def changed(name: str, was: str, now: str) -> Callable[[Path], None]:
    def act(folder: Path) -> None:
        text = (folder / name).read_text()
        assert was in text
        (folder / name).write_text(text.replace(was, now, 1))

    return act


def without(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


DAMAGES: dict[str, tuple[Callable[[Path], None], str]] = {
    "an exposure": (changed("truth.jsonl", '"exposure": 6', '"exposure": 2'), "fingerprint"),
    "no count": (changed("truth.jsonl", '"exposure": 6', '"exposure": -1'), "at least|>= 0"),
    "no guess": (changed("truth.jsonl", '"guess": ""', '"guess": "x"'), "Invalid enum value 'x'"),
    "a fact": (changed("truth.jsonl", "R01-00001", "R01-99999"), "truth.jsonl and the facts"),
    "the text": (changed("text.txt", ".", "!"), "text.txt is not the text that world.json names"),
    "no text": (without("text.txt"), "text.txt is missing"),
    "no truth": (without("truth.jsonl"), "truth.jsonl is missing"),
    "an object": (changed("facts/R01.jsonl", "R01-o0001", "R01-o0002"), "the content has hash"),
    "a setting": (changed("world.json", '"seed": 3', '"seed": 4'), "fingerprint"),
    "a bad setting": (changed("world.json", '"used": 3', '"used": 30'), "30 used templates are"),
    "no setting": (changed("world.json", '"seed": 3', '"sed": 3'), "unknown setting 'sed'"),
    "a format": (changed("world.json", '"format": 1', '"format": 9'), "'format' must be 1"),
    "no world": (without("world.json"), "holds no world: it has no world.json"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_world_is_refused(folder: Path, damage: str) -> None:
    act, told = DAMAGES[damage]
    act(folder)
    with pytest.raises(DataError, match=told):
        open_world(folder)


def test_a_dataset_that_is_there_is_replaced_only_when_asked(world: World, folder: Path) -> None:
    other = make_world(small(seed=4))
    with pytest.raises(UsageError, match="--force"):
        write_world(other, folder)
    assert open_world(folder).fingerprint == world.fingerprint
    write_world(other, folder, force=True)
    assert open_world(folder).fingerprint == other.fingerprint
    assert [path.name for path in folder.parent.iterdir()] == ["world"]


def test_progress_reaches_its_end(world: World, tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    write_world(world, tmp_path / "w", tick=lambda done, total: seen.append((done, total)))
    assert seen[-1][0] == seen[-1][1] == len((tmp_path / "w" / "text.txt").read_text().splitlines())


def test_the_folder_says_which_templates_the_text_uses(world: World, folder: Path) -> None:
    head = json.loads((folder / "world.json").read_text())
    assert {id: tuple(own) for id, own in head["used"].items()} == world.used
