"""BEAR: what is asked, how answers are ranked, and over what accuracy is averaged."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sonde.core.answers import Scored
from sonde.core.errors import AbilityError, DataError, PromptError
from sonde.core.facts import Dataset
from sonde.core.prompts import Score
from sonde.core.reports import Report
from sonde.models.scripted import Scripted
from sonde.former.bear.probe import Bear
from tests.rows import answer_all, asked
from tests.worlds import dataset_of, entity, fact, relation

SPACE = ("Lima", "paris", "Oslo", "Bonn")
SECOND = ("P37", "P37-2")


def world(
    *relations: str, templates: tuple[str, ...] = ("[X] has [Y].", "[Y] rules [X]."), **more: Any
) -> Dataset:
    """Two facts a relation; two of four answers are no fact's object."""
    facts = [
        fact(id, subject, object, id=f"{id}:{subject}")
        for id in relations
        for subject, object in (("Peru", "Lima"), ("la France", "paris"))
    ]
    made = [
        replace(relation(id, *templates), answers=tuple(map(entity, SPACE)), **more)
        for id in relations
    ]
    return dataset_of(facts, *made)


def report(dataset: Dataset, said: dict[str, str]) -> Report:
    return Bear().read(dataset, answer_all(Scripted(answers=said), asked(Bear(), dataset)))


def test_every_fact_is_asked_in_every_template_from_the_whole_answer_space() -> None:
    prompts = asked(Bear(), world("P36"))
    assert [(p.prefix, p.suffix) for p in prompts] == [
        ("Peru has ", "."),
        ("", " rules Peru."),
        ("La France has ", "."),  # a sentence begins with a capital
        ("", " rules la France."),
    ]
    want = prompts[0].want
    assert want == Score(options=SPACE, capitals=True, punctuation=True, whole=True, hidden="word")
    assert want.texts("")[1] == "Paris" and want.after(".") == "."
    alone = asked(Bear(score="answer", hidden="answer"), world("P36"))[0].want
    assert alone == replace(want, whole=False, hidden="answer")


def test_accuracy_is_averaged_over_templates_facts_and_relations() -> None:
    dataset = world("P36", "P37")
    said = {"P36:Peru": "Lima", "P37:Peru": "Lima"}
    rows = [
        # under its second template, P37 is answered with what the script does not say
        replace(row, answer=replace(row.answer, logps=row.answer.logps[::-1]))
        if isinstance(row.answer, Scored) and (row.key.relation, row.key.template) == SECOND
        else row
        for row in answer_all(Scripted(answers=said), asked(Bear(), dataset))
    ]
    found = Bear().read(dataset, rows).estimates
    assert found["accuracy.relation.P36"].value == 0.5
    assert found["accuracy.relation.P37"].value == 0.25
    assert found["accuracy.mean_over_facts"].value == pytest.approx(0.375)
    assert found["accuracy.template.1.mean_over_facts"].value == 0.5
    assert found["accuracy.template.2.mean_over_facts"].value == 0.25
    assert found["template_spread"].value == pytest.approx(0.25 / 2**0.5)
    low, high = found["template_spread"].ends
    assert 0 <= low <= 0.25 / 2**0.5 <= high <= 1 / 2**0.5
    assert found["control.majority.accuracy.mean_over_facts"].value == 0.5


def test_the_mean_over_facts_weighs_relations_by_their_facts() -> None:
    small, large = world("P36"), world("P37")
    facts = [*small.facts("P36"), *large.facts("P37")]
    facts += [fact("P37", f"land {i}", "Oslo", id=f"P37:{i}") for i in range(4)]
    dataset = dataset_of(facts, *small.relations, *large.relations)
    said = {"P36:Peru": "Lima", "P36:la France": "paris"}
    found = report(dataset, said).estimates
    assert found["accuracy.mean_over_facts"].value == pytest.approx(2 / 8)
    assert found["accuracy.mean_over_relations"].value == pytest.approx(1 / 2)


def test_relations_with_fewer_templates_are_left_out_of_the_others() -> None:
    one, two = world("P36", templates=("[X] has [Y].",)), world("P37")
    dataset = dataset_of([*one.facts("P36"), *two.facts("P37")], *one.relations, *two.relations)
    found = report(dataset, {"P36:Peru": "Lima"}).estimates
    assert found["accuracy.template.2.relation.P36"].value is None
    assert found["accuracy.template.2.mean_over_facts"].n == 2
    assert found["accuracy.mean_over_facts"].n == 4


def test_two_facts_of_one_subject_have_each_their_own_object() -> None:
    facts = [fact("P36", "Peru", name, id=name) for name in ("Lima", "Oslo")]
    dataset = dataset_of(facts, *world("P36").relations)
    assert (
        report(dataset, dict.fromkeys(("Lima", "Oslo"), "Lima"))
        .estimates["accuracy.mean_over_facts"]
        .value
        == 0.5
    )
    twice = dataset_of([facts[0], facts[0]], *world("P36").relations)
    with pytest.raises(DataError, match="two facts have the id 'Lima'"):
        report(twice, {})


def test_a_tie_is_wrong_and_counted() -> None:
    result = report(world("P36"), {})
    assert result.estimates["accuracy.mean_over_facts"].value == 0.0
    assert result.counts["ties"] == 4
    assert result.counts["sentences"] == 4 and result.counts["asked"] == 2


def test_a_model_that_cannot_score_is_refused() -> None:
    with pytest.raises(AbilityError, match="needs a model that can 'score'"):
        Bear().suited(frozenset({"fill", "generate"}))


def test_an_encoder_decoder_model_scores_answers_but_no_sentences(tiny: Any) -> None:
    from sonde.models.torch.seq2seq import Seq2SeqModel

    model, dataset = Seq2SeqModel(tiny("t5")), world("P36")
    with pytest.raises(PromptError, match="score the answers alone"):
        answer_all(model, asked(Bear(), dataset))
    rows = answer_all(model, asked(Bear(score="answer"), dataset))
    assert len(Bear(score="answer").judged(dataset, rows).grid) == 4
