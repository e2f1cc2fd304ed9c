"""A tiny model, and what answers from it as a server would: shared by the tests of a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import tiny
from tests.servers.answering import Answering


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.gpt2(tmp_path_factory.mktemp("served"))


@pytest.fixture(scope="module")
def answering(folder: Path) -> Answering:
    return Answering(folder, 64)
