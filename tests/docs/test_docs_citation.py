"""The citation names this version, and the README shows pictures that are there and small."""

from __future__ import annotations

import re

import sonde
from tests.docs.pages import ROOT

LARGEST = 200_000  # bytes of a picture


def test_the_citation_is_of_this_version() -> None:
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r"^version: (.*)$", text, re.MULTILINE)[1] == sonde.__version__  # type: ignore[index]
    assert "cff-version: 1.2.0" in text and "license: Apache-2.0" in text


def test_the_pictures_of_the_readme_are_there_and_small() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    pictures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", text)
    assert len(pictures) >= 2
    for name in pictures:
        assert 5_000 < (ROOT / name).stat().st_size < LARGEST, name


def test_the_readme_can_be_read_in_three_minutes() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    prose = re.sub(r"```.*?```|\]\([^)]*\)|<!--.*?-->", " ", text, flags=re.DOTALL)
    assert len(prose.split()) < 900  # words, at five a second
