"""AutoPrompt's released prompts are read as published."""

from __future__ import annotations

from pathlib import Path

import pytest

import sonde
from sonde.core.errors import DataError
from sonde.data.catalog import load
from sonde.data.readers.templates import AUTOPROMPT

LINES = """\
{"relation": "P36", "template": "[X] foo bar [Y]."}
{"relation": "P30", "template": "[X]baz qux [Y]."}
{"relation": "P37", "template": "no slot at all"}
"""


def test_every_relation_has_its_prompt(tmp_path: Path) -> None:
    (tmp_path / "relations.jsonl").write_text(LINES, encoding="utf-8")
    for place in (tmp_path, tmp_path / "relations.jsonl"):
        found = AUTOPROMPT.templates(place)
        assert {r: [t.text for t in own] for r, own in found.templates.items()} == {
            "P36": ["[X] foo bar [Y]."],
            "P30": ["[X]baz qux [Y]."],
        }
        assert found.notes["templates_without_slots"] == 1
        assert found.templates["P36"][0].source == "optimised"


def test_a_folder_without_prompts_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"relations\.jsonl"):
        AUTOPROMPT.templates(tmp_path)


def test_facts_can_be_asked_in_them(tmp_path: Path) -> None:
    (tmp_path / "relations.jsonl").write_text(LINES, encoding="utf-8")
    dataset = load("atlas", f"autoprompt:{tmp_path}")
    assert [r.id for r in dataset.relations] == ["P30", "P36"]
    assert sum(1 for _ in dataset.facts("P36")) == sum(
        1 for _ in sonde.dataset("atlas").facts("P36")
    )


@pytest.mark.shared
def test_the_released_prompts_are_read(shared: Path) -> None:
    found = AUTOPROMPT.templates(shared / "data" / "autoprompt")
    assert len(found.templates) == 41
