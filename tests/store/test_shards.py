"""Shards: the columns they have, and no bit of them changed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sonde.core.errors import CorruptShard, StoreError
from sonde.store.manifest import Digests
from sonde.store.rows import same_prompts
from sonde.store.shards import blocks_of, read_shard, shard_bytes, table_of

from .sample import ROWS, answering, prompts

GOLDEN = Path(__file__).parents[1] / "golden" / "shard-columns.txt"


@pytest.fixture
def shard(tmp_path: Path) -> Path:
    path = tmp_path / "shards" / "00000.parquet"
    path.parent.mkdir()
    path.write_bytes(shard_bytes(answering(ROWS).table()))
    return path


def test_the_columns_are_as_they_always_were(shard: Path) -> None:
    schema = pq.read_schema(shard)
    found = "".join(f"{field.name}: {field.type}\n" for field in schema)
    assert found == GOLDEN.read_text()


def test_rows_are_read_back_as_they_were(shard: Path) -> None:
    table = table_of(shard, shard.read_bytes())
    assert [row for block in blocks_of(table) for row in block.each()] == ROWS
    assert same_prompts(table, prompts(ROWS))
    assert not same_prompts(table, prompts(ROWS[::-1]))


@pytest.mark.parametrize("name", ["kind", "text", "watched", "logps"])
def test_a_probes_own_column_may_not_have_the_name_of_one_that_answers_have(name: str) -> None:
    row = replace(ROWS[0], own={name: "mine"})
    with pytest.raises(StoreError, match=f"its own with the name '{name}', which answers have"):
        answering([row])


def test_equal_rows_give_equal_bytes() -> None:
    assert shard_bytes(answering(ROWS).table()) == shard_bytes(answering(list(ROWS)).table())
    assert shard_bytes(answering(ROWS).table()) != shard_bytes(answering(ROWS[::-1]).table())


def test_a_digest_finds_what_parquet_does_not(shard: Path) -> None:
    data = shard.read_bytes()
    digests = Digests(shard.parents[1] / "shards.sha256")
    digests.add(shard, data)
    noted = digests.read()[shard]
    read_shard(shard, noted)
    unseen = 0
    for at in range(0, len(data), 7):
        shard.write_bytes(data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :])
        with pytest.raises(CorruptShard, match="not those that were written"):
            read_shard(shard, noted)
        unseen += _parquet_is_content(shard)
    assert unseen, "Parquet's checksums see everything now: the digests can go"


def _parquet_is_content(shard: Path) -> bool:
    try:
        table_of(shard, shard.read_bytes())
    except CorruptShard:
        return False
    return True


def test_the_last_digest_counts_and_a_torn_line_is_passed_over(shard: Path) -> None:
    digests = Digests(shard.parents[1] / "shards.sha256")
    assert digests.read() == {}
    digests.add(shard, b"first")
    with digests.path.open("a") as file:
        file.write("0123456789abc")  # a line cut off by a kill
    digests.add(shard, b"second")
    digests.add(shard.with_name("00001.parquet"), b"third")
    lines = digests.path.read_text().splitlines()
    assert [len(line) for line in lines] == [86, 13, 86, 86]
    assert digests.read()[shard] == lines[2].split()[0]
    assert len(digests.read()) == 2


def test_a_shard_with_other_columns_is_refused(shard: Path) -> None:
    pq.write_table(pa.table({"fact": ["f"]}), shard)
    with pytest.raises(CorruptShard, match="does not say what its blocks are"):
        table_of(shard, shard.read_bytes())


def test_a_shard_without_a_digest_is_refused(shard: Path) -> None:
    with pytest.raises(CorruptShard, match="has no digest"):
        read_shard(shard, None)


def test_a_shard_that_cannot_be_opened_is_not_called_corrupt(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be read: Is a directory") as caught:
        read_shard(tmp_path, "0123")
    assert not isinstance(caught.value, CorruptShard)
