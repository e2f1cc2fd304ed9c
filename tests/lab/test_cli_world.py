"""`sonde lab world`, and what other verbs make of its folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from sonde.lab.worlds.folder import open_world
from sonde.lab.worlds.settings import WorldSettings
from tests.command import Sonde, in_this_process, override

SMALL = (
    *("--facts", 15, "--subjects", 24, "--objects", 6, "--words", 16, "--families", 4),
    *("--templates", 6, "--used", 3),
)


@pytest.fixture
def sonde(capsys: pytest.CaptureFixture[str]) -> Sonde:
    return in_this_process(capsys)


def test_flags_are_the_settings_and_the_world_is_summed_up(sonde: Sonde, tmp_path: Path) -> None:
    flags = ("--seed", 5, "--skew", 1, "--cues", 0.4, "--ladder", "0,1,6", "--unshown", 2)
    done = sonde("lab", "world", "-o", tmp_path / "w", *SMALL, *flags)
    assert done.code == 0, done.err
    world = open_world(tmp_path / "w")
    assert world.settings == WorldSettings(
        seed=5,
        skew=1.0,
        cues=0.4,
        ladder=(0, 1, 6),
        unshown=2,
        facts=15,
        subjects=24,
        objects=6,
        words=16,
        families=4,
        templates=6,
        used=3,
    )
    lines = [line.split() for line in done.out.splitlines()]
    assert ["1-1", "2", "30", "20", "70", "–", "–"] in lines
    assert any(line[:6] == ["N-1,", "unshown", "2", "30", "0", "0"] for line in lines)
    sentences = len((tmp_path / "w" / "text.txt").read_text().splitlines())
    assert f"text: {sentences} sentences" in done.out
    assert world.fingerprint in done.out


def test_a_world_passes_the_check_of_datasets_and_can_be_run_on(
    sonde: Sonde, tmp_path: Path
) -> None:
    assert sonde("lab", "world", "-o", tmp_path / "w", *SMALL).code == 0
    checked = sonde("data", "check", tmp_path / "w")
    said = " ".join(checked.out.split())  # a long folder's name breaks the line somewhere
    assert checked.code == 0 and "is sound. Relations: 8, facts: 120" in said
    words = ("-m", "control:majority", "-d", tmp_path / "w", "-o", tmp_path / "run", "--no-html")
    done = sonde("run", "lama", *words)
    assert done.code == 0, done.err
    assert "LAMA · control:majority · world-0" in done.out


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (("--subjects", 49, "--facts", 15), "can name: 48; raise words, or lower subjects"),
        (("--used", 7), "7 used templates are more than the 6"),
        (("--ladder", "1,2"), "has no 0"),
        (("--ladder", "1,two"), "setting ladder must be int, not 'two'"),
        (("--train", 0.8, "--dev", 0.3), "more than 1 together"),
        (("--facts", -1), "facts must be at least 1, not -1"),
    ],
)
def test_bad_settings_are_refused_and_nothing_is_written(
    sonde: Sonde, tmp_path: Path, flags: tuple[object, ...], told: str
) -> None:
    sonde("lab", "world", "-o", tmp_path / "w", *override(SMALL, flags)).refused(2, told)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_holds_something_is_left_alone(sonde: Sonde, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    sonde("lab", "world", "-o", tmp_path, *SMALL).refused(2, "holds something else")
    sonde("lab", "world", "-o", tmp_path / "mine.txt", *SMALL).refused(2, "is a file")
