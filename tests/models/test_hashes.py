"""A hash is remembered only while nothing can have happened to its file."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from sonde.core.fingerprints import file_hash
from sonde.models.torch.loading import weight_files
from sonde.models.torch.loading.weight_files import remembered_hash


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SONDE_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "weights"
    path.write_bytes(b"first")
    return path


def test_a_file_is_hashed_once(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = remembered_hash(file)
    monkeypatch.setattr(
        weight_files, "file_hash", lambda path: pytest.fail(f"{path} was hashed again")
    )
    assert remembered_hash(file) == first


def test_a_change_at_equal_size_and_restored_time_is_noticed(file: Path) -> None:
    before = file.stat()
    first = remembered_hash(file)
    while file.stat().st_ctime_ns == before.st_ctime_ns:  # a tick of the file system's clock
        file.write_bytes(b"other")
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = file.stat()
    assert (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    assert remembered_hash(file) == file_hash(file) != first


def test_another_file_in_its_place_is_noticed(file: Path, tmp_path: Path) -> None:
    first = remembered_hash(file)
    other = tmp_path / "other"
    other.write_bytes(b"other")
    os.utime(other, ns=(file.stat().st_atime_ns, file.stat().st_mtime_ns))
    other.replace(file)
    assert remembered_hash(file) == file_hash(file) != first


@pytest.mark.parametrize("kept", ["[]", "{", "\x00", "[" * 10**5])
def test_a_broken_memory_is_begun_anew(file: Path, tmp_path: Path, kept: str) -> None:
    memory = tmp_path / "cache" / "hashes.json"
    memory.parent.mkdir()
    memory.write_text(kept)
    assert remembered_hash(file) == file_hash(file)
    assert file_hash(file) in json.loads(memory.read_text()).values()
