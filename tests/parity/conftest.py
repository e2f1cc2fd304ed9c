"""Tiny models on the CPU and on a GPU, one thread for them, and kernels that every machine has."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from tests.tiny import Load, loader


@pytest.fixture(autouse=True, scope="session")
def _one_thread(one_thread: None) -> None:
    """All models here are tiny."""


@pytest.fixture
def plain_kernels() -> Iterator[None]:
    """Without oneDNN, whose kernels for half precision stop some virtual machines."""
    with torch.backends.mkldnn.flags(enabled=False):
        yield


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory, one_thread: None, device: str) -> Load:
    """Load a tiny model by the name of its architecture, onto each device there is."""
    return loader(tmp_path_factory.mktemp, device)
