"""Belief without content-free subjects, through the command."""

from __future__ import annotations

from pathlib import Path

from tests.docs import program


def test_content_free_subjects_can_be_left_out_by_a_flag(tmp_path: Path) -> None:
    words = ["run", "belief", "-m", "control:majority", "--relations", "P30", "--limit", "2"]
    outcome = program.sonde(
        [*words, "--no-bias", "--draws", "10", "--all-tables", "-o", "run"], tmp_path
    )
    assert outcome.code == 0, outcome.printed
    assert "no content-free subject was asked about" in " ".join(outcome.printed.split())
