"""mLAMA and mParaRel: triples of several languages, joined by identifiers.

mLAMA's own files are not at hand: its rows here are of the schema that is published with it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sonde.core.errors import DataError
from sonde.data.catalog import load
from sonde.data.check import problems
from tests import written as forms


def triple(subject: str, object: str, line: int, **more: Any) -> dict[str, Any]:
    """A row as mLAMA has it: Q1:Peru has the identifier Q1 and the label Peru."""
    (sub_uri, _, sub_label), (obj_uri, _, obj_label) = (t.partition(":") for t in (subject, object))
    return {
        "sub_uri": sub_uri, "sub_label": sub_label, "obj_uri": obj_uri, "obj_label": obj_label,
        "lineid": line, "uuid": f"uuid-{line}",
    } | more  # fmt: skip


ROWS = {
    "en": [triple("Q419:Peru", "Q2868:Lima", 0), triple("Q142:France", "Q90:Paris", 1)],
    "ja": [triple("Q419:ペルー", "Q2868:リマ", 0)],
}


def mlama(folder: Path, **templates: list[dict[str, str]]) -> Path:
    """A folder of mLAMA's layout."""
    words = {
        "en": [{"relation": "P36", "template": "The capital of [X] is [Y] ."}],
        "ja": [{"relation": "P36", "template": "[X]の首都は[Y]です。"}],
    } | templates
    for language, rows in ROWS.items():
        (folder / language).mkdir(parents=True)
        (folder / language / "P36.jsonl").write_text(forms.rows(rows), encoding="utf-8")
        lines = forms.rows(words[language])
        (folder / language / "templates.jsonl").write_text(lines, encoding="utf-8")
    return folder


def test_rows_and_templates_that_are_empty_are_left_out_and_counted(tmp_path: Path) -> None:
    folder = mlama(tmp_path, en=[{"relation": "P36", "template": "[X] has [Y] ."}])
    blank = [triple("Q1:", "Q2:Ulm", 2), triple("Q1:Oslo", "Q2:Ulm", 3, obj_label=None)]
    blank += [triple("Q1:Oslo", ":Ulm", 4)]
    (folder / "en" / "P36.jsonl").write_text(forms.rows([*ROWS["en"], *blank]), encoding="utf-8")
    templates = forms.rows(
        [{"relation": "P36", "template": text} for text in (None, "", "[X]: [Y]")]
    )
    (folder / "en" / "templates.jsonl").write_text(templates, encoding="utf-8")
    dataset = load(f"mlama:{folder}")
    assert len(list(dataset.facts("P36.en"))) == 2
    assert dataset.notes["rows_read"] == 6 and dataset.notes["rows_incomplete"] == 2
    assert dataset.notes["rows_without_identifiers"] == 1
    assert dataset.notes["templates_without_slots"] == 2


def test_the_layout_of_mlama_is_one_relation_a_language(tmp_path: Path) -> None:
    dataset = load(str(mlama(tmp_path)))
    assert dataset.name == "mlama"
    (told,) = problems(dataset)
    assert told.startswith("relation 'P36.ja' lacks 1 facts of 'P36' that another language has")
    assert [(r.id, r.same, r.language, r.label) for r in dataset.relations] == [
        ("P36.en", "P36", "en", "capital"),
        ("P36.ja", "P36", "ja", "capital"),
    ]
    assert dataset.relation("P36.ja").templates[0].text == "[X]の首都は[Y]です。"
    (fact,) = dataset.facts("P36.ja")
    assert (fact.id, fact.subject.id, fact.objects[0].id) == ("P36.ja:Q419:Q2868", "Q419", "Q2868")
    assert (fact.subject.name, fact.objects[0].name) == ("ペルー", "リマ")


def test_what_cannot_be_joined_or_asked_is_left_out_and_counted(tmp_path: Path) -> None:
    folder = mlama(tmp_path, ja=[{"relation": "P36", "template": ""}])
    more = [*ROWS["en"], ROWS["en"][0], triple("Q1:Chile", "Q2:Santiago", 3, sub_uri=None)]
    (folder / "en" / "P36.jsonl").write_text(forms.rows(more), encoding="utf-8")
    (folder / "en" / "P19.jsonl").write_text(forms.rows(ROWS["en"]), encoding="utf-8")
    dataset = load(f"mlama:{folder}")
    assert [r.id for r in dataset.relations] == ["P36.en"]
    counts = ("rows_read", "duplicate_rows", "rows_without_identifiers", "templates_without_slots")
    assert [dataset.notes[name] for name in counts] == [4, 1, 1, 1]
    assert dataset.notes["relations_without_templates"] == 2
    assert dataset.size == 2


def test_a_folder_without_triples_is_told_what_belongs_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"holds no file of mLAMA, such as en/P19\.jsonl"):
        load(f"mlama:{tmp_path}")
    with pytest.raises(DataError, match=r"holds no file of mParaRel, such as tuples/en/P19"):
        load(f"mpararel:{tmp_path}")
    folder = mlama(tmp_path / "without", **{code: [] for code in ROWS})
    with pytest.raises(DataError, match="no relation has triples and a template in one language"):
        load(f"mlama:{folder}")


def test_a_row_that_is_no_triple_is_refused_with_its_place(tmp_path: Path) -> None:
    folder = mlama(tmp_path)
    bad = [*ROWS["en"], {"sub_uri": "Q1", "obj_uri": "Q2", "obj_label": "Lima"}]
    (folder / "en" / "P36.jsonl").write_text(forms.rows(bad), encoding="utf-8")
    with pytest.raises(DataError, match=r"P36\.jsonl, line 3: 'sub_label' must be a text"):
        load(f"mlama:{folder}")


def test_patterns_of_mpararel_say_whether_a_person_looked_at_them(tmp_path: Path) -> None:
    for language, rows in ROWS.items():
        patterns = [
            {"pattern": f"{language} [X] [Y]", "checked-by-human": False},
            {"pattern": f"{language} [Y] [X]", "checked-by-human": True},
        ]
        for part, lines in (("patterns", patterns), ("tuples", rows)):
            (tmp_path / part / language).mkdir(parents=True)
            text = forms.rows(lines)
            (tmp_path / part / language / "P36.jsonl").write_text(text, encoding="utf-8")
    dataset = load(str(tmp_path))
    assert dataset.name == "mpararel"
    sources = {r.language: [t.source for t in r.templates] for r in dataset.relations}
    assert sources == {"en": ["manual", "manual"], "ja": ["paraphrase", "manual"]}


@pytest.mark.shared
def test_mpararel_as_published_has_fourteen_relations_in_three_languages(shared: Path) -> None:
    dataset = load(f"mpararel:{shared / 'data' / 'mpararel'}")
    assert len(dataset.relations) == 3 * 14 and dataset.languages() == ("en", "de", "ja")
    assert dataset.size == 30_565 and dataset.notes["duplicate_rows"] == 0
    templates = {
        code: [t for r in dataset.relations if r.language == code for t in r.templates]
        for code in dataset.languages()
    }
    assert {code: len(own) for code, own in templates.items()} == {"en": 135, "de": 163, "ja": 135}
    by_hand = {code: sum(t.source == "manual" for t in own) for code, own in templates.items()}
    assert by_hand == {"en": 135, "de": 120, "ja": 0}
    both = [{f.id.partition(":")[2] for f in dataset.facts(f"P19.{code}")} for code in ("en", "ja")]
    assert len(both[0] & both[1]) == 504
