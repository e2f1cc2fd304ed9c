"""Every number that sonde reports is what it was, and a resumed run has the bytes that it had.

`python -m tests.golden_values.refresh` freezes what is measured now, after a change that is meant.
"""

from __future__ import annotations

import pyarrow
import pytest

from .cases import CASES, document, workshop
from .documents import FOLDER, changes, load
from .workshop import Workshop

SHOWN = 30


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return workshop(tmp_path_factory.mktemp("golden"))


@pytest.mark.parametrize("name", CASES)
def test_what_was_frozen_is_still_found(name: str, shop: Workshop) -> None:
    golden = load(name)
    assert golden is not None, f"{name} was never frozen; run python -m tests.golden_values.refresh"
    if golden.get("bytes", {}).get("pyarrow") != pyarrow.__version__:
        golden.pop("bytes", None)  # another version of the library may well write other bytes
    found = changes(golden, document(name, shop), CASES[name].near(shop))
    lost = [str(change) for change in found if change.kind != "new"]
    assert not lost, "\n".join([f"{len(lost)} places differ:", *lost[:SHOWN]])


def test_every_golden_file_is_of_a_case() -> None:
    assert {path.stem for path in FOLDER.glob("*.json")} == set(CASES)
