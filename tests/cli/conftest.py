"""Fixtures of the command line's tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command import Sonde, in_this_process
from tests.written import two_relations


@pytest.fixture
def sonde(capsys: pytest.CaptureFixture[str]) -> Sonde:
    """The command, run in this process."""
    return in_this_process(capsys)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A sound dataset of two relations with four facts each."""
    return two_relations(tmp_path / "data")
