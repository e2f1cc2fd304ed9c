"""LAMA: prompts, what counts as correct, what is excluded."""

from dataclasses import replace
from pathlib import Path

import pytest

import sonde
from sonde.core.errors import DataError
from sonde.core.facts import Dataset, Fact, Selection
from sonde.probes.lama import Lama
from sonde.prompts import FillMask, Score
from tests.worlds import dataset_of, fact, relation, template

from .shares import Numbers, by_fact, texts

SCORE = Lama(answer="score")
FACTS = (
    fact("P36", "France", "Paris", id="a"),
    fact("P36", "Peru", "Lima", id="b"),
    fact("P36", "Mexico", "Mexico City", id="c"),
    fact("P36", "Kuwait", "Kuwait City", "Kuwait", id="d"),
)
CHOICES = (
    fact("P36", "Peru", "Lima", wrong=("Oslo", "Bern"), id="a"),
    fact("P36", "Chile", "Lima", wrong=("Oslo", "Rome"), id="b"),
    fact("P36", "Norway", "Oslo", wrong=("Bern",), id="c"),
)


def world(*facts: Fact, text: str = "The answer for [X] is [Y].") -> Dataset:
    ids = dict.fromkeys(each.relation for each in facts)
    return dataset_of(facts, *(relation(id, template("t", text)) for id in ids))


def majority(probe: Lama, data: Dataset) -> Numbers:
    """The numbers of a model that finds Lima the most likely, then Oslo, then Bern."""
    return Numbers(probe, data, lambda prompt: {"Lima": 0.5, "Oslo": 0.3, "Bern": 0.1})


def test_masked_models_fill_and_others_score() -> None:
    both = Lama().resolve(frozenset({"fill", "score"}))
    assert (both.answer, both.close) == ("fill", True)
    alone = Lama().resolve(frozenset({"score"}))
    assert (alone.answer, alone.close) == ("score", False)
    (batch,) = both.prompts(world(*FACTS))
    assert isinstance(batch.request, FillMask) and len(batch.request.targets) == 5
    (batch,) = alone.prompts(world(*FACTS))
    assert batch.request == Score() and len(batch.options[0]) == 5


def test_an_open_sentence_is_closed_for_masked_models_and_a_notice_states_it() -> None:
    data = world(*FACTS[:1], text="[X] has [Y]")
    assert texts(Lama(answer="fill").prompts(data)) == [("France has ", ".")]
    assert texts(Lama(answer="fill", close=False).prompts(data)) == [("France has ", "")]
    (notice,) = Lama(answer="fill").notices(data)
    assert notice.startswith("Closed 1 of 1 templates with a full stop")
    assert Lama(close=False).notices(data) == Lama().notices(world(*FACTS)) == ()


def test_p_at_1_is_the_share_of_correct_first_answers() -> None:
    of = Numbers(SCORE, world(*FACTS), by_fact(a="Paris", b="Paris", d="Kuwait"))
    assert of("p_at_1") == 0.5
    assert of.results.counts()["tied"] == 1  # the fact that the model knows nothing about


def test_relations_weigh_the_same_in_one_mean_and_facts_in_the_other() -> None:
    born = [fact("P19", "Ann", "Rome", id="e"), fact("P19", "Bob", "Oslo", id="f")]
    of = Numbers(SCORE, world(*FACTS, *born), by_fact(e="Rome", f="Oslo"))
    assert of("p_at_1") == 0.5 and of("p_at_1", over="facts") == pytest.approx(2 / 6)


def test_p_at_k_is_compared_with_the_k_most_common_objects() -> None:
    names = ["Rome"] * 3 + ["Oslo"] * 2 + ["Lima"] * 2 + ["Bern", "Riga", "Minsk"]
    data = world(*(fact("P36", f"s{i}", name, id=str(i)) for i, name in enumerate(names)))
    of = Numbers(replace(SCORE, k=2), data, by_fact(**{"9": "Minsk"}))
    assert of("p_at_1", of="baseline") == 0.3
    assert of("p_at_2", of="baseline") == 0.5  # Rome and Lima: ties go by name
    assert of("p_at_2", of="difference") == pytest.approx(0.1 - 0.5)


def test_the_control_does_not_depend_on_how_many_facts_are_prompted() -> None:
    facts = [fact("P36", f"s{i}", "Rome" if i < 4 else f"city {i}", id=str(i)) for i in range(12)]
    for limit in (2, 5, 12):
        few = world(*facts).select(Selection(limit=limit))
        prompted = [f.objects[0].name for f in few.asked("P36")]
        of = Numbers(SCORE, few, by_fact())
        assert of("p_at_1", of="baseline") == prompted.count("Rome") / limit


def test_uhn_excludes_objects_in_the_subjects_name() -> None:
    facts = (*FACTS, fact("P36", "Lima Airport", "Lima"), fact("P36", "lima bean", "LIMA"))
    of = Numbers(SCORE, world(*facts), by_fact())
    assert of.line("uhn.p_at_1")["n"] == 3  # Kuwait is in Kuwait, too
    labels = {m.id: m.label for uhn in ("string", "names") for m in Lama(uhn=uhn).metrics[1:2]}
    assert "string and names" in labels["uhn.p_at_1"]
    assert "string match" in Lama().metrics[1].label


def test_uhn_by_names_excludes_what_a_part_of_the_name_suggests() -> None:
    facts = [fact("P27", "Giulia Rossi", "Italy", id="a"), fact("P27", "Kim Lee", "Peru", id="b")]
    facts += [fact("P27", f"X{i}", f"land {i}", id=f"x{i}") for i in range(5)]
    data, probe = world(*facts), replace(SCORE, uhn="names")
    parts = [b.frame for b in probe.prompts(data)][1].filter(fact="a")["subject"].to_list()
    assert parts == ["Giulia", "Rossi"]
    of = Numbers(probe, data, by_fact(a="Italy"))
    assert (of.line("p_at_1")["n"], of.line("uhn.p_at_1")["n"]) == (7, 6)


@pytest.mark.parametrize(("language", "parts"), [("en", 2), ("fr", 0), ("", 2)])
def test_parts_of_names_are_prompted_in_english_alone(language: str, parts: int) -> None:
    same = "P19" if language else ""
    born = relation(f"P19.{language}" if language else "P19", "[X] was born in [Y].")
    data = dataset_of(
        [fact(born.id, "Ann Lee", "Lima")], replace(born, language=language, same=same)
    )
    assert sum(map(len, replace(SCORE, uhn="names").prompts(data))) == 1 + parts


def test_a_fact_without_a_one_token_object_is_excluded_with_its_reason() -> None:
    of = Numbers(Lama(answer="fill"), world(*FACTS), by_fact(a="Paris"))
    assert of.line("p_at_1")["n"] == 3  # Mexico City is two words; Kuwait is one
    (reason,) = of.results.facts.filter(fact="c")["excluded"]
    assert "one token" in reason
    with pytest.raises(DataError, match="0 of 1 facts can be scored"):
        Numbers(Lama(answer="fill"), world(FACTS[2]), by_fact(c="Oslo"))


def test_a_fact_is_scored_with_the_options_it_names() -> None:
    (batch,) = SCORE.prompts(dataset_of(CHOICES))
    options = [batch.options[i] for i in batch.options_ids()]
    assert options == [("Bern", "Lima", "Oslo"), ("Lima", "Oslo", "Rome"), ("Bern", "Oslo")]
    bare = dataset_of((*CHOICES[:2], fact("P36", "Norway", "Oslo")))
    for probe, data in ((SCORE, bare), (replace(SCORE, options="relation"), dataset_of(CHOICES))):
        (batch,) = probe.prompts(data)
        assert batch.options == [("Lima", "Oslo")]


def test_the_control_chooses_the_most_common_of_a_facts_options() -> None:
    of = majority(SCORE, dataset_of(CHOICES))
    assert of("p_at_1") == of("p_at_1", of="baseline") == 1, "Lima, or Oslo without it"
    of = majority(replace(SCORE, options="relation"), dataset_of(CHOICES))
    assert of("p_at_1") == of("p_at_1", of="baseline") == pytest.approx(2 / 3)


def test_a_missing_template_is_an_error() -> None:
    with pytest.raises(DataError, match="P36 has 1 templates, not 4"):
        list(Lama(answer="score", template_no=4).prompts(world(*FACTS)))


def test_gold_is_not_visible_in_prompts() -> None:
    """Swapping the objects of facts changes no prompt and no set of options."""
    swapped = (fact("P36", "France", "Lima", id="a"), fact("P36", "Peru", "Paris", id="b"))
    batches = [next(SCORE.prompts(world(*facts))) for facts in (FACTS[:2], swapped)]
    assert batches[0].frame.equals(batches[1].frame)
    assert {*batches[0].options[0]} == {*batches[1].options[0]}


@pytest.mark.shared
def test_a_real_masked_model_gives_the_known_numbers(shared: Path, tmp_path: Path) -> None:
    """Two relations in full; the slow test has all 41."""
    data = sonde.dataset(str(shared / "data/lama"), relations=("P176", "P1376"))
    known = {"P176": 88.3, "P1376": 37.3}
    values = p_at_1(data, shared, tmp_path)
    assert {id: round(100 * values[id], 1) for id in known} == known


@pytest.mark.slow
@pytest.mark.shared
def test_all_41_relations_give_the_known_number(shared: Path, tmp_path: Path) -> None:
    values = p_at_1(sonde.dataset(str(shared / "data/lama")), shared, tmp_path)
    assert values[""] == pytest.approx(0.192, abs=0.001)


def p_at_1(data: Dataset, shared: Path, folder: Path) -> dict[str, float]:
    """P@1 by relation, and as mean over relations."""
    model = sonde.model(f"hf:{shared / 'models/encoder-24m'}")
    estimates = sonde.run(Lama(), model, data, folder / "run").estimates()
    chosen = estimates.filter(metric="p_at_1", of="value", over="relations")
    return {next(iter(group), ""): value for group, value in chosen.select("group", "value").rows()}
