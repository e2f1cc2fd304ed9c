"""docs/monitor.md shows the prompts of the framing probe as they are."""

from __future__ import annotations

from dataclasses import replace

import pytest

import sonde
from sonde.core.facts import Entity
from sonde.former.framing.probe import Framing
from tests.docs.pages import DOCS, rows
from tests.worlds import fact, world

PAGE = DOCS / "monitor.md"


def test_the_documented_prompts_are_those_that_are_asked() -> None:
    shown = [row[1].strip("`") for row in rows(PAGE, "The framing probe")]
    lies = (Entity(id="Oslo", names=("Oslo",)),)
    data = world(given=[replace(fact("P36", "Peru", "Lima"), wrong=lies)])
    asked = {p.prefix.strip() for p in Framing().ask(data)}
    assert len(shown) == 6
    assert set(shown) <= asked


@pytest.mark.parametrize(
    ("probe", "words"),
    [(Framing(), "up to {} prompts"), (Framing(paraphrases=3, negatives=2), "makes it {}.")],
)
def test_the_documented_number_of_prompts_is_counted(probe: Framing, words: str) -> None:
    data = sonde.dataset("atlas", relations=("P30",), limit=1)
    count = sum(1 for _ in probe.ask(data))
    assert words.format(count) in PAGE.read_text(encoding="utf-8")
