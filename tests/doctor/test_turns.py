"""The doctor suggests turns where a model with a chat template has nothing to say."""

from __future__ import annotations

import pytest

from sonde.core.abilities import TEMPLATE, Identity
from sonde.core.answers import Generated
from sonde.core.prompts import Generate, Key, Prompt
from sonde.doctor.diagnose import conversation
from sonde.doctor.findings import Case, Finding

KEY = Key(fact="f", relation="r", template="t", subject="s")


def found(
    *texts: str, template: str = "b1", chat: dict[str, str] | None = None
) -> tuple[Finding, ...]:
    prompt = Prompt(key=KEY, prefix="Where?", want=Generate(most=4))
    cases = [Case(prompt=prompt, answer=Generated(text=t, logps=(), finished=True)) for t in texts]
    details = {TEMPLATE: template} if template else {}
    identity = Identity(name="m", architecture="llama", chat=chat or {}, details=details)
    return tuple(conversation(identity, cases))


def test_mostly_empty_answers_of_a_model_with_a_template_are_a_warning() -> None:
    (finding,) = found("", " ", "Lima")
    assert finding.verdict == "warning" and finding.check == "chat template"
    assert "2 of 3 written answers are empty" in finding.found
    assert "--chat always" in finding.advice


@pytest.mark.parametrize("chat", [None, {"template": "b1"}])
def test_a_model_that_answers_or_is_asked_in_turns_is_well(chat: dict[str, str] | None) -> None:
    texts = ("", "", "Lima") if chat else ("", "Lima", "Lima")
    (finding,) = found(*texts, chat=chat)
    assert finding.verdict == "ok" and not finding.advice


def test_nothing_is_said_of_a_model_without_a_template() -> None:
    assert found("", "", template="") == ()
