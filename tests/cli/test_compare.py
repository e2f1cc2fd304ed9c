"""`sonde compare`: which of finished runs is better; they are named by what sets them apart."""

from __future__ import annotations

import json
from pathlib import Path
from shutil import copytree

import pytest
from sonde.runs.compare import group_names, names, opened

from sonde.runs.run import Run
from tests.command import Sonde, ran
from tests.written import CAPITALS, dataset

ATLAS = ("-d", "atlas", "--relations", "P30,P36", "--limit", "3", "--no-html")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of atlas: a control that knows the commonest object, and a model that knows nothing."""
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


def test_two_runs_are_compared_and_written(sonde: Sonde, folder: Path) -> None:
    done = sonde("compare", folder / "majority", folder / "nothing", "-o", folder / "both")
    assert done.code == 0, done.err
    first = done.out.strip().splitlines()[0]
    assert first.startswith("majority and scripted cannot be told apart: ")
    for words in ("2 runs of belief on atlas", "6 facts of 2 relations"):
        assert words in " ".join(done.out.split())
    page = (folder / "both" / "report.html").read_text()
    for words in (first[:50], "Differences by relation", "What was asked, and what it took"):
        assert words in page, words


def test_the_former_name_of_the_verb_is_understood_and_not_listed(
    sonde: Sonde, folder: Path
) -> None:
    words = (folder / "majority", folder / "nothing", "--json")
    now, before = (json.loads(sonde(verb, *words).out) for verb in ("compare", "analyse"))
    assert now == before
    assert "compare" in sonde("--help").out and "analyse" not in sonde("--help").out


def test_json_has_the_verdict_in_words_and_numbers(sonde: Sonde, folder: Path) -> None:
    printed = json.loads(sonde("compare", folder / "majority", folder / "nothing", "--json").out)
    verdict = printed["verdict"]
    assert verdict["sentence"] == printed["title"]
    assert verdict["word"] == "cannot be told apart" and verdict["facts"] == 6
    named = printed["estimates"]["difference.runs.scripted.minus.majority"]
    assert verdict["difference"] == named and named["p"] > 0.05
    assert verdict["best"] == ["majority", "scripted"]


def test_what_differs_beside_the_models_is_said_before_any_number(
    sonde: Sonde, tmp_path: Path
) -> None:
    zero = icl(sonde, tmp_path / "zero", "--context", "zero-shot")
    two = icl(sonde, tmp_path / "two", "--context", "relation")
    done = sonde("compare", zero, two)
    assert "different settings (context zero-shot / relation" in done.err
    summary = " ".join(done.out.partition("Headline numbers")[0].split())
    assert "Take care: They were asked or read with different settings" in summary


def test_json_has_every_estimate_and_the_provenance_of_each_run(sonde: Sonde, folder: Path) -> None:
    done = sonde("compare", folder / "majority", folder / "nothing", "--json")
    printed = json.loads(done.out)
    assert printed["estimates"]["consist.run.majority"]["value"] == 1
    assert "sharing.runs.majority.in.scripted" in printed["estimates"]
    assert printed["counts"]["runs"] == 2
    assert set(printed["provenance"]) == {"majority", "scripted"}
    assert printed["provenance"]["majority"]["probe"]["name"] == "belief"


def test_runs_are_named_by_the_settings_that_differ(sonde: Sonde, tmp_path: Path) -> None:
    zero = icl(sonde, tmp_path / "zero", "--context", "zero-shot")
    asks = icl(sonde, tmp_path / "qa", "--context", "template", "--style", "qa")
    two = icl(sonde, tmp_path / "two", "--context", "template", "--shots", "2")
    runs = opened([zero, asks, two])
    assert list(runs) == ["mask zero-shot shots=4", "qa template shots=4", "mask template shots=2"]
    stored = list(runs.values())
    assert group_names(stored, "context") == ["zero-shot", "template", "template"]
    assert group_names(stored, "family") == ["unknown (majority)"] * 3
    assert group_names(stored, "x, y,y") == ["x", "y", "y"]
    done = sonde("compare", zero, asks, two, "--groups", "context", "--all-tables")
    assert done.code == 0, done.err
    assert "Left out: " in " ".join(done.out.split()), "QA asks question templates only"


def test_settings_are_compared_with_those_of_the_same_probe(sonde: Sonde, folder: Path) -> None:
    zero = icl(sonde, folder / "zero", "--context", "zero-shot")
    four = icl(sonde, folder / "four", "--context", "relation")
    runs = opened([zero, four, folder / "majority"])
    done = sonde("compare", zero, folder / "majority")
    assert "different probe: belief-icl and belief" in " ".join(done.out.split())
    assert list(runs) == ["belief-icl zero-shot", "belief-icl relation", "belief"]
    assert group_names(list(runs.values()), "context") == ["zero-shot", "relation", "none"]


def test_runs_that_do_not_differ_are_named_by_their_folders(sonde: Sonde, tmp_path: Path) -> None:
    runs = [
        icl(sonde, tmp_path / name, *more) for name, more in (("a", ()), ("b", ("--seed", "1")))
    ]
    assert list(opened(runs)) == ["majority a", "majority b"]


def test_families_come_from_the_table_of_models(
    sonde: Sonde, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = folder / "models.toml"
    table.write_text('[[model]]\nname = "majority"\nfamily = "control"\n')
    monkeypatch.setenv("SONDE_MODELS", str(table))
    runs = opened([folder / "majority", folder / "nothing"])
    assert names(list(runs.values())) == ["majority", "scripted"]
    assert group_names(list(runs.values()), "family") == ["control", "unknown (scripted)"]


def test_an_option_names_a_table_of_models_that_wins(
    sonde: Sonde, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual, own = folder / "usual.toml", folder / "own.toml"
    usual.write_text('[[model]]\nname = "majority"\nfamily = "usual"\n')
    own.write_text('[[model]]\nname = "majority"\nfamily = "chosen"\n')
    monkeypatch.setenv("SONDE_MODELS", str(usual))
    runs = (folder / "majority", folder / "nothing")
    done = sonde("compare", *runs, "--models", own, "--all-tables")
    assert done.code == 0, done.err
    assert "chosen" in done.out and "usual" not in done.out
    said = " ".join(done.out.split())
    assert "Family unknown, because the table of models does not have them: scripted" in said
    sonde("compare", *runs, "--models", folder / "none.toml").refused(3, "none.toml", "missing")


def test_what_cannot_be_compared_is_refused(
    sonde: Sonde, folder: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    majority, nothing = folder / "majority", folder / "nothing"
    sonde("compare", majority).refused(2, "at least two runs")
    sonde("compare", majority, majority).refused(2, "given twice")
    sonde("compare", majority, folder / "nowhere").refused(5, "nowhere")
    sonde("compare", majority, nothing, "--groups", "contxt").refused(2, "'contxt'", "known")
    sonde("compare", majority, nothing, "--groups", "a,b,c").refused(2, "3 groups for 2 runs")
    with monkeypatch.context() as patched:
        patched.setattr(Run, "probe", lambda *_: object())
        refused = sonde("compare", majority, nothing).refused(2, "probe 'belief'", "belief-icl")
    assert str(majority) in refused
    other = folder / "other"
    words = ("-d", data, "--relations", "P37", "--no-html", "-o", other)
    asked = ("run", "belief", "-m", "control:majority", *words)
    assert sonde(*asked).code == 0
    sonde("compare", majority, other).refused(2, "atlas", "world", "share no fact")


def test_facts_of_a_corrected_dataset_are_compared_where_they_say_the_same(
    sonde: Sonde, tmp_path: Path
) -> None:
    capital = "The capital of [X] is [Y]."
    before = dataset(tmp_path / "before", {"P36": (capital, CAPITALS)})
    mended = {**CAPITALS, "Chile": "Valparaíso", "Peru": "Lima"}
    after = dataset(tmp_path / "after", {"P36": (capital, mended)})
    for data in (before, after):
        words = ("run", "lama", "-m", "control:majority", "-d", data, "--answer", "score")
        assert sonde(*words, "--no-html", "-o", tmp_path / f"run-{data.name}").code == 0
    done = sonde("compare", tmp_path / "run-before", tmp_path / "run-after")
    assert done.code == 0, done.err
    assert "take care: Their datasets are not the same" in done.err
    assert "different answers to choose from in 1 relation (P36)" in done.err
    said = " ".join(done.out.split())
    assert "on 3 facts asked of both" in said, "Chile has another capital, Peru is new"
    assert "75% of majority run-before's, 60% of majority run-after's" in said


def test_an_unfinished_run_is_refused(sonde: Sonde, folder: Path) -> None:
    (folder / "nothing" / "complete.json").unlink()
    sonde("compare", folder / "majority", folder / "nothing").refused(
        5, "nothing", "unfinished run"
    )


def test_runs_of_different_facts_share_nothing(sonde: Sonde, folder: Path) -> None:
    out = folder / "elsewhere"
    words = ("-m", "control:majority", "-d", "atlas", "--relations", "P37", "--limit", "3")
    assert sonde("run", "belief", *words, "--no-html", "-o", out).code == 0
    sonde("compare", folder / "majority", out).refused(2, "share no fact")


def test_runs_are_compared_on_the_facts_of_both_though_subjects_have_several_objects(
    sonde: Sonde, tmp_path: Path
) -> None:
    words = ("-m", "control:majority", "-d", "atlas", "--relations", "P37,P47", "--no-html")
    for limit in ("8", "4"):
        asked = ("run", "lama", *words, "--limit", limit, "-o", tmp_path / limit)
        assert sonde(*asked).code == 0
    done = sonde("compare", tmp_path / "8", tmp_path / "4")
    assert done.code == 0, done.err
    assert "8 facts of 2 relations" in " ".join(done.out.split())


def test_a_page_that_cannot_be_written_is_said(sonde: Sonde, folder: Path) -> None:
    (folder / "file").write_text("")
    done = sonde("compare", folder / "majority", folder / "nothing", "-o", folder / "file")
    done.refused(5, "cannot be written")
