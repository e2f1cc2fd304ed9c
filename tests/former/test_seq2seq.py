"""Probes with encoder-decoder models, from asking to the report, and going on after a stop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import sonde
from sonde.core.abilities import Model
from sonde.core.errors import AbilityError, PromptTooLong
from sonde.core.facts import Dataset
from sonde.runs.run import Run
from tests.tiny import bart, t5

PROBES: dict[str, dict[str, Any]] = {
    "lama": {},
    "ic-lke": {"n": 3},
    "monitor": {"frame": "qa", "shots": 2, "most": 4, "anchor": "any"},
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    home = tmp_path_factory.mktemp("models")
    return {"t5": t5(home / "t5"), "bart": bart(home / "bart")}


@pytest.fixture(scope="module")
def facts() -> Dataset:
    return sonde.dataset("atlas", relations=("P36", "P30"), limit=4)


def opened(folders: dict[str, Path], kind: str = "t5") -> Model:
    return sonde.model(f"hf:{folders[kind]}", device="cpu")


class Dying:
    """A model that is gone after some answers."""

    def __init__(self, model: Any, answers: int) -> None:
        self.model = model
        self.left = answers

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)

    def score(self, prompts: Any) -> Any:
        return self._some(self.model.score(prompts))

    def generate(self, prompts: Any) -> Any:
        return self._some(self.model.generate(prompts))

    def _some(self, answers: Any) -> Any:
        for each in answers:
            self.left -= 1
            if self.left < 0:
                raise KeyboardInterrupt
            yield each


def rows(run: Run) -> list[Any]:
    return list(run.answered())


@pytest.mark.parametrize("name", PROBES)
def test_a_run_that_was_stopped_goes_on_to_the_same_answers(
    folders: dict[str, Path], facts: Dataset, name: str, tmp_path: Path
) -> None:
    probe = sonde.probe(name, **PROBES[name])
    whole = sonde.run(probe, opened(folders), facts, tmp_path / "whole", shard_weight=40)
    count = len(rows(whole))
    dying: Any = Dying(opened(folders), count // 2)
    with pytest.raises(KeyboardInterrupt):
        sonde.run(probe, dying, facts, tmp_path / "parts", shard_weight=40)
    begun = len(list((tmp_path / "parts" / "shards").glob("*.parquet")))
    assert 0 < begun < len(list((tmp_path / "whole" / "shards").glob("*.parquet")))
    parts = sonde.run(probe, opened(folders), facts, tmp_path / "parts", shard_weight=40)
    assert rows(parts) == rows(whole)
    report = parts.report()
    assert report.headlines
    assert report.estimates == whole.report().estimates


@pytest.mark.parametrize("name", PROBES)
def test_a_plan_counts_what_a_probe_asks(
    folders: dict[str, Path], facts: Dataset, name: str, tmp_path: Path
) -> None:
    probe = sonde.probe(name, **PROBES[name])
    plan = sonde.plan(probe, opened(folders), facts, tmp_path / "run", seconds=0.2)
    assert plan.cost is not None and plan.time is not None
    assert 0 < plan.cost.computed < plan.cost.naive
    assert (plan.cost.grown > 0) == (name == "monitor")


def test_examples_that_do_not_fit_are_refused_with_how_many_would(
    folders: dict[str, Path], facts: Dataset, tmp_path: Path
) -> None:
    probe = sonde.probe("ic-lke", n=30)
    with pytest.raises(PromptTooLong, match=r"model takes 64.*The largest n that fits"):
        sonde.run(probe, opened(folders, "bart"), facts, tmp_path / "run")


def test_a_probe_that_reads_texts_refuses_them(folders: dict[str, Path], facts: Dataset) -> None:
    with pytest.raises(AbilityError):
        sonde.plan(sonde.probe("eic-lke"), opened(folders), facts)
