"""`sonde sweep`: a grid of settings on the command line."""

from __future__ import annotations

from pathlib import Path

from .world import Sonde


def test_the_command_sweeps_and_shows_every_cell(sonde: Sonde, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ("sweep", "lama", "-m", "control:majority", "--relations", "P36", "--limit", "4")
    done = sonde(*words, "--over", "capitals=true,false", "-o", out, "--no-html")
    assert done.code == 0
    assert "capitals=True" in done.out and "capitals=False" in done.out
    sonde(*words, "--over", "capitals", "-o", out).refused(2, "--over takes KEY=V1,V2")
