"""`sonde demo`: its second half, on the model that comes with sonde."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sonde.cli.lab import SHIPPED
from sonde.cli.run import show_known
from sonde.lab.worlds.folder import open_world


def test_the_shipped_model_is_shown_with_its_truth_and_asked_once(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    show_known(tmp_path)
    shown = capsys.readouterr().out
    rows = re.findall(r"^(\d+|0, .*?|all) +(\d+) +(\d+) +(\d+) *$", shown, re.MULTILINE)
    counts = {told: (int(asked), int(stored), int(found)) for told, asked, stored, found in rows}
    taught = [one for one in open_world(SHIPPED / "world").truth.values() if one.split == "test"]
    assert counts["all"][0] == len(taught)
    assert counts["50"][0] == sum(one.exposure == 50 for one in taught)
    parts = [count for told, count in counts.items() if told != "all"]
    assert counts["all"] == tuple(map(sum, zip(*parts, strict=True)))
    assert all(counts[told][1] == 0 for told in counts if told.startswith("0"))
    assert counts["50"][1] > 0.9 * counts["50"][0]  # it was trained
    [timings] = tmp_path.glob("masked-*/lama/timings.jsonl")
    before = timings.read_text()
    show_known(tmp_path)
    assert capsys.readouterr().out == shown and timings.read_text() == before
