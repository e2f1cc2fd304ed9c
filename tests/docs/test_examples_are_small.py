"""What a help text tells to run is done in about a minute on two cores; counted, not timed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from sonde.cli.main import main
from sonde.cli.options import ComputeOptions
from sonde.core.abilities import Identity
from sonde.data.catalog import bundled
from sonde.runs.shards import OPTION
from sonde.runs.throughput import total_work

from .pages import PAGES
from .program import verbs

MOST, SHOWN = 25_000, 60_000
"""Options and texts of an example in a help text, and in a page.

SmolLM2 reads about 225 tokens a second on one core, and an option is about one.
"""


@dataclass(frozen=True)
class Able:
    """Can do what SmolLM2 can, and does nothing."""

    identity: Identity = field(default_factory=lambda: Identity(name="able", architecture="none"))

    def score(self, prompts: Any) -> Any: ...
    def generate(self, prompts: Any) -> Any: ...
    def sample(self, prompts: Any) -> Any: ...
    def trace(self, prompts: Any) -> Any: ...


def examples() -> Iterator[str]:
    """Every command that a help text names."""
    for verb in verbs().values():
        for part in " ".join((verb.help or "").split()).split("Example: ")[1:]:
            yield part.partition(" Then: ")[0]


def in_documents() -> Iterator[str]:
    """Every command in the documents that prompts SmolLM2 with a probe."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8").replace("\\\n", " ")
        for found in re.finditer(r"^ *\$? ?(sonde run [^\n`]*)", text, re.MULTILINE):
            if " -m smollm2" in found[1] and "[OPTIONS]" not in found[1]:
                yield " ".join(found[1].split())


RUN = sorted(
    text
    for text in {*examples(), *in_documents()}
    if re.match("sonde run .*-m smollm2", text)
    and re.search(r"-d (\S+)|$", text)[1] in (None, *bundled())  # type: ignore[index]
)
"""Those that ask about a dataset which comes with sonde."""


def test_there_are_examples() -> None:
    assert len(RUN) > 15


@pytest.mark.parametrize("text", RUN)
def test_an_example_is_about_a_minutes_work(
    text: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[Any] = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(ComputeOptions, "load", lambda *_, **__: Able())
    monkeypatch.setattr(
        "sonde.cli.plan.show_plan", lambda *given: asked.append((given[0], given[2]))
    )

    main([*shlex.split(text)[1:], "--plan"])
    can: Any = frozenset({"score", "generate", "sample", "trace"})
    work = sum(total_work(probe.suited(can), dataset) for probe, dataset in asked)
    most = MOST if text in {*examples()} else SHOWN
    assert 0 < work / OPTION <= most, f"{work // OPTION:,} options and texts"
