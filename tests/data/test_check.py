"""What `sonde data check` says of a dataset, and which of it is an error."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonde.core.errors import DataError
from sonde.core.fact_frames import frame_of
from sonde.core.facts import Dataset, Entity, Template, facts_of
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


def french(**more: Any) -> Dataset:
    """Capitals in English and in French."""
    relations = [
        replace(relation(f"P36.{code}", *WORDED), **{"language": code, "same": "P36", **more})
        for code in ("en", "fr")
    ]
    facts = [
        fact(f"P36.{code}", entity(name, id="Q142"), entity("Paris", id="Q90"), id=f"{code}:Q142")
        for code, name in (("en", "France"), ("fr", "la France"))
    ]
    return dataset_of(facts, *relations)


def test_relations_of_several_languages_have_the_same_facts() -> None:
    assert not list(problems(french()))
    more = fact("P36.fr", "Italie", "Rome", id="fr:Q38")
    one = french()
    unequal = replace(one, read=lambda id: [*one.facts(id), *([more] if id == "P36.fr" else [])])
    (found,) = faults(unequal)
    assert found.text.startswith("relation 'P36.en' lacks 1 facts of 'P36' that another language")
    assert "such as of subject 'Italie'" in found.text and not found.error


def test_what_a_relation_says_of_its_language_is_looked_at() -> None:
    one = french()
    alone = replace(one, relations=one.relations[:1])
    assert list(problems(alone)) == ["relation 'P36.en' is 'P36' in no other language"]
    told = list(problems(french(language="english")))
    assert told[0] == "relation 'P36.en' has language 'english', no ISO 639-1 code such as 'en'"
    assert told[-1] == "relations 'P36.en' and 'P36.fr' are both 'P36' in language 'english'"
    assert "in a language that it does not name" in next(problems(french(language="")))
    assert next(problems(french(tags=("a", "a")))) == "relation 'P36.en' lists tag 'a' twice"


def test_an_object_outside_the_answers_and_answers_alike_are_named() -> None:
    space = (entity("Paris", id="Q90"), entity("Paris", id="Q830149"))
    assert "has several answers called 'Paris'" in next(problems(french(answers=space)))
    with pytest.raises(DataError, match="object 'Q90' of fact 'en:Q142' is not among the answers"):
        faults(french(answers=space[1:]))
    other = (entity("Lutetia", id="Q90"),)
    with pytest.raises(DataError, match=r"'Q90' of fact .* is called 'Paris', but 'Lutetia' among"):
        faults(french(answers=other))
    assert not list(problems(french(answers=(Entity(id="Q90", names=("Lutetia", "Paris")),))))


def test_a_dataset_without_any_fact_is_an_error() -> None:
    assert errors(replace(world(WORDED), read=lambda id: [])) == ["no relation has a fact"]


def test_a_date_that_is_none_and_an_end_before_the_beginning_are_errors() -> None:
    one = world(WORDED)

    def dated(**dates: Any) -> list[str]:
        return errors(replace(one, read=lambda id: [replace(f, **dates) for f in one.facts(id)]))

    assert not dated(date="2015", valid_from="2010", valid_to="2020-05")
    assert dated(date="May") == [
        "fact 'r0' has a date that is none, 'May'; write YYYY, YYYY-MM or YYYY-MM-DD"
    ]
    assert dated(valid_from="2020", valid_to="2010") == [
        "fact 'r0' is right until 2010, before it is from 2020 on"
    ]


def test_a_fact_that_is_asked_about_when_it_is_not_right_is_doubtful() -> None:
    one = world(WORDED)

    def dated(**dates: Any) -> list[str]:
        own = replace(one, read=lambda id: [replace(f, **dates) for f in one.facts(id)])
        return [str(fault) for fault in faults(own) if not fault.error]

    sound = dated(date="2012-05", valid_from="2010", valid_to="2012")
    (told,) = set(dated(date="2020", valid_from="2010", valid_to="2012")) - set(sound)
    assert told == "fact 'r0' is asked about 2020, but right from 2010 to 2012 alone"
    (told,) = set(dated(date="2009", valid_from="2010")) - set(sound)
    assert told == "fact 'r0' is asked about 2009, but right from 2010 on"


def test_what_a_template_takes_from_facts_is_there_and_holds_no_answer() -> None:
    own = world((template("t", "[details.hint] In [T], [X] has [Y]."),))
    lacking = [str(found) for found in faults(own)]
    assert lacking[0].endswith("takes [details.hint], which 1 facts, such as 'r0', do not have")
    assert lacking[1].endswith("takes [T], which 1 facts, such as 'r0', do not have")
    hint: dict[str, Any] = {"details": {"hint": "Not Rome but Paris."}, "date": "2015"}
    told = replace(own, read=lambda id: [replace(f, **hint) for f in own.facts(id)])
    (found,) = problems(told)
    assert "takes [details.hint], in which the answer of 1 facts stands, such as 'r0'" in found
    twice = replace(told, read=lambda id: [*told.facts(id)] * 2)
    assert errors(twice) == ["fact id 'r0' stands more than once"]


WORDS = st.sampled_from("who WHO New York new-york Oslo oslo. U.S. US, ROME [X] in".split())
NAMES = st.lists(st.lists(WORDS, min_size=1, max_size=3).map(" ".join), max_size=8)


@given(NAMES, st.lists(WORDS, max_size=8).map(" ".join))
def test_names_are_found_at_once_as_they_are_one_by_one(names: list[str], text: str) -> None:
    assert finder(names)(text) == sorted({name for name in names if stands_in(name, text)})
