"""LAMA: what is asked, what counts, what is left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

import sonde
from sonde.core.answers import Filled
from sonde.core.errors import DataError, UsageError
from sonde.core.facts import Dataset, Fact, Selection, Template
from sonde.core.prompts import Fill, Score
from sonde.core.reports import Report
from sonde.models.controls import majority
from sonde.models.scripted import Scripted
from sonde.former.lama.probe import Lama
from sonde.testing import oracle_for
from tests.rows import answer_all
from tests.rows import asked as asked_of
from tests.worlds import dataset_of, fact, relation, template


def world(*facts: Fact) -> Dataset:
    asked = template("t", "The answer for [X] is [Y].")
    return dataset_of(
        facts, *(relation(id, asked) for id in dict.fromkeys(f.relation for f in facts))
    )


def report(dataset: Dataset, answers: dict[str, str], probe: Lama | None = None) -> Report:
    suited = (probe or Lama()).suited(frozenset({"score"}))
    return suited.read(dataset, answer_all(Scripted(answers=answers), asked_of(suited, dataset)))


FACTS = (
    fact("P36", "France", "Paris", id="a"),
    fact("P36", "Peru", "Lima", id="b"),
    fact("P36", "Mexico", "Mexico City", id="c"),
    fact("P36", "Kuwait", "Kuwait City", "Kuwait", id="d"),
)


def test_masked_models_fill_and_others_score() -> None:
    assert Lama().suited(frozenset({"fill", "score"})).answer == "fill"
    assert Lama().suited(frozenset({"score"})).answer == "score"
    wants = [p.want for p in asked_of(Lama(answer="score"), world(*FACTS))]
    assert all(isinstance(want, Score) and len(want.options) == 5 for want in wants)
    assert all(isinstance(p.want, Fill) for p in asked_of(Lama(answer="fill"), world(*FACTS)))


def test_p_at_1_is_the_share_of_right_first_answers() -> None:
    result = report(world(*FACTS), {"a": "Paris", "b": "Paris", "c": "Mexico City"})
    assert result.estimates["p_at_1.mean_over_relations"].value == 0.5
    assert result.counts["ties"] == 1  # the fact that the script says nothing about


def test_any_accepted_object_is_right() -> None:
    first = report(world(*FACTS), {"d": "Kuwait City"}).estimates["p_at_1.relation.P36"]
    second = report(world(*FACTS), {"d": "Kuwait"}).estimates["p_at_1.relation.P36"]
    assert first.value == second.value == 0.25


def test_relations_weigh_the_same_in_one_mean_and_facts_in_the_other() -> None:
    facts = (*FACTS, fact("P19", "Ann", "Rome", id="e"))
    result = report(world(*facts), {"e": "Rome"})
    assert result.estimates["p_at_1.mean_over_relations"].value == 0.5
    assert result.estimates["p_at_1.mean_over_facts"].value == 0.2


def test_the_majority_control_answers_the_commonest_object() -> None:
    facts = [fact("P36", f"s{i}", "Rome" if i < 3 else f"city {i}", id=str(i)) for i in range(5)]
    result = report(world(*facts), {"4": "city 4"})
    assert result.estimates["control.majority.p_at_1.relation.P36"].value == 0.6
    above = result.estimates["above_control.p_at_1.relation.P36"].value
    assert above == pytest.approx(0.2 - 0.6)


def test_p_at_k_has_the_control_of_the_k_most_common_objects_next_to_it() -> None:
    names = ["Rome", "Rome", "Rome", "Oslo", "Oslo", "Lima", "Lima", "Bern", "Riga", "Minsk"]
    data = world(*(fact("P36", f"s{i}", name, id=str(i)) for i, name in enumerate(names)))
    probe = Lama(k=2)
    result = report(data, {"9": "Minsk"}, probe)
    control = "control.majority.p_at_2.mean_over_relations"
    assert result.estimates[control].value == 0.5  # Lima and Rome: ties go by name
    above = result.estimates["above_control.p_at_2.mean_over_relations"].value
    assert above == pytest.approx(0.1 - 0.5)
    [head] = [h for h in result.headlines if h.estimate == "p_at_2.mean_over_relations"]
    assert head.control == control and head.difference.startswith("above_control.p_at_2")
    assert head.control_label == "always the 2 most common objects"


def test_the_control_of_p_at_k_is_the_majority_model() -> None:
    data = sonde.dataset("atlas", relations=("P30", "P36", "P103"), limit=20)
    for k in (2, 5, 10):
        probe = Lama(answer="score", k=k)
        found = probe.read(data, answer_all(majority(data), probe.ask(data))).estimates
        for over in ("mean_over_relations", "mean_over_facts", "relation.P103"):
            control = found[f"control.majority.p_at_{k}.{over}"]
            assert control.value == found[f"p_at_{k}.{over}"].value


def test_three_facts_more_than_the_control_of_six_are_not_called_clear() -> None:
    facts = [fact("P36", f"s{i}", "Rome" if i < 2 else f"city {i}", id=str(i)) for i in range(6)]
    right = {str(i): "Rome" if i < 2 else f"city {i}" for i in range(5)}
    said = report(world(*facts), right).findings
    assert said[0].startswith("Overall P@1 is not distinguishable from the majority control: +50.0")
    assert said[0].endswith("(0.0 to +73.3).")
    assert "beats the majority baseline on 0 of 1 relations. No significant diff" in said[1]


def test_the_control_does_not_depend_on_how_many_facts_are_asked() -> None:
    """The commonest object is that of the split, not of the few facts a limit leaves."""
    facts = [fact("P36", f"s{i}", "Rome" if i < 4 else f"city {i}", id=str(i)) for i in range(12)]
    whole = world(*facts)
    for limit in (2, 5, 12):
        few = whole.select(Selection(limit=limit))
        asked = [f.objects[0].name for f in few.asked("P36")]
        control = report(few, {}).estimates["control.majority.p_at_1.relation.P36"]
        assert control.value == asked.count("Rome") / limit
        assert majority(few).identity == majority(whole).identity


def test_a_relation_named_twice_is_asked_once() -> None:
    twice = world(*FACTS).select(Selection(relations=("P36", "P36")))
    assert len(list(asked_of(Lama(answer="score"), twice))) == 4


def test_settings_are_checked_wherever_they_come_from() -> None:
    for settings, complaint in (
        ({"normalise": "mean"}, "must be one of none, tokens"),
        ({"k": 1}, "at least 2"),
        ({"top": "ten"}, "must be int"),
        ({"temlate": 2}, "did you mean 'template'"),
    ):
        with pytest.raises(UsageError, match=complaint):
            sonde.probe("lama", **settings)


def test_uhn_drops_answers_that_stand_in_the_subjects_name() -> None:
    facts = (
        *FACTS,
        fact("P36", "Lima Airport", "Lima", id="e"),
        fact("P36", "lima bean", "LIMA", id="f"),
    )
    result = report(world(*facts), {})
    assert result.counts["uhn_dropped"] == 3  # Kuwait is in Kuwait, too
    assert result.estimates["uhn.p_at_1.relation.P36"].n == 3


def test_uhn_names_drops_what_a_part_of_the_name_suggests() -> None:
    facts = [fact("P27", "Giulia Rossi", "Italy", id="a")]
    facts += [fact("P27", "Kim Lee", "Peru", id="b")]
    facts += [fact("P27", f"X{i}", f"land {i}", id=f"x{i}") for i in range(5)]
    probe = Lama(uhn="names", answer="score")
    prompts = asked_of(probe, world(*facts))
    parts = [
        p.key.subject for p in prompts if p.key.template.startswith("uhn-") and p.key.fact == "a"
    ]
    assert parts == ["Giulia", "Rossi"]
    answered = answer_all(Scripted(answers={"a": "Italy"}), prompts)
    assert probe.read(world(*facts), answered).counts["uhn_dropped"] == 1


def test_facts_without_a_one_token_object_are_counted_not_scored() -> None:
    probe = Lama(answer="fill")
    dataset = world(*FACTS)
    rows = answer_all(Scripted(answers={"a": "Paris"}), asked_of(probe, dataset))

    def blind(row_answer: Filled) -> Filled:
        ranks = tuple(
            None if " " in name else rank
            for name, rank in zip(row_answer.watched, row_answer.watched_ranks, strict=True)
        )
        return replace(row_answer, watched_ranks=ranks)

    seen = [replace(r, answer=blind(r.answer)) for r in rows if isinstance(r.answer, Filled)]
    result = probe.read(dataset, seen)
    assert result.counts["asked"] == 4
    assert result.counts["skipped_not_one_token"] == 1  # Mexico City; Kuwait is one word
    assert result.estimates["p_at_1.relation.P36"].n == 3


def test_nothing_scored_is_said_and_not_zero() -> None:
    dataset = world(*FACTS)
    probe = Lama(answer="fill")
    result = probe.read(dataset, [])
    assert result.estimates["p_at_1.mean_over_relations"].value is None
    assert "No fact could be scored" in result.summary


def test_a_missing_template_is_named() -> None:
    with pytest.raises(DataError, match="has 1 templates; template 4"):
        list(asked_of(Lama(template=4, answer="score"), world(*FACTS)))


def test_capitals_begin_the_sentence_whoever_opens_it() -> None:
    voices = world(
        fact("P36", "the Callas", "soprano", id="a"), fact("P36", "ßen", "von Tenor", id="b")
    )
    asked = {
        "[X] is a [Y].": ("The Callas is a ", "SSen is a "),
        "a [X] is [Y]": ("A the Callas is ",),
    }
    for text, prefixes in asked.items():
        prompts = list(asked_of(Lama(answer="score", capitals=True), reworded(voices, text)))
        assert tuple(p.prefix for p in prompts)[: len(prefixes)] == prefixes
        assert [p.key.subject for p in prompts] == ["the Callas", "ßen"]
    first = reworded(voices, "[Y] is what [X] is.")
    for probe in (Lama(answer="score", capitals=True), Lama(answer="fill", capitals=True)):
        (prompt, _) = asked_of(probe, first)
        assert (prompt.prefix, prompt.suffix) == ("", " is what the Callas is.")
        assert isinstance(prompt.want, Score | Fill) and prompt.want.capitals
    (prompt, _) = asked_of(Lama(answer="score", capitals=True), first)
    assert isinstance(prompt.want, Score)
    assert prompt.want.options == ("soprano", "von Tenor")
    assert prompt.want.texts(prompt.prefix) == ("Soprano", "Von Tenor")


@pytest.mark.parametrize("answer", ["fill", "score"])
def test_capitals_change_no_name_that_is_judged(answer: Literal["fill", "score"]) -> None:
    voices = reworded(
        world(fact("P36", "Callas", "soprano", id="a"), fact("P36", "Domingo", "tenor", id="b")),
        "[Y]: [X]",
    )
    probe = Lama(answer=answer, capitals=True)
    for model in (oracle_for(voices), majority(voices)):
        rows = answer_all(model, asked_of(probe, voices))
        plain = replace(probe, capitals=False)
        assert probe.judged(voices, rows).answers == plain.judged(voices, rows).answers
    result = probe.read(voices, answer_all(oracle_for(voices), asked_of(probe, voices)))
    assert result.estimates["p_at_1.mean_over_facts"].value == 1


def test_capitals_and_punctuation_are_off_and_said_where_they_are_on() -> None:
    dataset = world(*FACTS)
    plain = list(asked_of(Lama(answer="score"), dataset))
    assert all(p.want == Score(options=p.want.options) for p in plain if isinstance(p.want, Score))
    assert not any("capital" in note for note in report(dataset, {}).notes)
    both = Lama(capitals=True, punctuation=True)
    told = " ".join(report(dataset, {}, both).notes)
    assert (
        "Sentences begin with a capital" in told
        and "closing punctuation is scored with the option" in told
    )
    wants = [p.want for p in asked_of(both.suited(frozenset({"score"})), dataset)]
    assert all(isinstance(want, Score) and want.punctuation for want in wants)


def reworded(dataset: Dataset, text: str) -> Dataset:
    """The same facts in another sentence."""
    template = Template(id="t", text=text, group="t")
    relations = tuple(replace(r, templates=(template,)) for r in dataset.relations)
    return replace(dataset, relations=relations)


def test_gold_never_enters_a_prompt() -> None:
    """Trading the facts' objects changes no prompt, only what counts as right."""
    traded = (
        fact("P36", "France", "Lima", id="a"),
        fact("P36", "Peru", "Paris", id="b"),
    )
    probe = Lama(answer="score")

    def asked(facts: Sequence[Fact]) -> list[tuple[str, str, frozenset[str]]]:
        prompts = asked_of(probe, world(*facts))
        wants = [(p.prefix, p.suffix, p.want) for p in prompts]
        return [(a, b, frozenset(w.options)) for a, b, w in wants if isinstance(w, Score)]

    assert asked(FACTS[:2]) == asked(traded)


@pytest.mark.shared
def test_lama_on_a_real_masked_model_gives_the_known_numbers(shared: Path, tmp_path: Path) -> None:
    """Two relations in full; the slow test has all 41."""
    dataset = sonde.dataset(str(shared / "data/lama"), relations=("P176", "P1376"))
    model = sonde.model(f"hf:{shared / 'models/encoder-24m'}")
    result = sonde.run(sonde.probe("lama"), model, dataset, tmp_path / "run").report()
    values = {r: result.estimates[f"p_at_1.relation.{r}"].value for r in ("P176", "P1376")}
    assert {r: round(100 * (v or 0), 1) for r, v in values.items()} == {"P176": 88.3, "P1376": 37.3}
    assert result.counts["rows_read"] == 34039


@pytest.mark.slow
@pytest.mark.shared
def test_lama_on_all_41_relations_gives_the_known_number(shared: Path, tmp_path: Path) -> None:
    dataset = sonde.dataset(str(shared / "data/lama"))
    model = sonde.model(f"hf:{shared / 'models/encoder-24m'}")
    result = sonde.run(sonde.probe("lama"), model, dataset, tmp_path / "run").report()
    assert result.counts["rows_read"] == 34_039
    assert result.counts["scored"] == 34_017
    value = result.estimates["p_at_1.mean_over_relations"].value
    assert value == pytest.approx(0.192, abs=0.001)
