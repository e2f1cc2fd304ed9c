"""Paraphrases of templates: what is asked, what is kept, what is asked for again, where it ends."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonde.core.errors import UsageError
from sonde.core.facts import Relation
from sonde.data.builders.endpoint import Asker, Exhausted
from sonde.data.builders.myriadlama.paraphrases import (
    INSTRUCTION,
    Paraphrased,
    Recipe,
    by_hand_doubt,
    expected,
    families,
    fault_of,
    mended,
    paraphrased,
    request,
)
from sonde.data.builders.work import Answer, Journal, Tokens
from sonde.data.check import bare
from tests.worlds import question, relation, template

BORN = template("P19-1", "[X] was born in [Y].")
ASKED = question("P19-2", "Where was [X] born?")
OTHERS = ("[Y] saw the birth of [X].", "[X] comes from [Y].", "[X] is a child of [Y].")


def writing(*answers: str, journal: Path) -> Asker:
    """A model that gives these answers in turn, the last one for ever."""

    def told() -> Iterator[str]:
        yield from answers
        while True:
            yield answers[-1]

    said = told()
    return Asker(ask=lambda text: Answer(next(said)), model="m", journal=Journal(journal))


def made(tmp_path: Path, *answers: str, of: Relation | None = None, **more: object) -> Paraphrased:
    recipe = Recipe(**{"paraphrases": 3, "patience": 2} | more)  # type: ignore[arg-type]
    asker = writing(*answers, journal=tmp_path / "j")
    return paraphrased(of or relation("P19", BORN), asker, recipe, objects=("Ghent", "born"))


def test_paraphrases_belong_to_the_group_of_their_template(tmp_path: Path) -> None:
    found = made(tmp_path, "\n".join(OTHERS)).relation.templates
    assert found[0] == BORN
    assert [t.text for t in found[1:]] == list(OTHERS)
    assert [t.id for t in found[1:]] == ["P19-1-1", "P19-1-2", "P19-1-3"]
    assert {(t.group, t.source, t.style) for t in found[1:]} == {
        ("P19-1", "paraphrase", "statement")
    }


def test_what_cannot_be_used_is_counted_and_asked_for_again(tmp_path: Path) -> None:
    answers = (
        "Of course! Here they are:",  # no slot
        f"1. {OTHERS[0]}\n2. [X] and [X] met in [Y].\n3. {OTHERS[0]}\n4. [X] was born in [Y]",
        f"[X] comes from Ghent, [Y].\n{{'a': '[X] in [Y]'}}\n[X], n\ufffd at [Y].\n{OTHERS[1]}\n"
        f"{OTHERS[2]}\nand more",
    )
    [one] = made(tmp_path, *answers).made
    assert one.texts == list(OTHERS)
    assert one.refused == {"slots": 2, "repeated": 2, "telling": 1, "unfit": 2}


def test_a_name_that_the_template_itself_has_gives_nothing_away(tmp_path: Path) -> None:
    [one] = made(tmp_path, "It was in [Y] that [X] was born.", paraphrases=1).made
    assert one.texts == ["It was in [Y] that [X] was born."]


def test_the_second_request_names_what_is_there_and_the_hint_stays(tmp_path: Path) -> None:
    first = request(BORN, (), 19, "[Y] is a town.", Recipe())
    assert "19 times:\n[X] was born in [Y].\n[Y] is a town.\n" in first
    assert "{" not in first and "\n\n" not in request(BORN, (), 19, "", Recipe())
    again = request(BORN, OTHERS[:1], 2, "[Y] is a town.", Recipe())
    assert again.startswith(first.replace("19 times", "5 times")) and again.endswith(OTHERS[0])


def test_the_same_sentence_for_ever_ends_with_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(Exhausted) as error:
        made(tmp_path, OTHERS[0])
    said = "nothing new 2 times in a row: template 'P19-1' has 1 of 3 paraphrases"
    assert said in str(error.value) and OTHERS[0] in str(error.value)
    assert len(Journal(tmp_path / "j")) == 3, "what it wrote is kept, and nothing more was asked"
    [one] = made(tmp_path, OTHERS[0], fewer=True).made
    assert one.texts == [OTHERS[0]]


def test_no_two_templates_of_a_relation_say_the_same(tmp_path: Path) -> None:
    both = relation("P19", BORN, "[X] hails from [Y].")
    found = made(tmp_path, "\n".join(OTHERS), f"{OTHERS[0]}\n[X]: [Y]", of=both, paraphrases=1)
    assert [one.texts for one in found.made] == [[OTHERS[0]], ["[X]: [Y]"]]


def test_paraphrases_that_are_there_count(tmp_path: Path) -> None:
    once = made(tmp_path, "\n".join(OTHERS[:2]), paraphrases=2).relation
    more = made(tmp_path, "[X]: [Y]", of=once, paraphrases=3).relation
    assert more.templates[:3] == once.templates
    assert [t.id for t in more.templates[3:]] == ["P19-1-3"]
    left = replace(once, templates=once.templates[1:])
    assert [len(there) for _, there in families(left)] == [0, 0], "their template is gone"


def test_what_reviewers_dropped_is_not_taken_again(tmp_path: Path) -> None:
    dropped = frozenset({f"P19|{OTHERS[0]}", f"P20|{OTHERS[1]}"})
    [one] = made(tmp_path, "\n".join(OTHERS), dropped=dropped, paraphrases=2).made
    assert one.texts == list(OTHERS[1:]) and one.refused == {"repeated": 1}


def test_a_question_gets_the_place_of_its_answer_back(tmp_path: Path) -> None:
    [asked] = made(tmp_path, "Whence is [X]?", of=relation("P19", ASKED), paraphrases=1).made
    assert asked.texts == ["Whence is [X]? [Y]."]
    assert mended("[X] is from [Y]", ASKED) == "[X] is from [Y]"
    assert mended("出身は？", question("q", "[X]の出身地は？")).endswith("？ [Y].")


def test_other_languages_and_slots_go_the_same_way(tmp_path: Path) -> None:
    japanese = relation("P19", "[X]は[Y]で生まれました。")
    [one] = made(
        tmp_path, "1．「[Y]は[X]の出身地です。」\n2、[X]の生地は[Y]。", of=japanese, paraphrases=2
    ).made
    assert one.texts == ["[Y]は[X]の出身地です。", "[X]の生地は[Y]。"]
    asker = writing("[X]は京都の[Y]で生まれた。", "[X]は[Y]の生まれだ。", journal=tmp_path / "k")
    [two] = paraphrased(japanese, asker, Recipe(paraphrases=1), objects=("京都",)).made
    assert two.refused == {"telling": 1}


@given(
    st.lists(
        st.sampled_from([*OTHERS, "[X] [Y]!", "[X]", "", "[Y] [Y] [X]", BORN.text]), max_size=30
    )
)
def test_what_is_kept_always_differs_and_has_its_slots(answers: list[str]) -> None:
    taken = {bare(BORN.text)}
    kept = []
    for text in answers:
        if fault_of(text, BORN, lambda text: (), taken) is None:
            kept.append(text)
            taken.add(bare(text))
    assert set(kept) == {text for text in answers if text in (*OTHERS, "[X] [Y]!")}
    assert len({bare(text) for text in kept}) == len(kept)


def test_the_cost_is_known_before(tmp_path: Path) -> None:
    there = made(tmp_path, "\n".join(OTHERS)).relation
    cost = expected([there, relation("P20", "[X] in [Y]", "[Y]: [X]")], Recipe(paraphrases=3), {})
    assert (cost.templates, cost.paraphrases) == (2, 6)
    assert cost.sent > len(INSTRUCTION) // 4 and 0 < cost.received < 60


def test_five_templates_with_a_question_are_what_the_paper_has() -> None:
    assert by_hand_doubt(relation("P19", BORN)) == "1 by hand, no question"
    five = [template(f"t{n}", f"[X] {n} [Y]") for n in range(4)]
    assert by_hand_doubt(relation("P19", *five, ASKED)) == ""


def test_an_instruction_without_the_sentence_is_refused() -> None:
    with pytest.raises(UsageError, match=r"no \{sentence\}"):
        Recipe(instruction="{count} paraphrases, please")


def test_a_journal_keeps_tokens_and_passes_over_half_a_line(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j")
    journal.keep("a", "first", Tokens(3, 4))
    with journal.path.open("a") as file:
        file.write('{"key": "b", "text": "whole"}')
    again = Journal(journal.path)
    assert again.answers() == [Answer("first", Tokens(3, 4)), Answer("whole")]
    again.keep("c", "third")
    assert [a.text for a in Journal(journal.path).answers(1)] == ["whole", "third"]
