"""Reports warn where most answers are punctuation or function words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sonde.analysis.readings import read_further
from sonde.core.facts import Dataset
from sonde.core.reports import Report
from sonde.models.scripted import Scripted
from sonde.former.belief.probe import Belief
from tests.rows import answer_all
from tests.rows import asked as asked_of
from tests.worlds import dataset_of, fact, relation


def world(language: str = "") -> Dataset:
    facts = [fact("P36", name, "Lima", id=name) for name in ("a", "b", "c", "d")]
    capital = replace(relation("P36", "The capital of [X] is [Y]."), language=language)
    return dataset_of(facts, capital)


def report(answers: dict[str, str], language: str = "") -> Report:
    probe = Belief(answer="fill", bias=False)
    data = world(language)
    answered: Any = answer_all(Scripted(answers=answers), asked_of(probe, data))
    read = probe.read(data, answered)
    return read_further(read, data, lambda *_: answered)


def test_most_answers_are_punctuation_or_function_words() -> None:
    first = report({"a": "…", "b": "…", "c": "the", "d": "Lima"}).findings[0]
    assert first.startswith(
        "Warning: 3 of 4 top answers are punctuation or function words, most often '…' (2), "
        "'the' (1). "
    )


def test_other_wrong_answers_are_no_reason_to_warn() -> None:
    findings = report({"a": "…", "b": "of", "c": "Cusco", "d": "Lima"}).findings
    assert not any("function words" in each for each in findings)


@pytest.mark.parametrize(("language", "warns"), [("de", True), ("en", False)])
def test_function_words_are_those_of_the_language(language: str, warns: bool) -> None:
    findings = report({"a": "der", "b": "und", "c": "ein", "d": "Lima"}, language).findings
    assert findings[0].startswith("Warning: ") is warns


def test_written_answers_are_looked_at_too() -> None:
    from sonde.analysis.readings.function_words import warn_of_function_words

    read = report({"a": "…", "b": "…", "c": "the", "d": "Lima"})
    assert read.judged is not None
    plain = replace(read, findings=(), judged=replace(read.judged, way="written"))
    assert warn_of_function_words(plain).findings[0].startswith("Warning: 3 of 4")
    chosen = replace(plain, judged=replace(read.judged, way="scored"))
    assert warn_of_function_words(chosen).findings == ()
    assert np.count_nonzero(read.judged.grid.right) == 1
