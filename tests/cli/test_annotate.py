"""Judging templates in the terminal: blind, resumable, undoable, and what it adds up to."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from sonde.core.facts import Dataset
from sonde.data.annotation import (
    Judgement,
    agreement,
    append,
    kappa,
    qualities,
    read_judgements,
    sample,
)
from sonde.data.format import write_dataset
from tests.command import Sonde, in_this_process
from tests.worlds import dataset_of, fact, relation


@pytest.fixture
def sonde(capsys: pytest.CaptureFixture[str]) -> Sonde:
    return in_this_process(capsys)


def dataset(name: str, *texts: str) -> Dataset:
    home = relation("P1", *texts, label="home")
    return dataset_of([fact("P1", "Ann", "Ghent")], home, name=name)


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    write_dataset(dataset("secret-a", "[X] lives in [Y].", "[X], of [Y]."), tmp_path / "1")
    write_dataset(dataset("secret-b", "[X] lives in [Y].", "[Y] ate [X]."), tmp_path / "2")
    return tmp_path / "1", tmp_path / "2"


def typed(monkeypatch: pytest.MonkeyPatch, keys: str) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(keys.split()) + "\n"))


def judged(item: str, annotator: str, answers: str, *sources: str) -> Judgement:
    a, b, c, d = map(int, answers)
    return Judgement(
        item=item, annotator=annotator, sources=sources or ("s",), answers=(a, b, c, d)
    )


def test_templates_are_mixed_drawn_by_seed_and_a_shared_text_is_judged_once() -> None:
    one = dataset("a", *(f"[X] {i} [Y]" for i in range(20)))
    other = dataset("b", *(f"[X] {i} [Y]" for i in range(10, 30)))
    items = sample([one, other], 20, seed=1)
    assert len(items) == 30
    assert sum(item.sources == ("a", "b") for item in items) == 10
    assert sample([one, other], 20, seed=1) == items != sample([one, other], 20, seed=2)
    assert len(sample([one], 5)) == 5


def test_an_annotator_sees_the_subject_and_never_the_source(
    folders: tuple[Path, Path], sonde: Sonde, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    typed(monkeypatch, "1 1 1  0 0 0 0  1 0 1")
    done = sonde("data", "annotate", *folders, "-o", tmp_path / "out.jsonl")
    assert done.code == 0
    assert "Ann lives in ___." in done.out and "home (P1)" in done.out
    assert "secret" not in done.out
    assert "3 of 3 judged" in done.out
    assert [j.answers for j in read_judgements(tmp_path / "out.jsonl")] == [
        (1, 1, 1, 1),
        (0, 0, 0, 0),
        (1, 0, 1, 1),
    ]


def test_judging_resumes_where_it_stopped_and_stops_inside_a_template(
    folders: tuple[Path, Path], sonde: Sonde, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    words = ("data", "annotate", *folders, "-o", tmp_path / "out.jsonl")
    typed(monkeypatch, "1 1 1  0 q")
    assert "1 of 3 judged" in sonde(*words).out
    typed(monkeypatch, "1 0 0 1  what 1 0 0 0")
    done = sonde(*words)
    assert "3 templates, 1 judged" in done.out and "[2/3]" in done.out
    assert "3 of 3 judged" in done.out
    assert len(read_judgements(tmp_path / "out.jsonl")) == 3


def test_undo_takes_back_an_answer_or_the_template_before(
    folders: tuple[Path, Path], sonde: Sonde, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    out = tmp_path / "out.jsonl"
    typed(monkeypatch, "0 u 1 1 1  u  1 0 0 0  q")
    assert "1 of 3 judged" in sonde("data", "annotate", *folders, "-o", out).out
    assert [j.answers for j in read_judgements(out)] == [(1, 0, 0, 0)]
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [line.get("undo", False) for line in lines] == [False, True, False]
    typed(monkeypatch, "u q")
    assert "0 of 3 judged" in sonde("data", "annotate", *folders, "-o", out).out


def test_undo_with_nothing_to_take_back_asks_again(
    folders: tuple[Path, Path], sonde: Sonde, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    typed(monkeypatch, "u u q")
    assert "0 of 3 judged" in sonde("data", "annotate", *folders, "-o", tmp_path / "o").out


def test_the_table_has_shares_totals_and_the_histogram(sonde: Sonde, tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    for judgement in (
        judged("i", "ann", "1111", "a", "b"),
        judged("j", "ann", "1011", "a"),
        judged("k", "ann", "0000", "b"),
    ):
        append(path, judgement)
    one, other = qualities(read_judgements(path))
    assert [e.value for e in one.shares] == [1, 0.5, 1, 1]
    assert (one.total.value, one.histogram, one.fully_matching) == (3.5, (0, 0, 0, 1, 1), 1)
    assert (other.total.value, other.histogram, other.irrelevant) == (2, (1, 0, 0, 0, 1), 1)
    assert all(e.low is not None and e.n == 2 for e in (*one.shares, one.total))
    done = sonde("data", "annotate", "--table", path)
    assert done.code == 0 and "3.500" in done.out and "fully matching" in done.out


def test_two_annotators_are_compared_on_what_both_judged() -> None:
    first = [judged(i, "ann", f"{i}000") for i in "10"] + [judged("x", "ann", "0000")]
    second = [judged(i, "bea", f"{i}000") for i in "10"]
    assert agreement([*first, *second])["fluent"] == (1.0, 2)
    assert agreement([*first, *second])["overlap"] == (None, 2)
    assert agreement(first) == {}
    assert kappa([(1, 0), (0, 1)]) == -1


@pytest.mark.parametrize(
    "change", [{"fluent": 2}, {"fluent": True}, {"overlap": 0}, {"sources": []}]
)
def test_a_bad_judgement_is_refused_with_its_line(
    change: dict[str, object], sonde: Sonde, tmp_path: Path
) -> None:
    path = tmp_path / "out.jsonl"
    append(path, judged("i", "ann", "1111"))
    line = {**json.loads(path.read_text()), **change}
    path.write_text(path.read_text() + json.dumps(line) + "\n")
    sonde("data", "annotate", "--table", path).refused(3, "line 2")


def test_nothing_to_judge_is_refused(sonde: Sonde, tmp_path: Path) -> None:
    sonde("data", "annotate").refused(2, "name the datasets")
    sonde("data", "annotate", "--table", tmp_path / "none").refused(2, "holds no judgement")


def test_convert_writes_a_folder_once(
    folders: tuple[Path, Path], sonde: Sonde, tmp_path: Path
) -> None:
    out = tmp_path / "new"
    assert "1 relations, 1 facts" in sonde("data", "convert", folders[0], "-o", out).out
    assert sonde("data", "check", out).code == 0
    sonde("data", "convert", folders[0], "-o", out).refused(2, "not empty")


def test_several_datasets_are_counted_side_by_side(
    folders: tuple[Path, Path], sonde: Sonde
) -> None:
    done = sonde("data", "stats", *folders, "--diversity")
    assert done.code == 0
    assert "secret-a" in done.out and "secret-b" in done.out and "lexical" in done.out
    assert [line.split()[-2:] for line in done.out.splitlines() if "prompts  " in line] == [
        ["2", "2"]
    ]
