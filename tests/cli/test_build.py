"""`sonde data build`: what it prints, what it refuses, and that it leaves nothing half-written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from sonde.core.facts import Fact
from sonde.data.builders import write_whole
from sonde.data.format import open_dataset
from tests.command import Sonde
from tests.written import two_relations

SMALL = ("--least-facts", 4, "--least-objects", 3, "--train", 1, "--test", 4, "--options", 2)


@pytest.fixture
def triples(tmp_path: Path) -> Path:
    """Nine facts of a relation that qualifies, three of one that does not."""
    rows = [{"head": f"s{i}", "relation": "part of", "tail": f"o{i % 5}"} for i in range(9)]
    rows += [{"head": f"s{i}", "relation": "P36", "tail": f"o{i}"} for i in range(3)]
    path = tmp_path / "triples.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_statistics_name_what_was_kept_and_what_was_not(
    sonde: Sonde, triples: Path, tmp_path: Path
) -> None:
    done = sonde("data", "build", "trex-mc", triples, *SMALL, "-o", tmp_path / "mc")
    assert done.code == 0, done
    assert "P36 capital 3 3 3 facts" in " ".join(done.out.split())
    assert "rows: 12 read = 9 of relations kept + 3 of others" in done.out
    assert "relations without a template: 1" in done.out
    assert "1 relations, 1 training and 4 test facts" in " ".join(done.out.split())
    assert sonde("data", "check", tmp_path / "mc").code == 0
    assert "wrong" in (tmp_path / "mc" / "facts" / "part-of.jsonl").read_text()


def test_faulty_rows_are_told_by_line(sonde: Sonde, triples: Path, tmp_path: Path) -> None:
    triples.write_text("{\n" + triples.read_text())
    out = tmp_path / "mc"
    done = sonde("data", "build", "trex-mc", triples, *SMALL, "-o", out)
    assert "rows passed over as faulty: 1" in done.out
    assert "line 1: expected a JSON object" in " ".join(done.out.split())
    refused = sonde("data", "build", "trex-mc", triples, *SMALL, "-o", out, "--force", "--skip", 0)
    refused.refused(3, "line 1", "--skip N")
    assert open_dataset(out).relations, "what was there before is still there"


def test_a_dataset_is_replaced_only_where_forced(
    sonde: Sonde, triples: Path, tmp_path: Path
) -> None:
    out = tmp_path / "mc"
    build = ("data", "build", "trex-mc", triples, *SMALL, "-o", out)
    assert sonde(*build).code == 0
    before = open_dataset(out).fingerprint
    sonde(*build).refused(2, "holds a dataset", "--force")
    assert sonde(*build, "--force", "--seed", 1).code == 0
    assert open_dataset(out).fingerprint != before
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []


def test_another_folder_is_never_replaced(sonde: Sonde, triples: Path, tmp_path: Path) -> None:
    out = tmp_path / "photos"
    out.mkdir()
    (out / "holiday.jpg").touch()
    done = sonde("data", "build", "trex-mc", triples, *SMALL, "-o", out, "--force")
    done.refused(2, "holds something else than a dataset")
    sonde("data", "build", "nobel", triples, "-o", triples).refused(2, "is a file")
    assert (out / "holiday.jpg").exists()


def test_a_build_that_fails_while_writing_leaves_what_was_there(tmp_path: Path) -> None:
    out = two_relations(tmp_path / "data")
    before = open_dataset(out)

    def broken(relation: str) -> Iterator[Fact]:
        yield from before.facts(relation)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_whole(replace(before, read=broken), out, force=True)
    assert open_dataset(out).fingerprint == before.fingerprint
    with pytest.raises(KeyboardInterrupt):
        write_whole(replace(before, read=broken), tmp_path / "new")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["data"]


def test_nothing_to_build_from_is_said(sonde: Sonde, tmp_path: Path) -> None:
    out = tmp_path / "mc"
    sonde("data", "build", "trex-mc", "-o", out).refused(2, "--facts")
    sonde("data", "build", "trex-mc", tmp_path, "-o", out).refused(3, "holds no triples")
    sonde("data", "build", "trex-mc", "--facts", "atlas", "--test", 0, "-o", out).refused(
        2, "--test must be at least 1"
    )
    done = sonde("data", "build", "trex-mc", "--facts", "nobel", "--least-facts", 700, "-o", out)
    done.refused(3, "none of 1 relations has 700 facts", "(600 facts, 1", "--least-facts")
    assert not out.exists()


def test_any_dataset_can_be_built_from(sonde: Sonde, tmp_path: Path) -> None:
    small = ("--least-facts", 60, "--least-objects", 50, "--train", 20, "--test", 20)
    out = tmp_path / "mc"
    done = sonde("data", "build", "trex-mc", "--facts", "atlas", *small, "-o", out)
    assert done.code == 0, done
    assert sonde("data", "check", out).code == 0
    made = open_dataset(out)
    assert made.relation("P36").templates
    assert sum(1 for _ in made.facts("P36")) == 40


def test_laureates_are_counted(sonde: Sonde, tmp_path: Path) -> None:
    path = tmp_path / "prizes.csv"
    rows = "A,1900,male,1950,Peace\nB,1910,female,1960,Peace\nC,,org,1970,Peace\n"
    path.write_text("name,born,gender,year,category\n" + rows)
    done = sonde("data", "build", "nobel", path, "-o", tmp_path / "nobel")
    assert done.code == 0, done
    assert "- organisations" in done.out
    assert sonde("data", "check", tmp_path / "nobel").code == 0
    done = sonde("data", "build", "nobel", tmp_path / "none.csv", "-o", tmp_path / "other")
    done.refused(3, "none.csv is missing")
