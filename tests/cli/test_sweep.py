"""`sonde sweep`: a grid of settings on the command line."""

from __future__ import annotations

import re
from pathlib import Path

from sonde.cli.run import axes
from sonde.former import PROBES
from tests.command import Sonde


def test_the_command_sweeps_and_shows_every_cell(sonde: Sonde, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ("sweep", "lama", "-m", "control:majority", "--relations", "P36", "--limit", "4")
    done = sonde(*words, "--over", "capitals=true,false", "-o", out, "--no-html")
    assert done.code == 0
    assert "capitals=True" in done.out and "capitals=False" in done.out
    assert sonde("report", out).out.split("\n\n")[1:] == done.out.split("\n\n")[1:]
    sonde(*words, "--over", "capitals", "-o", out).refused(2, "--over takes KEY=V1,V2")


def test_the_example_of_the_help_names_a_probe_and_settings_that_there_are(sonde: Sonde) -> None:
    words = " ".join(sonde("sweep", "--help").out.split("Example:")[1].split("\n\n")[0].split())
    probe, over = re.findall(r"sonde sweep (\S+) .* --over (\S+)", words)[0]
    assert axes(PROBES.find(probe), [over])
