"""Each tiny model is made and loaded once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

import pytest
import torch

from sonde.models.options import LoadOptions
from sonde.models.torch.loading.weights import Loaded, load_folder
from tests.tiny import CAUSAL, MASKED, SEQ2SEQ

Load = Callable[[str], Loaded]


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Load:
    """Load a tiny model by the name of its architecture."""

    @cache
    def load(kind: str) -> Loaded:
        folder = {**CAUSAL, **MASKED, **SEQ2SEQ}[kind](tmp_path_factory.mktemp(kind))
        # named by hand, so that no hash is written to a cache that outlives the test
        return load_folder(f"hf:{kind}", folder, LoadOptions(device="cpu"), weights=kind)

    return load


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> Iterator[None]:
    """Models this small only wait for each other on several threads."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def plain_kernels() -> Iterator[None]:
    """Without oneDNN, whose kernels for half precision stop some virtual machines."""
    with torch.backends.mkldnn.flags(enabled=False):
        yield
