"""Tables that would fill the memory are rejected in a sentence, whatever sizes they declare."""

from __future__ import annotations

import gzip
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from polars import concat, read_parquet
from pyarrow import parquet

from sonde.core.errors import DataError
from sonde.data import fact_files, lines
from sonde.data.catalog import load
from sonde.data.check import folder_faults
from sonde.data.format import write_dataset
from sonde.data.lines import read_rows
from sonde.data.tables import dataset, excel, files

pytest.importorskip("fastexcel")

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"
HEADER = '<row><c t="inlineStr"><is><t>subject</t></is></c>{}</row>'.format(
    '<c t="inlineStr"><is><t>object</t></is></c>'
)


def cell(text: str, place: str = "") -> str:
    at = f' r="{place}"' if place else ""
    return f'<c{at} t="inlineStr"><is><t>{text}</t></is></c>'


def row(*cells: str) -> str:
    return f"<row>{''.join(cells)}</row>"


def workbook(path: Path, rows: str, shared: str = "", dimension: str = "A1:B2") -> Path:
    parts = {
        "_rels/.rels": f'<Relationships xmlns="{PACKAGE}"><Relationship Id="a" '
        f'Type="{OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}"><sheets><sheet '
        'name="facts" sheetId="1" r:id="a"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{PACKAGE}"><Relationship Id="a" '
        f'Type="{OFFICE}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>',
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{MAIN}"><dimension ref="{dimension}"/>'
        f"<sheetData>{HEADER}{rows}</sheetData></worksheet>",
        "xl/media/image1.png": "\x89PNG <",
    }
    if shared:
        parts["xl/sharedStrings.xml"] = f'<sst xmlns="{MAIN}">{shared}</sst>'
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return path


def refusal(path: Path) -> str:
    with pytest.raises(DataError) as refused:
        load(str(path))
    return str(refused.value)


FACT = row(cell("Peru"), cell("Lima"))


def test_a_small_workbook_is_read_whatever_extent_it_declares(tmp_path: Path) -> None:
    empty = '<row r="1048576"><c r="XFD1048576" s="0"/></row>'
    path = workbook(tmp_path / "facts.xlsx", FACT + empty, dimension="A1:XFD1048576")
    assert load(str(path)).size == 1


@pytest.mark.parametrize(
    "far",
    [
        row(cell("x", "XFD1048576")),
        '<row r="1048576"><c r="XFC1048576"/><c><v>1</v></c></row>',
        f'<x:row xmlns:x="{MAIN}"><x:c r="xfd1048576"><x:v>1</x:v></x:c></x:row>',
    ],
)
def test_a_cell_far_away_is_rejected_before_the_sheet_is_made(far: str, tmp_path: Path) -> None:
    said = refusal(workbook(tmp_path / "facts.xlsx", FACT + far))
    assert "has a sheet of 1,048,576 rows and 16,384 columns" in said


def test_what_a_workbook_unpacks_to_is_counted_whatever_it_declares(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(excel, "UNPACKED", 1)
    path = workbook(tmp_path / "facts.xlsx", FACT, shared=" " * 2**21)
    assert "unpacks to more than 1 MiB" in refusal(path)
    size = struct.pack("<I", 2**21 + len(f'<sst xmlns="{MAIN}"></sst>'))
    assert path.read_bytes().count(size) == 2
    path.write_bytes(path.read_bytes().replace(size, struct.pack("<I", 9)))
    assert "unpacks to more than 1 MiB" in refusal(path)


@pytest.mark.parametrize(
    ("rows", "shared"),
    [
        (row(cell("x" * 50), cell("Lima")), ""),
        (FACT, f"<si><t>{'x' * 30}</t><r><t>{'x' * 20}</t></r></si>"),
    ],
)
def test_a_long_cell_of_a_workbook_is_rejected(
    rows: str, shared: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(excel, "LONGEST_CELL", 49)
    path = workbook(tmp_path / "facts.xlsx", rows, shared)
    assert "has a cell of more than 49 characters" in refusal(path)


def test_a_shared_string_counts_wherever_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = "<si><t>Peru</t></si><si><t>" + "x" * 50 + "</t></si>"
    cells = '<row><c t="s"><v>0</v></c><c t="s"><v>1</v></c></row>' * 3
    path = workbook(tmp_path / "facts.xlsx", cells, long)
    monkeypatch.setattr(excel, "MOST_TEXT", 13 + 3 * 54)
    assert load(str(path)).size == 1
    monkeypatch.setattr(excel, "MOST_TEXT", 13 + 3 * 54 - 1)
    assert "has more than 174 characters" in refusal(path)


def test_a_long_tag_of_a_workbook_is_rejected(tmp_path: Path) -> None:
    path = workbook(tmp_path / "facts.xlsx", f'<c r="{"1" * (9 * 2**20)}"/>')
    assert "has a tag of more than 8 MiB" in refusal(path)


@pytest.mark.parametrize("damage", ["xml", "zip", "bytes"])
def test_a_damaged_workbook_is_told_from_a_large_one(damage: str, tmp_path: Path) -> None:
    path = workbook(tmp_path / "facts.xlsx", "<row>" if damage == "xml" else FACT)
    if damage == "zip":
        path.write_text("no workbook")
    if damage == "bytes":
        path.write_bytes(path.read_bytes()[:200] + b"\0" * 40 + path.read_bytes()[240:])
    assert f"{path}: not an Excel file that can be read" in refusal(path)


def test_repeated_texts_of_parquet_are_made_once_and_limited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "facts.parquet"
    texts = {name: pyarrow.array(["x" * 50, None, "y"] * 100) for name in ("subject", "object")}
    parquet.write_table(pyarrow.table(texts), path)
    rows = list(files.read_table(path))
    assert len({id(row.values["subject"]) for row in rows}) == 3
    assert [row.values["object"] for row in rows[:3]] == ["x" * 50, None, "y"]
    monkeypatch.setattr(files, "LONGEST_CELL", 49)
    assert "column 'subject' has a cell of more than 49 bytes" in refusal(path)


@pytest.mark.parametrize("compliant", [True, False])
def test_repeated_texts_in_lists_of_parquet_are_made_once_and_limited(
    compliant: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "facts.parquet"
    lists = [["x" * 50, "y"], None, [], ["x" * 50]] * 100
    columns = {"subject": ["Peru"] * 400, "object": ["Lima"] * 400, "aliases": lists}
    parquet.write_table(pyarrow.table(columns), path, use_compliant_nested_type=compliant)
    rows = list(files.read_table(path))
    assert [row.values["aliases"] for row in rows] == lists
    assert rows[0].values["aliases"][0] is rows[3].values["aliases"][0]
    monkeypatch.setattr(dataset, "MOST_TEXT", 400 * 8 + 100 * 101 - 1)
    assert "has more than 13,299 characters" in refusal(path)
    monkeypatch.setattr(files, "LONGEST_CELL", 49)
    assert "column 'aliases' has a cell of more than 49 bytes" in refusal(path)


@pytest.mark.parametrize("wrap", [lambda text: {"en": text}, lambda text: [{"en": [text]}]])
def test_texts_inside_objects_of_parquet_are_limited(
    wrap: Callable[[str], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "facts.parquet"
    columns = {"subject": ["Peru"] * 10, "object": ["Lima"] * 10, "note": [wrap("x" * 50)] * 10}
    parquet.write_table(pyarrow.table(columns), path)
    monkeypatch.setattr(dataset, "MOST_TEXT", 579)
    assert "has more than 579 characters" in refusal(path)
    monkeypatch.setattr(dataset, "MOST_TEXT", 580)
    assert load(str(path)).size == 1


def test_a_column_of_parquet_that_unpacks_to_too_much_is_rejected_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "facts.parquet"
    table = pyarrow.table({"subject": ["x" * 2**21], "object": ["Lima"]})
    parquet.write_table(table, path, compression="gzip", use_dictionary=False)
    monkeypatch.setattr(files, "UNPACKED", 1)
    assert f"{path}: column 'subject' unpacks to more than 1 MiB" in refusal(path)


def test_the_text_of_a_table_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "facts.csv"
    path.write_text("subject,object\n" + "Peru,Lima\n" * 100)
    monkeypatch.setattr(dataset, "MOST_TEXT", 799)
    assert f"{path} has more than 799 characters" in refusal(path)
    monkeypatch.setattr(dataset, "MOST_TEXT", 800)
    assert load(str(path)).notes == {"rows_read": 100, "rows_merged": 99}


def test_equal_rows_are_merged_and_those_that_only_compare_equal_are_not(tmp_path: Path) -> None:
    path = tmp_path / "facts.jsonl"
    objects = ["1", "true", '"1"', '"1"', "1"]
    path.write_text("".join(f'{{"subject": "x", "object": {value}}}\n' for value in objects))
    [relation] = (data := load(str(path))).relations
    assert data.object_names(relation.id) == ("1", "True")
    assert data.notes == {"rows_read": 5, "rows_merged": 4}


def test_faults_of_equal_rows_are_all_told(tmp_path: Path) -> None:
    path = tmp_path / "facts.csv"
    path.write_text("subject,object,template\n" + "Peru,Lima,[X] is.\n" * 3)
    assert "has 3 faults" in refusal(path)


@pytest.mark.parametrize("text", ["subject,object\nPeru,{}\n", 'subject,object\nPeru,"{}\n'])
def test_a_long_cell_of_a_text_file_is_rejected(text: str, tmp_path: Path) -> None:
    path = tmp_path / "facts.csv"
    path.write_text(text.format("x" * 1_000_001))
    assert "field larger than field limit (1000000)" in refusal(path)


@pytest.mark.parametrize("ending", [".jsonl", ".jsonl.gz", ".csv"])
def test_a_line_without_an_end_is_not_read_whole(
    ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (lines, files):
        monkeypatch.setattr(module, "LONGEST_LINE", 1000)
    path, text = (
        tmp_path / f"facts{ending}",
        b'{"subject": "Peru", "object": "Lima"}\n' + b" " * 5000,
    )
    path.write_bytes(gzip.compress(text) if ending.endswith("gz") else text)
    read: Any = read_rows if ending != ".csv" else files.read_table
    with pytest.raises(DataError, match=r"line 2: longer than 1,000"):
        list(read(path))


def test_columns_of_a_dataset_folder_are_checked_as_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_dataset(load("atlas"), tmp_path, columns=True)
    path = tmp_path / "facts" / "P36.parquet"
    facts = read_parquet(path)
    concat([facts, facts[:1]]).write_parquet(path)
    monkeypatch.delattr(fact_files, "facts_of")
    errors = [str(fault) for fault in folder_faults(tmp_path) if fault.error]
    assert errors == [
        f"{path}, row {facts.height + 1}: fact id {facts['fact'][0]!r} stands more than once"
    ]
