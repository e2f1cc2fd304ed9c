"""A small world, and one thread for tiny models."""

from __future__ import annotations

from pathlib import Path

import pytest

from sonde.core.facts import Dataset
from sonde.data.catalog import load as load_dataset
from tests.written import two_relations


@pytest.fixture
def data(tmp_path: Path) -> Dataset:
    """Capitals and languages of four countries."""
    return load_dataset(str(two_relations(tmp_path / "data")))


@pytest.fixture(autouse=True, scope="session")
def _one_thread(one_thread: None) -> None:
    """All models here are tiny."""
