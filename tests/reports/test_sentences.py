"""Sentences from ids and values."""

from string import Formatter

import pytest

from sonde.reports.cells import Estimate
from sonde.reports.sentences import FORMATS, SENTENCES, say, text


@pytest.mark.parametrize("id", SENTENCES)
def test_every_field_has_a_known_format(id: str) -> None:
    for _, field, spec, _ in Formatter().parse(SENTENCES[id]):
        assert field != ""
        kind = (spec or "").rstrip("!")
        assert kind.startswith("#") or kind in {*FORMATS, "sentence"}


def test_the_first_sentence_states_what_is_excluded_and_why() -> None:
    values = {"model": "m", "n": 60, "relation": "composer", "dataset": "music"}
    sentence = say("prompted.one", template="by [Y]", left={"no token": 33}, **values)
    assert text(sentence).endswith("from music; 33 of them are excluded (no token).")
    several = text(say("prompted.one", template="", left={"no token": 2, "cut": 1}, **values))
    assert several.endswith("3 of them are excluded (2 no token, 1 cut).")
    assert "excluded" not in text(say("prompted.one", template="", left={}, **values))


def test_a_change_has_its_interval_and_p() -> None:
    change = (Estimate(0.1, 0.05, 0.15, 60, 0.0004), "percent")
    plain = text(say("baseline.above", baseline="the baseline", b="5.0%", d=change))
    assert plain.replace("\u00a0", " ") == (
        "The baseline scores 5.0%; the model is above it: "
        "+10.0 points (95% CI +5.0 to +15.0, p < 0.001)."
    )


def test_values_are_escaped_in_html() -> None:
    page = text(say("request.chat", system="<b>\u202e"), html=True)
    assert "<b>" not in page and "&lt;b&gt;\\u202e" in page
