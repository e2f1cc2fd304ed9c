"""What `sonde data check` says of a dataset, and which of it is an error."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from sonde.core.fact_frames import frame_of
from sonde.core.facts import Dataset, Template, facts_of
from sonde.data.catalog import merged_facts
from sonde.data.check import faults, finder, problems, stands_in
from tests.worlds import dataset_of, entity, fact, relation, template

WORDED = (template("t", "[X] has [Y]."),)


def errors(dataset: Dataset) -> list[str]:
    return [fault.text for fault in faults(dataset) if fault.error]


def world(*templates: tuple[Template, ...], wrong: tuple[str, ...] = ()) -> Dataset:
    relations = [relation(f"r{i}", *each) for i, each in enumerate(templates)]
    facts = [fact(r.id, "France", "Paris", id=r.id, wrong=wrong) for r in relations]
    return dataset_of(facts, *relations)


def test_a_wrong_option_that_is_correct_is_named() -> None:
    assert not list(problems(world(WORDED, wrong=("Rome",))))
    (found,) = problems(world(WORDED, wrong=("Rome", "Paris")))
    assert found == "fact 'r0' lists as wrong what is correct: 'Paris'"


def test_templates_may_be_missing_everywhere_but_not_here_and_there() -> None:
    assert not list(problems(world((), ())))
    assert list(problems(world(WORDED, ()))) == ["relation r1 has no template"]


def test_facts_made_one_keep_no_option_that_became_correct() -> None:
    given = frame_of(
        [
            fact("r", "France", "Paris", id="a", wrong=("Lyon", "Rome")),
            fact("r", "France", "Lyon", id="b"),
        ]
    )
    (made,) = facts_of(merged_facts(given))
    assert made.wrong == (entity("Rome"),)


def test_an_id_that_stands_twice_is_an_error_and_what_may_be_meant_is_none() -> None:
    twice = (Template(id="t", text="[X] has [Y]."), Template(id="t", text="[X] owns [Y]."))
    assert errors(world(twice)) == ["template id 't' stands more than once"] * 2
    lost = world((Template(id="t", text="[X] has [Y].", group="gone"),))
    assert list(problems(lost)) == ["template 't' is grouped under 'gone', no template"]
    assert not errors(lost)
    told = world((Template(id="t", text="[X] has [Y], as Paris."),), (), wrong=("Paris",))
    assert len(list(problems(told))) == 4
    assert not errors(told)


def test_a_fact_id_that_stands_twice_is_an_error_also_over_relations() -> None:
    one = replace(world(WORDED, WORDED), read=lambda id: [fact(id, "France", "Paris", id="same")])
    assert errors(one) == ["fact id 'same' stands more than once"]


WORDS = st.sampled_from("who WHO New York new-york Oslo oslo. U.S. US, ROME [X] in".split())
NAMES = st.lists(st.lists(WORDS, min_size=1, max_size=3).map(" ".join), max_size=8)


@given(NAMES, st.lists(WORDS, max_size=8).map(" ".join))
def test_names_are_found_at_once_as_they_are_one_by_one(names: list[str], text: str) -> None:
    assert finder(names)(text) == sorted({name for name in names if stands_in(name, text)})
