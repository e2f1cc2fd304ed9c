"""Templates without final punctuation end with the full stop of their script."""

from __future__ import annotations

import pytest

from sonde.core.abilities import Ability
from sonde.core.facts import Dataset
from sonde.probes.belief import Belief
from sonde.probes.lama import Lama
from sonde.prompting.closing import closing_mark
from tests.rows import answer_all
from tests.rows import asked as asked_of
from tests.worlds import dataset_of, fact, relation, template

MASKED: frozenset[Ability] = frozenset({"fill", "score"})
CAUSAL: frozenset[Ability] = frozenset({"score", "generate"})


@pytest.mark.parametrize(
    ("text", "language", "mark"),
    [
        ("[X] is in [Y]", "en", "."),
        ("[X] is in [Y] .", "en", ""),
        ("[X] is in [Y]!", "", ""),
        ("[X] (born in [Y])", "", "."),
        ('"[X] is in [Y]."', "", ""),
        ("[Y] is where [X] is", "de", "."),
        ("[X] は [Y] にある", "ja", "。"),
        ("[X]は[Y]にある", "", "。"),
        ("[X]位于[Y]", "", "。"),
        ("[X] की राजधानी [Y] है", "hi", "।"),
        ("[X] کا دارالحکومت [Y] ہے", "ur", "۔"),
        ("เมืองหลวงของ [X] คือ [Y]", "th", ""),
        ("[X] [Y]", "th", ""),
        ("Столица [X] — [Y]", "ru", "."),
    ],
)
def test_the_mark_is_that_of_the_language_or_script(text: str, language: str, mark: str) -> None:
    assert closing_mark(template("t", text), language) == mark


def test_optimised_templates_are_read_as_they_were_trained() -> None:
    assert not closing_mark(template("t", "[X] [Y]", source="optimised"))


def unclosed() -> Dataset:
    facts = (fact("P36", "Peru", "Lima"), fact("P127", "Yahoo", "Verizon Inc."))
    return dataset_of(
        facts,
        relation("P36", "The capital of [X] is [Y]", "[X]'s capital is [Y] . "),
        relation("P127", "[Y] owns [X]"),
    )


@pytest.mark.parametrize("probe", [Lama(), Belief(bias=False)])
def test_templates_are_closed_for_masked_models_only(probe: Lama | Belief) -> None:
    masked, causal = probe.suited(MASKED), probe.suited(CAUSAL)
    ends = {p.key.template: p.suffix for p in asked_of(masked, unclosed())}
    assert ends["P36-1"] == "." and ends["P127-1"] == " owns Yahoo."
    assert ends.get("P36-2", " . ") == " . "
    assert {p.key.template: p.suffix for p in asked_of(causal, unclosed())}["P36-1"] == ""
    assert not causal.notices(unclosed())


def test_a_masked_model_that_scores_reads_closed_templates_too() -> None:
    probe = Lama(answer="score").suited(MASKED)
    assert {p.suffix for p in asked_of(probe, unclosed())} == {".", " owns Yahoo."}


def test_a_name_that_ends_with_the_mark_gets_no_second_one() -> None:
    world = dataset_of(
        [fact("P127", "Yahoo Inc.", "Verizon"), fact("P127", "Flickr", "Yahoo")],
        relation("P127", "[Y] owns [X]"),
    )
    ends = [p.suffix for p in asked_of(Lama().suited(MASKED), world)]
    assert ends == [" owns Yahoo Inc.", " owns Flickr."]


def test_templates_that_take_dates_are_closed_too() -> None:
    world = dataset_of([fact("P36", "Peru", "Lima")], relation("P36", "The capital of [X] is [Y]"))
    dated = template("t", "In [T] the capital of [X] was [Y]")
    facts = world.frame("P36").select("fact", "date", "details", names="subject_names")
    from polars import lit

    from sonde.core.prompts import Fill
    from sonde.prompting.sentences import sentences

    block = sentences(
        world.relations[0], [dated], facts.with_columns(date=lit("1990")), Fill(), close=True
    )
    assert block.texts() == [("In 1990 the capital of Peru was ", ".")]


def test_no_close_leaves_templates_as_they_are() -> None:
    probe = Lama(close=False).suited(MASKED)
    assert {p.suffix for p in asked_of(probe, unclosed())} == {"", " owns Yahoo"}
    assert not probe.notices(unclosed())


@pytest.mark.parametrize(
    ("probe", "count"), [(Lama(), "2 of 2 templates"), (Belief(), "2 of 3 templates")]
)
def test_the_report_states_how_many_templates_were_closed(probe: Lama | Belief, count: str) -> None:
    from sonde.models.controls import majority

    world, probe = unclosed(), probe.suited(MASKED)
    report = probe.read(world, answer_all(majority(world), asked_of(probe, world)))
    assert report.notes[-1].startswith(f"Closed {count} with a full stop")
