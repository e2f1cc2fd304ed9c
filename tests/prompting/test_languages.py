"""What stands around facts, in each language that is written out."""

from __future__ import annotations

from dataclasses import fields

import pytest

from sonde.core.errors import UsageError
from sonde.core.facts import Dataset, Relation, Template
from sonde.probes.base import Probe
from sonde.probes.belief_icl import BeliefIcl
from sonde.probes.framing import Framing
from sonde.probes.ic_lke import IcLke
from sonde.probes.monitor import Monitor
from sonde.prompting.cues import parse_leading_verdict
from sonde.prompting.examples import fill_question
from sonde.prompting.languages import ENGLISH, PHRASINGS, build_phrasing, notice_about_english_words
from sonde.prompting.matching import lemmatize
from tests.probes.shares import texts
from tests.worlds import dataset_of, fact

CAPITALS = {"日本": "東京", "フランス": "パリ", "ペルー": "リマ", "チリ": "サンティアゴ"}


def japan(language: str = "ja") -> Dataset:
    """Four capitals in Japanese; Japan is asked about, the others are for training."""
    templates = (
        Template(id="t1", text="[X]の首都は[Y]です。"),
        Template(id="t2", text="[X]の首都はどこですか？[Y]。", style="question"),
    )
    relation = Relation(id="P36", label="首都", templates=templates, language=language)
    every = [
        fact("P36", subject, name, split="train" if n else "test")
        for n, (subject, name) in enumerate(CAPITALS.items())
    ]
    return dataset_of(every, relation)


def prefixes(probe: Probe, data: Dataset | None = None) -> list[str]:
    """What comes before the answer in every prompt."""
    return [text for text, _ in texts(probe.prompts(data or japan()))]


@pytest.mark.parametrize("language", PHRASINGS)
def test_a_language_is_written_out_whole(language: str) -> None:
    own = PHRASINGS[language]
    assert "[MASK]" in own.mask and "[S]" in own.check
    assert len(set(own.verdicts)) == 2
    assert [parse_leading_verdict(f"{word}。") for word in own.verdicts] == ["True", "False"]
    assert len(set(own.separators)) == len(own.separators)
    if language != "en":
        assert own.mask != ENGLISH.mask and own.qa != ENGLISH.qa and own.check != ENGLISH.check


def test_settings_stand_in_the_place_of_a_language_s_own() -> None:
    own = build_phrasing("ja", instruction="一語で。", markers=("Q：", "A："), stop="．")
    assert (own.mask, own.qa, own.question, own.answer, own.stop) == (
        *("一語で。", "一語で。", "Q：", "A：", "．"),
    )
    assert build_phrasing("fi") == build_phrasing("") == ENGLISH
    with pytest.raises(UsageError, match="markers takes two texts"):
        Monitor(markers=("Q",))


def test_what_is_not_written_out_is_told() -> None:
    assert notice_about_english_words(["ja", "en", ""], "markers") == ()
    (note,) = notice_about_english_words(["fi", "ja", "sw"], "markers")
    assert "fi, sw" in note


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (
            {"style": "mask", "shots": 1},
            "各文の[MASK]に入る言葉を一語で答えてください。\n"
            "質問：ペルーの首都は[MASK]です。\n答え：リマ。\n"
            "質問：日本の首都は[MASK]です。\n答え：",
        ),
        (
            {"style": "qa", "context": "zero-shot", "markers": ("Q：", "A：")},
            "各質問に一語で答えてください。\nQ：日本の首都はどこですか？\nA：",
        ),
    ],
)
def test_belief_icl_asks_in_japanese(
    settings: dict[str, object], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sonde.prompting.matching.check_segmenter", lambda language: None)
    probe = BeliefIcl(samples=0, **settings)  # type: ignore[arg-type]
    assert prefixes(probe)[0] in (
        expected,
        *(expected.replace("ペルー", s).replace("リマ", o) for s, o in CAPITALS.items()),
    )


def test_examples_of_any_relation_are_of_the_same_language(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sonde.prompting.matching.check_segmenter", lambda language: None)
    english = Relation(
        id="P36.en",
        label="capital",
        templates=(Template(id="e", text="The capital of [X] is [Y]."),),
        language="en",
    )
    own = japan()
    every = [
        *own.facts("P36"),
        *(fact("P36.en", f"Land {n}", f"City {n}", split="train") for n in range(9)),
    ]
    both = dataset_of(every, *own.relations, english)
    for text in prefixes(BeliefIcl(samples=0, context="random", shots=2), both):
        assert "City" not in text and text.endswith("答え：")


def test_monitor_and_framing_join_japanese_without_spaces(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sonde.prompting.matching.check_segmenter", lambda language: None)
    asked = set(prefixes(Monitor(shots=1, frame="qa", negatives=1)))
    assert all(" " not in text and text.endswith("\n答え：") for text in asked)
    assert any(text.count("質問：東京。日本の首都はどこですか？\n") == 1 for text in asked)
    plain = prefixes(Framing(negatives=1))
    assert "日本の首都はどこですか？" in plain
    assert "文：日本の首都は東京です。この文は正しいですか、誤りですか？" in plain


def test_ic_lke_separates_names_as_japanese_does() -> None:
    (wide,) = prefixes(IcLke(shots=2, pair_separator="space", example_separator="space"))
    assert wide.endswith("日本\u3000") and wide.count("\u3000") == 5
    (colons,) = prefixes(IcLke(shots=1))
    assert colons.endswith("\n日本：")
    (spaces,) = prefixes(IcLke(shots=1, pair_separator=" ", example_separator=" "))
    assert spaces.endswith(" 日本 ")
    (commas,) = prefixes(IcLke(shots=1, pair_separator="comma"))
    assert commas.endswith("\n日本、")


def test_a_question_may_end_without_a_question_mark() -> None:
    polite = Template(id="t", text="[X]の首都はどこですか。[Y]。", style="question")
    assert fill_question(polite, "日本", "qa") == "日本の首都はどこですか。"


def test_phrasings_change_no_english_prompt() -> None:
    """Every field has the text that prompts had before there were other languages."""
    assert {each.name: getattr(ENGLISH, each.name) for each in fields(ENGLISH)} == {
        "mask": "Predict the [MASK] in each sentence in one word.",
        "qa": "Answer each question in one word.",
        "question": "Q: ",
        "answer": "A:",
        "stop": ".",
        "space": " ",
        "separators": (" ", " : ", ", ", "\n"),
        "check": "Statement: [S]. The statement is True or False?",
        "verdicts": ("True", "False"),
    }
    assert lemmatize("The Guitars!") == "guitar"
