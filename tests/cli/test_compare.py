"""`sonde compare`: which of finished runs is better; they are named by what differs."""

from __future__ import annotations

import json
from pathlib import Path
from shutil import copytree

import pytest

from sonde.compare.conditions import conditions, open_runs
from tests.command import Sonde, ran
from tests.written import CAPITALS, dataset

ATLAS = ("-d", "atlas", "--relations", "P30,P36", "--limit", "3", "--no-html")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs on atlas: a control that knows the most common object, and a model without answers."""
    home = tmp_path_factory.mktemp("finished")
    for name, model in (("majority", "control:majority"), ("nothing", "scripted:")):
        ran("run", "belief", "-m", model, *ATLAS, "-o", home / name)
    return home


@pytest.fixture
def folder(finished: Path, tmp_path: Path) -> Path:
    """A copy of the finished runs."""
    return copytree(finished, tmp_path, dirs_exist_ok=True)


def icl(sonde: Sonde, out: Path, *more: str, data: str = "atlas") -> Path:
    words = ("-m", "control:majority", "--relations", "P30", "--limit", "3", "--no-html")
    assert sonde("run", "belief-icl", *words, "-d", data, *more, "-o", out).code == 0
    return out


def groups_of(runs: list[Path], groups: str) -> dict[str, str]:
    return {name: c.group for name, c in conditions(open_runs(runs), groups=groups).items()}


def test_two_runs_are_compared_and_written(sonde: Sonde, folder: Path) -> None:
    done = sonde("compare", folder / "majority", folder / "nothing", "-o", folder / "both")
    assert done.code == 0, done.err
    assert "majority and scripted are tied: 0.0 points" in done.out
    assert "6 shared facts" in " ".join(done.out.split())
    page = (folder / "both" / "report.html").read_text()
    for words in ("are tied: 0.0 points", "Where they differ", "Other numbers"):
        assert words in page, words


def test_the_former_name_of_the_verb_is_understood_and_not_listed(
    sonde: Sonde, folder: Path
) -> None:
    words = (folder / "majority", folder / "nothing", "--json")
    now, before = (json.loads(sonde(verb, *words).out) for verb in ("compare", "analyse"))
    assert now == before
    assert "compare" in sonde("--help").out and "analyse" not in sonde("--help").out


def test_json_has_the_verdict_the_estimates_and_where_they_come_from(
    sonde: Sonde, folder: Path
) -> None:
    printed = json.loads(sonde("compare", folder / "majority", folder / "nothing", "--json").out)
    verdict = printed["verdict"]
    assert verdict["sentence"] == printed["title"]
    assert verdict["word"] == "none" and verdict["facts"] == 6
    assert verdict["best"] == ["majority", "scripted"]
    named = printed["estimates"]["run.scripted.acc_at_1.difference.from.majority"]
    assert verdict["difference"]["value"] == pytest.approx(named["value"])
    assert named["p"] > 0.05
    assert set(printed["provenance"]) == {"majority", "scripted"}
    assert printed["provenance"]["majority"]["probe"]["name"] == "belief"


def test_ci_fails_if_the_second_run_is_worse(sonde: Sonde, tmp_path: Path) -> None:
    words = ("-d", "atlas", "--relations", "P30,P103", "--limit", "30", "--no-html")
    for name, model in (("good", "control:majority"), ("bad", "scripted:")):
        ran("run", "lama", "-m", model, "--answer", "score", *words, "-o", tmp_path / name)
    good, bad = tmp_path / "good", tmp_path / "bad"
    assert sonde("compare", good, bad, "--fail-if-worse").code == 1
    assert sonde("compare", bad, good, "--fail-if-worse").code == 0
    assert sonde("compare", good, bad).code == 0


def test_other_differences_than_the_models_are_warned_of(sonde: Sonde, tmp_path: Path) -> None:
    zero = icl(sonde, tmp_path / "zero", "--context", "zero-shot")
    two = icl(sonde, tmp_path / "two", "--context", "relation")
    done = sonde("compare", zero, two, "--json")
    assert "warning: Settings differ (context zero-shot / relation" in " ".join(done.err.split())


def test_runs_are_named_by_the_settings_that_differ(sonde: Sonde, tmp_path: Path) -> None:
    zero = icl(sonde, tmp_path / "zero", "--context", "zero-shot")
    asks = icl(sonde, tmp_path / "qa", "--context", "template", "--style", "qa")
    two = icl(sonde, tmp_path / "two", "--context", "template", "--shots", "2")
    runs = [zero, asks, two]
    names = ["mask zero-shot shots=4", "qa template shots=4", "mask template shots=2"]
    assert list(open_runs(runs)) == names
    assert list(groups_of(runs, "context").values()) == ["zero-shot", "template", "template"]
    assert list(groups_of(runs, "family").values()) == ["unknown (majority)"] * 3
    assert list(groups_of(runs, "x, y,y").values()) == ["x", "y", "y"]
    done = sonde("compare", *runs, "--groups", "context", "--all-tables")
    assert done.code == 0, done.err


def test_settings_are_compared_with_those_of_the_same_probe(sonde: Sonde, folder: Path) -> None:
    zero = icl(sonde, folder / "zero", "--context", "zero-shot")
    four = icl(sonde, folder / "four", "--context", "relation")
    runs = [zero, four, folder / "majority"]
    done = sonde("compare", zero, folder / "majority")
    assert "same model, different probe" in " ".join(done.out.split())
    assert list(open_runs(runs)) == ["belief-icl zero-shot", "belief-icl relation", "belief"]
    assert list(groups_of(runs, "context").values()) == ["zero-shot", "relation", "none"]


def test_runs_that_do_not_differ_are_named_by_their_folders(sonde: Sonde, tmp_path: Path) -> None:
    runs = [
        icl(sonde, tmp_path / name, *more) for name, more in (("a", ()), ("b", ("--seed", "1")))
    ]
    assert list(open_runs(runs)) == ["majority a", "majority b"]


def test_families_come_from_the_table_of_models(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = folder / "models.toml"
    table.write_text('[[model]]\nname = "majority"\nfamily = "control"\n')
    monkeypatch.setenv("SONDE_MODELS", str(table))
    groups = groups_of([folder / "majority", folder / "nothing"], "family")
    assert groups == {"majority": "control", "scripted": "unknown (scripted)"}


def test_bad_requests_are_rejected(sonde: Sonde, folder: Path, data: Path) -> None:
    majority, nothing = folder / "majority", folder / "nothing"
    sonde("compare", majority).refused(2, "at least two runs")
    sonde("compare", majority, majority).refused(2, "listed twice")
    sonde("compare", majority, folder / "nowhere").refused(5, "nowhere")
    sonde("compare", majority, nothing, "--groups", "contxt").refused(2, "'contxt'", "known")
    sonde("compare", majority, nothing, "--groups", "a,b,c").refused(2, "3 groups for 2 runs")
    sonde("compare", majority, nothing, "--models", folder / "none.toml").refused(3, "none.toml")
    sonde("compare", majority, nothing, "--relations", "P31").refused(2, "'P31'", "did you mean")
    sonde("compare", majority, nothing, "--easy", "a").refused(2, "--paper")
    other = folder / "other"
    words = ("-d", data, "--relations", "P37", "--no-html", "-o", other)
    assert sonde("run", "belief", "-m", "control:majority", *words).code == 0
    sonde("compare", majority, other).refused(2, "atlas", "world", "share no fact")


def test_facts_of_a_corrected_dataset_are_compared_where_they_state_the_same(
    sonde: Sonde, tmp_path: Path
) -> None:
    capital = "The capital of [X] is [Y]."
    before = dataset(tmp_path / "before", {"P36": (capital, CAPITALS)})
    corrected = {**CAPITALS, "Chile": "Valparaíso", "Peru": "Lima"}
    after = dataset(tmp_path / "after", {"P36": (capital, corrected)})
    for data in (before, after):
        words = ("run", "lama", "-m", "control:majority", "-d", data, "--answer", "score")
        assert sonde(*words, "--no-html", "-o", tmp_path / f"run-{data.name}").code == 0
    done = sonde("compare", tmp_path / "run-before", tmp_path / "run-after")
    assert done.code == 0, done.err
    text = " ".join(done.out.replace("│", " ").split())
    assert "Dataset contents differ" in text
    assert "their options to choose from may differ" in text
    assert "3 shared facts" in " ".join(done.out.split()), "Chile has another capital"


def test_an_unfinished_run_is_rejected(sonde: Sonde, folder: Path) -> None:
    (folder / "nothing" / "complete.json").unlink()
    sonde("compare", folder / "majority", folder / "nothing").refused(
        5, "nothing", "unfinished run"
    )


def test_a_damaged_run_next_to_sound_ones_is_rejected(sonde: Sonde, folder: Path) -> None:
    copytree(folder / "nothing", folder / "damaged")
    shard = min((folder / "damaged" / "shards").glob("*.parquet"))
    shard.write_bytes(shard.read_bytes()[:100])
    runs = (folder / "majority", folder / "damaged", folder / "nothing")
    sonde("compare", *runs).refused(5, "damaged", "is corrupt", "start the same run again")


def test_groups_of_runs_are_shown(sonde: Sonde, folder: Path) -> None:
    runs = [folder / "majority", folder / "nothing", icl(sonde, folder / "icl")]
    done = sonde("compare", *runs, "--groups", "a,b,a")
    table = [line.split() for line in done.out.splitlines() if ", rank 1" in line]
    assert sorted(words[-1] for words in table) == ["a", "a", "b"], done.out + done.err


def test_a_page_that_cannot_be_written_is_reported(sonde: Sonde, folder: Path) -> None:
    (folder / "file").write_text("")
    done = sonde("compare", folder / "majority", folder / "nothing", "-o", folder / "file")
    done.refused(5, "cannot be written")
