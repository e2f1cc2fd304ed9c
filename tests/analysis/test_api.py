"""`sonde.compare` from Python: stored runs in, a verdict and a report out, as of the command."""

from __future__ import annotations

from pathlib import Path

import pytest

import sonde
from sonde.core.errors import DataError, UsageError
from sonde.core.reports import Estimate
from sonde.models.scripted import Scripted
from tests.data import sources

TABLE = '[[model]]\nname = "scripted"\nfamily = "tables"\nsize = 7\n'


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[sonde.Run]:
    """Two models asked in two wordings that ParaRel would bring, which name no paraphrase group."""
    home = tmp_path_factory.mktemp("runs")
    lama, patterns = sources.lama(home / "lama"), sources.pararel(home / "pararel")
    data = sonde.dataset(f"lama:{lama}+pararel:{patterns}")
    right = Scripted(answers={"P1:Q1": "Greek", "P1:Bea": "Dutch"})
    probe = sonde.probe("belief", draws=200)
    majority = sonde.model("control:majority", data=data)
    return [
        sonde.run(probe, model, data, out=home / name)
        for name, model in (("right", right), ("majority", majority))
    ]


def test_runs_and_their_folders_give_the_same_report(runs: list[sonde.Run]) -> None:
    report = sonde.compare(*runs).report
    assert report == sonde.compare(*[run.path for run in runs]).report
    assert report == sonde.compare(*[str(run.path) for run in runs]).report
    assert report.counts["runs"] == 2
    assert report.estimates["accuracy.mean_over_relations.run.scripted"].value == 1
    assert report.estimates["acc_at_1.run.scripted"].value == 1


def test_paraphrase_groups_that_the_data_do_not_name_are_not_measured(
    runs: list[sonde.Run],
) -> None:
    report = sonde.compare(*runs).report
    assert report.estimates["manual.rank.run.scripted"].value is None
    # the templates themselves are there, and both runs were asked in them
    assert report.counts["templates"] == 2
    assert report.estimates["templates_only.consist.run.scripted"].value is not None


def test_lama_s_own_template_stands_beside_the_worst_and_the_best(runs: list[sonde.Run]) -> None:
    """BELIEF, table 11."""
    report = sonde.compare(*runs).report
    [short] = [table for table in report.tables if table.id == "summary"]
    assert [column.title for column in short.columns] == ["number", "scripted", "majority"]
    told = {
        row[0]: [cell.value for cell in row[1:] if isinstance(cell, Estimate)] for row in short.rows
    }
    own = [run.report().estimates["single_prompt.acc_at_1"].value for run in runs]
    assert told["LAMA"] == own
    assert {"worst templates", "best templates", "mean of templates"} <= set(told)


def test_a_table_of_your_own_names_families(runs: list[sonde.Run], tmp_path: Path) -> None:
    table = tmp_path / "mine.toml"
    table.write_text(TABLE)
    report = sonde.compare(*runs, models=table).report
    [board] = [t for t in report.tables if t.id == "leaderboard"]
    assert {row[1]: (row[2], row[3]) for row in board.rows} == {
        "scripted": ("tables", 7),
        "majority": ("unknown", None),
    }
    [note] = [note for note in report.notes if "Family unknown" in note]
    assert "majority" in note and "scripted" not in note
    with pytest.raises(DataError, match="missing"):
        sonde.compare(*runs, models=tmp_path / "nowhere.toml")


def test_what_the_command_refuses_is_refused(runs: list[sonde.Run]) -> None:
    with pytest.raises(UsageError, match="at least two runs"):
        sonde.compare(runs[0])
    with pytest.raises(UsageError, match="given twice"):
        sonde.compare(runs[0], runs[0].path)
    with pytest.raises(UsageError, match="seed"):
        sonde.compare(*runs, seed=-1)


@pytest.fixture(scope="module")
def steady(tmp_path_factory: pytest.TempPathFactory) -> list[sonde.Run]:
    """A control and a table of three answers, which nothing in their prompts moves."""
    home = tmp_path_factory.mktemp("steady")
    data = sonde.dataset("atlas", relations=("P30",), limit=4)
    known = {fact.id: fact.objects[0].name for fact in data.asked("P30")}
    models = (sonde.model("control:majority", data=data), Scripted(answers=known))
    return [
        sonde.run(sonde.probe("monitor"), model, data, out=home / f"m{i}")
        for i, model in enumerate(models)
    ]


def test_runs_of_monitor_are_compared_in_monitor_too(steady: list[sonde.Run]) -> None:
    report = sonde.compare(*steady, frames=2).report
    assert report == sonde.compare(*[run.path for run in steady], frames=2).report
    assert report.estimates["monitor.run.scripted"].value == 0
    assert report.estimates["monitor.run.scripted"].n == 4
    assert report.estimates["anchor_rate.run.scripted"].value == 1
    assert report.estimates["frames.first.minus_all.run.scripted"].value == 0
    assert report.counts["facts_in_common"] == 4
    [table] = [t for t in report.tables if t.id == "reliability"]
    assert all(isinstance(row[-1], float) for row in table.rows), "seconds of the run"


def test_fewer_frames_than_one_are_refused(steady: list[sonde.Run]) -> None:
    with pytest.raises(UsageError, match="frames must be at least 1"):
        sonde.compare(*steady, frames=0)


def test_runs_of_other_probes_beside_leave_monitor_out(
    steady: list[sonde.Run], tmp_path: Path
) -> None:
    data = sonde.dataset("atlas", relations=("P30",), limit=4)
    other = sonde.run(
        sonde.probe("belief-icl", style="qa", context="zero-shot"),
        sonde.model("control:majority", data=data),
        data,
        out=tmp_path / "other",
    )
    report = sonde.compare(steady[0], other).report
    assert not any(name.startswith("monitor") for name in report.estimates)
    assert "different probes (monitor: monitor; belief-icl: belief-icl)" in report.summary
