"""`sonde lab validate`: asked, reported, written, and refused where it cannot be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sonde.cli.lab import shipped_models
from sonde.core.errors import DataError
from sonde.lab.training.train import TrainSettings, train
from sonde.lab.worlds.folder import write_world
from sonde.lab.worlds.world import make_world
from tests.command import Sonde, in_this_process

from .worlds import small

FLAGS = ("--estimators", "lama,lama-unused,belief-average", "--limit", 4, "--device", "cpu")


@pytest.fixture
def sonde(capsys: pytest.CaptureFixture[str]) -> Sonde:
    return in_this_process(capsys)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small world whose text uses every template, and a masked model of it."""
    root = tmp_path_factory.mktemp("lab")
    world = make_world(small(used=6))
    write_world(world, root / "world")
    settings = TrainSettings(kind="masked", size="32x1", epochs=1, threads=1)
    train(world, settings, root / "masked", world_path=root / "world")
    return root


def test_a_model_is_validated_reported_with_what_is_left_out_and_not_asked_again(
    sonde: Sonde, place: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    done = sonde("lab", "validate", place / "masked", "-o", out, *FLAGS)
    assert done.code == 0, done.err
    for words in ("belief-average", "What each estimator says", f"report: {out / 'report.html'}"):
        assert words in done.out
    assert "lama-unused is left out for masked-" in " ".join(done.out.split())
    text = (out / "report.html").read_text()
    assert "share of prompts answered right" in text and "uses every template" in text
    (timings,) = out.glob("masked-*/belief/timings.jsonl")
    before = timings.read_text()
    page = tmp_path / "page.html"
    more = ("--json", "--html", page)
    again = sonde("lab", "validate", place / "masked", "-o", out, *FLAGS, *more)
    assert again.code == 0, again.err
    printed = json.loads(again.out)
    assert any(name.startswith("auroc.taught.masked") for name in printed["estimates"])
    (model,) = printed["provenance"]["models"]
    assert model["estimators"] == ["lama", "belief-average"] and model["world"] == "world"
    assert timings.read_text() == before
    assert "belief-average" in page.read_text()


def test_bad_requests_are_refused_in_a_sentence(sonde: Sonde, place: Path, tmp_path: Path) -> None:
    model, out = place / "masked", ("-o", tmp_path / "out")
    sonde("lab", "validate").refused(2, "--shipped")
    sonde("lab", "validate", place / "world", *out).refused(4, "no lab.json")
    unknown = sonde("lab", "validate", model, *out, "--estimators", "lamma")
    unknown.refused(2, "did you mean 'lama'")
    other = sonde("lab", "validate", model, *out, "--estimators", "ic-lke")
    other.refused(2, "for causal models")
    gone = sonde("lab", "validate", model, *out, "--world", tmp_path / "gone")
    gone.refused(3, "which is not there")
    assert not (tmp_path / "out").exists()


def test_models_that_were_not_shipped_are_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="not in this installation"):
        shipped_models(tmp_path)
