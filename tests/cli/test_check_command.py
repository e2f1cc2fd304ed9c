"""`sonde data check`: all that is wrong is listed with its place, and only the sound is sealed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sonde.core.errors import DataError, UsageError
from tests.command import Sonde
from tests.written import fact, rows, template

DATA = DataError.exit_code
FRANCE, ITALY, SPAIN = (
    fact("P36", subject, answer)
    for subject, answer in (("France", "Paris"), ("Italy", "Rome"), ("Spain", "Madrid"))
)


def test_one_broken_line_hides_no_other_and_each_is_named_with_file_and_line(
    sonde: Sonde, data: Path
) -> None:
    capitals, languages = data / "facts" / "P36.jsonl", data / "facts" / "P37.jsonl"
    capitals.write_text(rows([FRANCE]) + '{"id": \n' + rows([FRANCE, {**SPAIN, "objects": []}]))
    languages.write_bytes(b'{"id": "caf\xe9"}\n' + rows([fact("P37", "Peru", "Quechua")]).encode())
    text = data / "templates.jsonl"
    text.write_text(rows([template("P36", "no slot"), template("P37", "In [X]: [Y].")]))
    done = sonde("data", "check", data)
    done.refused(DATA, "5 errors")
    for place, said in (
        (f"{text}, line 1", "has no subject slot"),
        (f"{capitals}, line 2", "expected a JSON object"),
        (f"{capitals}, line 3", "fact id 'P36:France' stands more than once"),
        (f"{capitals}, line 4", "'objects' must be a list"),
        (f"{languages}, line 1", "not UTF-8"),
    ):
        assert f"error: {place}: " in done.out
        assert said in done.out


def test_a_dataset_with_an_error_is_not_sealed(sonde: Sonde, data: Path) -> None:
    path = data / "facts" / "P36.jsonl"
    path.write_text(rows([FRANCE, FRANCE]))
    before = (data / "dataset.json").read_bytes()
    done = sonde("data", "check", data, "--seal")
    done.refused(DATA, "1 error", "not sealed")
    assert f"error: {path}, line 2: fact id 'P36:France' stands more than once" in done.out
    assert (data / "dataset.json").read_bytes() == before


def test_a_sealed_dataset_that_became_wrong_keeps_its_old_seal(sonde: Sonde, data: Path) -> None:
    assert sonde("data", "check", data, "--seal").code == 0
    sealed = (data / "dataset.json").read_bytes()
    (data / "facts" / "P36.jsonl").write_text(rows([FRANCE, FRANCE]))
    sonde("data", "check", data, "--seal").refused(DATA, "1 error")
    assert (data / "dataset.json").read_bytes() == sealed


def test_what_is_only_doubtful_is_listed_and_sealed(sonde: Sonde, data: Path) -> None:
    path = data / "templates.jsonl"
    path.write_text(
        rows([template("P36", "Paris or not, [X] has [Y]."), template("P37", "[X]: [Y].")])
    )
    done = sonde("data", "check", data, "--seal")
    assert done.code == 0, done.err
    assert f"warning: {path}, line 1: template 'P36-1' gives an answer away" in done.out
    assert "sealed with" in done.out


def test_facts_of_a_relation_whose_line_is_broken_are_still_read(sonde: Sonde, data: Path) -> None:
    path = data / "facts" / "P36.jsonl"
    path.write_text("nonsense\n")
    heads = (data / "relations.jsonl").read_text().replace('"kind": "N-1"', '"kind": "X"', 1)
    (data / "relations.jsonl").write_text(heads)
    done = sonde("data", "check", data)
    assert f"error: {data / 'relations.jsonl'}, line 1: 'kind'" in done.out
    assert f"error: {path}, line 1: expected a JSON object" in done.out


def test_every_file_that_is_missing_is_named(sonde: Sonde, data: Path) -> None:
    for path in (data / "templates.jsonl", data / "facts" / "P36.jsonl"):
        path.unlink()
    done = sonde("data", "check", data)
    assert f"{data / 'templates.jsonl'} is missing" in done.out
    assert f"{data / 'facts' / 'P36.jsonl'} is missing" in done.out


def test_of_very_many_errors_some_are_printed_and_all_counted(sonde: Sonde, data: Path) -> None:
    (data / "facts" / "P36.jsonl").write_text("{\n" * 5000)
    done = sonde("data", "check", data)
    done.refused(DATA, "5,000 errors")
    assert done.out.count("error: ") == 100
    assert "and 4,900 more" in done.out


@pytest.mark.parametrize("name", ["atlas", "lama"])
def test_only_a_folder_in_the_own_form_can_be_sealed(
    sonde: Sonde, name: str, tmp_path: Path
) -> None:
    (tmp_path / "lama" / "facts").mkdir(parents=True)
    head = {"relation": "P1", "template": "[X] has [Y].", "label": "l", "type": "N-1"}
    (tmp_path / "lama" / "relations.jsonl").write_text(json.dumps(head))
    (tmp_path / "lama" / "facts" / "P1.jsonl").write_text(
        rows([{"sub_label": "a", "obj_label": "b"}])
    )
    where = tmp_path / name if name == "lama" else name
    done = sonde("data", "check", where, "--seal")
    done.refused(UsageError.exit_code, "--seal", "sonde data convert")
    assert not (tmp_path / "lama" / "dataset.json").exists()


def test_an_object_outside_the_answers_is_named_with_file_and_line(
    sonde: Sonde, data: Path
) -> None:
    heads = data / "relations.jsonl"
    space = [{"id": "o:Paris", "names": ["Paris"]}]
    capital = {"id": "P36", "label": "capital", "answers": space, "language": "english"}
    heads.write_text(rows([capital, {"id": "P37", "label": "language", "same": "P37"}]))
    facts = data / "facts" / "P36.jsonl"
    facts.write_text(rows([FRANCE, ITALY, {**SPAIN, "date": "May 2015"}]))
    done = sonde("data", "check", data)
    done.refused(DATA, "2 errors")
    said = done.out.replace("\n", " ")
    assert f"error: {facts}, line 2: object 'o:Rome' of fact 'P36:Italy' is not among" in said
    assert f"error: {facts}, line 3: 'date' must be a date" in said
    assert f"warning: {heads}, line 1: relation 'P36' has language 'english'" in said
    assert f"warning: {heads}, line 2: relation 'P37' is 'P37' in no other language" in said
