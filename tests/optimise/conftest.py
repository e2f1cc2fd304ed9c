"""Each tiny model is made once; one thread, because models this small only wait on several."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tests import tiny

from .world import metaspace_llama

MODELS: dict[str, Callable[[Path], Path]] = {
    "bert": tiny.bert,
    "roberta": tiny.roberta,
    "gpt2": tiny.gpt2,
    "llama": tiny.llama,
    "metaspace": metaspace_llama,
    "legacy": lambda folder: metaspace_llama(folder, legacy=True),
    # the model has more rows than its tokenizer tokens, as many have
    "padded": lambda folder: tiny.bert(folder, vocab_size=128),
    "convbert": tiny.convbert,
}


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a tiny model, by name."""
    return cache(lambda name: MODELS[name](tmp_path_factory.mktemp(name) / "model"))


@pytest.fixture(autouse=True, scope="session")
def _one_thread(one_thread: None) -> None:
    """All models here are tiny."""
