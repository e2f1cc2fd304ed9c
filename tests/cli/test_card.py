"""`sonde data card`: the page, the metadata, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sonde.core.errors import UsageError
from tests.command import Sonde

USAGE = UsageError.exit_code


def test_the_page_is_written_and_the_terminal_says_the_most_of_it(
    sonde: Sonde, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = sonde("data", "card", data)
    assert done.code == 0, done
    for part in ("Data card: world 1", "Naive Bayes guesses right", "What is in it", "card.html"):
        assert part in done.out
    page = (tmp_path / "card.html").read_text()
    for part in ("What can be guessed", "Answer spaces", "how to cite", "Paris"):
        assert part in page
    assert "http://" not in page.replace("http://www.w3.org/", "")


def test_json_has_every_number_and_writes_no_page_by_itself(
    sonde: Sonde, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = sonde("data", "card", data, "--json")
    found = json.loads(done.out)
    assert found["estimates"]["majority.relation.P37"]["value"] == 0.5
    assert found["counts"]["leaking_facts"] == 0
    assert not (tmp_path / "card.html").exists()


def test_metadata_is_written_beside_the_data_which_stays_sealed(
    sonde: Sonde, data: Path, tmp_path: Path
) -> None:
    assert sonde("data", "check", data, "--seal").code == 0
    place = data / "croissant.json"
    done = sonde("data", "card", data, "-o", tmp_path / "c.html", "--croissant", place)
    assert f"croissant: {place}" in done.out.replace("\n", "")
    assert json.loads(place.read_text())["name"] == "world"
    assert sonde("data", "show", data).code == 0


@pytest.mark.parametrize("more", [(), ("--template", "[X] is by [Y].")], ids=["table", "wording"])
def test_metadata_of_what_is_no_folder_is_refused_and_nothing_written(
    sonde: Sonde, data: Path, tmp_path: Path, more: tuple[str, ...]
) -> None:
    table = tmp_path / "facts.csv"
    table.write_text("subject,relation,object\nPeru,capital,Lima\n")
    name = data if more else table
    words = ("-o", tmp_path / "c.html", "--croissant", tmp_path / "c.json", *more)
    sonde("data", "card", name, *words).refused(USAGE, "sonde data convert")
    assert not list(tmp_path.glob("c.*"))


def test_a_table_of_ones_own_has_a_card_too(sonde: Sonde, tmp_path: Path) -> None:
    table = tmp_path / "facts.csv"
    table.write_text("subject,relation,object\nPeru,capital,Lima\nChile,capital,Santiago\n")
    done = sonde("data", "card", table, "-o", tmp_path / "c.html")
    assert done.code == 0 and "2 facts" in done.out


@pytest.mark.parametrize(
    ("words", "said"),
    {
        ("--alike", "1.5"): "above 0 and at most 1, not 1.5",
        ("--split", "tset"): "no facts in split 'tset'",
        ("--seed", "-1"): "--seed",
    }.items(),
    ids=lambda given: " ".join(given) if isinstance(given, tuple) else "",
)
def test_a_setting_that_is_none_is_refused(
    sonde: Sonde, data: Path, tmp_path: Path, words: tuple[str, str], said: str
) -> None:
    sonde("data", "card", data, "-o", tmp_path / "c.html", *words).refused(USAGE, said)
    assert not (tmp_path / "c.html").exists()
