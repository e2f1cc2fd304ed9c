"""A run folder that cannot be used: why, and what to do; what stands in it is not touched."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
from pathlib import Path
from shutil import which

import pytest
from polars import read_parquet

from sonde.core.errors import StoreError
from sonde.store.manifest import Manifest
from tests.command import COMMAND, Done, Sonde, await_that, files, process, silent, with_slow_model
from tests.written import many_shards

STORE = StoreError.exit_code


def majority(data: Path, out: Path, *more: str) -> tuple[object, ...]:
    return ("run", "lama", "-m", "control:majority", "-d", data, "-o", out, *more)


def test_a_file_is_no_folder(sonde: Sonde, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "file"
    out.write_text("mine")
    sonde(*majority(data, out)).refused(STORE, f"{out} is a file; give a folder")
    below = out / "run"
    sonde(*majority(data, below)).refused(STORE, f"{below} cannot be written: Not a directory")
    assert out.read_text() == "mine"
    sonde("report", out).refused(STORE, f"{out} is no run folder")


FOREIGN = {
    "notes.txt": "'notes.txt' is in it",
    "dataset/dataset.json": "'dataset' is in it",
    "shards/train.parquet": "'shards/train.parquet' is in it",
    "report.html": "'report.html' is in it",
    "complete.json": "'complete.json' is in it",
    "manifest.json": "is no manifest of a run",
}


@pytest.mark.parametrize("name", FOREIGN)
def test_a_folder_of_somebody_else_is_left_alone(
    sonde: Sonde, data: Path, tmp_path: Path, name: str
) -> None:
    out = tmp_path / "out"
    (out / name).parent.mkdir(parents=True)
    (out / name).write_text('{"name": "mine"}')
    sonde(*majority(data, out)).refused(STORE, str(out), FOREIGN[name])
    assert [p for p in out.rglob("*") if p.is_file()] == [out / name]
    assert (out / name).read_text() == '{"name": "mine"}'


def test_an_empty_folder_is_taken(sonde: Sonde, data: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    assert sonde(*majority(data, tmp_path / "out")).code == 0


def test_a_different_run_is_refused_with_every_difference(
    sonde: Sonde, data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert sonde(*majority(data, out)).code == 0
    before = files(out)
    said = sonde(*majority(data, out, "--seed", "1", "--set", "top_k=5")).refused(STORE)
    assert f"{out} holds a different run" in said
    assert "selection.seed: 0 in the folder, 1 asked for" in said
    assert "probe.settings.top_k: 10 in the folder, 5 asked for" in said
    assert "give another folder with -o" in said
    other = ("run", "lama", "-m", "scripted:", "-d", data, "-o", out)
    said = sonde(*other).refused(STORE)
    assert "model.architecture: 'counting' in the folder, 'table' asked for" in said
    assert files(out) == before


def test_a_run_that_never_answered_gives_way_to_another(
    sonde: Sonde, data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert sonde(*majority(data, out)).code == 0
    for path in (*out.glob("shards/*.parquet"), *out.glob("*.json*"), out / "report.html"):
        if path.name != "manifest.json":
            path.unlink()
    facts = data / "facts" / "P36.jsonl"
    facts.write_text(facts.read_text().replace("Paris", "Lyon"))
    assert sonde(*majority(data, out)).code == 0
    names = read_parquet(out / "dataset/facts/P36.parquet")["object_names"]
    assert "Lyon" in names.explode().explode().to_list()


def test_a_complete_run_is_not_computed_again(sonde: Sonde, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert sonde(*majority(data, out)).err == ""
    before = {p: p.stat().st_mtime_ns for p in out.glob("shards/*.parquet")}
    again = process(*majority(data, out))
    assert again.code == 0
    assert again.err == f"{out} was complete: the model was not asked anything\n"
    assert {p: p.stat().st_mtime_ns for p in out.glob("shards/*.parquet")} == before
    assert len((out / "timings.jsonl").read_text().splitlines()) == 1


def test_a_second_process_is_kept_out(sonde: Sonde, tmp_path: Path) -> None:
    data, out = many_shards(tmp_path / "data"), tmp_path / "out"
    env = with_slow_model(tmp_path, most=10)
    words = [COMMAND, "run", "lama", "-m", "slow:0", "-d", str(data), "-o", str(out)]
    with subprocess.Popen(words, env=env, stdout=subprocess.DEVNULL) as first:
        await_that(silent(tmp_path).exists, first)
        second = process(*words[1:], env=env)
        second.refused(STORE, f"{out} is being written by another process", "-o")
        sonde("report", out).refused(STORE, "holds an unfinished run", "the same run again")
        first.kill()


def test_reports_need_a_finished_run(sonde: Sonde, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    sonde("report", out).refused(STORE, f"{out} is no run folder: it has no manifest.json")
    assert sonde(*majority(data, out)).code == 0
    shard = out / "shards" / "00000.parquet"
    kept = shard.read_bytes()
    shard.unlink()
    sonde("report", out).refused(STORE, f"{shard} is missing; start the same run again")
    assert sonde(*majority(data, out)).code == 0
    assert shard.read_bytes() == kept
    (out / "complete.json").unlink()
    sonde("report", out).refused(STORE, f"{out} holds an unfinished run (1 shards so far)")


DAMAGE = {
    "manifest.json": ("", "is no manifest of a run"),
    "complete.json": ("{}", "start the same run again to write it anew"),
    "dataset/facts/P36.parquet": ("", "copy of its dataset, is damaged"),
    "dataset/dataset.json": (None, "copy of its dataset, is damaged"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_file_is_named_and_mended(
    sonde: Sonde, data: Path, tmp_path: Path, name: str
) -> None:
    out = tmp_path / "out"
    assert sonde(*majority(data, out)).code == 0
    before = files(out)
    text, complaint = DAMAGE[name]
    (out / name).unlink() if text is None else (out / name).write_text(text)
    sonde("report", out).refused(STORE, str(out / Path(name).parts[0]), complaint)
    if name != "manifest.json":  # nobody knows any more what the answers are to
        assert sonde(*majority(data, out)).code == 0
        assert sonde("report", out).code == 0
        assert files(out) == before


def test_a_run_of_another_version_is_refused(sonde: Sonde, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert sonde(*majority(data, out)).code == 0
    path = out / "manifest.json"
    body = json.loads(path.read_text())
    path.write_text(json.dumps({**body, "format": 99}))
    sonde("report", out).refused(STORE, "it has run format 99, of another version")
    body["probe"]["settings"]["colour"] = "red"
    names = (field.name for field in dataclasses.fields(Manifest))
    path.write_text(Manifest(**{name: body[name] for name in names if name in body}).to_json())
    (out / "complete.json").write_text('{"shards": 1, "prompts": 8}')
    sonde("report", out).refused(STORE, "another version of probe 'lama'", "colour")


@pytest.fixture
def bound() -> list[str]:
    """Words before a command that bind it by the rights of files, as root is not otherwise."""
    if os.getuid() != 0:
        return []
    words = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
    if not which("setpriv") or subprocess.run([*words, "true"]).returncode:
        pytest.skip("root cannot lay down its rights here")
    return words


def test_a_folder_that_may_not_be_written_is_named(
    bound: list[str], data: Path, tmp_path: Path
) -> None:
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o555)
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "run").mkdir()
    hidden.chmod(0o000)
    for out in (locked, locked / "run", hidden / "run"):
        words = [*bound, COMMAND, *map(str, majority(data, out))]
        ended = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path)
        done = Done(ended.returncode, ended.stdout, ended.stderr)
        done.refused(STORE, f"{out} cannot be written: Permission denied")
    hidden.chmod(0o755)


def test_a_report_that_cannot_be_written_is_named(sonde: Sonde, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert sonde(*majority(data, out)).code == 0
    page = tmp_path / "no" / "page.html"
    done = sonde("report", out, "--html", page)
    done.refused(STORE, f"{page} cannot be written: No such file or directory")
