"""Templates without final punctuation end with the full stop of their script."""

from __future__ import annotations

import pytest

from sonde.core.facts import Dataset
from sonde.probes.base import Capability
from sonde.probes.belief import Belief
from sonde.probes.lama import Lama
from sonde.prompting.templates import missing_full_stop
from tests.worlds import dataset_of, fact, relation, template

MASKED: frozenset[Capability] = frozenset({"fill", "score"})
CAUSAL: frozenset[Capability] = frozenset({"score", "generate"})


def test_optimised_templates_are_read_as_they_were_trained() -> None:
    assert not missing_full_stop(template("t", "[X] [Y]", source="optimised"))


def unclosed() -> Dataset:
    facts = (fact("P36", "Peru", "Lima"), fact("P127", "Yahoo", "Verizon Inc."))
    return dataset_of(
        facts,
        relation("P36", "The capital of [X] is [Y]", "[X]'s capital is [Y] . "),
        relation("P127", "[Y] owns [X]"),
    )


def ends(probe: Lama | Belief, data: Dataset) -> dict[str, str]:
    """By template what comes after the gap of the first prompt in it."""
    rows = [row for b in probe.prompts(data) for row in b.frame.select("template", "suffix").rows()]
    return dict(reversed(rows))


@pytest.mark.parametrize("probe", [Lama(), Belief(bias=False)])
def test_templates_are_closed_for_masked_models_only(probe: Lama | Belief) -> None:
    masked, causal = probe.resolve(MASKED), probe.resolve(CAUSAL)
    after = ends(masked, unclosed())
    assert after["P36-1"] == "." and after["P127-1"] == " owns Yahoo."
    assert after.get("P36-2", " . ") == " . "
    assert ends(causal, unclosed())["P36-1"] == ""
    assert not causal.notices(unclosed())


def test_a_masked_model_that_scores_reads_closed_templates_too() -> None:
    after = ends(Lama(answer="score").resolve(MASKED), unclosed())
    assert {*after.values()} == {".", " owns Yahoo."}


def test_no_close_leaves_templates_as_they_are() -> None:
    probe = Lama(close=False).resolve(MASKED)
    assert {*ends(probe, unclosed()).values()} == {"", " owns Yahoo"}
    assert not probe.notices(unclosed())


@pytest.mark.parametrize(
    ("probe", "count"), [(Lama(), "2 of 2 templates"), (Belief(), "2 of 3 templates")]
)
def test_a_notice_states_how_many_templates_are_closed(probe: Lama | Belief, count: str) -> None:
    (notice,) = probe.resolve(MASKED).notices(unclosed())
    assert notice.startswith(f"Closed {count} with a full stop")
