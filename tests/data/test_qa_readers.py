"""KAMEL, PopQA and EntityQuestions: sets of answers, popularity, and questions as published.

The files of PopQA and EntityQuestions were not at hand; rows here have their documented columns.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sonde.core.errors import DataError
from sonde.core.facts import Dataset, Fact
from sonde.data.catalog import load
from sonde.data.check import problems
from sonde.data.format import open_dataset, write_dataset
from sonde.testing import check_dataset

FRENCH = {"alternative": ["French language", "fr"], "rdf": "French", "chosen": "French"}
BORN = {"alternative": ["12 May 1936", "1936"], "rdf": None, "chosen": "1936"}


def kamel(folder: Path, *rows: dict[str, Any], questions: str = "") -> Path:
    (folder / "P103").mkdir(parents=True, exist_ok=True)
    told = questions or "P103, What is the native language of [S]?\n\nP569, When was [S] born?\n"
    (folder / "question-templates.csv").write_text(told, encoding="utf-8")
    test = rows or ({"sub_label": "Ann", "obj_uri": ["Q150"], "obj_label": [FRENCH]},)
    for split, lines in (("test", test), ("train", [{"sub_label": "Bo", "obj_label": ["Thai"]}])):
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (folder / "P103" / f"{split}.jsonl").write_text(text, encoding="utf-8")
    return folder


def facts(dataset: Dataset, relation: str) -> list[Fact]:
    return list(dataset.facts(relation))


def test_kamel_has_a_question_and_every_object_with_its_names(tmp_path: Path) -> None:
    data = load(f"kamel:{kamel(tmp_path)}")
    relation = data.relation("P103")
    assert relation.templates[0].text == "What is the native language of [X]? [Y]"
    assert relation.templates[0].style == "question" and relation.label == "native language"
    first, second = facts(data, "P103")
    assert (first.split, first.objects[0].id) == ("test", "Q150")
    assert first.objects[0].names == ("French", "French language", "fr")
    assert (second.split, second.objects[0].names, second.tags) == ("train", ("Thai",), ("apart",))
    assert data.notes == {"relations_without_question": 0, "questions_without_facts": 1}


def test_kamel_is_read_as_its_repository_has_it(tmp_path: Path) -> None:
    inside = kamel(tmp_path / "data" / "KAMEL")
    flat = load(f"kamel:{inside}")
    (inside / "question-templates.csv").rename(tmp_path / "question-templates.csv")
    for reference in (f"kamel:{tmp_path}", str(tmp_path)):
        data = load(reference)
        assert [relation.id for relation in data.relations] == ["P103"]
        assert facts(data, "P103") == facts(flat, "P103")
    assert data.notes == {"relations_without_question": 0, "questions_without_facts": 1}


@pytest.mark.parametrize(
    "row",
    [
        {"sub_label": " ", "obj_label": ["x"]},
        {"sub_label": "Ann", "obj_label": []},
        {"sub_label": "Ann", "obj_label": [""]},
        {"sub_label": "Ann", "obj_label": ["x", {"rdf": None}]},
    ],
)
def test_a_row_of_kamel_with_an_empty_label_is_dropped_and_counted(
    row: dict[str, Any], tmp_path: Path
) -> None:
    data = load(f"kamel:{kamel(tmp_path, row, {'sub_label': 'Cy', 'obj_label': ['Thai']})}")
    assert [fact.id for fact in facts(data, "P103")] == ["P103:test:2", "P103:train:1"]
    assert data.notes["rows_incomplete"] == 1


def test_a_date_is_its_own_identifier(tmp_path: Path) -> None:
    row = {"sub_label": "Ann", "obj_uri": ["XMLSchema#dateTime"], "obj_label": [BORN]}
    born = facts(load(str(kamel(tmp_path, row))), "P103")[0].objects[0]
    assert (born.id, born.names) == ("1936", ("1936", "12 May 1936"))


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"sub_label": "Ann", "obj_label": "x"}, "'obj_label' must be a list of labels"),
        ({"sub_label": "Ann", "obj_label": [7]}, "'obj_label' must be a list"),
        ({"sub_label": 7, "obj_label": ["x"]}, "'sub_label' must be a text"),
        (
            {"sub_label": "Ann", "obj_uri": ["Q1", "Q2"], "obj_label": ["x"]},
            "must have an entry for each of 1 labels",
        ),
        (
            {"sub_label": "Ann", "obj_label": [{"chosen": "a", "alternative": "abc"}]},
            "'alternative' must be a list of labels, found 'abc'",
        ),
    ],
)
def test_a_faulty_row_of_kamel_is_named_with_its_line(
    row: dict[str, Any], words: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=f"test.jsonl, line 1: .*{words}"):
        facts(load(f"kamel:{kamel(tmp_path, row)}"), "P103")


@pytest.mark.parametrize("line", ["P103 What is it?", "P103, What is it?", "P1, [S] and [S]?"])
def test_a_faulty_question_of_kamel_is_named_with_its_line(line: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"line 1: expected a relation, a comma and a question"):
        load(f"kamel:{kamel(tmp_path, questions=line)}")


def test_kamel_without_facts_for_its_questions_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no relation of question-templates.csv has a file"):
        load(f"kamel:{kamel(tmp_path, questions='P1, Who is [S]?')}")


def test_files_without_a_fact_are_refused(tmp_path: Path) -> None:
    folder = kamel(tmp_path)
    for split in ("test", "dev", "train"):
        (folder / "P103" / f"{split}.jsonl").write_text("", encoding="utf-8")
    for reference in (f"kamel:{folder}", str(folder)):
        with pytest.raises(DataError, match=f"{folder}: no fact of kamel is in it"):
            load(reference)


@pytest.mark.shared
def test_the_eight_relations_of_kamel_read_whole(shared: Path) -> None:
    data = load(f"kamel:{shared / 'data' / 'kamel'}")
    assert len(data.relations) == 8 and next(problems(data), None) is None
    asked = [fact for r in data.relations for fact in data.asked(r.id)]
    assert len(asked) == 1600 and data.size == 8 * 1400
    assert sum(len(fact.objects) > 1 for fact in asked) == 5 + 1 + 27 + 7 + 160 + 61
    borders = max(asked, key=lambda fact: len(fact.objects))
    assert (borders.relation, len(borders.objects)) == ("P47", 9)


POPQA = (
    "id subj prop obj subj_id prop_id obj_id s_aliases o_aliases s_uri o_uri s_wiki_title "
    "o_wiki_title s_pop o_pop question possible_answers"
).split()


def popqa(path: Path, *rows: dict[str, Any]) -> Path:
    cells = [[str(row.get(name, "")) for name in POPQA] for row in rows]
    lines = ["\t".join(f'"{c.replace(chr(34), chr(34) * 2)}"' for c in row) for row in cells]
    path.write_text("\n".join(["\t".join(POPQA), *lines]) + "\n", encoding="utf-8")
    return path


def popular(subject: str, answers: list[str], **more: Any) -> dict[str, Any]:
    return {
        "id": f"4{subject}",
        "subj": subject,
        "prop": "place of birth",
        "obj": answers[0],
        "subj_id": f"s{subject}",
        "obj_id": f"o{answers[0]}",
        "s_aliases": json.dumps([f"{subject} the elder"]),
        "s_pop": 142,
        "o_pop": 25692,
        "question": f"In what city was {subject} born?",
        "possible_answers": json.dumps(answers),
        **more,
    }


def test_popqa_has_popularity_and_every_acceptable_answer(tmp_path: Path) -> None:
    rows = (popular("Ann", ["Ulm", "City of Ulm"]), popular("Bo", ["Oslo"], s_pop="", o_pop=7))
    data = load(f"popqa:{popqa(tmp_path / 'popQA.tsv', *rows)}")
    (relation,) = data.relations
    assert (relation.id, relation.label) == ("place-of-birth", "place of birth")
    assert relation.templates[0].text == "In what city was [X] born? [Y]"
    ann, bo = facts(data, relation.id)
    assert ann.numbers == {"popularity": 142.0, "object_popularity": 25692.0}
    assert bo.numbers == {"object_popularity": 7.0}
    assert ann.objects[0].names == ("Ulm", "City of Ulm") and len(ann.objects) == 1
    assert ann.subject.names == ("Ann", "Ann the elder")
    assert ann.details["question"] == "In what city was Ann born?"
    assert load(str(tmp_path)).fingerprint == data.fingerprint  # the folder is recognised
    check_dataset(data)
    write_dataset(data, tmp_path / "own")
    assert facts(open_dataset(tmp_path / "own"), relation.id) == [ann, bo]


def test_questions_that_differ_are_asked_each_as_it_is(tmp_path: Path) -> None:
    rows = (popular("Ann", ["Ulm"]), popular("Bo", ["Oslo"], question="Where is Bo from?"))
    (relation,) = load(f"popqa:{popqa(tmp_path / 'mine.tsv', *rows)}").relations
    assert relation.templates[0].text == "[details.question] [Y]"


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (popular("Ann", ["Ulm"], possible_answers="Ulm"), "'possible_answers' must be a list"),
        (popular("Ann", ["Ulm"], possible_answers="[1]"), "'possible_answers' must be a list"),
        (popular("Ann", ["Ulm"], s_pop="many"), "'s_pop' must be a number, found 'many'"),
        (popular("Ann", ["Ulm"], s_pop="nan"), "'s_pop' must be a number, found 'nan'"),
        (popular("Ann", ["Ulm"], o_pop="-inf"), "'o_pop' must be a number, found '-inf'"),
    ],
)
def test_a_faulty_row_of_popqa_is_named_with_its_line(
    row: dict[str, Any], words: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=f"popQA.tsv, line 2: {words}"):
        facts(load(f"popqa:{popqa(tmp_path / 'popQA.tsv', row)}"), "place-of-birth")


def test_a_row_of_popqa_with_an_empty_label_is_dropped_and_counted(tmp_path: Path) -> None:
    rows = [popular("Ann", ["Ulm"], **{key: ""}) for key in ("subj", "prop", "obj", "question")]
    data = load(f"popqa:{popqa(tmp_path / 'popQA.tsv', *rows, popular('Bo', ['Oslo']))}")
    assert [fact.subject.name for fact in facts(data, "place-of-birth")] == ["Bo"]
    assert data.notes == {"rows_incomplete": 4}


def test_another_table_is_not_taken_for_popqa(tmp_path: Path) -> None:
    (tmp_path / "facts.tsv").write_text("subject\tobject\nPeru\tLima\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"line 2: no column 'subj', 'prop'"):
        load(f"popqa:{tmp_path / 'facts.tsv'}")
    with pytest.raises(DataError, match="holds no table of PopQA"):
        load(f"popqa:{tmp_path}")


def entityquestions(folder: Path, **files: Any) -> Path:
    for split, rows in files.items():
        (folder / split).mkdir(parents=True, exist_ok=True)
        text = rows if isinstance(rows, str) else json.dumps(rows)
        (folder / split / f"P19.{split}.json").write_text(text, encoding="utf-8")
    return folder


def asked(subject: str, *answers: str, **more: Any) -> dict[str, Any]:
    return {"question": f"Where was {subject} born?", "answers": list(answers), **more}


def test_the_subject_of_a_question_is_what_others_do_not_have(tmp_path: Path) -> None:
    rows = [asked("Ann Lee", "Ulm", "Ulm, Germany", popularity=12), asked("Bo", "Oslo")]
    folder = entityquestions(tmp_path / "dataset", test=rows, train=[asked("Cy", "Rome")])
    data = load(str(folder.parent))
    (relation,) = data.relations
    assert relation.templates[0].text == "Where was [X] born? [Y]"
    ann, bo, cy = facts(data, "P19")
    assert [fact.subject.name for fact in (ann, bo, cy)] == ["Ann Lee", "Bo", "Cy"]
    assert [fact.split for fact in (ann, bo, cy)] == ["test", "test", "train"]
    assert ann.objects[0].names == ("Ulm", "Ulm, Germany")
    assert ann.numbers == {"popularity": 12.0} and not bo.numbers
    check_dataset(data)


def test_a_single_question_is_asked_as_it_is(tmp_path: Path) -> None:
    data = load(f"entityquestions:{entityquestions(tmp_path, test=[asked('Ann', 'Ulm')])}")
    assert data.relations[0].templates[0].text == "[details.question] [Y]"
    assert facts(data, "P19")[0].details == {"question": "Where was Ann born?"}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("[{", "expected a JSON list of objects, but"),
        ('{"question": "x"}', "expected a JSON list of objects, found"),
        ('[{"answers": ["x"]}]', "entry 1: 'question' must be a text"),
        ("[]", "holds no questions"),
    ],
)
def test_faulty_entityquestions_are_refused(content: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=words):
        load(f"entityquestions:{entityquestions(tmp_path, test=content)}")


def test_an_empty_question_or_answer_is_dropped_and_counted(tmp_path: Path) -> None:
    blank = [asked("Ann"), asked("Cy", ""), {"question": "", "answers": ["x"]}]
    data = load(str(entityquestions(tmp_path, test=[*blank, asked("Bo", "Oslo")])))
    assert [fact.objects[0].name for fact in facts(data, "P19")] == ["Oslo"]
    assert data.notes == {"rows_incomplete": 3}
    folder = entityquestions(tmp_path / "more", test=[asked("Ann", "x"), {"question": "Who?"}])
    with pytest.raises(DataError, match="entry 2: 'answers' must be a list of texts"):
        facts(load(str(folder)), "P19")
