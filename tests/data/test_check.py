"""What `sonde data check` says of a dataset, and which of it is an error."""

from __future__ import annotations

from dataclasses import replace

from sonde.core.fact_frames import frame_of
from sonde.core.facts import Card, Dataset, Entity, Fact, Relation, Template, facts_of
from sonde.data.check import faults, problems
from sonde.data.joining import merged_facts

PARIS, LYON, ROME = (Entity(id=name, names=(name,)) for name in ("Paris", "Lyon", "Rome"))
FRANCE = Entity(id="France", names=("France",))
WORDED = (Template(id="t", text="[X] has [Y].", group="t"),)


def errors(dataset: Dataset) -> list[str]:
    return [fault.text for fault in faults(dataset) if fault.error]


def fact(id: str, *wrong: Entity, own: Entity = PARIS) -> Fact:
    return Fact(id=id, relation="r", subject=FRANCE, objects=(own,), wrong=wrong)


def world(*templates: tuple[Template, ...], wrong: tuple[Entity, ...] = ()) -> Dataset:
    relations = tuple(
        Relation(id=f"r{i}", label="l", kind="1-1", templates=each)
        for i, each in enumerate(templates)
    )
    return Dataset(
        card=Card(name="d"),
        relations=relations,
        read=lambda id: [fact(id, *wrong)],
        fingerprint="",
    )


def test_a_wrong_option_that_is_correct_is_named() -> None:
    assert not list(problems(world(WORDED, wrong=(ROME,))))
    (found,) = problems(world(WORDED, wrong=(ROME, PARIS)))
    assert found == "fact 'r0' lists as wrong what is correct: 'Paris'"


def test_templates_may_be_missing_everywhere_but_not_here_and_there() -> None:
    assert not list(problems(world((), ())))
    assert list(problems(world(WORDED, ()))) == ["relation r1 has no template"]


def test_facts_made_one_keep_no_option_that_became_correct() -> None:
    given = frame_of([fact("a", LYON, ROME), fact("b", own=LYON)])
    (made,) = facts_of(merged_facts(given))
    assert made.wrong == (ROME,)


def test_an_id_that_stands_twice_is_an_error_and_what_may_be_meant_is_none() -> None:
    twice = (Template(id="t", text="[X] has [Y]."), Template(id="t", text="[X] owns [Y]."))
    assert errors(world(twice)) == ["template id 't' stands more than once"] * 2
    lost = world((Template(id="t", text="[X] has [Y].", group="gone"),))
    assert list(problems(lost)) == ["template 't' is grouped under 'gone', no template"]
    assert not errors(lost)
    told = world((Template(id="t", text="[X] has [Y], as Paris."),), (), wrong=(PARIS,))
    assert len(list(problems(told))) == 4
    assert not errors(told)


def test_a_fact_id_that_stands_twice_is_an_error_also_over_relations() -> None:
    one = replace(world(WORDED, WORDED), read=lambda id: [fact("same")])
    assert errors(one) == ["fact id 'same' stands more than once"]
