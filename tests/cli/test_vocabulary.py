"""`sonde data vocabulary` and `sonde data convert --vocabulary`: models compared fairly."""

from __future__ import annotations

from pathlib import Path

from sonde.data.format import open_dataset
from tests import tiny
from tests.command import Sonde


def test_words_of_all_models_are_written_and_facts_kept_to_them(
    sonde: Sonde, data: Path, tmp_path: Path
) -> None:
    models = [f"hf:{made(tmp_path / made.__name__)}" for made in (tiny.bert, tiny.roberta)]
    words = tmp_path / "words.txt"
    told = ("data", "vocabulary", "-d", data, "-o", words)
    done = sonde(*told, "-m", models[0], "-m", models[1])
    assert done.code == 0, done.err
    kept = words.read_text().split()
    assert "Paris" in kept and f"words.txt: {len(kept):,} words" in " ".join(done.out.split())
    sonde(*told, "-m", models[0]).refused(2, "words.txt is there")
    out = tmp_path / "kept"
    assert sonde("data", "convert", data, "--vocabulary", words, "-o", out).code == 0
    found = open_dataset(out)
    assert found.vocabulary == tuple(kept)
    objects = {f.objects[0].name for r in found.relations for f in found.facts(r.id)}
    assert objects and objects <= set(kept)
    sonde("data", "convert", data, "--vocabulary", tmp_path / "no", "-o", tmp_path / "x").refused(
        3, "not a file"
    )


def test_a_model_that_does_not_open_leaves_nothing_behind(
    sonde: Sonde, data: Path, tmp_path: Path
) -> None:
    told = ("data", "vocabulary", "-d", data, "-o", tmp_path / "w", "-m", "nope:x")
    sonde(*told).refused(2, "nope")
    assert not (tmp_path / "w").exists()


def test_a_model_without_tokens_is_refused(sonde: Sonde, tmp_path: Path) -> None:
    words = ("data", "vocabulary", "-m", "control:majority", "-d", "atlas")
    sonde(*words, "-o", tmp_path / "words.txt").refused(4, "has no tokens")
    assert not (tmp_path / "words.txt").exists()
