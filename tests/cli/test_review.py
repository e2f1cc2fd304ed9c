"""Judging templates in the terminal: blind, resumable, undoable, and what it adds up to."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonde.core.errors import DataError
from sonde.core.facts import Dataset
from sonde.data.format import open_dataset, write_dataset
from sonde.data.review.judgements import (
    Judgement,
    Rule,
    append,
    apply,
    headed,
    items_of,
    read_judgements,
)
from sonde.data.review.quality import agreement, fleiss, kappa, qualities
from tests.command import Sonde, in_this_process
from tests.worlds import dataset_of, fact, relation, template


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


def judged(item: str, reviewer: str, answers: str, *sources: str) -> Judgement:
    a, b, c, d = map(int, answers)
    return Judgement(item=item, reviewer=reviewer, sources=sources or ("s",), answers=(a, b, c, d))


def test_templates_are_mixed_drawn_by_seed_and_a_shared_text_is_judged_once() -> None:
    one = dataset("a", *(f"[X] {i} [Y]" for i in range(20)))
    other = dataset("b", *(f"[X] {i} [Y]" for i in range(10, 30)))
    items = items_of([one, other], 20, seed=1)
    assert len(items) == 30
    assert sum(item.sources == ("a", "b") for item in items) == 10
    assert items_of([one, other], 20, seed=1) == items != items_of([one, other], 20, seed=2)
    assert len(items_of([one], 5)) == 5


def test_a_reviewer_sees_the_subject_and_never_the_source(
    folders: tuple[Path, Path], sonde: Sonde, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    typed(monkeypatch, "1 1 1  0 0 0 0  1 0 1")
    done = sonde("data", "review", *folders, "--ask", "quality", "-o", tmp_path / "out.jsonl")
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
    words = ("data", "review", *folders, "--ask", "quality", "-o", tmp_path / "out.jsonl")
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
    assert "1 of 3 judged" in sonde("data", "review", *folders, "--ask", "quality", "-o", out).out
    assert [j.answers for j in read_judgements(out)] == [(1, 0, 0, 0)]
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [line.get("undo", False) for line in lines] == [False, True, False]
    typed(monkeypatch, "u q")
    assert "0 of 3 judged" in sonde("data", "review", *folders, "--ask", "quality", "-o", out).out


def test_undo_with_nothing_to_take_back_asks_again(
    folders: tuple[Path, Path], sonde: Sonde, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    typed(monkeypatch, "u u q")
    assert (
        "0 of 3 judged"
        in sonde("data", "review", *folders, "--ask", "quality", "-o", tmp_path / "o").out
    )


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
    done = sonde("data", "review", "--table", path)
    assert done.code == 0 and "3.500" in done.out and "fully matching" in done.out


def test_two_reviewers_are_compared_on_what_both_judged() -> None:
    first = [judged(i, "ann", f"{i}000") for i in "10"] + [judged("x", "ann", "0000")]
    second = [judged(i, "bea", f"{i}000") for i in "10"]
    found = {each.question: each[1:] for each in agreement([*first, *second])}
    assert found["fluent"] == (1.0, 2, 2)
    assert found["overlap"] == (None, 2, 2)
    assert agreement(first) == []
    assert kappa([(1, 0), (0, 1)]) == -1


@pytest.mark.parametrize(
    "change",
    [{"fluent": 2}, {"fluent": True}, {"overlap": 0}, {"sources": []}, {"keep": 1}, {"item": ""}],
)
def test_a_bad_judgement_is_refused_with_its_line(
    change: dict[str, object], sonde: Sonde, tmp_path: Path
) -> None:
    path = tmp_path / "out.jsonl"
    append(path, judged("i", "ann", "1111"))
    line = {**json.loads(path.read_text()), **change}
    path.write_text(path.read_text() + json.dumps(line) + "\n")
    sonde("data", "review", "--table", path).refused(3, "line 2")


def test_nothing_to_judge_is_refused(sonde: Sonde, tmp_path: Path) -> None:
    sonde("data", "review").refused(2, "name the datasets")
    sonde("data", "review", "--table", tmp_path / "none").refused(2, "holds no judgement")


def votes(reviewer: str, **keep: bool) -> list[Judgement]:
    """What a reviewer keeps of the templates of P1, by their words."""
    return [
        Judgement(item=f"P1|[X] {word} [Y]", reviewer=reviewer, sources=("s",), keep=each)
        for word, each in keep.items()
    ]


def test_templates_are_kept_or_dropped_in_the_order_of_the_dataset(
    folders: tuple[Path, Path], sonde: Sonde, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    out, kept = tmp_path / "out.jsonl", tmp_path / "kept"
    words = ("data", "review", folders[0], "-o", out)
    typed(monkeypatch, "k")
    done = sonde(*words, "--reviewer", "ann")
    assert "[1/2]" in done.out and "Ann lives in ___." in done.out and "right: Ghent" in done.out
    sonde(*words, "--apply", kept).refused(
        3, "1 templates of 'secret-a' are not judged yet, such as '[X], of [Y].'", "--unjudged"
    )
    typed(monkeypatch, "d")
    assert "2 of 2 judged" in sonde(*words, "--reviewer", "ann").out
    done = sonde(*words, "--apply", kept)
    assert done.code == 0 and "kept 1, dropped 1 (reviewers: 1)" in done.out
    [relation] = open_dataset(kept).relations
    assert [t.text for t in relation.templates] == ["[X] lives in [Y]."]
    assert open_dataset(kept).notes["templates_dropped_in_review"] == 1
    assert sonde("data", "check", kept).code == 0
    sonde(*words, "--apply", kept).refused(2, "holds a dataset", "--force")


def test_both_are_asked_and_a_later_word_joins_an_earlier_one(
    folders: tuple[Path, Path], sonde: Sonde, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    words = ("data", "review", folders[0], "-o", tmp_path / "out")
    typed(monkeypatch, "1 0 1 y  0 0 0 0 n")
    assert "2 of 2 judged" in sonde(*words, "--ask", "both").out
    assert [(j.keep, j.answers) for j in read_judgements(tmp_path / "out")] == [
        (True, (1, 0, 1, 1)),
        (False, (0, 0, 0, 0)),
    ]
    typed(monkeypatch, "q")
    assert "2 templates, 2 judged" in sonde(*words).out, "what was asked with more is there"
    append(
        tmp_path / "out", replace(read_judgements(tmp_path / "out")[0], answers=None, keep=False)
    )
    assert (False, (1, 0, 1, 1)) in [(j.keep, j.answers) for j in read_judgements(tmp_path / "out")]


def test_undo_takes_back_the_last_line_alone(tmp_path: Path) -> None:
    out = tmp_path / "j"
    kept = Judgement(item="x", reviewer="ann", sources=("s",), keep=True)
    scaled = judged("x", "ann", "1011")
    for each in (kept, scaled, replace(kept, reviewer="bob", keep=False)):
        append(out, each)
    append(out, scaled, undo=True)
    assert [(j.reviewer, j.keep, j.answers) for j in read_judgements(out)] == [
        ("ann", True, None),
        ("bob", False, None),
    ]
    append(out, kept, undo=True)
    append(out, kept, undo=True)
    assert [j.reviewer for j in read_judgements(out)] == ["bob"]


def test_what_is_made_of_judgements_needs_them(
    folders: tuple[Path, Path], sonde: Sonde, tmp_path: Path
) -> None:
    for more in (("--rule", "majority"), ("--unjudged", "drop")):
        words = ("data", "review", folders[0], "-o", tmp_path / "j", *more)
        sonde(*words).refused(2, "--apply FOLDER")


def test_half_a_line_left_by_a_kill_is_asked_again(
    folders: tuple[Path, Path], sonde: Sonde, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    words = ("data", "review", folders[0], "-o", out)
    typed(monkeypatch, "k d")
    sonde(*words)
    whole = out.read_bytes()
    out.write_bytes(whole[:-9])
    typed(monkeypatch, "d")
    assert "2 templates, 1 judged" in sonde(*words).out
    assert out.read_bytes() == whole


@pytest.mark.parametrize(
    ("rule", "kept"), [("majority", ["a", "b"]), ("all", ["a"]), ("any", ["a", "b", "c", "d"])]
)
def test_where_reviewers_differ_a_rule_decides(rule: Rule, kept: list[str]) -> None:
    world = dataset("world", *(f"[X] {word} [Y]" for word in "abcd"))
    said = [
        *votes("ann", a=True, b=True, c=False, d=True),
        *votes("bea", a=True, b=True, c=True, d=False),
        *votes("cyd", a=True, b=False, c=False),
    ]
    done = apply(world, said, rule)
    assert [t.text.split()[1] for t in done.dataset.relations[0].templates] == kept
    assert (done.reviewers, done.counts["split"]) == (3, 3)


def test_unjudged_templates_go_where_they_are_told_and_empty_relations_go(tmp_path: Path) -> None:
    world = dataset("world", *(f"[X] {word} [Y]" for word in "ab"))
    kept = apply(world, votes("ann", a=False), "majority", unjudged=True)
    assert [t.text for t in kept.dataset.relations[0].templates] == ["[X] b [Y]"]
    with pytest.raises(DataError, match="nothing of 'world' was kept"):
        apply(world, votes("ann", a=False), "majority", unjudged=False)
    both = dataset_of([], relation("P1", "[X] a [Y]"), relation("P2", "[X] b [Y]"))
    assert apply(both, votes("ann", a=True), "all", unjudged=False).lost == ("P2",)


def test_paraphrases_stay_together_when_their_template_goes() -> None:
    family = [template(f"t{n}", f"[X] {n} [Y]", group="t0") for n in range(3)]
    other = template("u", "[X] u [Y]")
    assert [t.group for t in headed([*family, other])] == ["t0", "t0", "t0", "u"]
    assert [t.group for t in headed([family[2], other, family[1]])] == ["t2", "u", "t2"]


def test_three_reviewers_are_compared_by_fleiss() -> None:
    said = [*votes("ann", a=True, b=False), *votes("bea", a=True, b=False)]
    [two] = agreement([*said, *votes("cyd", c=True)][:4])
    assert two == ("keep", 1.0, 2, 2)
    [three] = agreement([*said, *votes("cyd", a=True, b=True)])
    assert three[2:] == (2, 3) and three.kappa == pytest.approx(0.25)
    [none] = agreement([*said, *votes("cyd", c=True)])
    assert none[1:] == (None, 0, 3)


@given(st.lists(st.lists(st.integers(0, 1), min_size=3, max_size=3), min_size=1, max_size=8))
def test_fleiss_kappa_is_that_of_its_definition(rows: list[list[int]]) -> None:
    """By category counts, as Fleiss wrote it."""
    n, counts = 3, [(3 - sum(row), sum(row)) for row in rows]
    each = [sum(c * (c - 1) for c in row) / (n * (n - 1)) for row in counts]
    shares = [sum(row[k] for row in counts) / (n * len(rows)) for k in (0, 1)]
    chance = sum(share**2 for share in shares)
    found = fleiss(rows)
    if chance == 1:
        assert found is None
    else:
        assert found == pytest.approx((sum(each) / len(each) - chance) / (1 - chance))


def test_what_is_applied_must_have_been_judged(
    folders: tuple[Path, Path], sonde: Sonde, tmp_path: Path
) -> None:
    words = ("data", "review", "-o", tmp_path / "out", "--apply", tmp_path / "kept")
    sonde(*words).refused(2, "name the datasets")
    sonde(*words, *folders).refused(2, "--apply takes one dataset, not 2")
    sonde(*words, folders[0]).refused(2, "says of no template whether to keep it")


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
