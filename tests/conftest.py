"""Fixtures for every test: where the real data is, and a world small enough to read."""

from __future__ import annotations

import os
from pathlib import Path

import hypothesis
import pytest

# a test that is slow on a busy machine is still right; what is quick is measured in benchmarks/
hypothesis.settings.register_profile(
    "sonde", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("sonde")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real data and models, or a skip that says what is missing."""
    folder = os.environ.get("SONDE_SHARED")
    if not folder or not Path(folder).is_dir():
        pytest.skip("SONDE_SHARED does not name a folder with the real data")
    return Path(folder)


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep tests out of the user's cache, unless they are told to use a prepared one."""
    if "SONDE_CACHE" not in os.environ:
        monkeypatch.setenv("SONDE_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
