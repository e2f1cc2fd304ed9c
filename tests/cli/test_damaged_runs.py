"""A run folder that was damaged or mixed up is refused or mended, and never read as if it were.

Whatever is done to a file, `sonde report` gives the same numbers as before or ends with exit code 5
and a sentence, and the same `sonde run` mends the folder or does the same.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pytest

from sonde.core.errors import StoreError
from sonde.runs.run import open_run
from tests.command import Done, Sonde, override, ran
from tests.written import two_relations

STORE = StoreError.exit_code
SHARD = "shards/00001.parquet"


class Damaged:
    """A finished run of four shards and the command that made it."""

    def __init__(self, sonde: Sonde, home: Path) -> None:
        self.sonde = sonde
        self.data, self.out = home / "data", home / "out"
        self.numbers = self.report()
        assert len(list(self.out.glob("shards/*.parquet"))) == 4
        self.good = {p: p.read_bytes() for p in self.out.rglob("*") if p.is_file()}

    def run(self, *more: str) -> Done:
        return self.sonde(*words(self.out.parent, *more))

    def report(self, done: Done | None = None) -> dict[str, Any]:
        """The numbers of a report, of a new one unless it is given."""
        done = done or self.sonde("report", self.out, "--json")
        assert done.code == 0, done
        body: dict[str, Any] = json.loads(done.out, parse_constant=pytest.fail)
        kept = body["provenance"]["run"]  # how long it took is another time's
        body["provenance"]["run"] = {k: kept[k] for k in ("fingerprint", "shards", "prompts")}
        return body

    def restore(self) -> None:
        """As it was when it was finished."""
        shutil.rmtree(self.out)
        for path, data in self.good.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)

    def edit(self, name: str, change: Callable[[Any], Any]) -> None:
        """Change a JSON file."""
        path = self.out / name
        path.write_text(json.dumps(change(json.loads(path.read_text()))))

    def survives(self) -> None:
        """Hold that it is refused in words or gives its numbers, now and after a new run."""
        for act in (self.run, lambda: None):
            done = self.sonde("report", self.out, "--json")
            if done.code:
                done.refused(STORE, str(self.out))
                assert any(word in done.err for word in ("again", "give another", "remove")), done
            else:
                assert self.report(done) == self.numbers
            again = act()
            if again and again.code:
                again.refused(STORE, str(self.out))


def words(home: Path, *more: str) -> tuple[object, ...]:
    """The command that makes the run."""
    data = ("--answer", "score", "-d", home / "data", "-o", home / "out", "--no-html")
    return ("run", "lama", "-m", "control:majority", *override(data, more))


@pytest.fixture(autouse=True, scope="module")
def _small_shards() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sonde.runs.shards.SHARD_WEIGHT", 8)
        yield


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset and a run on it."""
    home = tmp_path_factory.mktemp("finished")
    two_relations(home / "data")
    ran(*words(home))
    return home


@pytest.fixture
def run(sonde: Sonde, finished: Path, tmp_path: Path) -> Damaged:
    """A copy of the finished run."""
    return Damaged(sonde, shutil.copytree(finished, tmp_path, dirs_exist_ok=True))


def mended(run: Damaged, *complaint: str) -> None:
    """Assert that a report is refused, and that a new run mends it."""
    run.sonde("report", run.out).refused(STORE, *complaint, "the same run again")
    done = run.run()
    assert done.code == 0, done
    assert run.report() == run.numbers


def test_a_shard_without_a_digest_is_not_read(
    run: Damaged, caplog: pytest.LogCaptureFixture
) -> None:
    (run.out / "complete.json").write_text('{"shards": 4, "prompts": 8}')  # as it once was
    digests = run.out / "shards.sha256"
    digests.write_text("".join(digests.read_text().splitlines(keepends=True)[:-1]))
    mended(run, "00003.parquet", "no digest")
    assert f"put aside as {run.out / 'quarantine' / '00003.parquet.0'}" in caplog.text
    assert len(digests.read_text().splitlines()) == 4


@pytest.mark.parametrize("name", ["00004", "00007", "000001"])
def test_a_shard_too_many_is_not_read(
    run: Damaged, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    extra = run.out / "shards" / f"{name}.parquet"
    shutil.copy(run.out / SHARD, extra)
    with (run.out / "shards.sha256").open("a") as file:  # even one with a digest
        line = (run.out / "shards.sha256").read_text().splitlines()[1]
        file.write(line.replace("00001", name) + "\n")
    mended(run, f"{extra} is none of the run's 4 shards")
    aside = run.out / "quarantine" / f"{name}.parquet.0"
    assert f"put aside as {aside}" in caplog.text
    assert aside.read_bytes() == run.good[run.out / SHARD]


@pytest.fixture
def other(run: Damaged, tmp_path: Path) -> Path:
    """The folder of a run that asked the same of another model."""
    out = tmp_path / "other"
    words = ("--answer", "score", "--no-html", "-d", run.data, "-o", out)
    assert run.sonde("run", "lama", "-m", "scripted:", *words).code == 0
    return out


def test_the_digests_of_another_run_do_no_harm(run: Damaged, other: Path) -> None:
    shutil.copy(other / "shards.sha256", run.out)
    assert run.report() == run.numbers
    assert run.run().code == 0
    assert (run.out / "shards.sha256").read_bytes() == run.good[run.out / "shards.sha256"]


@pytest.mark.parametrize(
    "names",
    [
        ("shards", "shards.sha256"),
        ("shards", "shards.sha256", "complete.json"),
        ("shards", "shards.sha256", "dataset"),
        ("complete.json",),
        ("manifest.json",),
    ],
    ids=str,
)
def test_parts_of_another_run_are_not_read(
    run: Damaged, other: Path, names: tuple[str, ...]
) -> None:
    for name in names:
        if (other / name).is_dir():
            shutil.rmtree(run.out / name)
            shutil.copytree(other / name, run.out / name)
        else:
            shutil.copy(other / name, run.out / name)
    run.sonde("report", run.out).refused(STORE)


def test_the_dataset_of_another_run_is_not_read(run: Damaged, tmp_path: Path) -> None:
    elsewhere = two_relations(tmp_path / "elsewhere")
    facts = elsewhere / "facts" / "P36.jsonl"
    facts.write_text(facts.read_text().replace("Paris", "Rome"))
    shutil.rmtree(run.out / "dataset")
    assert run.sonde("data", "convert", elsewhere, "-o", run.out / "dataset").code == 0
    mended(run, "the run's own copy of its dataset")


JSON = ("[]", "[1, 2]", "null", "true", "3", '"text"', "{}", "", "{", "\ufeff{}", "[" * 20000)

COMPLETE = [
    {"shards": shards, "prompts": prompts}
    for shards, prompts in [
        (-1, 8), (0, 0), (3, 8), (5, 8), ("4", 8), (True, 8), (4, 7), (4, 9), (4, "8"), (4, False),
        (4.0, 8), (4, 8.5), (None, 8), ([4], 8), (4, {}), (10**30, 8), (4, 10**30), (4, -8),
    ]
]  # fmt: skip


def test_a_complete_json_that_is_none_is_refused(run: Damaged) -> None:
    for text in (*JSON, *map(json.dumps, COMPLETE)):
        (run.out / "complete.json").write_text(text)
        run.sonde("report", run.out).refused(STORE, str(run.out), "the same run again")


@pytest.mark.parametrize("text", [*JSON[:1], *JSON[-2:], *map(json.dumps, COMPLETE[:3])])
def test_a_complete_json_that_is_none_is_written_anew(run: Damaged, text: str) -> None:
    (run.out / "complete.json").write_text(text)
    mended(run)
    assert (run.out / "complete.json").read_bytes() == run.good[run.out / "complete.json"]


TIMINGS = (
    *JSON, "\0\x01", '{"seconds": "1"}', '{"seconds": null}', '{"seconds": true}',
    '{"seconds": NaN}', '{"seconds": Infinity}', '{"seconds": 1e999}', '{"seconds": -1}',
    '{"seconds": [1]}', '{"seconds": 1' + "0" * 400 + "}", '{"seconds": 1, "model": NaN}',
    '{"seconds": 1, "model": ' + "[" * 900 + "]" * 900 + "}", '{"seconds": 1, "prompts": "x"}',
)  # fmt: skip


def test_lines_of_timings_that_are_none_are_passed_over(run: Damaged) -> None:
    path = run.out / "timings.jsonl"
    path.write_bytes(b"\xff\xfe\n" + "\n".join(TIMINGS).encode() + b"\n" + path.read_bytes())
    assert run.report() == run.numbers
    done = run.sonde("report", run.out, "--json", "--html", run.out / "page.html")
    assert len(json.loads(done.out)["provenance"]["run"]["sessions"]) == 1
    assert run.run().code == 0


def values(body: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The place of every value in a JSON object."""
    for key, value in body.items():
        yield (*path, key)
        if isinstance(value, dict):
            yield from values(value, (*path, key))


def replaced(body: Any, path: tuple[str, ...], value: Any) -> Any:
    """The body with another value at a place, or without it."""
    key, *rest = path
    if rest:
        return {**body, key: replaced(body[key], tuple(rest), value)}
    return {k: v for k, v in body.items() if k != key} | ({} if value is ... else {key: value})


WRONG: tuple[Any, ...] = (..., None, True, -1, "\ud800", [1], {"x": []})


def test_a_manifest_with_wrong_values_is_refused_or_harmless(run: Damaged) -> None:
    """Of a run that was finished before there were seals."""
    good = json.loads(run.good[run.out / "manifest.json"])
    run.edit("complete.json", lambda body: {k: body[k] for k in ("shards", "prompts")})
    for path, value in product(values(good), WRONG):
        (run.out / "manifest.json").write_text(json.dumps(replaced(good, path, value)))
        try:
            open_run(run.out)
        except StoreError:
            continue
        done = run.sonde("report", run.out, "--json")
        if done.code:
            done.refused(STORE, str(run.out))
        else:
            assert json.loads(done.out)["estimates"] == run.numbers["estimates"], (path, value)


def test_a_sealed_manifest_is_read_as_it_was_written_or_not_at_all(run: Damaged) -> None:
    good = json.loads(run.good[run.out / "manifest.json"])
    for path, value in product(values(good), WRONG):
        (run.out / "manifest.json").write_text(json.dumps(replaced(good, path, value)))
        with pytest.raises(StoreError):
            open_run(run.out)
    changed = replaced(good, ("model", "details"), {"device": "none"})
    (run.out / "manifest.json").write_text(json.dumps(changed))
    mended(run, "manifest.json is not as it was when the run ended")
    assert (run.out / "manifest.json").read_bytes() == run.good[run.out / "manifest.json"]


def test_a_manifest_that_is_none_is_refused(run: Damaged) -> None:
    for text in JSON:
        (run.out / "manifest.json").write_text(text)
        for done in (run.sonde("report", run.out), run.run()):
            done.refused(STORE, str(run.out / "manifest.json"), "give another folder")
    assert (run.out / SHARD).read_bytes() == run.good[run.out / SHARD]


DAMAGE: dict[str, Callable[[bytes, Random], bytes]] = {
    "flip": lambda data, random: _at(data, random, lambda c: bytes([c ^ 1 << random.randrange(8)])),
    "drop": lambda data, random: _at(data, random, lambda c: b""),
    "zero": lambda data, random: _at(data, random, lambda c: b"\0"),
    "twice": lambda data, random: data + data,
    "cut": lambda data, random: data[: random.randrange(len(data))],
    "noise": lambda data, random: random.randbytes(random.randrange(200)),
    "more": lambda data, random: data + random.randbytes(random.randrange(1, 20)),
    "lines": lambda data, random: b"".join(
        random.sample(lines := data.splitlines(keepends=True), len(lines))
    ),
    "empty": lambda data, random: b"",
}


def _at(data: bytes, random: Random, change: Callable[[int], bytes]) -> bytes:
    at = random.randrange(len(data))
    return data[:at] + change(data[at]) + data[at + 1 :]


def fuzz(run: Damaged, seed: str, rounds: int) -> None:
    """Damage a file in some way, or lose one and put another in the place of a third."""
    random = Random(seed)
    names = sorted(path for path in run.good if path.name != ".lock")
    for number in range(rounds):
        run.restore()
        path, one, two = random.sample(names, 3)
        if number % 5:
            path.write_bytes(DAMAGE[random.choice(list(DAMAGE))](run.good[path], random))
        else:
            one.write_bytes(run.good[two])
            path.unlink()
        run.survives()


def test_no_damage_gives_a_wrong_number(run: Damaged) -> None:
    fuzz(run, "quick", 15)


@pytest.mark.slow
@pytest.mark.parametrize("seed", ["a", "b", "c", "d"])
def test_no_damage_gives_a_wrong_number_however_often(run: Damaged, seed: str) -> None:
    fuzz(run, seed, 100)


LINKED = ("shards/.lock", "shards.sha256", "timings.jsonl")


@pytest.mark.parametrize("name", LINKED)
def test_nothing_is_written_through_a_link(run: Damaged, tmp_path: Path, name: str) -> None:
    mine = tmp_path / "mine"
    mine.write_text("mine")
    (run.out / name).unlink()
    (run.out / name).symlink_to(mine)
    (run.out / SHARD).write_bytes(b"")
    run.run().refused(STORE, f"{run.out / name} is a link")
    assert mine.read_text() == "mine"


@pytest.mark.parametrize("name", ["shards", "dataset", "quarantine"])
def test_no_folder_behind_a_link_is_written_to(run: Damaged, tmp_path: Path, name: str) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "letter.partial").write_text("mine")
    shutil.rmtree(run.out / name, ignore_errors=True)
    (run.out / name).symlink_to(mine)
    run.run().refused(STORE, f"{run.out / name} is a link")
    assert [path.name for path in mine.iterdir()] == ["letter.partial"]


WHOLE = (
    "complete.json", "shards/00001.parquet", "dataset/dataset.json", "dataset/facts/P36.parquet",
)  # fmt: skip


def test_a_link_in_the_place_of_a_file_or_of_its_half_is_replaced(
    run: Damaged, tmp_path: Path
) -> None:
    mine = tmp_path / "mine"
    mine.write_text("mine")
    for suffix in ("", ".partial"):
        run.restore()
        for name in WHOLE:
            (run.out / name).unlink()
            (run.out / (name + suffix)).symlink_to(mine)
        (run.out / f"report.html{suffix}").symlink_to(mine)
        assert run.run("--html").code == 0
        (run.out / f"page.html{suffix}").symlink_to(mine)
        assert run.sonde("report", run.out, "--html", run.out / "page.html").code == 0
        assert run.report() == run.numbers
        assert mine.read_text() == "mine"
