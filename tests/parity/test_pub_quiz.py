"""Scores of BEAR's sentences are those of lm-pub-quiz, where sentences are put as it puts them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sonde.probes.bear import Bear
from sonde.probes.lama import Lama
from tests.parity.pub_quiz import (
    CHOSEN,
    FEW,
    GOLDEN,
    MASKED,
    MODES,
    TOLERANCE,
    Rows,
    as_lm_pub_quiz,
    bear,
    compared,
    encoder,
    evaluator,
    first,
    gaps,
    opened,
    ours,
    without_bos,
)

pytestmark = pytest.mark.shared


@pytest.fixture(scope="module")
def model(smollm2: str) -> Any:
    return opened(smollm2)


def expected() -> dict[tuple[str, int], Any]:
    """lm-pub-quiz's scores by fact and template."""
    rows = map(json.loads, GOLDEN.read_text("utf-8").splitlines())
    return {(row["fact"], row["template"]): row["scores"] for row in rows}


def test_per_token_scores_are_those_of_lm_pub_quiz(model: Any, shared: Path) -> None:
    known, seen, openings = expected(), set(), ""
    for relation, facts in CHOSEN.items():
        dataset = bear(shared, relation, facts)
        openings += "".join(fact.subject.name[0] for fact in dataset.asked(relation))
        for number, template in enumerate(dataset.asked_relations()[0].templates, 1):
            for key, rows in ours(model, as_lm_pub_quiz(number), dataset).items():
                assert max(gaps(rows, known[key])) < TOLERANCE, key
                if template.text.startswith("[Y]"):  # then all of the sentence is scored
                    assert [len(row) for row in rows] == [len(row) for row in known[key]]
                seen.add(key)
    assert seen == known.keys()
    assert any(map(str.islower, openings)), "no subject shows what a capital does"


def test_whole_sentences_are_scored_as_lm_pub_quiz_scores_them(model: Any, shared: Path) -> None:
    known = expected()
    plain = without_bos(model)  # a sentence that is scored whole is opened with BOS all the same
    for relation, facts in CHOSEN.items():
        found = ours(plain, Bear(), bear(shared, relation, facts))
        assert found.keys() == {key for key in known if key[0].startswith(f"{relation}:")}
        for key, rows in found.items():
            same(rows, known[key])


def same(rows: Rows, known: Rows) -> None:
    """Every token's score, and the first answer."""
    assert [len(row) for row in rows] == [len(row) for row in known]
    assert max(gaps(rows, known)) < TOLERANCE
    assert first(rows) == first(known)


@pytest.mark.parametrize("mode", MODES)
def test_a_masked_model_scores_as_lm_pub_quiz_does_in_every_mode(mode: str, shared: Path) -> None:
    lines = [json.loads(line) for line in MASKED.read_text("utf-8").splitlines()]
    known = {(row["fact"], row["template"]): row["scores"] for row in lines if row["mode"] == mode}
    model, seen = encoder(shared), set()
    for relation, facts in FEW.items():
        for key, rows in ours(model, MODES[mode][0], bear(shared, relation, facts)).items():
            same(rows, known[key])
            seen.add(key)
    assert seen == known.keys()


@pytest.mark.parametrize(
    ("relation", "template", "off"),
    [("P27", 3, "capitals"), ("P105", 1, "capitals"), ("P27", 1, "punctuation"), ("P27", 1, "bos")],
)
def test_each_setting_is_needed_for_that(
    model: Any, shared: Path, relation: str, template: int, off: str
) -> None:
    probe = Lama(
        template_no=template, capitalize=off != "capitals", punctuation=off != "punctuation"
    )
    asked = without_bos(model) if off == "bos" else model
    found, known = ours(asked, probe, bear(shared, relation, CHOSEN[relation])), expected()
    assert max(max(gaps(rows, known[key])) for key, rows in found.items()) > 0.1


@pytest.mark.slow
def test_a_larger_sample_is_chosen_from_as_lm_pub_quiz_chooses(model: Any, shared: Path) -> None:
    pytest.importorskip("lm_pub_quiz", reason="lm-pub-quiz is not installed")
    quiz = evaluator(model)
    for relation, template in (("P36", 1), ("P36", 3), ("P412", 2), ("P1376", 2)):
        found = compared(model, quiz, bear(shared, relation, 10), template)
        assert found.largest < TOLERANCE and not found.differing
