"""Frames and wrong objects for any dataset: what is kept, what is refused, and that both hold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import combinations, permutations
from pathlib import Path

import pytest
import sacrebleu
from hypothesis import given
from hypothesis import strategies as st

from sonde.core.errors import DataError, EndpointError, UsageError
from sonde.core.facts import Card, Dataset, Entity, Fact
from sonde.data.builders import write_whole
from sonde.data.builders.endpoint import Asker, candidates, read_by_relation, request
from sonde.data.builders.fktc import Built, Gathered, Given, Recipe, build, fault_of, likeness
from sonde.data.builders.work import Answer, Journal
from sonde.data.catalog import load
from sonde.data.check import problems
from sonde.data.format import open_dataset
from sonde.prompting.cues import question_templates
from sonde.prompting.options import names_correct_for, names_correct_for_repeated_subjects
from tests import worlds
from tests.worlds import dataset_of, entity, question, template

CITIES = ("Bern", "Oslo", "Rome", "Lima", "Bonn", "Kyiv", "Riga", "Baku")
ASKED = "What is the capital of [X]?"
OTHERS = (
    "Where does the government of [X] meet?",
    "Which town rules over [X]?",
    "To whom do ambassadors of [X] drive?",
)


def thing(name: str, *more: str) -> Entity:
    return entity(name, *more, id=f"Q-{name}")


def fact(subject: str, *objects: Entity, split: str = "test", wrong: Iterable[str] = ()) -> Fact:
    id = f"P36:{subject}:{objects[0].name}"
    return worlds.fact("P36", thing(subject), *objects, id=id, split=split, wrong=map(thing, wrong))


def world(
    *facts: Fact, questions: Sequence[str] = (ASKED,), statement: str = "[X] is ruled from [Y]."
) -> Dataset:
    """One relation with a statement and some questions."""
    asked = [
        replace(question(f"P36-q{i}", text), group="P36-q1") for i, text in enumerate(questions, 1)
    ]
    facts = facts or tuple(fact(f"land {i}", thing(city)) for i, city in enumerate(CITIES))
    made = dataset_of(facts, worlds.relation("P36", statement, *asked, label="capital"))
    return replace(made, card=Card(name="world", licence="CC0", sources=("a book",)))


def made(dataset: Dataset, recipe: Recipe | None = None, given: Given | None = None) -> Built:
    return build(dataset, recipe or Recipe(), name="made", given=given)


WORDS = st.sampled_from("where what is was the town city of in lies born called".split())
QUESTION = st.lists(WORDS, min_size=1, max_size=7).map(lambda words: f"{' '.join(words)} [X]?")


@given(st.lists(QUESTION, max_size=14), st.sampled_from([20.0, 50.0, 70.0, 95.0]))
def test_no_two_frames_reach_the_threshold_in_either_direction(
    questions: list[str], bleu: float
) -> None:
    kept = Gathered(relation=world().relations[0], recipe=Recipe(frames=7, bleu=bleu))
    kept.offer(questions, "file")
    slots = [text.replace("[X]", "X") for text in kept.texts]
    for one, other in permutations(slots, 2):
        assert sacrebleu.sentence_bleu(one, [other]).score < bleu
    if kept.missing:
        assert len(kept.frames) + kept.refused.total() == len(questions)
        for text in set(questions) - set(kept.texts):
            assert fault_of(text, kept.texts, bleu, ()) in ("alike", "repeated")


def test_likeness_is_the_larger_of_both_directions() -> None:
    short, long = "Where is [X]?", "Where is [X]? And since when, one wonders, has it been there?"
    directed = [
        sacrebleu.sentence_bleu(a.replace("[X]", "X"), [b.replace("[X]", "X")]).score
        for a, b in ((short, long), (long, short))
    ]
    assert directed[0] != pytest.approx(directed[1])
    assert likeness(short, long) == likeness(long, short) == pytest.approx(max(directed))
    assert likeness(short, short) == 100


def test_a_question_at_the_threshold_is_too_alike() -> None:
    other = "And what is the capital of [X]?"
    found = likeness(ASKED, other)
    assert fault_of(other, [ASKED], found, ()) == "alike"
    assert fault_of(other, [ASKED], found + 1e-9, ()) is None


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("Where is it?", "malformed"),
        ("Does [X] border [X]?", "malformed"),
        ("Name the capital of [X].", "malformed"),
        ("Is [Y] the capital of [X]?", "malformed"),
        ("Which, " + "really " * 60 + "of [X]?", "malformed"),
        ("what is  the capital of [X] ?", "repeated"),
        ("And what is the capital of [X]?", "alike"),
        ("Do they say Bern when they speak of [X]?", "telling"),
        ("Which town rules over [X]?", None),
    ],
)
def test_a_question_that_does_not_qualify_is_refused_for_a_reason(
    text: str, fault: str | None
) -> None:
    assert fault_of(" ".join(text.split()), [ASKED], 60, ["Bern"]) == fault


def test_own_questions_come_first_then_those_of_the_file() -> None:
    built = made(world(questions=(ASKED, OTHERS[0])), given={"P36": (ASKED, *OTHERS[1:], "no")})
    relation = built.dataset.relation("P36")
    assert [t.text for t in question_templates(relation)] == [f"{t} [Y]." for t in (ASKED, *OTHERS)]
    assert [t.id for t in relation.templates] == [
        "P36-q1",
        "P36-q2",
        "P36-frame-3",
        "P36-frame-4",
        "P36-1",
    ]
    assert {t.group for t in question_templates(relation)} == {"P36-q1"}
    [gathered] = built.gathered
    assert (gathered.count("own"), gathered.count("file"), len(gathered.frames)) == (2, 2, 4)
    assert gathered.refused == {"repeated": 1, "malformed": 1}


def test_no_more_frames_than_asked_for() -> None:
    few = Recipe(frames=2)
    built = made(world(questions=(ASKED, *OTHERS)), few)
    assert [t.id for t in question_templates(built.dataset.relation("P36"))] == ["P36-q1", "P36-q2"]


def test_a_question_whose_group_is_gone_stands_for_itself(tmp_path: Path) -> None:
    dataset = world(questions=("no slot of the right form [X]", OTHERS[0]))
    built = made(dataset)
    [frame] = question_templates(built.dataset.relation("P36"))
    assert (frame.id, frame.group) == ("P36-q2", "P36-q2")
    assert list(problems(built.dataset)) == []


def test_new_frames_take_no_name_that_is_taken() -> None:
    dataset = world()
    [capital] = dataset.relations
    taken = template("P36-frame-2", "[Y] rules [X].")
    named = replace(capital, templates=(*capital.templates, taken))
    built = made(replace(dataset, relations=(named,)), given={"P36": OTHERS[:1]})
    assert list(problems(built.dataset)) == []


def test_a_dataset_without_any_question_is_refused() -> None:
    with pytest.raises(DataError, match="has a question; --paraphrases FILE or --endpoint"):
        made(world(questions=()))


def test_a_file_alone_can_bring_all_questions() -> None:
    built = made(world(questions=()), given={"P36": OTHERS, "P99": ("Who is [X]?",)})
    found = question_templates(built.dataset.relation("P36"))
    assert [t.text for t in found] == [f"{text} [Y]." for text in OTHERS]
    assert found[0].group == "P36-1", "made of the statement"
    assert built.strangers == 1


@given(
    st.lists(
        st.tuples(
            st.sampled_from("abcd"),
            st.lists(st.sampled_from(CITIES), min_size=1, max_size=3, unique=True),
            st.sampled_from(["train", "test"]),
            st.lists(st.sampled_from([*CITIES, "Utopia"]), max_size=7, unique=True),
        ),
        min_size=1,
        max_size=8,
    ),
    st.integers(0, 6),
    st.integers(0, 3),
)
def test_a_wrong_object_is_right_under_no_fact_of_its_subject(
    rows: list[tuple[str, list[str], str, list[str]]], count: int, seed: int
) -> None:
    facts = [fact(s, *map(thing, o), split=split, wrong=w) for s, o, split, w in rows]
    dataset = world(*facts)
    right = {s: {o for t, objects, _, _ in rows if t == s for o in objects} for s, *_ in rows}
    pool = set(dataset.object_names("P36"))
    built = made(dataset, Recipe(negatives=count, seed=seed))
    for before, after in zip(facts, built.dataset.facts("P36"), strict=True):
        names = [entity.name for entity in after.wrong]
        correct = right[before.subject.name]
        free = (pool | {entity.name for entity in before.wrong}) - correct
        assert not correct & set(names)
        assert len(names) == len(set(names)) == min(count, len(free))
        assert set(names) <= free
    [gathered] = built.gathered
    assert gathered.mistaken == sum(len(right[s] & set(wrong)) for s, _, _, wrong in rows)


def test_an_object_with_another_name_that_is_right_is_not_wrong() -> None:
    dataset = world(
        fact("a", thing("Bombay")),
        fact("b", thing("Mumbai", "Bombay")),
        fact("c", thing("Oslo")),
    )
    built = made(dataset)
    names = [[e.name for e in f.wrong] for f in built.dataset.facts("P36")]
    assert names[0] == names[1] == ["Oslo"]
    assert sorted(names[2]) == ["Bombay", "Mumbai"]


def test_a_fact_with_nothing_wrong_left_is_counted() -> None:
    dataset = world(fact("a", thing("Bern")), fact("a", thing("Oslo")), fact("b", thing("Bern")))
    [gathered] = made(dataset).gathered
    assert gathered.wrong == {0: 2, 1: 1}


def test_the_seed_decides_the_draw_and_the_order_of_facts_does_not() -> None:
    facts = tuple(fact(f"land {i}", thing(city)) for i, city in enumerate(CITIES))
    few = Recipe(negatives=2)

    def drawn(dataset: Dataset, recipe: Recipe) -> dict[str, list[str]]:
        found = made(dataset, recipe).dataset.facts("P36")
        return {f.id: [e.name for e in f.wrong] for f in found}

    first = drawn(world(*facts), few)
    assert drawn(world(*reversed(facts)), few) == first
    assert drawn(world(*facts), Recipe(negatives=2, seed=1)) != first


def test_what_is_written_is_a_sound_dataset_with_its_provenance(tmp_path: Path) -> None:
    built = build(
        world(), Recipe(), name="capitals", given={"P36": OTHERS}, sources=["questions: mine.jsonl"]
    )
    write_whole(built.dataset, tmp_path / "out")
    back = open_dataset(tmp_path / "out")
    assert list(problems(back)) == []
    assert back.card.name == "capitals" and back.card.licence == "CC0"
    assert back.card.sources == ("a book", "questions: mine.jsonl")
    assert "BLEU of any two under 70" in back.card.description
    assert [f.wrong for f in back.facts("P36")] == [f.wrong for f in built.dataset.facts("P36")]


def test_atlas_needs_no_endpoint() -> None:
    atlas = load("atlas")
    built = made(atlas)
    full = [each for each in built.gathered if len(each.frames) == 7]
    assert len(full) == 21
    assert all(len(each.frames) >= 3 for each in built.gathered)
    for relation in built.dataset.relations:
        texts = [t.text.removesuffix(" [Y].") for t in question_templates(relation)]
        assert all(likeness(one, other) < 70 for one, other in combinations(texts, 2))
        right = names_correct_for_repeated_subjects(atlas, relation.id)
        for fact in built.dataset.facts(relation.id):
            barred = names_correct_for(fact, right)
            assert not any(barred & set(entity.names) for entity in fact.wrong)


class Scripted:
    """A model that gives these answers in turn, and fails where there is none left."""

    def __init__(self, *answers: str) -> None:
        self.answers, self.asked = list(answers), list[str]()

    def ask(self, text: str) -> Answer:
        if not self.answers:
            raise EndpointError("nobody there")
        self.asked.append(text)
        return Answer(self.answers.pop(0))


def written(chat: Scripted, journal: Path, dataset: Dataset, **recipe: int) -> Built:
    asker = Asker(ask=chat.ask, model="m", journal=Journal(journal))
    return build(dataset, Recipe(frames=4, **recipe), name="made", asker=asker)


def test_a_model_is_asked_until_there_are_enough(tmp_path: Path) -> None:
    chat = Scripted(
        "I cannot help with that.", f"1. {OTHERS[0]}\n2. {OTHERS[1]}", OTHERS[2], "more"
    )
    built = written(chat, tmp_path / "j", world())
    assert [t.text for t in question_templates(built.dataset.relation("P36"))] == [
        f"{text} [Y]." for text in (ASKED, *OTHERS)
    ]
    assert len(chat.asked) == 3
    assert ASKED in chat.asked[0] and OTHERS[0] in chat.asked[2], "it is told what is there"


def test_a_model_that_writes_nonsense_is_asked_a_few_times_and_no_more(tmp_path: Path) -> None:
    chat = Scripted(*["Lorem ipsum.", "42", "[[[", "?", "[X]"] * 2)
    built = written(chat, tmp_path / "j", world(), turns=3)
    [gathered] = built.gathered
    assert (len(gathered.frames), len(chat.asked)) == (1, 3)
    assert gathered.refused["malformed"] == 3


def test_a_relation_without_questions_is_asked_about_by_its_statement(tmp_path: Path) -> None:
    chat = Scripted("\n".join((ASKED, *OTHERS)))
    built = written(chat, tmp_path / "j", world(questions=()))
    assert "[X] is ruled from [Y]." in chat.asked[0] and "capital" in chat.asked[0]
    assert question_templates(built.dataset.relation("P36"))[0].text == f"{ASKED} [Y]."


def test_a_failure_names_what_is_missing_and_a_second_build_asks_only_for_that(
    tmp_path: Path,
) -> None:
    with pytest.raises(EndpointError, match="frames are missing for 1 relations: P36"):
        written(Scripted(OTHERS[0]), tmp_path / "j", world())
    again = Scripted(OTHERS[1], OTHERS[2])
    resumed = written(again, tmp_path / "j", world())
    assert len(again.asked) == 2
    whole = written(Scripted(*OTHERS), tmp_path / "k", world())
    assert resumed.dataset.relations == whole.dataset.relations
    assert resumed.gathered == whole.gathered


def test_half_a_line_of_the_journal_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "work" / "answers.jsonl"
    journal = Journal(path)
    journal.keep("a", "first\nsecond")
    journal.keep("b", "third")
    with path.open("a") as file:
        file.write('{"key": "c", "te')
    again = Journal(path)
    assert (len(again), again.find("a"), again.find("c")) == (2, "first\nsecond", None)
    again.keep("c", "fourth")
    assert Journal(path).find("c") == "fourth"


def test_a_spoilt_line_of_the_journal_is_named(tmp_path: Path) -> None:
    (tmp_path / "j").write_text('{"key": "a", "text": "b"}\nspoilt\n')
    with pytest.raises(DataError, match="line 2"):
        Journal(tmp_path / "j")


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("- Where is [X]?\n* Who is [X]?", ["Where is [X]?", "Who is [X]?"]),
        ('["Where is [X]?", "Who is [X]?", 3]', ["Where is [X]?", "Who is [X]?"]),
        ('```json\n["Where is [X]?"]\n```', ["Where is [X]?"]),
        ("<think>Who is [X]?</think>\n“Where is [X]?”", ["Where is [X]?"]),
        ("[X] lives where?\n\n2) Q1: Where is [X]?", ["[X] lives where?", "Q1: Where is [X]?"]),
    ],
)
def test_questions_are_found_in_what_a_model_writes(answer: str, found: list[str]) -> None:
    assert list(candidates(answer)) == found


def test_a_request_names_the_label_where_there_is_no_sentence() -> None:
    assert "the capital of [X]" in request(worlds.relation("P36", label="capital"), (), 5)


def test_a_file_of_questions_is_read_by_relation(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    path.write_text('{"relation": "P36", "text": "Where is [X]?"}\n{"relation": "P36"}\n')
    with pytest.raises(DataError, match="line 2: 'text' must be a text"):
        read_by_relation(path)
    path.write_text('{"relation": "P36", "text": "Where is [X]?"}\n')
    assert read_by_relation(path) == {"P36": ("Where is [X]?",)}


@pytest.mark.parametrize("bleu", [0.0, 101.0, float("nan")])
def test_a_threshold_that_is_none_is_refused(bleu: float) -> None:
    with pytest.raises(UsageError, match="--bleu"):
        Recipe(bleu=bleu)


@pytest.mark.shared
def test_the_published_frames_stay_under_the_threshold(shared: Path) -> None:
    dataset = load(f"fktc:{shared / 'data' / 'fktc'}")
    built = made(dataset)
    assert sum(len(each.frames) for each in built.gathered) == 137
    assert sum(each.refused["alike"] for each in built.gathered) == 0
    assert sum(each.mistaken for each in built.gathered) == 81
    assert sum(each.wrong[4] for each in built.gathered) == 4
