"""A disk that fills up: said plainly, nothing lost, and the same command goes on."""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from sonde.core.errors import StoreError
from tests.command import COMMAND, Done, files, leftovers, process, ran
from tests.written import many_shards

STORE = StoreError.exit_code


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return many_shards(tmp_path / "data", facts=80)


def words(data: Path, out: Path) -> tuple[object, ...]:
    more = ("--answer", "score", "--no-html")
    return ("run", "lama", "-m", "control:majority", "-d", data, "-o", out, *more)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of a megabyte."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)]
    if os.getuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("a small disk can only be mounted by root")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_full_disk_keeps_what_was_finished(data: Path, tmp_path: Path, small_disk: Path) -> None:
    ran(*words(data, tmp_path / "calm"))
    out = small_disk / "out"
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(500 * 1024))
    done = process(*words(data, out))
    done.refused(STORE, f"no space left for {out}", "free some space and run the same command")
    finished = {path.name: path.stat().st_mtime_ns for path in out.glob("shards/*.parquet")}
    assert finished, "the disk was full before the first shard"
    assert not leftovers(out)
    process(*words(data, out)).refused(STORE, "no space left")
    ballast.unlink()
    ran(*words(data, out))
    assert files(out) == files(tmp_path / "calm")
    kept = {path.name: path.stat().st_mtime_ns for path in out.glob("shards/*.parquet")}
    assert finished.items() <= kept.items(), "a finished shard was computed twice"


def test_a_limit_on_the_size_of_files_reads_the_same(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"

    def no_large_file() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))

    command = [COMMAND, *map(str, words(data, out))]
    ended = subprocess.run(command, capture_output=True, text=True, preexec_fn=no_large_file)
    Done(ended.returncode, ended.stdout, ended.stderr).refused(STORE, f"no space left for {out}")
    ran(*words(data, out))
    ran("report", out)


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_a_result_that_cannot_be_printed_is_told(
    data: Path, tmp_path: Path, more: tuple[str, ...]
) -> None:
    out = tmp_path / "out"
    ran(*words(data, out))
    with Path("/dev/full").open("w") as full:
        command = [COMMAND, "report", str(out), *more]
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    Done(ended.returncode, "", ended.stderr).refused(STORE, "No space left on device")
