"""Every component that comes with sonde passes the public checks."""

from __future__ import annotations

import pytest

import sonde
from sonde.core.facts import Dataset
from sonde.core.prompts import Fill, Generate, Key, Prompt, Sample, Score, Trace, Want
from sonde.data.catalog import bundled
from sonde.models.controls import majority
from sonde.models.scripted import Scripted
from sonde.probes import PROBES
from sonde.testing import check_dataset, check_model, check_probe, oracle_for


@pytest.fixture(scope="module")
def small() -> Dataset:
    return sonde.dataset("atlas", relations=("P30", "P36", "P103"), limit=6)


@pytest.mark.parametrize("name", PROBES)
def test_a_probe_passes_the_checks(name: str, small: Dataset) -> None:
    check_probe(sonde.probe(name), small)


@pytest.mark.parametrize(
    "settings", [{"uhn": "names"}, {"normalize": "tokens"}, {"template_no": 3}]
)
def test_lama_passes_the_checks_with_other_settings(
    settings: dict[str, object], small: Dataset
) -> None:
    check_probe(sonde.probe("lama", **settings), small)


@pytest.mark.parametrize("name", bundled())
def test_a_bundled_dataset_passes_the_checks(name: str) -> None:
    check_dataset(sonde.dataset(name))


@pytest.mark.parametrize("want", ["score", "fill", "generate", "sample", "trace"])
def test_table_models_pass_the_checks(want: str, small: Dataset) -> None:
    prompts = [_prompt(fact.id, fact.subject.name, want) for fact in small.asked("P36")]
    for model in (majority(small), oracle_for(small), Scripted(answers={})):
        check_model(model, prompts)


def _prompt(fact: str, subject: str, want: str) -> Prompt:
    names = ("Paris", "Vienna", "Tokyo", "Oslo")
    wants: dict[str, Want] = {
        "score": Score(options=names),
        "fill": Fill(watched=names, top=3),
        "generate": Generate(most=4),
        "sample": Sample(count=20),
        "trace": Trace(spans=((0, 3), (4, 11))),
    }
    return Prompt(
        key=Key(fact=fact, relation="P36", template="t", subject=subject),
        prefix=f"The capital of {subject} is ",
        want=wants[want],
    )
