"""Templates of a source: which are questions, whatever the script."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonde.core.facts import Style
from sonde.data.builders.fktc import fault_of
from sonde.data.wordings import Wording, gather, style_of
from sonde.prompting.examples import fill_question
from sonde.prompting.languages import QUESTION_MARKS

ASKED = {
    "?": "Where was [X] born? [Y].",
    "？": "[X]はどこで生まれましたか？[Y]。",
    "؟": "أين ولد [X]؟ [Y].",
    "か。": "[X]はどこで生まれましたか。[Y]。",
}


@pytest.mark.parametrize("mark", QUESTION_MARKS)
def test_every_question_mark_ends_a_question_everywhere(mark: str) -> None:
    wording = Wording(relation="P19", text=ASKED[mark], source="manual")
    (template,) = gather("source", [wording])[0]["P19"]
    assert template.style == "question"
    asked = fill_question(template, "Ann", "qa")
    assert asked.endswith(mark) and "Ann" in asked
    assert fault_of(asked.replace("Ann", "[X]"), (), 70.0, ()) is None


@given(
    st.text(st.sampled_from("ab日本 。.،"), max_size=8),
    st.sampled_from([*QUESTION_MARKS, ""]),
    st.text(st.sampled_from("ab?？؟"), max_size=4),
)
def test_only_a_mark_before_the_answer_makes_a_question(head: str, mark: str, tail: str) -> None:
    expected: Style = "question" if mark else "statement"
    assert style_of(f"[X]{head}{mark}[Y]{tail}") == expected
