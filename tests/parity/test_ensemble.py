"""An ensemble writes its own sentences as a probe wants sentences written."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sonde.core.columns import one_by_one
from sonde.core.facts import Template
from sonde.core.prompts import Cloze, Prompt
from sonde.models.torch.by_relation import ensemble
from sonde.models.torch.causal.model import CausalModel
from sonde.models.torch.masked.model import MaskedModel
from tests.tiny import CITIES, Load, fill, score

OPENS, INSIDE = (Template(id=t, text=t) for t in ("[Y] is the capital of [X].", "[X] is in [Y]."))
NAMES = tuple(name.lower() for name in CITIES)


def about(prompt: Prompt, prefix: str = "", suffix: str = "") -> Prompt:
    cloze = Cloze(relation="P36", subject="norway")
    return replace(prompt, cloze=cloze, prefix=prefix, suffix=suffix)


@pytest.mark.parametrize("template", [OPENS, INSIDE])
@pytest.mark.parametrize("kind", ["gpt2", "roberta"])
def test_its_own_templates_begin_with_a_capital(tiny: Load, kind: str, template: Template) -> None:
    base: Any = (CausalModel if kind == "gpt2" else MaskedModel)(tiny(kind))
    made: Any = ensemble("e", base, {"P36": ((template, 1.0),)})
    whole = {
        OPENS: ("", " is the capital of norway."),
        INSIDE: ("Norway is in ", "."),
    }
    asked = score("", NAMES, capitals=True)
    ((_, found),) = one_by_one(made.score([about(asked)]))
    ((_, plain),) = one_by_one(base.score([about(asked, *whole[template])]))
    suffixes = plain.suffix_logps or ((),) * len(NAMES)
    rows = zip(plain.logps, suffixes, strict=True)
    expected = [sum(own) + sum(rest) for own, rest in rows]
    assert [sum(row) for row in found.logps] == pytest.approx(expected, abs=1e-4)
    if kind == "roberta":
        hole = fill("", watched=NAMES, vocabulary=(*NAMES, "the"), capitals=True)
        ((_, found),) = one_by_one(made.fill([about(hole)]))
        ((_, plain),) = one_by_one(base.fill([about(hole, *whole[template])]))
        assert (found.top, found.watched_ranks) == (plain.top, plain.watched_ranks)
