"""Tables and sentences that cannot be used: one message, with all that is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet

from sonde.core.errors import DataError, SondeError, UsageError
from sonde.data.catalog import load
from tests.command import Sonde, in_this_process

SENTENCE = "The capital of [X] is [Y]."


@pytest.fixture
def sonde(capsys: Any) -> Sonde:
    return in_this_process(capsys)


def refusal(path: Path, *more: Any) -> str:
    """What is said of a table, or of anything else, that cannot be opened."""
    with pytest.raises(SondeError) as refused:
        load(str(path), *more)
    return str(refused.value)


def written(folder: Path, text: str | bytes, name: str = "facts.csv") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_missing_columns_are_told_with_those_that_are_there(tmp_path: Path) -> None:
    path = written(tmp_path, "name,region,grape\nBarolo,Piedmont,Nebbiolo\n")
    assert refusal(path) == (
        f"{path} has no column with a usual name for the object (object, obj, tail, o, y, "
        "obj_label, object_label, answer, answers, target, correct_answer, gold).\n"
        "Its columns: name (the subject), region, grape (in a CSV file the first line names "
        "them).\n"
        "Say which is what, such as: --columns subject=name,object=region (object= may come "
        "several times, a relation each). See docs/tables.md"
    )


def test_a_table_of_one_column_is_refused(tmp_path: Path) -> None:
    said = refusal(written(tmp_path, "wine\nBarolo\n"))
    assert "for the subject" in said and "a table needs two columns at least" in said


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"subject": "wine", "object": "regoin"}, "no column 'regoin'; did you mean 'region'?"),
        ({"subjekt": "wine"}, "a column cannot be 'subjekt' of a fact; did you mean 'subject'"),
        ({"subject": ["wine", "region"]}, "two columns are given for subject: wine, region"),
        (
            {"subject": "wine", "object": ["region", "grape"], "relation": "wine"},
            "several columns of objects are a relation each",
        ),
    ],
)
def test_columns_that_cannot_be_meant_are_refused(
    columns: dict[str, Any], said: str, tmp_path: Path
) -> None:
    path = written(tmp_path, "wine,region,grape\nBarolo,Piedmont,Nebbiolo\n")
    assert said in refusal(path, (), columns)


def test_columns_of_no_table_are_refused(sonde: Sonde) -> None:
    sonde("data", "show", "atlas", "--columns", "subject=x").refused(2, "--columns is for tables")
    sonde("data", "show", "atlas", "--columns", "subject").refused(2, "ROLE=COLUMN", "subject=Wine")


def test_the_problems_of_all_rows_are_told_at_once(tmp_path: Path) -> None:
    rows = ["a,Peru,Lima", "b,,Santiago", "a,Chile,", "c,Oslo,Norway,more"]
    path = written(tmp_path, "id,subject,object\n" + "\n".join(rows) + "\n")
    assert refusal(path) == (
        f"{path} has 4 faults:\n"
        "  line 3: 'subject' is empty\n"
        "  line 4: 'id' is 'a', as in line 2\n"
        "  line 4: 'object' is empty\n"
        "  line 5: 4 cells under a header of 3; put a cell that holds the separator in double "
        "quotes\n"
        "Nothing was made of it; mend the rows or leave them out (docs/tables.md)"
    )


def test_many_problems_are_counted(tmp_path: Path) -> None:
    path = written(tmp_path, "subject,object\n" + "Peru,\n" * 25)
    lines = refusal(path).splitlines()
    assert lines[0].endswith("has 25 faults:")
    assert lines[1:3] == ["  line 2: 'object' is empty", "  line 3: 'object' is empty"]
    assert lines[11] == "  … and 15 more"


@pytest.mark.parametrize("text", ["", "subject,object\n", "subject,object\n\n\n"])
def test_an_empty_table_is_refused(text: str, tmp_path: Path) -> None:
    assert "it has no row below its header" in refusal(written(tmp_path, text))


def test_a_file_in_another_encoding_is_told_with_its_lines(tmp_path: Path) -> None:
    text = "subject,object\nPeru,Lima\nAustria,Österreich\nFrance,Orléans\n"
    path = written(tmp_path, text.encode("latin-1"))
    said = refusal(path)
    assert "is not in UTF-8: lines 3, 4;" in said
    assert "if line 3 means 'Austria,Österreich', it is in Latin-1" in said
    assert f"iconv -f LATIN1 -t UTF-8 {path} > {tmp_path / 'facts-utf8.csv'}" in said
    assert "iconv -f UTF-16" in refusal(written(tmp_path, text.encode("utf-16")))


def test_a_table_without_a_readable_row_is_not_called_empty(tmp_path: Path) -> None:
    said = refusal(written(tmp_path, "subject,object\nFrança,Paris\n".encode("latin-1")))
    assert "not in UTF-8: line 2" in said and "no row" not in said


def test_json_lines_in_another_encoding_are_told_the_same(tmp_path: Path) -> None:
    text = '{"subject": "Austria", "object": "Österreich"}\n' * 2
    said = refusal(written(tmp_path, text.encode("latin-1"), "facts.jsonl"))
    assert "is not in UTF-8: lines 1, 2;" in said and "iconv -f LATIN1" in said


def test_mixed_encodings_are_told_from_another_one(tmp_path: Path) -> None:
    text = "subject,object\nÖsterreich,Wien\n".encode() + "França,Paris\n".encode("latin-1")
    said = refusal(written(tmp_path, text))
    assert "line 3;" in said and "mixes encodings" in said and "'França,Paris'" in said


def test_a_mark_of_utf_8_is_passed_over(tmp_path: Path) -> None:
    dataset = load(str(written(tmp_path, "subject,object\nPeru,Lima\n".encode("utf-8-sig"))))
    assert dataset.size == 1


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("facts.csv", 'subject,object\nPeru,"Lima\n', "is a quotation mark left open?"),
        ("facts.csv", "subject,object,object\na,b,c\n", "2 columns are called 'object'"),
        ("facts.jsonl", '{"subject": "a", "object": "b"}\n{"subj\n', "line 2: expected a JSON"),
        ("facts.jsonl", '{"subject": {"id": 1}, "object": "b"}\n', "holds an object, not a text"),
        ("facts.parquet", "no parquet", "not a Parquet file"),
        ("facts.txt", "subject,object\n", "no table by its ending (.csv, .tsv"),
    ],
)
def test_a_file_that_is_no_table_is_refused(
    name: str, text: str, said: str, tmp_path: Path
) -> None:
    found = refusal(written(tmp_path, text, name))
    assert said in found and "docs/tables.md" in found


def test_a_file_that_is_not_there_is_named(tmp_path: Path, sonde: Sonde) -> None:
    sonde("data", "show", tmp_path / "no.csv").refused(3, "no.csv is missing")


def test_a_folder_of_tables_says_which_to_give(tmp_path: Path) -> None:
    path = written(tmp_path, "wine,region\nBarolo,Piedmont\n", "wines.csv")
    said = refusal(tmp_path)
    assert f"it holds tables: give one of them, such as {path}" in said
    assert "docs/tables.md" in said


@pytest.mark.parametrize(
    ("sentence", "said"),
    [
        ("The capital is [Y].", "has no [X]; write [X] where the subject belongs"),
        ("The capital of [X] is.", "has no [Y]; write [Y] where the answer belongs"),
        ("[X] and [X] are in [Y].", "has 2 [X]; keep one"),
        ("[X] is [Y] or [Y].", "has 2 [Y]; keep one"),
        ("The capital of X is Y.", "has no [X]"),
        ("nowhere.txt", "nowhere.txt is missing"),
        ("capitl=The capital of [X] is [Y].", "no relation 'capitl'; did you mean 'capital'?"),
    ],
)
def test_a_sentence_that_cannot_ask_is_refused(sentence: str, said: str, tmp_path: Path) -> None:
    path = written(tmp_path, "country,capital\nPeru,Lima\n")
    found = refusal(path, sentence, {"subject": "country", "object": "capital"})
    assert said in found and "docs/tables.md" in found


def test_the_faults_of_all_sentences_are_told_at_once(tmp_path: Path) -> None:
    path = written(tmp_path, "subject,object\nPeru,Lima\n")
    words = written(tmp_path, "It is [Y].\n\n[X] is [Y].\n[X] it is.\n", "words.txt")
    said = refusal(path, [str(words), "[X] [X]"])
    assert said.startswith("--template has 4 faults:")
    assert "words.txt, line 1" in said and "words.txt, line 4" in said


def test_a_sentence_for_no_relation_in_particular_is_refused(tmp_path: Path) -> None:
    text = "subject,relation,object\nPeru,capital,Lima\nPeru,language,Spanish\n"
    said = refusal(written(tmp_path, text), SENTENCE)
    assert "for which of 2 relations (capital, language)" in said
    assert f"--template 'capital={SENTENCE}'" in said


def test_nothing_is_written_of_a_table_that_cannot_be_used(tmp_path: Path, sonde: Sonde) -> None:
    path, out = written(tmp_path, "subject,object\nPeru,\n"), tmp_path / "out"
    sonde("data", "convert", path, "-o", out).refused(3, "'object' is empty")
    words = ("-m", "control:majority", "-d", path, "-o", out)
    sonde("run", "lama", *words).refused(3, "'object' is empty")
    assert not out.exists()


def test_a_probe_that_needs_a_sentence_offers_one(tmp_path: Path, sonde: Sonde) -> None:
    path = written(tmp_path, "country,capital\nPeru,Lima\nChile,Santiago\n")
    words = ("-m", "control:majority", "-d", path, "--columns", "subject=country,object=capital")
    for verb in ("run", "plan"):
        said = sonde(verb, "lama", *words, "-o", tmp_path / "out").refused(3)
        assert '--template "The capital of [X] is [Y]."' in said
        assert "'The capital of Peru is' and look for 'Lima'" in said
    said = sonde("run", "monitor", *words).refused(3)
    assert '--template "What is the capital of [X]? [Y]."' in said
    assert not (tmp_path / "out").exists()


def test_a_dataset_by_no_known_name_is_told_where_to_read(sonde: Sonde) -> None:
    sonde("data", "show", "wines").refused(2, "no dataset called 'wines'", "docs/tables.md")
    with pytest.raises(UsageError, match=r"no reader called 'hbu'; did you mean 'hub'\?"):
        load("hbu:owner/name")
    with pytest.raises(DataError, match=r"docs/tables\.md"):
        load("./no-such-folder")


def test_binary_cells_of_parquet_are_texts(tmp_path: Path) -> None:
    path = tmp_path / "facts.parquet"
    columns = {
        "subject": pyarrow.array([b"France", "Österreich".encode()], pyarrow.binary()),
        "object": pyarrow.array([[b"Paris"], [b"Wien", b"Vienna"]]),
        "note": pyarrow.array([b"a", b"a"]).dictionary_encode(),
    }
    parquet.write_table(pyarrow.table(columns), path)
    [relation] = (dataset := load(str(path))).relations
    facts = list(dataset.facts(relation.id))
    assert [fact.subject.name for fact in facts] == ["France", "Österreich"]
    assert [object.name for object in facts[1].objects] == ["Wien", "Vienna"]
    assert facts[0].details == {"note": "a"}


def test_binary_cells_that_are_no_text_are_named_by_row_and_column(tmp_path: Path) -> None:
    path = tmp_path / "facts.parquet"
    subjects = [b"Peru", b"\xff\xfe", b"Fran\xe7a"]
    parquet.write_table(pyarrow.table({"subject": subjects, "object": ["Lima"] * 3}), path)
    said = refusal(path)
    assert "row 2: 'subject' is binary and not text in UTF-8" in said and "row 3: 'sub" in said


@pytest.mark.parametrize("nested", [False, True])
def test_a_map_column_of_parquet_is_rejected(nested: bool, tmp_path: Path) -> None:
    kind = pyarrow.map_(pyarrow.string(), pyarrow.string())
    cell: Any = [("en", "Lima"), ("fr", "Lima")]
    names = pyarrow.array([[cell] if nested else cell], pyarrow.list_(kind) if nested else kind)
    path = tmp_path / "facts.parquet"
    columns = {"subject": ["Peru"], "object": ["Lima"], "names": names}
    parquet.write_table(pyarrow.table(columns), path)
    assert f"{path}: column 'names' is a map, which sonde does not read" in refusal(path)


@pytest.mark.parametrize(
    "line",
    [
        '{"subject": "Peru", "object": "Lima", "object": "Cusco"}',
        '{"subject": "Peru", "object" : "Lima", "note": "a \\" : b", "object": "Cusco"}',
        '{"subject": "Peru", "more": [{"object": 1, "\\u006fbject": 2}], "object": "Lima"}',
    ],
)
def test_a_key_that_a_line_has_twice_is_named(line: str, tmp_path: Path) -> None:
    first = '{"subject": "Mali", "object": "Bamako", "note": "say \\"a\\": b", "n": {"x": 1}}\n'
    path = written(tmp_path, first + line + "\n", "facts.jsonl")
    said = refusal(path)
    assert "line 2: expected a JSON object, but key 'object' is there more than once" in said
    assert load(str(written(tmp_path, first, "sound.jsonl"))).size == 1
