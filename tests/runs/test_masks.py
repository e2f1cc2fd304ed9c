"""A masked model and objects of several tokens: options on a table, a warning elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

import sonde
from sonde.core.abilities import Model
from sonde.models.torch.masked.model import MaskedModel
from sonde.runs.run import run
from tests.tiny import Load

ROWS = {"France": "Paris", "Austria": "Vienna", "Norway": "Oslo", "America": "New York"}
TEMPLATE = "The capital of [X] is [Y]"


@pytest.fixture(scope="module")
def model(tiny: Load) -> Model:
    return MaskedModel(tiny("bert"))


def table(folder: Path, rows: dict[str, str]) -> sonde.Dataset:
    lines = ["subject,object", *(f"{subject},{name}" for subject, name in rows.items())]
    (folder / "capitals.csv").write_text("\n".join(lines) + "\n")
    return sonde.dataset(folder / "capitals.csv", template=TEMPLATE)


@pytest.mark.parametrize("probe", ["lama", "belief"])
def test_a_table_with_an_object_of_several_tokens_is_scored(
    model: Model, tmp_path: Path, caplog: pytest.LogCaptureFixture, probe: str
) -> None:
    caplog.set_level("INFO")
    done = run(sonde.probe(probe), model, table(tmp_path, ROWS), tmp_path / "run")
    assert done.manifest.probe["settings"]["answer"] == "score"
    assert len(done.facts()) == 4
    assert "answer mode: score, because 1 of 4 objects are more than one token" in caplog.text
    assert "cannot be answered" not in caplog.text
    assert "Closed 1 of 1 templates with a full stop" in caplog.text


def test_a_table_of_single_tokens_is_filled(
    model: Model, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    rows = {subject: name for subject, name in ROWS.items() if name != "New York"}
    done = run(sonde.probe("lama"), model, table(tmp_path, rows), tmp_path / "run")
    assert done.manifest.probe["settings"]["answer"] == "fill"
    assert "answer mode: fill, because every object is one token" in caplog.text


def test_wrong_options_of_several_tokens_count_too(model: Model, tmp_path: Path) -> None:
    lines = ["subject,object,wrong", "France,Paris,New York|Oslo", "Norway,Oslo,Paris|Vienna"]
    (tmp_path / "options.csv").write_text("\n".join(lines) + "\n")
    data = sonde.dataset(tmp_path / "options.csv", template=TEMPLATE)
    done = run(sonde.probe("lama"), model, data, tmp_path / "run")
    assert done.manifest.probe["settings"]["answer"] == "score"


@pytest.mark.parametrize("probe", ["lama", "belief"])
def test_facts_that_cannot_be_filled_in_are_announced_and_open_the_report(
    model: Model, tmp_path: Path, caplog: pytest.LogCaptureFixture, probe: str
) -> None:
    filling = sonde.probe(probe, answer="fill")
    done = run(filling, model, table(tmp_path, ROWS), tmp_path / "run")
    assert "1 of 4 facts cannot be answered, because no correct object is one token" in caplog.text
    counts = done.results().counts()
    assert counts["facts"] == 4 and counts["scored"] == 3
    assert counts["excluded.no correct object is one token of the model"] == 1
    assert "no correct object is one token" in done.report().to_markdown()


def test_a_dataset_that_is_no_table_is_filled(model: Model, tmp_path: Path) -> None:
    data = sonde.dataset("atlas", relations=("P36",), limit=2)
    done = run(sonde.probe("lama"), model, data, tmp_path / "run")
    assert done.manifest.probe["settings"]["answer"] == "fill"


def test_workers_make_the_same_choice(shared: Path, tmp_path: Path) -> None:
    data = table(tmp_path, ROWS | {"Zimbabwe": "Harare"})
    reference = f"hf:{shared / 'models' / 'encoder-11m'}"
    done = run(sonde.probe("lama"), reference, data, tmp_path / "run", on="local:1")
    assert done.manifest.probe["settings"]["answer"] == "score"
