"""`sonde plan` and `sonde run --plan`: the same words, for people and for programs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests import tiny
from tests.command import Sonde

WORDS = ("lama", "-m", "control:majority", "-d")


def settled(printed: str) -> list[str]:
    """What was printed, less the lines that hold a time and those they are wrapped onto."""
    text = re.sub(r"• Time was measured.*?(?=\n\S|\n  •)", "", printed, flags=re.DOTALL)
    return [line for line in text.splitlines() if not re.search(r"\d s\b|minute|hour", line)]


def test_run_with_plan_prints_what_plan_prints(sonde: Sonde, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    planned = sonde("plan", *WORDS, data, "-o", out)
    run = sonde("run", *WORDS, data, "-o", out, "--plan")
    assert planned.code == run.code == 0
    assert len(settled(planned.out)) > 10
    assert settled(planned.out) == settled(run.out)
    assert not out.exists()


def test_what_is_done_is_said(sonde: Sonde, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert sonde("run", *WORDS, data, "-o", out).code == 0
    assert "The run is complete: nothing is left" in sonde("plan", *WORDS, data, "-o", out).out
    other = sonde("plan", *WORDS, data, "-o", out, "--limit", 2)
    other.refused(5, "holds a different run", "selection.limit")


@pytest.mark.parametrize("kind", ["bert", "llama"])
def test_a_plan_for_programs(sonde: Sonde, data: Path, tmp_path: Path, kind: str) -> None:
    model = getattr(tiny, kind)(tmp_path / "model")
    done = sonde("plan", "lama", "-m", f"hf:{model}", "-d", data, "--json", "--measure", 0)
    body = json.loads(done.out)
    assert body["prompts"] == body["cost"]["prompts"] == 8
    assert body["wants"] == {"fill" if kind == "bert" else "score": 8}
    assert body["exact"] is True
    assert body["time"] is None
    assert body["cost"]["computed"] == sum(r["cost"]["computed"] for r in body["relations"])


def test_a_plan_names_tokens_time_and_memory(sonde: Sonde, data: Path, tmp_path: Path) -> None:
    model = tiny.llama(tmp_path / "model")
    printed = sonde("plan", "lama", "-m", f"hf:{model}", "-d", data, "--measure", 0.1).out
    for word in ("naively", "computed", "times fewer", "weights", "largest batch", "P37 label of"):
        assert word in printed
    assert re.search(r"8 prompts in (about )?.* s.*, with about \d+ KiB of memory", printed)
    assert max(map(len, printed.splitlines())) <= 100
