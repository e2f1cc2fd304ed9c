"""Facts that can be guessed from names, left out of a dataset, whichever probe asks it."""

from __future__ import annotations

from pathlib import Path

import pytest

import sonde
from sonde.core.abilities import Identity
from sonde.core.errors import AbilityError, DataError, UsageError
from sonde.core.facts import APART, Dataset, Fact
from sonde.data.format import open_dataset, write_dataset
from sonde.data.lines import read_rows
from sonde.evaluation.tables import collect_results
from sonde.models.scripted import Scripted
from sonde.probes.lama import Lama
from sonde.runs.guessing import unguessable
from sonde.runs.run import run
from sonde.testing import answer_batches
from tests import tiny
from tests.worlds import dataset_of, fact, relation, template

CAPITALS = (
    fact("P36", "France", "Paris", id="a"),
    fact("P36", "Mexico", "Mexico City", id="b"),
    fact("P36", "lima bean", "LIMA", id="c"),
    fact("P36", "Panama", "Colón", "Panama", id="d"),
    fact("P36", "Lima Province", "Lima", id="e", split="train", tags=(APART,)),
)
PEOPLE = (
    fact("P27", "Giulia Rossi", "Italy", id="f"),
    fact("P27", "Kim Lee", "Peru", id="g"),
    *(fact("P27", f"X{i}", f"land {i}", id=f"x{i}") for i in range(5)),
)


def world(*facts: Fact) -> Dataset:
    asked = template("t", "[X] has [Y].")
    ids = dict.fromkeys(f.relation for f in facts)
    return dataset_of(facts, *(relation(id, asked) for id in ids), name="w")


def ids(dataset: Dataset) -> list[str]:
    return [fact.id for relation in dataset.relations for fact in dataset.facts(relation.id)]


def test_a_fact_goes_where_the_name_of_any_of_its_objects_stands_in_the_subjects() -> None:
    found = unguessable(world(*CAPITALS), "string")
    # b: the object's name is longer; e: collected apart, to train on
    assert ids(found) == ["a", "b", "e"]
    assert found.notes == {"guessable_string": 2, "guessable.P36": 2}
    assert found.name == "w without guessable facts"
    assert "2 facts" in found.card.description
    assert found.fingerprint != world().fingerprint


def test_with_names_a_masked_model_is_asked_about_each_part_of_a_name() -> None:
    guesser = Scripted(answers={"f": "Italy"})
    whole = world(*CAPITALS, *PEOPLE)
    found = unguessable(whole, "names", guesser)
    assert set(ids(whole)) - set(ids(found)) == {"c", "d", "f"}
    assert found.notes == {
        "guessable_string": 2,
        "guessable_names": 1,
        "guessable.P36": 2,
        "guessable.P27": 1,
    }
    assert f"scripted ({guesser.identity.weights})" in found.card.description
    prints = {unguessable(whole, "string").fingerprint, found.fingerprint}
    prints.add(unguessable(whole, "names", Scripted(answers={"g": "Peru"})).fingerprint)
    assert len(prints) == 3


def test_what_goes_is_what_lama_leaves_out_of_its_own_uhn() -> None:
    whole, guesser = world(*CAPITALS[:4], *PEOPLE), Scripted(answers={"f": "Italy", "g": "Peru"})
    probe = Lama(uhn="names", answer="fill")
    results = collect_results(probe, whole, answer_batches(guesser, probe.prompts(whole)))
    found = unguessable(whole, "names", guesser)
    assert results.rows["guessable"].sum() == len(ids(whole)) - len(ids(found)) == 4


def test_a_relation_that_loses_every_fact_is_left_out() -> None:
    found = unguessable(world(CAPITALS[2], PEOPLE[1]), "string")
    assert [relation.id for relation in found.relations] == ["P27"]
    assert found.notes["relations_guessable"] == 1
    with pytest.raises(DataError, match="every fact of 'w' can be guessed"):
        unguessable(world(CAPITALS[2]), "string")


class Mute:
    """A model that cannot fill a mask."""

    identity = Identity(name="mute", architecture="none")


def test_names_need_a_model_that_fills_masks() -> None:
    with pytest.raises(UsageError, match="guesser"):
        unguessable(world(*PEOPLE), "names")
    with pytest.raises(UsageError, match="guesser"):
        unguessable(world(*PEOPLE), "string", Mute())
    with pytest.raises(AbilityError, match="mute cannot fill a mask"):
        unguessable(world(*PEOPLE), "names", Mute())


def test_every_probe_takes_it_and_its_report_and_its_copies_tell_it(tmp_path: Path) -> None:
    data = sonde.dataset("atlas", relations=("P36", "P131"), limit=3, drop_guessable="string")
    dropped = data.notes["guessable_string"]
    assert dropped == sum(n for key, n in data.notes.items() if key.startswith("guessable.")) > 0
    for name, settings in (("lama", {}), ("lke-shots", {"shots": (1,), "seeds": 1})):
        done = run(
            sonde.probe(name, **settings),
            sonde.model("control:majority", data=data),
            data,
            tmp_path / name,
        )
        report = done.report()
        assert "atlas without guessable facts" in report.kicker
        assert report.counts["guessable_string"] == dropped
        assert done.manifest.dataset["notes"]["guessable_string"] == dropped
    write_dataset(data, tmp_path / "written")
    again = open_dataset(tmp_path / "written")
    assert again.notes == data.notes
    assert again.card == data.card


def test_the_guesser_is_named_as_models_are(tmp_path: Path) -> None:
    guesser = f"hf:{tiny.bert(tmp_path / 'bert')}"
    data = sonde.dataset("atlas", drop_guessable="names", guesser=guesser, device="cpu")
    assert guesser in data.card.description
    assert data.name == "atlas without guessable facts (names by bert)"
    assert "guessable_names" in data.notes


@pytest.mark.shared
def test_the_string_filter_leaves_as_much_of_lama_as_lama_uhn_has(shared: Path) -> None:
    data = sonde.dataset(f"lama:{shared / 'data' / 'lama'}", drop_guessable="string")
    asked = [fact for r in data.relations for fact in data.asked(r.id)]
    assert len(asked) == 29_285
    kept = {(fact.relation, fact.subject.name, fact.objects[0].name) for fact in asked}
    pairs = {
        (relation.id, row.values.get("sub_uri") or "")
        for relation in data.relations
        for row in read_rows(shared / "data" / "lama" / "facts" / f"{relation.id}.jsonl")
        if (relation.id, row.text("sub_label"), row.text("obj_label")) in kept
    }
    assert len(pairs) == 26_810
    assert data.notes["guessable_string"] == 34_017 - 29_285
    assert data.notes["train_rows"] == sum(
        fact.split == "train" for r in data.relations for fact in data.facts(r.id)
    )
