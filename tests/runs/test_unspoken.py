"""A language that was asked for and would be left out: the run is refused, and says which."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import sonde
from sonde.core.errors import DataError
from sonde.core.facts import Dataset, Source, Style, Template
from sonde.runs.plan import plan
from tests.worlds import dataset_of, entity, fact, relation

MANUAL = "use all templates, not only those written by hand (--template-source all), or leave"


def spoken(german: Source = "paraphrase", english: Style = "statement") -> Dataset:
    """Capitals in English, written by hand, and in German."""
    templates = {
        "en": Template(id="en", text="What is the capital of [X]? [Y].", style=english),
        "de": Template(id="de", text="Die Hauptstadt von [X] ist [Y].", source=german),
    }
    relations, facts = [], []
    for code, template in templates.items():
        made = relation(f"P36.{code}", template)
        relations.append(replace(made, language=code, same="P36"))
        facts += [
            fact(
                made.id, entity(f"{s} {code}", id=s), entity(f"{o} {code}", id=o), id=f"{s}.{code}"
            )
            for s, o in ("ax", "bx", "cy", "dy", "ez")
        ]
    return dataset_of(facts, *relations)


@pytest.mark.parametrize(
    ("probe", "settings"),
    [
        ("belief-icl", {"samples": 0, "context": "zero-shot"}),
        ("belief", {"template_source": "manual"}),
    ],
)
def test_a_language_without_hand_written_templates_is_named_and_what_to_set(
    probe: str, settings: dict[str, object], tmp_path: Path
) -> None:
    dataset, chosen = spoken(), sonde.probe(probe, **settings)
    model = sonde.model("control:majority", data=dataset)
    for asking in (sonde.run, plan):
        with pytest.raises(DataError) as told:
            asking(chosen, model, dataset, tmp_path / "run")
        assert "nothing to ask in de, though" in str(told.value)
        assert MANUAL in str(told.value) and str(told.value).endswith("--languages en")
    assert not (tmp_path / "run").exists()
    every = sonde.probe(probe, **(settings | {"template_source": "all"}))
    frame = sonde.run(every, model, dataset, tmp_path / "run").to_polars()
    assert {id.partition(".")[2] for id in frame["relation"]} == {"en", "de"}


def test_one_language_alone_may_be_asked(tmp_path: Path) -> None:
    dataset = spoken().in_languages(["en"])
    model = sonde.model("control:majority", data=dataset)
    belief = sonde.probe("belief", template_source="manual")
    assert sonde.run(belief, model, dataset, tmp_path / "run").to_polars().height


def test_a_language_without_the_templates_that_a_probe_needs_is_named_too(tmp_path: Path) -> None:
    dataset = spoken("manual", "question")
    model = sonde.model("control:majority", data=dataset)
    with pytest.raises(DataError, match=r"asked in en, de: leave out .* with --languages en$"):
        sonde.run(sonde.probe("qa", context="zero-shot"), model, dataset, tmp_path / "run")
    assert not (tmp_path / "run").exists()
