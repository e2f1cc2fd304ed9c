"""LAMA's folder with training facts: their splits, their leaks, and what they leave alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import sonde
from sonde.core.errors import DataError, UsageError
from sonde.core.facts import Selection
from sonde.core.train_test_overlap import leaked, training
from sonde.data.catalog import load
from sonde.data.check import faults
from sonde.data.statistics import relation_counts
from tests.rows import asked

from . import sources


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """P1 has two training rows that are the same, one that is asked about, and a row for dev."""
    folder = sources.lama(tmp_path / "lama")
    trained = [("Cid", "Latin"), ("Cid", "Latin"), ("Ann", "Dutch"), ("Dot", "Greek")]
    for split, rows in (("train", trained), ("dev", [("Ann", "Greek")])):
        path = folder / "train" / "P1" / f"{split}.jsonl"
        sources.lines(path, [{"sub": subject, "obj": object} for subject, object in rows])
    return folder


def test_training_rows_are_facts_of_their_own_splits(folder: Path) -> None:
    dataset = load(f"lama:{folder}")
    splits = [fact.split for fact in dataset.facts("P1")]
    assert splits == ["test"] * 3 + ["train"] * 4 + ["dev"]
    ids = [fact.id for fact in dataset.facts("P1")]
    assert ids[3:6] == ["P1:train:Cid:Latin", "P1:train:Cid:Latin:2", "P1:train:Ann:Dutch"]
    assert len(set(ids)) == len(ids)
    assert [fact.split for fact in dataset.facts("P2")] == ["test"]
    assert dataset.notes == {
        "rows_read": 4,
        "duplicate_rows": 0,
        "train_rows": 4,
        "dev_rows": 1,
        "repeated_training_rows": 1,
    }


def test_training_rows_change_neither_what_is_asked_nor_the_options(
    folder: Path, tmp_path: Path
) -> None:
    plain, trained = load(f"lama:{sources.lama(tmp_path / 'plain')}"), load(f"lama:{folder}")
    assert list(plain.asked("P1")) == list(trained.asked("P1"))
    assert plain.object_names("P1") == trained.object_names("P1") == ("Dutch", "Greek")
    on_training = trained.select(Selection(split="train"))
    assert on_training.object_names("P1") == ("Dutch", "Greek", "Latin")
    for answer in ("score", "fill"):
        probe = sonde.probe("lama", answer=answer)
        assert asked(probe, plain) == asked(probe, trained)


def test_a_folder_without_training_rows_keeps_its_name(folder: Path, tmp_path: Path) -> None:
    plain = load(f"lama:{sources.lama(tmp_path / 'plain')}")
    assert "train_rows" not in plain.notes
    assert plain.fingerprint != load(f"lama:{folder}").fingerprint


def test_joining_keeps_training_rows_as_they_are(folder: Path, tmp_path: Path) -> None:
    alone = load(f"lama:{folder}")
    p, a = sources.pararel(tmp_path / "p"), sources.aliases(tmp_path / "a")
    joined = load(f"lama:{folder}+pararel:{p}+aliases:{a}")
    trained = [fact for fact in joined.facts("P1") if fact.split != "test"]
    assert trained == [fact for fact in alone.facts("P1") if fact.split != "test"]
    assert len(trained) == 5
    assert joined.notes["rows_merged"] == 1
    assert joined.notes["subjects_without_aliases"] == 1
    assert joined.object_names("P1") == ("Dutch", "Greek", "Irish")
    assert leaked(joined, "P1") == leaked(alone, "P1")


def test_statistics_count_training_rows_in_their_split_alone(folder: Path) -> None:
    dataset = load(f"lama:{folder}")
    first = relation_counts(dataset).row(0, named=True)
    assert (first["relation"], first["facts"]) == ("P1", 1 + 3 + 4)
    assert [first[name] for name in ("subject-relation pairs", "unique triples", "objects")] == [
        2,
        3,
        2,
    ]


def test_a_pair_that_is_asked_about_leaks(folder: Path) -> None:
    dataset = load(f"lama:{folder}")
    assert leaked(dataset, "P1") == {"P1:train:Ann:Dutch", "P1:dev:Ann:Greek"}
    found = training(dataset, "P1")
    assert [fact.id for fact in found.leaked] == ["P1:train:Ann:Dutch"]
    assert [fact.subject.name for fact in found.facts] == ["Cid", "Cid", "Dot"]
    assert not leaked(dataset, "P2")


def test_rows_with_an_empty_label_are_dropped_and_counted(folder: Path) -> None:
    for path, row in (
        (folder / "facts" / "P1.jsonl", {"sub_label": "Eve", "obj_label": "", "sub_uri": "Q5"}),
        (folder / "train" / "P1" / "dev.jsonl", {"sub": None, "obj": "Greek"}),
    ):
        path.write_text(f"{path.read_text()}{json.dumps(row)}\n")
    dataset = load(f"lama:{folder}")
    assert "Eve" not in {fact.subject.name for fact in dataset.facts("P1")}
    assert dataset.size == 4 + 5
    assert dataset.notes["rows_read"] == 5 and dataset.notes["rows_incomplete"] == 2


def test_a_key_that_a_row_has_twice_is_named(folder: Path) -> None:
    path = folder / "train" / "P1" / "dev.jsonl"
    path.write_text('{"sub": "Ann", "obj": "Greek", "obj": "Latin"}\n')
    with pytest.raises(
        DataError, match=r"dev\.jsonl, line 1: .* key 'obj' is there more than once"
    ):
        list(load(f"lama:{folder}").facts("P1"))


def test_a_bad_training_row_is_named(folder: Path) -> None:
    path = folder / "train" / "P1" / "dev.jsonl"
    path.write_text('{"sub": "Ann"}\n')
    with pytest.raises(DataError, match=r"dev.jsonl, line 1: 'obj'"):
        load(f"lama:{folder}")


def test_wording_takes_the_place_of_templates_and_merges_no_fact(
    folder: Path, tmp_path: Path
) -> None:
    best = sources.lpaqa(tmp_path / "lpaqa") / "top1_relations.jsonl"
    dataset = load(f"lama:{folder}", f"lpaqa:{best}")
    assert [t.text for t in dataset.relation("P1").templates] == ["[X] uses [Y] ."]
    assert [r.id for r in dataset.relations] == ["P1"]
    assert list(dataset.facts("P1")) == list(load(f"lama:{folder}").facts("P1"))
    assert dataset.name == "lama under lpaqa-top1"
    assert dataset.notes["relations_without_templates"] == 1
    assert dataset.fingerprint != load(f"lama:{folder}").fingerprint


def test_wordings_add_up_and_take_the_place_of_templates_together(
    folder: Path, tmp_path: Path
) -> None:
    p, q = sources.pararel(tmp_path / "p"), sources.lpaqa(tmp_path / "q")
    both = load(f"lama:{folder}", (f"pararel:{p}", f"lpaqa:{q}"))
    found = {t.text: t.source for t in both.relation("P1").templates}
    assert found == {
        "[X] speaks [Y].": "manual",
        "[Y] is spoken by [X].": "manual",
        "[X] , [Y] speaker": "mined",
        "[X] talks [Y] .": "paraphrase",
    }
    assert both.name == "lama under pararel+lpaqa"
    assert both.notes["templates_read"] == 5 + 3
    assert list(both.facts("P1")) == list(load(f"lama:{folder}").facts("P1"))
    assert load(f"lama:{folder}", f"pararel:{p}+lpaqa:{q}").fingerprint == both.fingerprint
    assert load(f"lama:{folder}", f"pararel:{p}").fingerprint != both.fingerprint
    assert sonde.dataset(f"lama:{folder}", template=[f"pararel:{p}", f"lpaqa:{q}"]) is not None


def test_a_dataset_can_be_a_source_of_templates(folder: Path, tmp_path: Path) -> None:
    q = sources.lpaqa(tmp_path / "q")
    both = load(f"lama:{folder}", (f"lama:{folder}", f"lpaqa:{q / 'mine'}"))
    assert [t.text for t in both.relation("P1").templates] == [
        "[X] speaks [Y] .",
        "[X] , [Y] speaker",
    ]
    assert len(both.relation("P2").templates) == 1
    (atlas,) = load("atlas", "atlas").relation("P36").templates[:1]
    assert atlas == load("atlas").relation("P36").templates[0]


def test_templates_of_two_sources_never_share_an_id(folder: Path, tmp_path: Path) -> None:
    p = sources.pararel(tmp_path / "p")
    sources.lines(tmp_path / "q" / "P1.jsonl", [{"pattern": "[X] shouts [Y]."}])
    both = load(f"lama:{folder}", (f"pararel:{p}", f"pararel:{tmp_path / 'q'}"))
    ids = [t.id for t in both.relation("P1").templates]
    assert len(set(ids)) == len(ids) == 3
    assert not any(fault.error for fault in faults(both))


def test_wording_that_is_not_there_is_refused(folder: Path, tmp_path: Path) -> None:
    for wording in ("lpaqqa:x", "lpaqa", "aliases:x"):
        with pytest.raises(UsageError, match="no source of templates called"):
            load(f"lama:{folder}", wording)
    for missing in ("lpaqa:{}/nowhere", "lpaqa:{}/nowhere+pararel:{}", "pararel:{0}/p+lpaqa:{0}/x"):
        sources.pararel(tmp_path / "p")
        with pytest.raises(DataError, match=r"(nowhere|x) does not exist"):
            load(f"lama:{folder}", missing.format(tmp_path, tmp_path))
    sources.lines(tmp_path / "o" / "P9.jsonl", [{"pattern": "[X] eats [Y]."}])
    with pytest.raises(DataError, match="no template for any relation"):
        load(f"lama:{folder}", f"pararel:{tmp_path / 'o'}")


@pytest.mark.shared
def test_the_real_training_facts_and_their_leaks_are_all_there(shared: Path) -> None:
    dataset = load(str(shared / "data/lama"))
    assert dataset.notes == {
        "rows_read": 34_039,
        "duplicate_rows": 22,
        "train_rows": 29_029,
        "dev_rows": 7_255,
        "repeated_training_rows": 120,
    }
    found = {"train": 0, "dev": 0}
    for relation in dataset.relations:
        held = leaked(dataset, relation.id)
        for fact in dataset.facts(relation.id):
            if fact.id in held:
                found[fact.split] += 1
    assert found == {"train": 52, "dev": 14}
