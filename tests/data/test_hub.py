"""Tables of the Hub: the library that fetches them is another's, and there may be no network."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from sonde.core.errors import DataError, MissingExtra
from sonde.core.facts import Dataset
from sonde.data.catalog import load
from sonde.data.tables import hub

ROWS = [
    {"question": "What is the capital of Peru?", "answer": ["Lima", "Lima, Peru"]},
    {"question": "What is the capital of Chile?", "answer": []},
]


class Part:
    """Rows as the library keeps them."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.rows = rows

    def to_list(self) -> list[dict[str, Any]]:
        return self.rows


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A library that gives what it is told to, or raises it."""
    told = SimpleNamespace(gives={}, asked=[])

    def load_dataset(place: str, config: str | None) -> Any:
        told.asked.append((place, config))
        if isinstance(told.gives, Exception):
            raise told.gives
        return {split: Part(rows) for split, rows in told.gives.items()}

    module: Any = ModuleType("datasets")
    module.load_dataset = load_dataset
    module.disable_progress_bars = lambda: None
    module.logging = SimpleNamespace(set_verbosity_error=lambda: None)
    monkeypatch.setitem(sys.modules, "datasets", module)
    monkeypatch.setattr(hub, "find_spec", lambda name: module)
    monkeypatch.setattr(hub, "_reachable", lambda: True)
    return told


def splits(dataset: Dataset) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for relation in dataset.relations:
        for fact in dataset.facts(relation.id):
            found.setdefault(fact.split, []).append(fact.subject.name)
    return found


def test_a_table_of_the_hub_is_read_like_any_other(library: SimpleNamespace) -> None:
    library.gives = {"test": ROWS}
    dataset = load("hub:owner/capitals:small")
    assert library.asked == [("owner/capitals", "small")]
    assert dataset.name == "capitals-small"
    assert dataset.card.sources == ("hub:owner/capitals:small",)
    [fact] = dataset.facts("capitals-small")
    assert [entity.name for entity in fact.objects] == ["Lima", "Lima, Peru"]
    assert dataset.notes["rows_incomplete"] == 1, "nobody can mend it"


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        (["train", "test"], "test"),
        (["train", "validation"], "validation"),
        (["train"], "train"),
        (["easy", "hard"], "easy"),
    ],
)
def test_the_split_that_is_asked_is_found(
    given: list[str], asked: str, library: SimpleNamespace
) -> None:
    library.gives = {name: [{"subject": name, "object": "x"}] for name in given}
    expected = {"test" if name == asked else name: [name] for name in given}
    assert splits(load("hub:owner/name")) == expected


def test_other_columns_can_be_named(library: SimpleNamespace) -> None:
    library.gives = {"test": [{"wine": "Barolo", "region": "Piedmont"}]}
    dataset = load("hub:o/wines", columns={"subject": "wine", "object": "region"})
    assert [r.id for r in dataset.relations] == ["region"]
    with pytest.raises(DataError, match=r"hub:o/wines has no column .* for the subject"):
        load("hub:o/wines")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ConnectionError("Couldn't reach it"), "the Hub cannot be reached"),
        (ValueError("Config name is missing."), "hub:OWNER/NAME:CONFIG"),
        (FileNotFoundError("Dataset 'o/n' doesn't exist"), "cannot be read: Dataset 'o/n'"),
        (RuntimeError("Dataset scripts are no longer supported"), "scripts are no longer"),
    ],
)
def test_what_cannot_be_fetched_is_one_message(
    error: Exception, said: str, library: SimpleNamespace
) -> None:
    library.gives = error
    with pytest.raises(DataError) as refused:
        load("hub:o/n")
    assert said in str(refused.value) and "docs/tables.md" in str(refused.value)


def test_without_a_network_the_library_is_told_not_to_try(
    library: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "_reachable", lambda: False)
    monkeypatch.setenv("HF_HUB_OFFLINE", "")
    library.gives = ValueError("not cached")
    with pytest.raises(DataError, match="not in the cache, and the Hub cannot be reached"):
        load("hub:o/n")
    library.gives = {"test": [{"subject": "Peru", "object": "Lima"}]}
    assert load("hub:o/n").size == 1, "from the cache"


def test_a_look_without_a_network_leaves_later_ones_to_try(
    library: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "_reachable", lambda: False)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    library.gives = {"test": [{"subject": "Peru", "object": "Lima"}]}
    load("hub:o/n")
    assert "HF_HUB_OFFLINE" not in os.environ


def test_ids_that_begin_anew_in_each_split_are_no_fault(library: SimpleNamespace) -> None:
    peru, chile = (
        {"id": "1", "subject": s, "object": o} for s, o in (("Peru", "Lima"), ("Chile", "Santiago"))
    )
    library.gives = {"train": [peru], "test": [chile]}
    assert splits(load("hub:o/n")) == {"train": ["Peru"], "test": ["Chile"]}
    with pytest.raises(DataError, match="'id' is '1'"):
        load("hub:o/n", columns={"id": "id"})


def test_an_address_that_does_not_answer_is_no_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    assert not hub._reachable()


def test_the_library_is_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"pip install 'sonde\[hub\]'"):
        load("hub:owner/name")


def test_the_library_itself_reads_a_folder_laid_out_as_on_the_hub(tmp_path: Path) -> None:
    pytest.importorskip("datasets")
    (tmp_path / "capitals").mkdir()
    for split, country in (("train", "Peru,Lima"), ("test", "Chile,Santiago")):
        (tmp_path / "capitals" / f"{split}.csv").write_text(f"subject,object\n{country}\n")
    dataset = load(f"hub:{tmp_path / 'capitals'}")
    assert splits(dataset) == {"train": ["Peru"], "test": ["Chile"]}
