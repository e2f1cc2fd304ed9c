"""A run folder: alone, whole, swept, and never somebody else's."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from sonde.core.abilities import Identity
from sonde.core.errors import RunMismatch, StoreError
from sonde.core.files import add_line, explain_os_errors, take_lock, write_whole
from sonde.store.manifest import Digests
from sonde.store.runs import RunFolder, encoded

from .sample import ROWS, answering, manifest, prompts

MODEL = Identity(name="sample", architecture="none")


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    """A finished run of one shard."""
    folder = RunFolder(tmp_path / "run")
    with folder.writing(manifest()) as writer:
        folder.dataset.mkdir()
        (folder.dataset / "dataset.json").write_text("{}")
        writer.append(0, encoded(answering(ROWS), MODEL))
        writer.finish(1, len(ROWS))
    return folder


def test_what_is_appended_is_answered(folder: RunFolder) -> None:
    assert list(folder.answered()) == ROWS
    complete = folder.finished()
    assert (complete.shards, complete.prompts) == (1, len(ROWS))
    assert list(complete.sealed) == [
        "manifest.json",
        "dataset/dataset.json",
        "shards/00000.parquet",
    ]


def test_a_shard_is_held_if_it_answers_the_same_prompts(
    folder: RunFolder, caplog: pytest.LogCaptureFixture
) -> None:
    with folder.writing(manifest()) as writer:
        assert writer.holds(0, prompts(ROWS))
        assert not writer.holds(1, prompts(ROWS))
        assert caplog.text == ""
        assert not writer.holds(0, prompts(ROWS[:-1]))
    assert "answers other prompts" in caplog.text
    assert str(folder.path / "quarantine" / "00000.parquet.0") in caplog.text
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert folder.shards() == []


def test_what_is_put_aside_never_replaces_what_was_put_aside(folder: RunFolder) -> None:
    for _ in range(3):
        with folder.writing(manifest()) as writer:
            folder.shard(0).write_bytes(b"bad")
            assert not writer.holds(0, prompts(ROWS))
    aside = folder.path / "quarantine"
    assert len(list(aside.iterdir())) == 3
    (aside / "00000.parquet.0").unlink()
    with folder.writing(manifest()) as writer:
        folder.shard(0).write_bytes(b"bad")
        assert not writer.holds(0, prompts(ROWS))
    assert len(list(aside.iterdir())) == 3


def test_a_run_that_is_computed_anew_is_unfinished_until_it_ends(folder: RunFolder) -> None:
    with folder.writing(manifest()) as writer:
        writer.append(0, encoded(answering(ROWS[:2]), MODEL))
    with pytest.raises(StoreError, match="holds an unfinished run"):
        list(folder.answered())
    with folder.writing(manifest()) as writer:
        assert writer.holds(0, prompts(ROWS[:2]))
        writer.finish(1, 2)
    assert list(folder.answered()) == ROWS[:2]
    assert len((folder.path / "shards.sha256").read_text().splitlines()) == 1


def test_what_the_run_was_sealed_with_is_believed_before_the_digests(folder: RunFolder) -> None:
    wrong = Digests(folder.path / "shards.sha256")
    wrong.add(folder.shard(0), b"of another run")
    assert list(folder.answered()) == ROWS
    with folder.writing(manifest()) as writer:
        assert writer.holds(0, prompts(ROWS))
        writer.finish(1, len(ROWS))
    assert wrong.read() == folder.known()


def test_a_run_that_was_finished_before_there_were_seals_is_read(folder: RunFolder) -> None:
    told = {"shards": 1, "prompts": len(ROWS)}
    (folder.path / "complete.json").write_text(json.dumps(told))
    assert list(folder.answered()) == ROWS
    (folder.path / "complete.json").write_text(json.dumps({**told, "prompts": 99}))
    with pytest.raises(StoreError, match=f"tells of 99 prompts, but the shards hold {len(ROWS)}"):
        list(folder.answered())


def test_one_process_writes_at_a_time(folder: RunFolder) -> None:
    with (
        folder.writing(manifest()),
        pytest.raises(StoreError, match="being written by another process"),
        folder.writing(manifest()),
    ):
        pass
    with folder.writing(manifest()):
        pass


def test_another_run_is_refused_and_nothing_changes(folder: RunFolder) -> None:
    before = {p: p.read_bytes() for p in folder.path.rglob("*") if p.is_file()}
    with (
        pytest.raises(RunMismatch, match="seed: 0 in the folder, 1 asked for"),
        folder.writing(manifest(seed=1)),
    ):
        pass
    assert {p: p.read_bytes() for p in folder.path.rglob("*") if p.is_file()} == before


def test_what_a_kill_left_is_swept_and_the_rest_is_not(folder: RunFolder) -> None:
    left = ["manifest.json.partial", "complete.json.partial", "shards/00001.parquet.partial"]
    kept = ["notes.txt", "notes.partial"]
    for name in (*left, *kept):
        (folder.path / name).write_text("half")
    with folder.writing(manifest()):
        pass
    assert [name for name in left if (folder.path / name).exists()] == []
    assert [name for name in kept if (folder.path / name).exists()] == kept


def test_a_run_killed_before_its_manifest_was_whole_is_taken_up(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    (folder.path / "shards").mkdir(parents=True)
    (folder.path / "shards" / ".lock").touch()
    (folder.path / "manifest.json.partial").write_text('{"format"')
    with folder.writing(manifest()):
        pass
    assert folder.manifest().fingerprint == manifest().fingerprint


def test_only_shards_count_as_shards_and_numbers_order_them(folder: RunFolder) -> None:
    data = folder.shard(0).read_bytes()
    for name in ("99999", "100000", "00000 (copy)", "1", "x00002"):
        (folder.path / "shards" / f"{name}.parquet").write_bytes(data)
    assert [path.stem for path in folder.shards()] == ["00000", "99999", "100000"]
    assert [path.stem for path in folder.beyond(1)] == ["99999", "100000"]


def test_timings_survive_a_torn_line(folder: RunFolder) -> None:
    with folder.writing(manifest()) as writer:
        writer.log({"seconds": 1.5})
        with (folder.path / "timings.jsonl").open("a") as file:
            file.write('{"seconds": 4')
        writer.log({"seconds": 2})
    assert folder.seconds() == 3.5


def test_a_lock_keeps_what_is_in_its_file_and_follows_no_link(tmp_path: Path) -> None:
    path, link = tmp_path / "file", tmp_path / "link"
    path.write_text("mine")
    with take_lock(path, "busy"), pytest.raises(StoreError, match="busy"):
        take_lock(path, "busy")
    link.symlink_to(path)
    with pytest.raises(OSError, match="symbolic link"):
        take_lock(link)
    with pytest.raises(OSError, match="symbolic link"):
        add_line(link, "more")
    link.with_name("other.partial").symlink_to(path)
    write_whole(link, b"new")
    write_whole(tmp_path / "other", b"new")
    assert path.read_text() == "mine"
    assert link.read_bytes() == (tmp_path / "other").read_bytes() == b"new"


def test_a_failed_write_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_whole(path, b"first")
    with pytest.raises(TypeError):
        write_whole(path, "no bytes")  # type: ignore[arg-type]
    assert path.read_bytes() == b"first"
    assert list(tmp_path.iterdir()) == [path]


def test_lines_are_added_after_whole_lines_only(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    add_line(path, "one")
    path.write_text(path.read_text() + "to")
    add_line(path, "three")
    assert path.read_text() == "one\nto\nthree\n"


def test_a_system_error_is_told_with_its_folder(tmp_path: Path) -> None:
    with (
        pytest.raises(StoreError, match=f"{tmp_path} cannot be written: no"),
        explain_os_errors(tmp_path),
    ):
        raise NotADirectoryError(20, "no")
    with (
        pytest.raises(StoreError, match=f"no space left for {tmp_path}"),
        explain_os_errors(tmp_path),
    ):
        raise OSError(28, "No space left on device")
