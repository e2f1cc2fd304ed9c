"""Models without weights answer from their tables, and names that are off are met with a hint."""

from __future__ import annotations

import json
from math import exp, log
from pathlib import Path

import pytest

from sonde.core.abilities import abilities
from sonde.core.columns import one_by_one
from sonde.core.errors import AbilityError, ModelError, UsageError
from sonde.core.facts import Dataset
from sonde.models.controls import Majority, majority
from sonde.models.load import load, schemes
from sonde.models.scripted import Scripted
from sonde.models.tables import UNSEEN, fill_from
from tests import tiny
from tests.worlds import dataset_of, entity, fact, relation

OBJECTS = ("Oslo", "Paris", "Paris", "Vienna")


def world(split: str = "test") -> Dataset:
    """One relation with four test facts and a training fact."""
    splits = [*("test",) * len(OBJECTS), "train"]
    facts = [
        fact("P36", f"S{i}", entity(name, f"{name} city"), id=f"f{i}", split=part)
        for i, (name, part) in enumerate(zip((*OBJECTS, "Oslo"), splits, strict=True))
    ]
    return dataset_of(facts, relation("P36"), split=split)


def test_the_majority_answers_with_the_most_frequent_object() -> None:
    model = load("control:majority", dataset=world())
    assert isinstance(model, Majority)
    options = ("Vienna", "Oslo", "Paris", "Rome")
    answer = dict(one_by_one(model.score([tiny.score("", options)])))[0]
    assert answer.options == options
    ordered = sorted(options, key=lambda o: answer.logps[options.index(o)], reverse=True)
    assert ordered == ["Paris", "Oslo", "Vienna", "Rome"]  # equal counts in order of name


def test_the_majority_counts_what_is_asked_about_only() -> None:
    assert list(majority(world("train")).shares["P36"]) == ["Oslo"]


def test_the_majority_fills_from_its_shares() -> None:
    watched = ("Vienna", "Rome", "Paris")
    answer = dict(one_by_one(majority(world()).fill([tiny.fill("", top=2, watched=watched)])))[0]
    assert answer.top == ("Paris", "Oslo")
    assert answer.watched_ranks == (3, 4, 1)
    assert answer.watched_logps[1] == UNSEEN
    assert answer.mass <= 0


def test_a_table_answers_within_the_vocabulary_only() -> None:
    prompt = tiny.fill("", watched=("Vienna", "Paris"), vocabulary=("Oslo", "Vienna"))
    answer = dict(one_by_one(majority(world()).fill([prompt])))[0]
    assert answer.top == ("Oslo", "Vienna")
    assert answer.watched_ranks == (2, None)
    assert answer.watched_logps[1] is None


def test_the_mass_of_allowed_names_is_a_number_however_unlikely_they_are() -> None:
    prompt = tiny.fill("", vocabulary=("Oslo", "Vienna"))
    answer = fill_from(prompt, {"Paris": 0.0, "Oslo": -900.0, "Vienna": -900.0})
    assert answer.mass == pytest.approx(-900 + log(2))


def test_a_control_needs_a_dataset_and_a_known_name() -> None:
    with pytest.raises(UsageError, match="counts the facts of a dataset, and is given none"):
        load("control:majority")
    with pytest.raises(UsageError, match="no control called 'majorty'; did you mean 'majority'"):
        load("control:majorty", dataset=world())


def test_a_relation_that_was_not_counted_gets_equal_shares() -> None:
    model = Majority(shares={})
    answer = dict(one_by_one(model.score([tiny.score("", ("Oslo", "Paris"))])))[0]
    assert answer.logps == ((UNSEEN,), (UNSEEN,))


def test_a_script_answers_what_it_says(tmp_path: Path) -> None:
    file = tmp_path / "answers.json"
    file.write_text(json.dumps({"answers": {"f": "Oslo"}}))
    model = load(f"scripted:{file}")
    assert isinstance(model, Scripted)
    assert abilities(model) == {"score", "fill", "generate", "sample", "trace"}
    scored = dict(one_by_one(model.score([tiny.score("", ("Paris", "Oslo", "Rome"))])))[0]
    assert [exp(row[0]) for row in scored.logps] == pytest.approx([0.05, 0.9, 0.05])
    filled = dict(one_by_one(model.fill([tiny.fill("", top=1, watched=("Paris", "Oslo"))])))[0]
    assert (filled.top, filled.watched_ranks) == (("Oslo",), (2, 1))


def test_a_script_without_an_answer_gives_a_tie() -> None:
    answer = dict(one_by_one(Scripted(answers={}).score([tiny.score("", ("Paris", "Oslo"))])))[0]
    assert answer.logps[0] == answer.logps[1] == pytest.approx((log(0.5),))
    filled = dict(
        one_by_one(Scripted(answers={}).fill([tiny.fill("", watched=("Paris", "Oslo"))]))
    )[0]
    assert filled.watched_ranks == (2, 2)


def test_a_script_is_named_by_its_content() -> None:
    one, same = Scripted(answers={"a": "x", "b": "y"}), Scripted(answers={"b": "y", "a": "x"})
    assert one.identity == same.identity
    assert one.identity.weights != Scripted(answers={"a": "x"}).identity.weights


@pytest.mark.parametrize("text", [None, "", "[]", '{"answers": 3}', '{"other": {}}'])
def test_a_script_that_does_not_read_says_what_was_expected(
    tmp_path: Path, text: str | None
) -> None:
    file = tmp_path / "answers.json"
    if text is not None:
        file.write_text(text)
    with pytest.raises(ModelError, match=r"expected a JSON file \{\"answers\": \{fact: name\}\}"):
        load(f"scripted:{file}")


def test_tables_refuse_the_wrong_kind_of_prompt() -> None:
    model = Scripted(answers={})
    with pytest.raises(AbilityError, match="want options scored"):
        dict(one_by_one(model.score([tiny.fill("")])))
    with pytest.raises(AbilityError, match="want a masked position filled"):
        dict(one_by_one(model.fill([tiny.score("", ("Paris",))])))


def test_an_unknown_scheme_offers_the_nearest() -> None:
    with pytest.raises(UsageError, match="did you mean 'smollm2'"):
        load("smolm2")
    with pytest.raises(UsageError, match=r"did you mean 'hf'.* written hf:gpt2"):
        load("hff:gpt2")
    with pytest.raises(UsageError, match=r"known: control, .*gguf, hf, .*written hf:bert-base"):
        load("bert-base")


def test_every_scheme_says_how_it_is_written() -> None:
    for name, scheme in schemes().items():
        assert scheme.usage.split(":")[0] == name
        assert scheme.summary
