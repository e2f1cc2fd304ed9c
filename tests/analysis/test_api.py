"""`sonde.analyse` from Python: stored runs in, a report out, as the command makes it."""

from __future__ import annotations

from pathlib import Path

import pytest

import sonde
from sonde.core.errors import DataError, UsageError
from sonde.models.scripted import Scripted
from tests.data import sources

TABLE = '[[model]]\nname = "scripted"\nfamily = "tables"\nsize = 7\n'


@pytest.fixture
def runs(tmp_path: Path) -> list[sonde.Run]:
    """Two models asked in two wordings that ParaRel would bring, which name no paraphrase group."""
    lama, patterns = sources.lama(tmp_path / "lama"), sources.pararel(tmp_path / "pararel")
    data = sonde.dataset(f"lama:{lama}+pararel:{patterns}")
    right = Scripted(answers={"P1:Q1": "Greek", "P1:Bea": "Dutch"})
    probe = sonde.probe("belief", draws=200)
    majority = sonde.model("control:majority", data=data)
    return [
        sonde.run(probe, model, data, out=tmp_path / name)
        for name, model in (("right", right), ("majority", majority))
    ]


def test_runs_and_their_folders_give_the_same_report(runs: list[sonde.Run]) -> None:
    report = sonde.analyse(*runs)
    assert report == sonde.analyse(*[run.path for run in runs])
    assert report == sonde.analyse(*[str(run.path) for run in runs])
    assert report.counts["runs"] == 2
    assert report.estimates["accuracy.mean_over_relations.run.scripted"].value == 1
    assert report.estimates["acc_at_1.run.scripted"].value == 1


def test_paraphrase_groups_that_the_data_do_not_name_are_not_measured(
    runs: list[sonde.Run],
) -> None:
    report = sonde.analyse(*runs)
    [manual] = [t for t in report.tables if t.id == "manual"]
    assert [row[0] for row in manual.rows] == ["scripted", "majority"]
    for row in manual.rows:
        for cell, column in zip(row[1:], manual.columns[1:], strict=True):
            assert getattr(cell, "value", 0) is None, column.title
    assert "Not measured" in manual.note
    # the templates themselves are there, and both runs were asked in them
    assert report.counts["templates"] == 2
    assert report.estimates["templates_only.consist.run.scripted"].value is not None


def test_a_table_of_your_own_names_families(runs: list[sonde.Run], tmp_path: Path) -> None:
    table = tmp_path / "mine.toml"
    table.write_text(TABLE)
    report = sonde.analyse(*runs, models=table)
    [board] = [t for t in report.tables if t.id == "leaderboard"]
    assert {row[1]: (row[2], row[3]) for row in board.rows} == {
        "scripted": ("tables", 7),
        "majority": ("unknown", None),
    }
    [note] = [note for note in report.notes if "Family unknown" in note]
    assert "majority" in note and "scripted" not in note
    with pytest.raises(DataError, match="missing"):
        sonde.analyse(*runs, models=tmp_path / "nowhere.toml")


def test_what_the_command_refuses_is_refused(runs: list[sonde.Run]) -> None:
    with pytest.raises(UsageError, match="at least two runs"):
        sonde.analyse(runs[0])
    with pytest.raises(UsageError, match="given twice"):
        sonde.analyse(runs[0], runs[0].path)
    with pytest.raises(UsageError, match="seed"):
        sonde.analyse(*runs, seed=-1)
