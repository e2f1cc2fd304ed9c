"""`--on`: what a user sees of workers."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.command import Sonde, files, on_a_terminal

ASKED = ("lama", "-m", "control:majority", "--relations", "P36,P30", "--limit", 20)


def test_a_bar_says_how_many_workers_answer(tmp_path: Path) -> None:
    words = ("run", *ASKED, "--no-html", "--on", "local:2", "-o", tmp_path / "out")
    code, shown = on_a_terminal(*words, columns=160)
    assert code == 0, shown
    assert "2 workers" in shown


def test_a_sweep_keeps_its_workers_and_leaves_what_one_process_leaves(
    sonde: Sonde, tmp_path: Path
) -> None:
    words = ("sweep", *ASKED, "--over", "capitals=true,false", "--no-html")
    assert sonde(*words, "-o", tmp_path / "alone").code == 0
    assert sonde(*words, "-o", tmp_path / "together", "--on", "local:2").code == 0
    for cell in ("capitals=True", "capitals=False"):
        assert files(tmp_path / "together" / cell) == files(tmp_path / "alone" / cell)


def test_what_names_no_workers_is_refused_before_anything_is_opened(
    sonde: Sonde, tmp_path: Path
) -> None:
    words = ("run", *ASKED, "-d", "nowhere", "-o", tmp_path / "out")
    sonde(*words, "--on", "local:none").refused(2, "'local:none'", "local:N", "ray:N")
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(find_spec("ray") is not None, reason="ray is installed")
def test_ray_that_is_not_installed_is_named_with_the_command(sonde: Sonde, tmp_path: Path) -> None:
    done = sonde("run", *ASKED, "--on", "ray:2", "-o", tmp_path / "out")
    done.refused(4, "workers on ray:2 needs ray", "pip install 'sonde[ray]'")
    assert not (tmp_path / "out").exists()
