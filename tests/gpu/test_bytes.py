"""On a GPU, too, a run that goes on ends with the bytes of one that was never stopped.

What goes on meets a model that has recorded nothing yet, where the other one replays what it
recorded: both must give the same bits.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import sonde
from sonde.runs.shards import SHARD_WEIGHT
from tests import tiny

pytestmark = pytest.mark.gpu

CASES: dict[str, tuple[str, int, str, dict[str, Any]]] = {
    "options": ("llama", 512, "ic-lke", {"inside": "space", "between": "space"}),
    "options of a masked model": ("bert", 512, "lama", {"answer": "score"}),
    "options of an encoder-decoder": ("t5", 512, "lama", {}),
    "texts and samples": ("llama", 32, "belief-icl", {"samples": 20}),
    "clozes": ("bert", SHARD_WEIGHT, "belief", {}),
}
"""The model, how much is in a shard, and what is asked."""


def shards(run: Path) -> list[Path]:
    return sorted(run.glob("shards/*.parquet"))


def cut(whole: Path, out: Path, kept: int) -> None:
    """The folder as it is when a run was killed after so many shards."""
    shutil.copytree(whole, out)
    (out / "complete.json").unlink()
    for shard in shards(out)[kept:]:
        shard.unlink()
    digests = (out / "shards.sha256").read_text().splitlines(keepends=True)
    (out / "shards.sha256").write_text("".join(digests[:kept]))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("case", CASES)
def test_a_run_that_goes_on_has_the_bytes_of_a_whole_one(
    case: str, dtype: str, tmp_path: Path
) -> None:
    kind, weight, probe, settings = CASES[case]
    longer = {} if kind == "t5" else {"max_position_embeddings": 4096}
    folder = getattr(tiny, kind)(tmp_path / "model", **longer)
    data = sonde.dataset("atlas", limit=None if probe == "belief" else 20)

    def run(out: Path) -> None:
        model = sonde.model(f"hf:{folder}", device="cuda", dtype=dtype)
        sonde.run(sonde.probe(probe, **settings), model, data, out, shard_weight=weight)

    run(tmp_path / "whole")
    count = len(shards(tmp_path / "whole"))
    assert count > 2
    for kept in {1, count // 2}:
        parts = tmp_path / f"after-{kept}"
        cut(tmp_path / "whole", parts, kept)
        run(parts)
        for one, other in zip(shards(tmp_path / "whole"), shards(parts), strict=True):
            assert one.read_bytes() == other.read_bytes(), f"{one.name}, going on after {kept}"
