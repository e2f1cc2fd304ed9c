"""TempLAMA's rows, as documented: dates, validity, names that are worked out, and bad rows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonde.core.errors import DataError
from sonde.core.facts import Fact
from sonde.data.catalog import load


def row(query: str, subject: str, relation: str, date: str, *names: str) -> dict[str, Any]:
    """A row as the published files have it."""
    return {
        "query": query,
        "answer": [{"wikidata_id": f"Q-{name}", "name": name} for name in names],
        "date": date,
        "id": f"{subject}_{relation}_{date}",
        "most_frequent_answer": {"wikidata_id": "Q-x", "name": "x"},
        "relation": relation,
    }


ROWS = [
    row("Ann Roe plays for _X_.", "Q1", "P54", "2011", "Reds"),
    row("Ann Roe plays for _X_.", "Q1", "P54", "2010", "Reds"),
    row("Ann Roe plays for _X_.", "Q1", "P54", "2012", "Blues", "Greens"),
    row("Ann Roe plays for _X_.", "Q1", "P54", "2013", "Reds"),
    row("Bob Lee Moss plays for _X_.", "Q2", "P54", "2010", "Blues"),
    row("_X_ is the head coach of Reds.", "Q3", "P286", "2010", "Cy"),
    row("_X_ is the head coach of Blue Stars.", "Q4", "P286", "2010", "Dee"),
]


def written(folder: Path, rows: Sequence[dict[str, Any]], name: str = "test") -> Path:
    path = folder / f"{name}.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in rows), encoding="utf-8")
    return path


def facts(path: Path, relation: str = "P54") -> dict[str, Fact]:
    return {fact.id: fact for fact in load(f"templama:{path}").facts(relation)}


def test_the_words_that_queries_share_are_the_template(tmp_path: Path) -> None:
    dataset = load(f"templama:{written(tmp_path, ROWS)}")
    texts = {r.id: [t.text for t in r.templates] for r in dataset.relations}
    assert texts == {
        "P54": ["[X] plays for [Y].", "In [T], [X] plays for [Y]."],
        "P286": ["[Y] is the head coach of [X].", "In [T], [Y] is the head coach of [X]."],
    }
    assert {f.subject.name for f in dataset.facts("P54")} == {"Ann Roe", "Bob Lee Moss"}
    assert {f.subject.name for f in dataset.facts("P286")} == {"Reds", "Blue Stars"}


def test_objects_are_right_while_dates_that_follow_have_the_same(tmp_path: Path) -> None:
    found = facts(written(tmp_path, ROWS))
    spans = {id: (f.date, f.valid_from, f.valid_to) for id, f in found.items()}
    assert spans["Q1_P54_2010"] == ("2010", "2010", "2011")
    assert spans["Q1_P54_2011"] == ("2011", "2010", "2011")
    assert spans["Q1_P54_2012"] == ("2012", "2012", "2012")
    assert spans["Q1_P54_2013"] == ("2013", "2013", "2013")
    assert [e.name for e in found["Q1_P54_2012"].objects] == ["Blues", "Greens"]


def test_a_date_without_a_row_ends_a_validity(tmp_path: Path) -> None:
    years = [row("Ann plays for _X_.", "Q1", "P54", year, "Reds") for year in ("2010", "2018")]
    others = [row("Bob plays for _X_.", "Q2", "P54", str(year), "Reds") for year in (2010, 2011)]
    quarters = [
        row("Cy plays for _X_.", "Q3", "P54", date, "Reds") for date in ("2019-Q4", "2020-Q1")
    ]
    late = [row("Cy plays for _X_.", "Q3", "P54", "2020-Q3", "Reds")]
    spans = {
        id: (fact.valid_from, fact.valid_to)
        for id, fact in facts(written(tmp_path, [*years, *others, *quarters, *late])).items()
    }
    assert spans["Q1_P54_2010"] == ("2010", "2010")
    assert spans["Q1_P54_2018"] == ("2018", "2018")
    assert spans["Q2_P54_2010"] == spans["Q2_P54_2011"] == ("2010", "2011")
    assert spans["Q3_P54_2019-Q4"] == spans["Q3_P54_2020-Q1"] == ("2019-10", "2020-03")
    assert spans["Q3_P54_2020-Q3"] == ("2020-07", "2020-09")


def test_quarters_are_their_months(tmp_path: Path) -> None:
    rows = [
        row("Ann plays for _X_.", "Q1", "P54", "2019-Q2", "Reds"),
        row("Ann plays for _X_.", "Q1", "P54", "2019-Q3", "Reds"),
        row("Bob plays for _X_.", "Q2", "P54", "2019-Q4", "Blues"),
    ]
    found = facts(written(tmp_path, rows))
    assert found["Q1_P54_2019-Q2"].date == "2019-04"
    assert found["Q1_P54_2019-Q2"].valid_to == "2019-09"
    assert found["Q2_P54_2019-Q4"].valid_from == "2019-10"


def test_a_folder_has_its_splits_and_is_known_by_its_rows(tmp_path: Path) -> None:
    written(tmp_path, ROWS[:4], "train")
    written(tmp_path, ROWS[4:5], "val")
    written(tmp_path, ROWS[5:], "test")
    dataset = load(str(tmp_path))
    assert {f.split for f in dataset.facts("P54")} == {"train", "dev"}
    assert {f.split for f in dataset.facts("P286")} == {"test"}
    assert dataset.notes == {"rows_read": 7}


def test_an_answer_may_be_a_single_object(tmp_path: Path) -> None:
    single = {**ROWS[4], "answer": {"wikidata_id": "Q9", "name": "Blues"}}
    found = facts(written(tmp_path, [ROWS[0], single]))
    assert found["Q2_P54_2010"].objects[0].id == "Q9"


@given(
    st.lists(
        st.lists(st.sampled_from("ab cd efg".split()), min_size=1, max_size=3).map(" ".join),
        min_size=1,
        max_size=4,
        unique=True,
    ),
    st.sampled_from(["{} plays for _X_.", "_X_ leads {} today.", "Since May {} has _X_ , say."]),
)
def test_prompts_are_the_queries_whatever_names_share(
    tmp_path_factory: pytest.TempPathFactory, names: list[str], sentence: str
) -> None:
    rows = [
        row(sentence.format(name), f"Q{i}", "P1", "2010", "Reds") for i, name in enumerate(names)
    ]
    dataset = load(f"templama:{written(tmp_path_factory.mktemp('rows'), rows)}")
    template = dataset.relations[0].templates[0]
    made = ["_X_".join(template.fill(f.subject.name)) for f in dataset.facts("P1")]
    assert made == [each["query"] for each in rows]


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"date": "spring"}, "'date' must be YYYY, YYYY-MM or YYYY-MM-DD, or a quarter"),
        ({"date": "2019-Q5"}, "'date' must be"),
        ({"id": "Q1"}, "'id' must be SUBJECT_RELATION_DATE"),
        ({"query": "Ann plays for Reds."}, "'query' must hold _X_ once"),
        ({"answer": ["Reds"]}, "'answer' must be an object"),
        ({"answer": [{"wikidata_id": "Q1"}]}, "answer: 'name' must be a text"),
    ],
)
def test_a_bad_row_is_named_by_its_line(tmp_path: Path, change: dict[str, Any], fault: str) -> None:
    with pytest.raises(DataError, match=f"test.jsonl, line 2.*{fault}"):
        load(f"templama:{written(tmp_path, [ROWS[0], {**ROWS[4], **change}])}")


def test_a_row_without_a_query_or_an_answer_is_dropped_and_counted(tmp_path: Path) -> None:
    rows = [ROWS[0], {**ROWS[1], "answer": []}, {**ROWS[2], "query": " "}]
    dataset = load(f"templama:{written(tmp_path, rows)}")
    assert [fact.id for fact in dataset.facts("P54")] == ["Q1_P54_2011"]
    assert dataset.notes == {"rows_read": 3, "rows_incomplete": 2}


def test_two_sentences_in_one_relation_are_refused(tmp_path: Path) -> None:
    odd = row("_X_ is where Bob plays", "Q2", "P54", "2010", "Blues")
    with pytest.raises(DataError, match="relation P54: its queries are no one sentence"):
        load(f"templama:{written(tmp_path, [ROWS[0], odd])}")


def test_a_file_without_rows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="holds no row of TempLAMA"):
        load(f"templama:{written(tmp_path, [])}")
