"""One thread for tiny models, and kernels that every machine has."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(autouse=True, scope="session")
def _one_thread(one_thread: None) -> None:
    """All models here are tiny."""


@pytest.fixture
def plain_kernels() -> Iterator[None]:
    """Without oneDNN, whose kernels for half precision stop some virtual machines."""
    with torch.backends.mkldnn.flags(enabled=False):
        yield
