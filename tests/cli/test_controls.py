"""`sonde run PROBE --controls`: run into the run's folder, shown beside its score."""

from __future__ import annotations

import json
from pathlib import Path
from shutil import copytree

import pytest

from tests import tiny
from tests.command import Sonde, ran

ATLAS = ("-d", "atlas", "--relations", "P30,P36", "--limit", "4", "--no-html")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """LAMA of a table that knows one fact, with the counting controls."""
    home = tmp_path_factory.mktemp("finished")
    table = home / "one.json"
    table.write_text(json.dumps({"answers": {"P30:Q217": "Europe"}}))
    words = ("run", "lama", "-m", f"scripted:{table}", *ATLAS, "-o", home / "run")
    ran(*words, "--controls", "majority,class-prior,naive-bayes")
    return home


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    """A copy of the finished run."""
    return copytree(finished / "run", tmp_path / "run")


def test_controls_stand_beside_the_score_in_every_report(sonde: Sonde, run: Path) -> None:
    done = sonde("report", run, "--html", run.parent / "page.html")
    assert done.code == 0, done.err
    assert "naive-bayes" in done.out
    whole = sonde("report", run, "--all-tables").out
    assert "P@1: difference by control" in whole and "naive-bayes" in whole
    assert "class-prior" in (run.parent / "page.html").read_text()


def test_every_difference_is_that_of_two_scores(sonde: Sonde, run: Path) -> None:
    found = json.loads(sonde("report", run, "--json").out)["estimates"]
    own = json.loads(sonde("report", run / "controls" / "naive-bayes", "--json").out)["estimates"]
    for over in ("", ".facts", ".relation.P30", ".relation.P36"):
        model, control = found[f"p_at_1{over}"], found[f"control.naive-bayes.p_at_1{over}"]
        difference = found[f"p_at_1.difference{over}.from.naive-bayes"]
        assert control["value"] == own[f"p_at_1{over}"]["value"]
        assert difference["value"] == pytest.approx(model["value"] - control["value"])
        assert 0 < difference.get("p", 1) <= 1
    against = found["p_at_1.difference.from.majority"], found["p_at_1.difference"]
    assert against[0]["value"] == against[1]["value"]


def test_reading_controls_writes_nothing(sonde: Sonde, run: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in run.rglob("*")}
    assert sonde("report", run).code == 0
    assert {path: path.stat().st_mtime_ns for path in run.rglob("*")} == before


def test_finished_controls_are_not_asked_again(
    sonde: Sonde, finished: Path, run: Path, caplog: pytest.LogCaptureFixture
) -> None:
    words = ("run", "lama", "-m", f"scripted:{finished / 'one.json'}", *ATLAS, "-o", run)
    caplog.clear()
    assert sonde(*words, "--controls", "majority").code == 0
    assert f"{run / 'controls' / 'majority'} was complete" in caplog.text


def test_an_unfinished_control_is_left_out_aloud(
    sonde: Sonde, run: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (run / "controls" / "majority" / "complete.json").unlink()
    done = sonde("report", run)
    assert done.code == 0, done.err
    assert "Control majority is not shown" in caplog.text
    assert "naive-bayes" in done.out


def test_a_control_of_other_prompts_is_not_shown(
    sonde: Sonde, run: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    other = tmp_path / "other"
    few = ("-d", "atlas", "--relations", "P30", "--limit", "2", "--no-html")
    assert sonde("run", "lama", "-m", "control:majority", *few, "-o", other).code == 0
    (run / "controls" / "majority").rename(tmp_path / "aside")
    other.rename(run / "controls" / "majority")
    assert "majority," not in sonde("report", run, "--all-tables").out
    assert "it was asked other prompts" in caplog.text


def test_a_control_that_cannot_answer_is_left_out_aloud(
    sonde: Sonde, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    words = ("run", "lama", "-m", "control:majority", *ATLAS, "-o", tmp_path / "run")
    done = sonde(*words, "--controls", "all")
    assert done.code == 0, done.err
    assert "control random is left out" in caplog.text
    assert not (tmp_path / "run" / "controls" / "random").exists()
    assert "class-prior" in done.out and "random" not in done.out


def test_a_dataset_without_training_facts_has_no_fitted_control(
    sonde: Sonde, data: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    words = ("run", "lama", "-m", "control:majority", "-d", data, "-o", tmp_path / "run")
    done = sonde(*words, "--no-html", "--controls", "naive-bayes")
    assert done.code == 0, done.err
    assert "control naive-bayes is left out" in caplog.text and "training facts" in caplog.text


def test_an_unknown_control_is_refused_before_anything_is_run(sonde: Sonde, tmp_path: Path) -> None:
    words = ("run", "lama", "-m", "control:majority", *ATLAS, "-o", tmp_path / "run")
    sonde(*words, "--controls", "majorty").refused(2, "no control called 'majorty'", "'majority'")
    assert not (tmp_path / "run").exists()


def test_random_models_are_controls_of_a_real_one(sonde: Sonde, tmp_path: Path) -> None:
    model = tiny.bert(tmp_path / "model")
    words = ("run", "lama", "-m", f"hf:{model}", *ATLAS, "-o", tmp_path / "run")
    done = sonde(*words, "--set", "answer=score", "--controls", "random,random-embeddings")
    assert done.code == 0, done.err
    for name in ("random", "random-embeddings"):
        manifest = json.loads((tmp_path / "run/controls" / name / "manifest.json").read_text())
        assert manifest["model"]["name"] == f"{name}:hf:{model}"


def test_a_study_with_several_passes_has_controls_too(sonde: Sonde, tmp_path: Path) -> None:
    words = ("run", "lke-shots", "-m", "control:majority", *ATLAS, "-o", tmp_path / "run")
    done = sonde(*words, "--set", "shots=1,2", "--set", "seeds=2", "--controls", "naive-bayes")
    assert done.code == 0, done.err
    assert "naive-bayes" in done.out


def test_a_run_of_belief_has_controls_too(sonde: Sonde, tmp_path: Path) -> None:
    few = ("-d", "atlas", "--relations", "P30", "--limit", "3", "--no-html")
    words = ("run", "belief", "-m", "scripted:", *few, "-o", tmp_path / "run")
    done = sonde(*words, "--controls", "majority,naive-bayes")
    assert done.code == 0, done.err
    assert "naive-bayes" in done.out


def test_runs_of_lama_can_be_compared(sonde: Sonde, run: Path) -> None:
    done = sonde("compare", run, run / "controls" / "naive-bayes")
    assert done.code == 0, done.err
    assert "naive-bayes" in done.out
