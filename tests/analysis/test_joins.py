"""Runs of the same facts are compared whatever their templates, probes and files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sonde
from sonde.analysis.differences.numbers import Differences
from sonde.analysis.joins import align, shared_facts, what_differs
from sonde.analysis.runs import Compared, Lineage, Made
from sonde.core.errors import SondeError, UsageError
from sonde.models.scripted import Scripted
from tests.analysis.world import changed, run
from tests.grids import grid, one_relation
from tests.worlds import relation

TOWNS = {
    "Munich": "Germany",
    "Lyon": "France",
    "Nice": "France",
    "Porto": "Portugal",
    "Turin": "Italy",
    "Brno": "Czechia",
}
STATEMENT, OTHER = "[X] is a city in [Y].", "[X] lies in [Y]."
QUESTION = "In which country is [X]? [Y]"


def write(path: Path, rows: Mapping[str, str], head: str = "town,country", more: str = "") -> Path:
    lines = (f"{subject},{answer}{more}" for subject, answer in rows.items())
    path.write_text("\n".join([head, *lines]) + "\n")
    return path


def prompted(
    out: Path,
    file: Path,
    template: str,
    right: Sequence[str],
    probe: str = "lama",
    columns: tuple[str, str] = ("town", "country"),
    **selection: Any,
) -> sonde.Run:
    """A run on a table of a model that knows some of the towns."""
    given = dict(zip(("subject", "object"), columns, strict=True))
    data = sonde.dataset(file, wording=template, columns=given, **selection)
    answers = {f"{columns[1]}:{town}": TOWNS[town] for town in right}
    settings = {"answer": "score"} if probe == "lama" else {}
    return sonde.run(sonde.probe(probe, **settings), Scripted(answers=answers), data, out)


def test_two_templates_on_one_table(tmp_path: Path) -> None:
    table = write(tmp_path / "towns.csv", TOWNS)
    one = prompted(tmp_path / "a", table, STATEMENT, ["Lyon", "Nice"])
    other = prompted(tmp_path / "b", table, OTHER, ["Lyon", "Nice", "Porto", "Turin", "Brno"])
    made = sonde.compare([one, other])
    assert made.verdict.facts == 6
    assert made.verdict.difference.value == pytest.approx(0.5)
    assert made.verdict.sentence.endswith("(same model, different template)")
    assert made.facts["subject"].to_list() == list(TOWNS)
    assert "datasets are not the same" not in made.report.summary
    assert "“templates" not in " ".join(made.report.findings)
    assert sonde.compare(one, other).report == made.report
    report = made.report
    notes = [*report.notes, *(part.note for part in (*report.tables, *report.figures))]
    assert not [n for n in notes if "prompts that all" in n or "under the same template" in n]
    assert not [n for n in notes if "known under a template" in n]


def test_two_probes_on_one_table_are_different_tasks(tmp_path: Path) -> None:
    table = write(tmp_path / "towns.csv", TOWNS)
    one = prompted(tmp_path / "a", table, STATEMENT, ["Lyon"])
    other = prompted(tmp_path / "b", table, QUESTION, ["Lyon", "Nice"], probe="qa")
    made = sonde.compare(one, other)
    assert made.verdict.facts == 6
    assert made.verdict.difference.value == pytest.approx(1 / 6)
    assert made.verdict.sentence.endswith(
        "(same model and facts, different probe: lama and qa, "
        "different task: scored options and generated text)"
    )


def test_two_tables_that_share_some_facts(tmp_path: Path) -> None:
    first = write(tmp_path / "towns.csv", TOWNS)
    shared = {"Turin": "Italy", "Oslo": "Norway", "Munich": "Bavaria", "Lyon": "France"}
    second = write(tmp_path / "more.csv", shared, "place,nation,size", ",big")
    one = prompted(tmp_path / "a", first, STATEMENT, ["Turin"])
    names = ("place", "nation")
    other = prompted(tmp_path / "b", second, STATEMENT, ["Turin", "Lyon"], columns=names)
    made = sonde.compare(one, other)
    assert made.facts["subject"].to_list() == ["Lyon", "Turin"], "Munich has another object"
    assert made.facts["right scripted b"].to_list() == [1.0, 1.0]
    assert made.facts["right scripted a"].to_list() == [0.0, 1.0]
    assert made.verdict.sentence.endswith("(same model, different dataset files, 2 shared facts)")
    assert made.report.counts["prompts_left_out.run.scripted a"] == 4


def test_facts_with_other_objects_are_not_shared(tmp_path: Path) -> None:
    first = write(tmp_path / "towns.csv", {"Munich": "Germany", "Lyon": "France"})
    second = write(tmp_path / "more.csv", {"Munich": "Bavaria", "Lyon": "Gaul"})
    runs = [prompted(tmp_path / file.stem, file, STATEMENT, []) for file in (first, second)]
    with pytest.raises(
        UsageError, match=r"2 subjects .* different correct objects, such as 'Lyon'"
    ):
        sonde.compare(*runs)


def test_other_limits_and_templates_share_the_facts_of_the_smaller_limit(tmp_path: Path) -> None:
    table = write(tmp_path / "towns.csv", TOWNS)
    one = prompted(tmp_path / "a", table, STATEMENT, [], limit=4)
    other = prompted(tmp_path / "b", table, OTHER, [], limit=2)
    assert sonde.compare(one, other).verdict.facts == 2


def test_a_model_and_a_control_have_one_difference_and_no_warning(tmp_path: Path) -> None:
    table = write(tmp_path / "towns.csv", TOWNS)
    columns = {"subject": "town", "object": "country"}
    data = sonde.dataset(table, wording=STATEMENT, columns=columns)
    control = sonde.run(sonde.probe("lama"), "control:majority", data, tmp_path / "control")
    made = sonde.compare(prompted(tmp_path / "a", table, STATEMENT, ["Lyon"]), control)
    assert made.names == ("scripted", "majority") and made.verdict.care == ()
    assert not any("minus" in line.label for line in made.report.headlines)
    assert made.verdict.sentence.endswith("on 6 facts asked of both")


def test_errors_of_python_name_no_flags(tmp_path: Path) -> None:
    table = write(tmp_path / "towns.csv", TOWNS)
    runs = [prompted(tmp_path / name, table, STATEMENT, []) for name in "ab"]
    unfinished = prompted(tmp_path / "c", table, STATEMENT, [])
    (unfinished.path / "complete.json").unlink()
    for given, groups in ((runs[:1], "family"), (runs, "a,b,c"), ([*runs, unfinished], "family")):
        with pytest.raises(SondeError) as error:
            sonde.compare(given, groups=groups)
        for shell in ("--", "sonde compare", "sonde run"):
            assert shell not in str(error.value)
    with pytest.raises(UsageError, match="draw must be 'relation' or 'pair', found 'prompt'"):
        sonde.compare(runs, draw="prompt")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="floor must be at least 1, found 0"):
        sonde.compare(runs, floor=0)


def about(
    name: str, facts: Sequence[tuple[str, str, str]], right: Sequence[int], **more: Any
) -> Compared:
    """A run with a prompt for each fact: an id, a subject, a gold."""
    import polars

    frame = polars.DataFrame(
        {
            "fact": [id for id, _, _ in facts],
            "subject": [subject for _, subject, _ in facts],
            "date": [""] * len(facts),
            "gold": [[gold] for _, _, gold in facts],
            "cluster": [subject for _, subject, _ in facts],
            "commonest": [False] * len(facts),
            "tags": polars.Series([[]] * len(facts), dtype=polars.List(polars.String)),
            "details": polars.Series([[]] * len(facts), dtype=polars.List(polars.Struct({}))),
        }
    )
    made = run(name, one_relation([[[int(not ok)]] for ok in right]))
    ids = tuple(id for id, _, _ in facts)
    made = changed(made, pairs=ids, relations=(relation(more.pop("relation", "R0")),))
    templates = (replace(made.judged.templates[0], text=f"[X] {name} [Y]"),)
    return replace(changed(made, templates=templates), dataset=name, facts=frame, **more)


FACTS = [("f0", "Peru", "Lima"), ("f1", "Chile", "Santiago")]


def test_equal_facts_of_one_run_count_as_one() -> None:
    twice = [("g0", "Peru", "Lima"), ("g1", "Peru", "Lima"), ("g2", "Chile", "Santiago")]
    one, other = about("a", FACTS, [0, 1]), about("b", twice, [1, 0, 1])
    assert [numbers.tolist() for numbers in shared_facts([one, other])] == [[0, 1], [0, 0, 1]]
    aligned = align([one, other])
    assert [shares.tolist() for shares in aligned.shares()] == [[0, 1], [0.5, 1]]
    assert not aligned.same_prompts and set(aligned.left_out.values()) == {0}


def test_equal_facts_are_told_apart_by_ids_that_all_runs_have() -> None:
    twice = [*FACTS, ("f2", "Peru", "Lima")]
    one, other = about("a", twice, [0, 1, 1]), about("b", twice[::-1], [1, 1, 0])
    assert [shares.tolist() for shares in align([one, other]).shares()] == [[0, 1, 1]] * 2


def test_relations_of_other_ids_are_the_same_by_label_or_where_each_run_has_one() -> None:
    one, other = about("a", FACTS, [0, 1]), about("b", FACTS, [0, 1], relation="wine2")
    assert len(align([one, other]).first.pairs) == 2
    several = changed(one, relations=(relation("R0"), relation("R1")))
    two = replace(several.judged.grid, relations=np.array([0, 1]))
    two = replace(two, template=np.array([0, 1]), template_relations=np.array([0, 1]))
    templates = several.judged.templates * 2
    several = changed(several, grid=two, templates=templates)
    with pytest.raises(UsageError, match="share no fact"):
        align([several, other])
    named = changed(other, relations=(relation("wine2", label="Label of R1"),))
    assert align([several, named]).first.pairs == ("f1",)


def test_facts_of_one_subject_stay_together_where_prompts_differ() -> None:
    same = [(f"f{i}", "Peru", f"o{i}") for i in range(8)]
    one, other = about("a", same, [0] * 8), about("b", same, [1] * 8)
    difference = Differences(aligned=align([one, other])).of("b", "a")
    assert difference.value == 1 and (difference.p or 0) > 0.5, "one subject decides nothing"


def test_the_other_way_round_facts_are_the_same() -> None:
    one, other = (
        about("a", FACTS, [0, 1]),
        about("b", [*FACTS[::-1], ("f9", "Fiji", "Suva")], [1, 1, 0]),
    )
    there, back = align([one, other]), align([other, one])
    assert there.left_out == back.left_out == {"a": 0, "b": 1}
    first, second = (Differences(aligned=of).of("b", "a") for of in (there, back))
    assert first == second


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [
        ({"lineage": Lineage(model="m")}, {"lineage": Lineage(model="m")}, "same model, "),
        ({"lineage": Lineage(model="m")}, {"lineage": Lineage(model="n")}, ""),
    ],
)
def test_what_differs_names_the_model_where_it_is_the_same(
    one: dict[str, Any], other: dict[str, Any], said: str
) -> None:
    runs = [
        about("a", FACTS, [0, 1], source="s", **one),
        about("b", FACTS, [0, 1], source="s", **other),
    ]
    assert what_differs(align(runs)) == f"{said}different template"


def test_what_differs_says_nothing_of_controls() -> None:
    one = about("a", FACTS, [0, 1], source="s", made=Made(control=True))
    other = changed(about("b", FACTS, [0, 1], source="s"), way="written")
    assert what_differs(align([one, other])) == ""


def test_relations_that_share_prompts_are_compared_on_these_the_others_on_all() -> None:
    rows = [(0, 0, 0, True, 0), (0, 1, 0, False, 1), (1, 2, 0, True, 0)]
    one = run("a", grid(rows, [0, 1], [0, 0, 1]))
    other = run("b", grid([(0, 0, 0, False, 1), (1, 3, 0, False, 1)], [0, 1], [0, 0, 1, 1]))
    aligned = align([one, other])
    assert not aligned.same_prompts and aligned.left_out == {"a": 1, "b": 0}
    assert [shares.tolist() for shares in aligned.shares()] == [[1, 1], [0, 0]]
    assert [len(made.judged.templates) for made in aligned.runs] == [2, 2]
