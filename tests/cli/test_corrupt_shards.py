"""A shard that is not as it was written is named, put aside and computed anew."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from sonde.core.errors import StoreError
from tests.command import Sonde, files, process, ran
from tests.written import many_shards

STORE = StoreError.exit_code
NAME = "00001.parquet"


def flip(place: float) -> Callable[[bytes], bytes]:
    """Flip one bit at a place between the beginning (0) and the end (1)."""

    def damage(data: bytes) -> bytes:
        at = min(int(place * len(data)), len(data) - 1)
        return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]

    return damage


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "first bit": flip(0),
    "a third of the way": flip(0.33),
    "two thirds of the way": flip(0.67),
    "footer": flip(0.98),
    "last bit": flip(1),
    "cut in half": lambda data: data[: len(data) // 2],
    "one byte short": lambda data: data[:-1],
    "one byte more": lambda data: data + b"\0",
    "empty": lambda data: b"",
    "another file": lambda data: b"PAR1 but nothing else PAR1",
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A dataset, and a finished run of three shards on it."""
    home = tmp_path_factory.mktemp("finished")
    data = many_shards(home / "data", facts=12)
    ran(*words(data, home / "out"))
    return data, home / "out"


def words(data: Path, out: Path) -> tuple[object, ...]:
    more = ("--answer", "score", "--no-html")
    return ("run", "lama", "-m", "control:majority", "-d", data, "-o", out, *more)


def test_a_damaged_shard_is_put_aside_aloud(finished: tuple[Path, Path]) -> None:
    data, out = finished
    before, shard = files(out), out / "shards" / NAME
    bad = flip(0.5)(shard.read_bytes())
    shard.write_bytes(bad)
    process("report", out).refused(STORE, f"shard {shard} is corrupt", "the same run again")
    done = process(*words(data, out))
    assert done.code == 0
    aside = out / "quarantine" / f"{NAME}.0"
    assert f"warning: shard {shard} is corrupt" in done.err
    assert f"put aside as {aside} and computed anew" in done.err
    assert aside.read_bytes() == bad
    assert files(out) == before
    ran("report", out)


@pytest.mark.parametrize("kind", DAMAGE)
def test_every_kind_of_damage_is_noticed_and_mended(
    sonde: Sonde, finished: tuple[Path, Path], kind: str
) -> None:
    data, out = finished
    before, shard = files(out), out / "shards" / NAME
    shard.write_bytes(DAMAGE[kind](shard.read_bytes()))
    sonde("report", out).refused(STORE, f"shard {shard} is corrupt")
    assert sonde(*words(data, out)).code == 0
    assert files(out) == before


def test_no_flipped_bit_goes_unnoticed(sonde: Sonde, finished: tuple[Path, Path]) -> None:
    _, out = finished
    shard = out / "shards" / NAME
    good, random = shard.read_bytes(), Random("bits")
    for _ in range(100):
        shard.write_bytes(flip(random.random())(good))
        sonde("report", out).refused(STORE, f"shard {shard} is corrupt")
    shard.write_bytes(good)
    assert sonde("report", out).code == 0


def test_a_shard_in_the_place_of_another_is_put_aside(
    sonde: Sonde, finished: tuple[Path, Path]
) -> None:
    data, out = finished
    before, shard = files(out), out / "shards" / NAME
    shard.write_bytes((out / "shards" / "00000.parquet").read_bytes())
    sonde("report", out).refused(STORE, str(shard))
    (out / "shards.sha256").unlink()  # even where nothing but the prompts themselves tells
    assert sonde(*words(data, out)).code == 0
    assert files(out) == before


def test_the_digests_can_be_checked_without_sonde(finished: tuple[Path, Path]) -> None:
    data, out = finished
    ran(*words(data, out))
    check = ["sha256sum", "--check", "--quiet", "shards.sha256"]
    subprocess.run(check, cwd=out, check=True)
