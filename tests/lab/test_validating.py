"""Validation: every estimator asked once, into a folder that goes on by itself."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from polars import col

from sonde.cli.lab import SHIPPED
from sonde.core.errors import DataError, ModelError, RunMismatch, StoreError, UsageError
from sonde.lab.estimators.asking import EFFORTS
from sonde.lab.estimators.catalogue import estimators
from sonde.lab.evaluation.validating import Order, Validated, validate
from sonde.lab.training.train import Kind, TrainSettings, train
from sonde.lab.worlds.folder import open_world, write_world
from sonde.lab.worlds.world import make_world

from .worlds import small

CHEAP = ("lama", "belief-average", "belief-oracle")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small world and a model of each kind that has hardly learnt any of it."""
    root = tmp_path_factory.mktemp("lab")
    world = make_world(small(one_one=0, many_many=0, facts=20))
    write_world(world, root / "world")
    for kind in ("causal", "masked"):
        settings = TrainSettings(
            kind=kind, size="32x1", epochs=1, batch=2, block=32, checkpoints=1, threads=1
        )
        train(world, settings, root / kind, world_path=root / "world")
    return root


def asked(place: Path, out: Path, *names: str, kind: Kind = "causal", **more: object) -> Validated:
    order = Order(names=names, device="cpu", **more)  # type: ignore[arg-type]
    return validate([place / kind], out, order)


def only(folder: Path) -> Path:
    """The one model's folder."""
    (found,) = (path for path in folder.iterdir() if path.is_dir())
    return found


def sessions(folder: Path) -> int:
    return len((folder / "timings.jsonl").read_text().splitlines())


@pytest.mark.parametrize("kind", ["causal", "masked"])
def test_a_trial_holds_both_truths_and_what_each_estimator_says(
    place: Path, kind: Kind, tmp_path: Path
) -> None:
    world = open_world(place / "world")
    found = asked(place, tmp_path, *CHEAP, "naive-bayes", kind=kind)
    (trial,) = found.trials
    assert (trial.kind, trial.world, trial.final) == (kind, "world", True)
    test = {id for id, taught in world.truth.items() if taught.split == "test"}
    assert set(trial.facts["fact"]) == test
    assert not trial.facts.filter(col("exposure") == 0)["stored"].any()
    assert [v.estimator for v in trial.verdicts] == [*CHEAP, "naive-bayes"]
    for verdicts in trial.verdicts:
        assert set(verdicts.frame["fact"]) == test
        assert verdicts.prompts >= len(test) and verdicts.seconds > 0
        for column in ("score", "counts", "chance"):
            assert verdicts.frame[column].is_between(0, 1).all()
    assert [v.control for v in trial.verdicts] == [False, False, False, True]
    assert not found.left


def test_what_is_finished_is_not_asked_again_and_keeps_its_seconds(
    place: Path, tmp_path: Path
) -> None:
    first = asked(place, tmp_path, *CHEAP).trials[0].verdicts
    model = only(tmp_path)
    assert sessions(model / "belief") == 1, "three estimators read one run"
    again = asked(place, tmp_path, *CHEAP).trials[0].verdicts
    for one, other in zip(first, again, strict=True):
        assert (one.seconds, one.prompts) == (other.seconds, other.prompts)
        assert one.frame.equals(other.frame)
    assert sessions(model / "belief") == 1


def test_the_seconds_of_what_was_broken_off_are_all_counted(place: Path, tmp_path: Path) -> None:
    asked(place, tmp_path, "lama")
    model = only(tmp_path)
    (model / "lama" / "run" / "complete.json").unlink()  # as if killed before it was done
    asked(place, tmp_path, "lama")
    lines = (model / "lama" / "timings.jsonl").read_text().splitlines()
    assert len(lines) == 2
    total = sum(json.loads(line)["seconds"] for line in lines)
    (verdicts,) = asked(place, tmp_path, "lama").trials[0].verdicts
    assert verdicts.seconds == pytest.approx(total)


def test_an_estimator_that_cannot_be_asked_is_left_out_for_a_reason_that_is_kept(
    place: Path, tmp_path: Path
) -> None:
    world = make_world(small(one_one=0, many_many=0, facts=20, used=6))
    write_world(world, tmp_path / "every")
    settings = TrainSettings(kind="masked", size="32x1", epochs=1, threads=1)
    train(world, settings, tmp_path / "masked", world_path=tmp_path / "every")
    found = asked(tmp_path, tmp_path / "out", "lama-unused", "lama", kind="masked")
    assert [v.estimator for v in found.trials[0].verdicts] == ["lama"]
    (left,) = found.left
    assert left.estimator == "lama-unused" and "every template" in left.reason
    kept = json.loads((only(tmp_path / "out") / "verdicts" / "lama-unused.json").read_text())
    assert kept["left_out"] == left.reason
    again = asked(tmp_path, tmp_path / "out", "lama-unused", "lama", kind="masked")
    assert again.left == found.left


def test_a_timeline_holds_every_checkpoint_and_the_end(place: Path, tmp_path: Path) -> None:
    found = asked(place, tmp_path, "lama", timeline=True)
    steps = [trial.step for trial in found.timeline]
    assert steps == sorted(set(steps)) and len(steps) == 2
    assert [trial.final for trial in found.timeline] == [False, True]
    assert {trial.model for trial in found.timeline} == {found.trials[0].model}
    for trial in found.timeline:
        assert [v.estimator for v in trial.verdicts] == ["lama", "belief-oracle", "ic-lke"]


def test_models_of_one_name_do_not_meet(place: Path, tmp_path: Path) -> None:
    other = shutil.copytree(place / "causal", tmp_path / "other" / "masked")
    order = Order(names=("lama",), device="cpu", world=place / "world")
    found = validate([place / "masked", other], tmp_path / "out", order)
    assert len({trial.model for trial in found.trials}) == 2
    assert len(list((tmp_path / "out").iterdir())) == 2


def test_limit_and_effort_are_those_that_the_folder_was_begun_with(
    place: Path, tmp_path: Path
) -> None:
    (verdicts,) = asked(place, tmp_path, "lama", limit=2).trials[0].verdicts
    assert len(verdicts.frame) == 2 * 2
    with pytest.raises(RunMismatch, match=r"limit 2 and this is None; name another folder"):
        asked(place, tmp_path, "lama")
    with pytest.raises(RunMismatch, match="effort quick and this is full"):
        asked(place, tmp_path, "lama", limit=2, effort="full")


def test_a_folder_without_a_record_is_no_model_of_a_world(place: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"no lab\.json"):
        validate([place / "world"], tmp_path)
    with pytest.raises(UsageError, match="sonde lab train"):
        validate([], tmp_path)


def test_a_world_that_is_not_there_or_another_one_is_refused(place: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="say where it is with --world"):
        asked(place, tmp_path / "out", "lama", world=tmp_path / "gone")
    write_world(make_world(small(seed=9)), tmp_path / "other")
    with pytest.raises(DataError, match="was trained on world"):
        asked(place, tmp_path / "out", "lama", world=tmp_path / "other")
    assert not (tmp_path / "out").exists()


def test_a_tokenizer_of_another_world_is_refused(place: Path, tmp_path: Path) -> None:
    model = shutil.copytree(place / "causal", tmp_path / "causal")
    shutil.copy(SHIPPED / "causal" / "tokenizer.json", model)
    with pytest.raises(ModelError, match="does not fit the world"):
        asked(tmp_path, tmp_path / "out", "lama", world=place / "world")


def test_an_estimator_of_another_kind_is_refused_by_name_and_passed_over_among_several(
    place: Path, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="'ic-lke' is for causal models"):
        asked(place, tmp_path / "one", "ic-lke", kind="masked")
    order = Order(names=("lama", "ic-lke"), limit=2, device="cpu")
    found = validate([place / "causal", place / "masked"], tmp_path / "both", order)
    assert [len(trial.verdicts) for trial in found.trials] == [2, 1] and not found.left


@pytest.mark.parametrize(
    ("order", "words"),
    [
        ({"limit": 0}, "at least 1"),
        ({"seed": -1}, "not be negative"),
        ({"effort": "some"}, "known: quick, full"),
        ({"names": ("lma",)}, "did you mean 'lama'"),
    ],
)
def test_what_makes_no_sense_is_refused(order: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        Order(**order)  # type: ignore[arg-type]


def test_what_an_estimator_says_is_kept_as_columns(place: Path, tmp_path: Path) -> None:
    (verdicts,) = asked(place, tmp_path, "lama", limit=2).trials[0].verdicts
    kept = json.loads((only(tmp_path) / "verdicts" / "lama.json").read_text())
    assert (kept["estimator"], kept["learns"], kept["prompts"]) == ("lama", False, 4)
    assert kept["facts"] == verdicts.frame["fact"].to_list()
    for column in ("score", "decision", "counts", "chance"):
        assert kept[column] == verdicts.frame[column].to_list()


def test_a_damaged_record_is_named(place: Path, tmp_path: Path) -> None:
    asked(place, tmp_path, "lama", limit=2)
    for text in ('{"format": 1, "fac', "[]"):
        (only(tmp_path) / "stored.json").write_text(text)
        with pytest.raises(StoreError, match="delete it, and it is made again"):
            asked(place, tmp_path, "lama", limit=2)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["causal", "masked"])
def test_every_estimator_that_fits_can_be_asked(place: Path, kind: Kind, tmp_path: Path) -> None:
    found = asked(place, tmp_path, kind=kind)
    fitting = [e.name for e in estimators().values() if kind in e.kinds]
    assert not found.left
    assert [v.estimator for v in found.trials[0].verdicts] == fitting


def test_templates_that_were_optimised_are_asked_with(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = replace(
        EFFORTS["quick"],
        methods={
            "optiprompt": {"epochs": 1},
            "lpaqa": {"choose": "weighted", "k": 2, "epochs": 1},
        },
        learning=6,
    )
    monkeypatch.setattr("sonde.lab.evaluation.validating.EFFORTS", {"quick": few})
    found = asked(place, tmp_path, "optiprompt", "lpaqa", "optiprompt-random", limit=2)
    assert [v.estimator for v in found.trials[0].verdicts] == [
        "optiprompt",
        "lpaqa",
        "optiprompt-random",
    ]
    assert not found.left
    model = only(tmp_path)
    assert (model / "optiprompt" / "made" / "vectors.safetensors").exists()
