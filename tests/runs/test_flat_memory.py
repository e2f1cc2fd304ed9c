"""Two million prompts through the whole line hold little memory, and the last go as the first."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MEASURE = (
    "import json, sys; from dataclasses import asdict; from benchmarks.flat_memory import measure; "
    "print(json.dumps(asdict(measure(int(sys.argv[1]), on=sys.argv[2]))))"
)
GIB = 2**30


def measured(prompts: int, on: str = "") -> dict[str, float]:
    command = [sys.executable, "-c", MEASURE, str(prompts), on]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True, text=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.slow
def test_two_million_prompts_need_little_memory_and_none_goes_slower_than_the_first() -> None:
    found = measured(2_000_000)
    assert found["prompts"] == 2_000_000
    assert found["peak"] < 1.5 * GIB
    assert found["last"] > 0.7 * found["first"]  # generous: other work on the machine moves both


@pytest.mark.slow
def test_asking_ten_times_the_prompts_holds_no_more_memory() -> None:
    few, many = measured(20_000), measured(200_000)
    assert many["after_asking"] < few["after_asking"] + 32 * 2**20


@pytest.mark.slow
def test_a_driver_of_workers_holds_no_more_after_two_million_prompts_than_after_a_tenth() -> None:
    holds_little("local:2")


def holds_little(on: str) -> None:
    found = measured(2_000_000, on)
    assert found["prompts"] == 2_000_000
    assert found["late"] < found["early"] + 32 * 2**20
    assert found["after_asking"] < 0.5 * GIB  # prompts and facts that are kept while they are few
