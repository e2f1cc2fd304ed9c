"""A tiny causal model, made once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import tiny


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that takes 512 tokens."""
    return tiny.gpt2(tmp_path_factory.mktemp("gpt2"), n_positions=512)
