"""Each tiny model is made once; a test that breaks one loads its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
import torch

from sonde.core.facts import Dataset
from sonde.data.catalog import load as load_dataset
from sonde.models.options import LoadOptions
from sonde.models.torch.loading.weights import Loaded, load_folder
from tests.tiny import CAUSAL, MASKED, SEQ2SEQ
from tests.written import two_relations

Load = Callable[[str], Loaded]


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Load:
    """Load a tiny model by the name of its architecture."""

    @cache
    def load(kind: str) -> Loaded:
        folder = {**CAUSAL, **MASKED, **SEQ2SEQ}[kind](tmp_path_factory.mktemp(kind))
        return load_folder(f"hf:{kind}", folder, LoadOptions(device="cpu"), weights=kind)

    return load


@pytest.fixture
def data(tmp_path: Path) -> Dataset:
    """Capitals and languages of four countries."""
    return load_dataset(str(two_relations(tmp_path / "data")))


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
