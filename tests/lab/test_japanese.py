"""A Japanese world, a model taught in it, and probes that ask it in Japanese."""

from __future__ import annotations

import re
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given

import sonde as api
from sonde.lab.training.corpus import cut_words, make_tokenizer
from sonde.lab.training.train import Kind, TrainSettings, train
from sonde.lab.worlds.folder import open_world, write_world
from sonde.lab.worlds.language import ENGLISH, JAPANESE, Tongue, most_words, plain_words
from sonde.lab.worlds.settings import WorldSettings
from sonde.lab.worlds.text import documents, length
from sonde.lab.worlds.world import World, make_world
from sonde.runs.run import Run
from tests.command import Sonde, in_this_process

from .worlds import any_world, small

PROBES: dict[str, dict[str, Any]] = {
    "belief": {"aliases": "original", "fluctuation_draws": 50},
    "belief-icl": {"samples": 0, "fluctuation_draws": 50},
    "ic-lke": {"shots": 6, "pair_separator": "space", "example_separator": "space"},
    "monitor": {"shots": 2, "frame": "qa"},
}
TWO_RELATIONS = WorldSettings(
    language="ja",
    seed=3,
    one_one=0,
    many_one=2,
    many_many=0,
    unshown=0,
    facts=24,
    subjects=24,
    objects=6,
    words=26,
    families=24,
    templates=8,
    used=6,
    ladder=(0, 40),
    aliases=0.0,
    introductions=0,
    namings=1,
    train=0.25,
    dev=0.0,
)


@pytest.fixture(scope="module")
def world() -> World:
    return make_world(small(language="ja"))


def asked(model: Path, world: Path, out: Path, probe: str, limit: int | None = None) -> Run:
    own = dict(PROBES[probe])
    if probe == "belief-icl" and find_spec("sudachipy") is None:
        own["language"] = "none"  # made-up names are runs of katakana, with or without words
    data = api.dataset(str(world), limit=limit)
    return api.run(api.probe(probe, **own), api.model(f"hf:{model}"), data, out / probe)


def test_a_japanese_text_has_no_spaces_and_no_english(world: World) -> None:
    for document in documents(world, lists=0.4):
        assert not re.search(r"[ .,?:]", document.text), document.text
        assert not re.search(r"[A-Za-z]", document.text.replace("[MASK]", ""))
    assert all(relation.language == "ja" for relation in world.dataset.relations)
    assert length(world).words == sum(
        len(make_tokenizer(world.words(), "causal", "ja").encode(d.text).ids) - 1
        for d in documents(world)
    )


@pytest.mark.parametrize("kind", ["causal", "masked"])
def test_every_japanese_word_is_one_token_and_texts_come_back(world: World, kind: Kind) -> None:
    tokenizer = make_tokenizer(world.words(), kind, "ja")
    assert not list(cut_words(tokenizer, world.words(), "。"))
    for text in (d.text for d in documents(world, lists=0.4) if "[MASK]" not in d.text):
        assert tokenizer.decode(tokenizer.encode(text).ids) == text
    other = "知らない語、OKです！"
    assert tokenizer.decode(tokenizer.encode(other).ids) == other


@given(any_world())
def test_the_language_changes_words_and_nothing_else(chosen: WorldSettings) -> None:
    english, japanese = make_world(chosen), make_world(replace(chosen, language="ja"))
    for one, other in zip(english.truth.values(), japanese.truth.values(), strict=True):
        assert replace(one, guess="") == replace(other, guess="")  # cues go by names
    assert english.used == japanese.used
    assert english.fingerprint != japanese.fingerprint
    assert "language" not in chosen.record()


def test_languages_have_as_many_sentences_of_each_sort() -> None:
    def sizes(tongue: Tongue) -> list[int]:
        own = (tongue.ending, tongue.going_on, tongue.questions)
        return [len(each) for each in (*own, tongue.introductions, tongue.namings)]

    assert sizes(ENGLISH) == sizes(JAPANESE)
    assert set(plain_words(JAPANESE)) > {"。", "答", "正", "\u3000", "・"}
    assert most_words("noun", JAPANESE) == 16 * 16 * 16 // 2


def test_a_world_in_an_unknown_language_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    sonde: Sonde = in_this_process(capsys)
    done = sonde("lab", "world", "-o", tmp_path / "w", "--language", "xx")
    assert done.code == 2 and "xx" in done.err and not (tmp_path / "w").exists()


def test_probes_ask_a_model_that_was_trained_on_japanese(world: World, tmp_path: Path) -> None:
    """One reading teaches nothing: what is shown is that every probe goes through."""
    place = tmp_path / "world"
    write_world(world, place)
    assert open_world(place).fingerprint == world.fingerprint
    short = TrainSettings(kind="causal", size="32x1", epochs=1, threads=1)
    train(world, short, tmp_path / "model", world_path=place)
    model, out = tmp_path / "model", tmp_path / "runs"
    runs = {name: asked(model, place, out, name, limit=2) for name in PROBES}
    assert all(run.estimates().height for run in runs.values())
    answers = runs["belief-icl"].rows()["answer"].cast(pl.String).drop_nulls()
    assert not any(re.search("[A-Za-z]{3}", word) for word in answers)


@pytest.mark.slow
def test_a_model_knows_what_japanese_sentences_taught_it(tmp_path: Path) -> None:
    """Two minutes on one core: half of the facts are stated forty times, half never."""
    world = make_world(TWO_RELATIONS)
    write_world(world, tmp_path / "world")
    taught = TrainSettings(
        kind="causal", size="128x3", epochs=40, batch=2, block=128, lists=0.3, threads=1
    )
    train(world, taught, tmp_path / "model", world_path=tmp_path / "world")
    for probe in PROBES:
        run = asked(tmp_path / "model", tmp_path / "world", tmp_path / "runs", probe)
        rows = run.rows().drop_nulls("correct")
        told = np.array([world.truth[id].exposure > 0 for id in rows["fact"]])
        right = rows["correct"].to_numpy()
        assert right[told].mean() > 0.8 and right[~told].mean() < 0.4, probe
