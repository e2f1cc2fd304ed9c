"""Words that are one token in several models, and datasets restricted to them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tokenizers import Tokenizer

import sonde
from sonde.core.abilities import abilities
from sonde.core.answers import Scored
from sonde.core.columns import one_by_one
from sonde.core.errors import DataError
from sonde.data.catalog import load
from sonde.data.format import open_dataset, write_dataset
from sonde.data.vocabulary import common, read_words, restricted, single, trial, words_of
from sonde.runs.shards import answer
from tests import tiny
from tests.data import sources


@pytest.fixture
def data(tmp_path: Path) -> str:
    folder = sources.lama(tmp_path / "lama")
    rows = [{"sub": "Cleo", "obj": "Greek"}, {"sub": "Dora", "obj": "Dutch"}]
    sources.lines(folder / "train" / "P1" / "train.jsonl", rows)
    return f"lama:{folder}"


def test_facts_of_all_splits_are_restricted_alike(data: str, tmp_path: Path) -> None:
    found = restricted(load(data), ["Greek", "Paris"])
    assert [r.id for r in found.relations] == ["P1"]
    facts = list(found.facts("P1"))
    assert [(f.split, f.objects[0].name) for f in facts] == [("test", "Greek"), ("train", "Greek")]
    assert found.vocabulary == ("Greek", "Paris")
    assert found.notes["facts_outside_vocabulary"] == 4
    assert found.notes["relations_outside_vocabulary"] == 1
    write_dataset(found, tmp_path / "out")
    again = open_dataset(tmp_path / "out")
    assert [f.id for f in again.facts("P1")] == [f.id for f in facts]
    assert again.vocabulary == found.vocabulary


def test_another_list_of_words_is_another_dataset(data: str) -> None:
    whole = load(data)
    prints = {restricted(whole, words).fingerprint for words in (["Greek"], ["Greek", "Dutch"])}
    assert len(prints | {whole.fingerprint}) == 3


def test_nothing_left_is_refused(data: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no fact"):
        restricted(load(data), ["Paris"])
    with pytest.raises(DataError, match="one token in all models"):
        common(["a"], {"x": {"a"}, "y": set()})
    (tmp_path / "empty.txt").write_text("\n")
    with pytest.raises(DataError, match="no words"):
        read_words(tmp_path / "empty.txt")
    with pytest.raises(DataError, match="not a file"):
        read_words(tmp_path / "none.txt")


def test_words_are_the_datasets_own_or_its_objects(data: str, tmp_path: Path) -> None:
    assert set(words_of(load(data))) == {"Dutch", "Greek", "Ghent"}
    (tmp_path / "lama" / "common_vocab_cased.txt").write_text("Dutch\nIrish\n")
    assert words_of(load(data)) == ("Dutch", "Irish")


def test_a_model_tells_its_single_tokens(tmp_path: Path) -> None:
    words = ("Paris", "Vienna", "New York", "capital", "Zanzibar")
    for made in (tiny.bert, tiny.gpt2):
        model = sonde.model(f"hf:{made(tmp_path / made.__name__)}", device="cpu")
        [(_, found)] = one_by_one(answer(model, [trial(words, abilities(model))]))
        tokenizer = Tokenizer.from_file(str(tmp_path / made.__name__ / "tokenizer.json"))
        tokens = {w: tokenizer.encode(f" {w}", add_special_tokens=False).tokens for w in words}
        one = {w for w, own in tokens.items() if len(own) == 1 and own != ["[UNK]"]}
        assert "New York" not in one and "Paris" in one
        assert single(found) == one


def test_scored_options_tell_by_their_tokens() -> None:
    found = Scored(options=("a", "b c"), logps=((-1.0,), (-1.0, -2.0)))
    assert single(found) == {"a"}
    assert trial(["a"], frozenset({"score"})).want.options == ("a",)  # type: ignore[union-attr]


def test_a_list_is_read_each_word_once(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("Rome\n\nParis\nRome\n")
    assert read_words(tmp_path / "words.txt") == ("Rome", "Paris")
