"""Tables as datasets: every kind of file, which column is what, and what a cell holds."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sonde
from sonde.core.errors import DataError, MissingExtra
from sonde.core.facts import Dataset, Fact
from sonde.data.catalog import load
from sonde.data.format import open_dataset, write_dataset
from sonde.data.tables import files
from sonde.data.tables.columns import texts_in

CAPITALS: list[dict[str, Any]] = [
    {"Country": "France", "Capital": "Paris", "year": 1792},
    {"Country": "Bolivia", "Capital": "Sucre|La Paz", "year": 1825},
    {"Country": "Peru", "Capital": "Lima", "year": 1821},
]
COLUMNS = {"subject": "Country", "object": "Capital"}

Rows = Sequence[Mapping[str, Any]]


def delimited(mark: str) -> Callable[[Path, Rows], None]:
    def write(path: Path, rows: Rows) -> None:
        lines = [rows[0], *(row.values() for row in rows)]
        path.write_text("".join(mark.join(map(str, line)) + "\n" for line in lines))

    return write


def jsonl(path: Path, rows: Rows) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def parquet(path: Path, rows: Rows) -> None:
    polars.DataFrame(rows).write_parquet(path)


def xlsx(path: Path, rows: Rows) -> None:
    """A workbook of one sheet, as small as may be."""
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml"

    def cell(value: Any) -> str:
        if isinstance(value, int):
            return f"<c><v>{value}</v></c>"
        return f'<c t="inlineStr"><is><t>{value}</t></is></c>'

    table = [list(rows[0]), *(list(row.values()) for row in rows)]
    lines = "".join(f"<row>{''.join(map(cell, cells))}</row>" for cells in table)
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types"><Default Extension="rels" '
        'ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Override '
        f'PartName="/xl/workbook.xml" ContentType="{kind}.sheet.main+xml"/><Override '
        f'PartName="/xl/worksheets/sheet1.xml" ContentType="{kind}.worksheet+xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{package}/relationships"><Relationship Id="a" '
        f'Type="{office}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{office}"><sheets><sheet '
        'name="facts" sheetId="1" r:id="a"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{package}/relationships">'
        f'<Relationship Id="a" Type="{office}/worksheet" Target="worksheets/sheet1.xml"/>'
        "</Relationships>",
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{main}"><sheetData>{lines}</sheetData>'
        "</worksheet>",
    }
    with zipfile.ZipFile(path, "w") as book:
        for name, text in parts.items():
            book.writestr(name, f'<?xml version="1.0" encoding="UTF-8"?>{text}')


WRITERS = {
    "csv": delimited(","),
    "tsv": delimited("\t"),
    "jsonl": jsonl,
    "parquet": parquet,
    "xlsx": xlsx,
}


def facts(dataset: Dataset) -> list[Fact]:
    return [fact for relation in dataset.relations for fact in dataset.facts(relation.id)]


def pairs(dataset: Dataset) -> dict[str, tuple[str, ...]]:
    """The first names of the objects of each subject."""
    return {fact.subject.name: tuple(o.name for o in fact.objects) for fact in facts(dataset)}


def csv(folder: Path, text: str, name: str = "facts.csv") -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("ending", WRITERS)
def test_every_kind_of_file_holds_the_same_facts(ending: str, tmp_path: Path) -> None:
    if ending == "xlsx":
        pytest.importorskip("fastexcel")
    path = tmp_path / f"capitals.{ending}"
    WRITERS[ending](path, CAPITALS)
    delimited(",")(tmp_path / "same.csv", CAPITALS)
    dataset, same = (load(str(p), columns=COLUMNS) for p in (path, tmp_path / "same.csv"))
    assert dataset.name == "capitals"
    [relation] = dataset.relations
    assert (relation.id, relation.label, relation.kind) == ("Capital", "Capital", "N-M")
    assert facts(dataset) == facts(same)
    assert dataset.fingerprint == same.fingerprint, "it names what is said, not how it is stored"
    assert pairs(dataset)["Bolivia"] == ("Sucre", "La Paz")
    [france, *_] = facts(dataset)
    assert (france.id, france.details) == ("Capital:France", {"year": "1792"})


def test_an_excel_file_without_its_library_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    xlsx(tmp_path / "capitals.xlsx", CAPITALS)
    monkeypatch.setattr(files, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"pip install 'sonde\[excel\]', or save .* CSV"):
        load(str(tmp_path / "capitals.xlsx"), columns=COLUMNS)


@pytest.mark.parametrize(
    "header",
    [
        "subject,object",
        "Head , TAIL",
        "sub_label;obj_label",
        "entity\tanswers",
        "s,o",
        "name,target",
    ],
)
def test_columns_are_found_by_their_usual_names(header: str, tmp_path: Path) -> None:
    mark = next(m for m in ",;\t" if m in header)
    dataset = load(csv(tmp_path, f"{header}\nPeru{mark}Lima\n"))
    assert pairs(dataset) == {"Peru": ("Lima",)}
    assert [r.id for r in dataset.relations] == ["facts"], "called after the file"


def test_a_column_of_relations_makes_several(tmp_path: Path) -> None:
    text = "subject,predicate,object\nPeru,capital,Lima\nPeru,spoken language,Spanish\n"
    text += "Peru,spoken language,Quechua\nChile,capital,Santiago\n"
    dataset = load(csv(tmp_path, text))
    labels = {relation.id: (relation.label, relation.kind) for relation in dataset.relations}
    assert labels == {
        "capital": ("capital", "1-1"),
        "spoken-language": ("spoken language", "N-M"),
    }
    [spoken] = dataset.facts("spoken-language")
    assert [entity.name for entity in spoken.objects] == ["Spanish", "Quechua"], "one fact"
    assert dataset.notes["rows_merged"] == 1


def test_several_columns_of_objects_are_a_relation_each(tmp_path: Path) -> None:
    text = "wine,region,grape\nBarolo,Piedmont,Nebbiolo\nChianti,Tuscany,\n"
    columns = {"subject": "wine", "object": ["region", "grape"]}
    dataset = load(csv(tmp_path, text), columns=columns)
    assert [r.label for r in dataset.relations] == ["region", "grape"]
    assert [fact.id for fact in facts(dataset)] == [
        "region:Barolo",
        "region:Chianti",
        "grape:Barolo",
    ]
    assert dataset.notes["cells_empty"] == 1, "a row may say nothing about a relation"


def test_a_known_number_of_a_relation_brings_its_label(tmp_path: Path) -> None:
    dataset = load(csv(tmp_path, "subject,relation,object\nPeru,P36,Lima\n"))
    assert dataset.relation("P36").label == "capital"


def test_aliases_ids_splits_and_wrong_options_are_read(tmp_path: Path) -> None:
    text = "id,subject,subject_id,object,object_id,aliases,s_aliases,wrong,split\n"
    text += "a,Peru,Q419,Lima,Q2868,Ciudad de los Reyes|Lima,Republic of Peru,Cusco|Lima,train\n"
    [fact] = facts(load(csv(tmp_path, text)))
    assert (fact.id, fact.split, fact.subject.id) == ("a", "train", "Q419")
    assert fact.subject.names == ("Peru", "Republic of Peru")
    [lima] = fact.objects
    assert (lima.id, lima.names) == ("Q2868", ("Lima", "Ciudad de los Reyes"))
    assert [entity.name for entity in fact.wrong] == ["Cusco"], "what is right is no wrong option"


def test_a_column_can_be_left_alone(tmp_path: Path) -> None:
    path = csv(tmp_path, "id,subject,object\n1,Peru,Lima\n1,Chile,Santiago\n")
    dataset = load(path, columns={"id": ""})
    assert [fact.id for fact in facts(dataset)] == ["facts:Peru", "facts:Chile"]
    assert facts(dataset)[0].details == {"id": "1"}


@pytest.mark.parametrize(
    ("cell", "texts"),
    [
        ("Sucre | La Paz", ["Sucre", "La Paz"]),
        ('["Sucre", "La|Paz"]', ["Sucre", "La|Paz"]),
        ("['Sucre']", ["Sucre"]),
        (["Sucre", None, " La  Paz"], ["Sucre", "La Paz"]),
        ("[X] of", ["[X] of"]),
        ("[]", []),
        (1947.0, ["1947"]),
        (float("nan"), []),
        (None, []),
        (" | ", []),
    ],
)
def test_a_cell_may_hold_several_texts(cell: Any, texts: list[str]) -> None:
    assert texts_in(cell) == texts


def test_a_column_of_sentences_with_a_slot_is_the_wording(tmp_path: Path) -> None:
    text = "subject,object,relation,template\n"
    text += "Peru,Lima,capital,The capital of [X] is [Y].\n"
    text += "Chile,Santiago,capital,The capital of [X] is [Y].\n"
    text += "Peru,Spanish,language,In [X] they speak [Y].\n"
    dataset = load(csv(tmp_path, text))
    worded = {r.id: [t.text for t in r.templates] for r in dataset.relations}
    assert worded == {
        "capital": ["The capital of [X] is [Y]."],
        "language": ["In [X] they speak [Y]."],
    }


def test_a_question_for_each_row_is_kept_as_a_detail(tmp_path: Path) -> None:
    text = "subject,object,question\nPeru,Lima,What is the capital of Peru?\n"
    dataset = load(csv(tmp_path, text))
    assert not dataset.relations[0].templates
    assert facts(dataset)[0].details == {"question": "What is the capital of Peru?"}


def test_questions_with_answers_need_no_other_wording(tmp_path: Path) -> None:
    dataset = load(csv(tmp_path, "question,answer\nWhat is the capital of Peru?,Lima\n"))
    [template] = dataset.relations[0].templates
    assert template.fill(facts(dataset)[0].subject.name) == ("What is the capital of Peru? ", ".")


def test_what_was_made_up_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "sonde")
    path = csv(tmp_path, "subject,object\nPeru,Lima\nPeru,Cusco\n")
    load(path)
    columns, made = caplog.messages
    assert columns == (
        f"{path}: 1 fact from 2 rows (1 row was added to another's fact); columns: "
        "subject 'subject', object 'object'"
    )
    assert made == "made up: relation facts (N-M), and ids such as 'facts:Peru'"


def test_another_mark_between_objects_is_pointed_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    load(csv(tmp_path, "subject,object\nBolivia,Sucre; La Paz\n"))
    warnings = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert warnings == [
        "1 object holds ';'; to name several objects in a cell, put '|' between them"
    ]


def test_python_takes_columns_and_sentences(tmp_path: Path) -> None:
    path = csv(tmp_path, "wine,region\nBarolo,Piedmont\n")
    columns = {"subject": "wine", "object": "region"}
    dataset = sonde.dataset(path, columns=columns, template="[X] comes from [Y].")
    assert [t.text for t in dataset.relations[0].templates] == ["[X] comes from [Y]."]
    assert dataset.name == "facts", "the sentences are its own"


def test_a_table_can_be_joined_with_a_plus(tmp_path: Path) -> None:
    (tmp_path / "aliases").mkdir()
    (tmp_path / "aliases" / "en.tsv").write_text("Q419\tRepublic of Peru\n")
    path = csv(tmp_path, "subject,subject_id,object\nPeru,Q419,Lima\n")
    [fact] = facts(load(f"{path}+aliases:{tmp_path / 'aliases'}"))
    assert fact.subject.names == ("Peru", "Republic of Peru")


NAMES = st.text(st.sampled_from("ab é日'\"\\,;[]{}\t"), min_size=1, max_size=6).filter(
    lambda name: " ".join(name.split())
)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "subject": NAMES,
            "relation": NAMES,
            "object": st.lists(NAMES, min_size=1, max_size=3),
            "aliases": st.lists(NAMES, max_size=2),
            "note": st.one_of(st.none(), NAMES),
        }
    ),
    min_size=1,
    max_size=8,
)


@given(ROWS)
def test_a_converted_table_has_the_same_facts(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]]
) -> None:
    folder = tmp_path_factory.mktemp("table")
    jsonl(folder / "facts.jsonl", rows)
    dataset = load(str(folder / "facts.jsonl"))
    write_dataset(dataset, folder / "full")
    again = open_dataset(folder / "full")
    assert [(r.id, r.label, r.kind) for r in again.relations] == [
        (r.id, r.label, r.kind) for r in dataset.relations
    ]
    assert facts(again) == facts(dataset)
    assert load(str(folder / "facts.jsonl")).fingerprint == dataset.fingerprint
    said = {(" ".join(r["relation"].split()), " ".join(r["subject"].split())) for r in rows}
    assert len(facts(dataset)) == len(said), "a fact for each relation and subject"


def test_numbers_and_dates_are_columns_like_others(tmp_path: Path) -> None:
    path = tmp_path / "clubs.csv"
    path.write_text(
        "subject,object,year,since,until,popularity,age\n"
        'Ann,Oslo FC,2015,2012,2016-05,"1,234",30\nAnn,Rome FC,2017,2016-06,,,31\n'
    )
    given = {"date": "year", "from": "since", "to": "until", "number": ["popularity", "age"]}
    data = load(str(path), "In [T], [X] played for [Y].", given)
    first, second = facts(data)
    assert (first.date, first.valid_from, first.valid_to) == ("2015", "2012", "2016-05")
    assert (first.numbers, second.numbers) == ({"popularity": 1234.0, "age": 30.0}, {"age": 31.0})
    assert (first.id, second.id) == ("clubs:Ann:2015", "clubs:Ann:2017")


def test_a_date_that_is_none_and_a_number_that_is_none_are_told_together(tmp_path: Path) -> None:
    path = tmp_path / "clubs.csv"
    path.write_text("subject,object,year,popularity\nAnn,Oslo,May 2015,many\nBen,Rome,2015,1\n")
    with pytest.raises(DataError) as refused:
        load(str(path), (), {"date": "year"})
    assert "'year' must be a date, YYYY" in str(refused.value)
    assert "'popularity' must be a number, not 'many'" in str(refused.value)


def test_a_sentence_with_a_date_says_how_to_name_the_column_of_dates(tmp_path: Path) -> None:
    path = tmp_path / "heads.csv"
    path.write_text("subject,object,date\nAland,Cid,2010\nBland,Ada,2010\n")
    data = load(str(path), "In [T], the head of [X] was [Y].")
    with pytest.raises(DataError, match=r"--columns date=COLUMN"):
        list(sonde.probe("lama").ask(data))
    given = {"date": "date"}
    assert list(
        sonde.probe("lama").ask(load(str(path), data.relations[0].templates[0].text, given))
    )
