"""The card of small worlds whose leaks, near-duplicates and guesses are known."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

import sonde
from sonde.core.errors import UsageError
from sonde.core.facts import Dataset, Entity, Fact, Relation
from sonde.core.reports import Histogram, Report
from sonde.evaluation.estimate import estimate_results
from tests.worlds import dataset_of, entity, fact, relation, template


def cities(*more: Fact) -> Dataset:
    """Where cities lie: two to train on, one of which is asked about too, and four asked about."""
    facts = [
        fact("P17", "Lyon", "France", split="train", id="t1"),
        fact("P17", "Nice", "France", split="train", id="t2"),
        fact("P17", entity("Lyon", "Lyons", id="Q1"), "France"),
        fact("P17", entity("Greater Paris Metropolis", id="Q2"), "France"),
        fact("P17", entity("Greater Paris metropolis.", id="Q3"), "France", id="twin"),
        fact("P17", entity("Kuwait City", id="Q4"), "Kuwait"),
        *more,
    ]
    lies = relation(
        "P17",
        "[X] lies in [Y].",
        "[X] lies in France or in [Y].",
        "[X], lies in [Y]",
        "[Y] lies in [X].",
        label="country",
    )
    return dataset_of(facts, lies)


def rows(report: Report, table: str) -> list[tuple[object, ...]]:
    return [tuple(row) for row in report.table(table).rows]


def test_facts_that_stand_in_train_and_test_are_counted_and_listed() -> None:
    card = sonde.card(cities())
    assert card.counts["leaking_facts"] == 1
    assert rows(card, "leaking-facts") == [("P17 country", "train", "Lyon", "France")]
    assert card.estimates["also_in_training.relation.P17"].value == 0.25
    assert card.estimates["subject_in_training.relation.P17"].value == 0.25
    assert rows(card, "between-splits") == [("test", "train", 1, 1), ("train", "test", 1, 1)]


def test_the_object_in_the_name_and_templates_that_hold_an_answer_are_told() -> None:
    card = sonde.card(cities())
    assert card.estimates["object_in_subject.relation.P17"].value == 0.25
    (telling,) = rows(card, "telling-templates")
    assert telling[1:] == ("P17-2", "[X] lies in France or in [Y].", "France")


def test_an_answer_in_the_prompt_of_its_own_fact_is_told() -> None:
    hints = {"Peru": "Not Lima?", "Chile": "Not Lima?"}
    facts = [
        replace(fact("r", name, place), details={"hint": hints[name]})
        for name, place in (("Peru", "Lima"), ("Chile", "Santiago"))
    ]
    card = sonde.card(dataset_of(facts, relation("r", "[details.hint] [X] has [Y].")))
    assert card.estimates["answer_in_prompt.relation.r"].value == 0.5
    assert sonde.card(cities()).estimates["answer_in_prompt.relation.P17"].value is None


def test_near_duplicates_are_of_different_subjects_and_of_the_same_order_of_slots() -> None:
    card = sonde.card(cities())
    (facts,), (templates,) = (
        rows(card, "near-duplicate-facts"),
        rows(card, "near-duplicate-templates"),
    )
    assert facts[1:4] == (
        "P17-Greater Paris Metropolis",
        "Greater Paris Metropolis: France",
        "test",
    )
    assert facts[4] == "twin" and facts[-1] == 1.0
    assert (templates[1], templates[3]) == ("P17-1", "P17-3")
    assert card.estimates["near_duplicate.relation.P17"].value == 0.5
    assert card.counts["near_duplicate_subjects"] == 2


def test_guesses_are_counted_on_training_facts_without_those_that_leak() -> None:
    card = sonde.card(cities())
    estimates = card.estimates
    assert estimates["class_prior.relation.P17"].value == 0.75
    assert estimates["majority.relation.P17"].value == 0.75
    assert estimates["chance.relation.P17"].value == 0.5
    assert card.table("guessability").rows[0][-1] == 1  # training fact: Nice alone


def choosing(*splits: str) -> Dataset:
    """Two options for each of three facts, three for another; all are of the given splits."""
    facts = [
        fact("r", f"{subject} {split}", right, split=split, wrong=wrong)
        for split in splits
        for subject, right, wrong in (
            ("Peru", "Lima", ("Oslo",)),
            ("Chile", "Lima", ("Rome",)),
            ("Norway", "Oslo", ("Rome",)),
            ("Italy", "Rome", ("Lima", "Oslo")),
        )
    ]
    return dataset_of(facts)


@pytest.mark.parametrize("splits", [("test",), ("test", "train")], ids=["by fold", "trained"])
def test_where_facts_name_what_is_wrong_guesses_choose_from_their_own_options(
    splits: tuple[str, ...],
) -> None:
    card = sonde.card(choosing(*splits))
    assert card.estimates["chance.relation.r"].value == pytest.approx((1 / 2 * 3 + 1 / 3) / 4)
    assert card.estimates["majority.relation.r"].value == 0.75, "Lima twice, then Oslo by its name"
    if "train" in splits:
        assert card.estimates["class_prior.relation.r"].value == 0.75
    (answers,) = rows(card, "answers")
    columns = [column.title for column in card.table("answers").columns]
    assert answers[columns.index("options")] == 3
    assert "options of its own" in card.table("answers").note
    assert any("guesses choose among their own" in note for note in card.notes)
    told = "the commonest of a fact's own options"
    assert any(told in finding for finding in card.findings)


def test_where_a_fact_names_nothing_wrong_guesses_choose_from_all_objects() -> None:
    bare = choosing("test")
    bare = dataset_of([*bare.facts("r"), fact("r", "Kenya", "Nairobi")])
    card = sonde.card(bare)
    assert card.estimates["chance.relation.r"].value == 0.25
    assert not any("own options" in text for text in (*card.findings, *card.notes))


def test_without_training_facts_guesses_are_counted_fold_by_fold() -> None:
    facts = [fact("r", f"{kind} {n}", kind) for n in range(20) for kind in ("red", "blue")]
    card = sonde.card(dataset_of(facts))
    assert card.estimates["naive_bayes.relation.r"].value == 1.0
    assert card.estimates["class_prior.relation.r"].value is None
    assert card.estimates["majority.relation.r"].value == 0.5
    assert card.estimates["also_in_training.relation.r"].value is None
    assert any("10 parts" in note for note in card.notes)


def test_a_single_fact_is_guessed_by_nothing_and_has_no_entropy() -> None:
    card = sonde.card(dataset_of([fact("r", "Ann", "Oslo")]))
    assert card.estimates["naive_bayes.relation.r"].value is None
    assert card.estimates["entropy.relation.r"].value == 0.0
    assert card.estimates["evenness.relation.r"].value is None
    assert "naive Bayes guesses nothing, for there is no other fact" in card.findings[0]
    assert "not measured" not in card.findings[0]


def test_a_dataset_without_facts_of_the_split_still_has_a_card() -> None:
    facts = [fact("r", "Ann", "Oslo", split="train")]
    card = sonde.card(dataset_of(facts))
    assert "No fact stands in split 'test'" in card.findings[0]
    assert rows(card, "splits") == [("train", 1, 1)]
    assert sonde.card(dataset_of(facts), split="train").estimates["majority.relation.r"].value == 1


def test_distractors_languages_tags_and_numbers_are_told() -> None:
    space = tuple(Entity.named(name) for name in ("Oslo", "Rome", "Lima"))
    made = Relation(
        id="P36.en",
        label="capital",
        templates=(template("t", "[X]: [Y]"),),
        answers=space,
        language="en",
        tags=("places", "easy"),
    )
    facts = [
        replace(fact("P36.en", name, place), numbers={"popularity": 10.0**n})
        for n, (name, place) in enumerate([("Norway", "Oslo"), ("Italy", "Rome"), ("Roma", "Rome")])
    ]
    card = sonde.card(dataset_of(facts, made))
    options = [column.title for column in card.table("answers").columns]
    row = dict(zip(options, card.table("answers").rows[0], strict=True))
    assert (row["options"], row["distractors"], row["asked"]) == (3, 1, 2)
    assert [row[:4] for row in rows(card, "languages")] == [("en", 1, 1, 3)]
    assert card.estimates["majority.language.en"] == card.estimates["majority.relation.P36.en"]
    assert rows(card, "tags") == [("easy", 1, 1, 3), ("places", 1, 1, 3)]
    figure = card.figure("number-popularity")
    assert isinstance(figure, Histogram)
    assert "power of ten" in figure.axis and sum(figure.counts) == 3


def test_relations_without_facts_and_odd_numbers_are_no_obstacle() -> None:
    facts = [
        replace(fact("r", name, "Rome"), numbers={"size": size})
        for name, size in (("Ann", -1.0), ("Bob", float("inf")), ("Cy", 0.0))
    ]
    card = sonde.card(dataset_of(facts, relation("r", "[X] [Y]"), relation("empty", "[X] [Y]")))
    assert sum(card.figure("number-size").counts) == 2  # type: ignore[union-attr]
    assert card.estimates["entropy.relation.empty"].value is None
    assert card.estimates["majority.mean_over_relations"].value == 1.0


def test_a_split_that_no_fact_has_is_refused() -> None:
    with pytest.raises(UsageError, match="no facts in split 'tset'"):
        sonde.card(cities(), split="tset")


@pytest.mark.parametrize("alike", [0.0, -1.0, 1.5])
def test_a_share_that_is_none_is_refused(alike: float) -> None:
    with pytest.raises(UsageError, match="above 0 and at most 1"):
        sonde.card(cities(), alike=alike)


def test_a_card_of_the_atlas_guesses_as_the_controls_do(tmp_path: Path) -> None:
    atlas = sonde.dataset("atlas", relations=("P30", "P36", "P37", "P140"))
    card = sonde.card(atlas)
    for name, control in (("naive_bayes", "naive-bayes"), ("class_prior", "class-prior")):
        model = sonde.model(f"control:{control}", data=atlas)
        run = sonde.run(sonde.probe("lama", answer="score"), model, atlas, out=tmp_path / name)
        estimates = estimate_results(run.results()).filter(metric="p_at_1", of="value")
        values = dict(estimates.select(pl.col("group").list.first(), "value").rows())
        for asked in atlas.asked_relations():
            expected = values[asked.id]
            assert card.estimates[f"{name}.relation.{asked.id}"].value == pytest.approx(expected)


@pytest.mark.shared
def test_lama_is_guessed_as_the_papers_controls_guess_it(shared: Path) -> None:
    card = sonde.card(f"lama:{shared / 'data' / 'lama'}")
    assert card.estimates["class_prior.mean_over_relations"].value == pytest.approx(0.173, abs=5e-4)
    assert card.estimates["naive_bayes.mean_over_relations"].value == pytest.approx(
        0.2441, abs=1e-4
    )
    assert card.counts["leaking_facts"] == 66
