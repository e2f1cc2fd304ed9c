"""The generated reference names every command, setting and number; pages name flags that exist."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import sonde
from sonde.core.components import settings_of
from sonde.core.facts import Dataset
from sonde.probes import PROBES
from sonde.testing import oracle_for

from .pages import DOCS, PAGES, ROOT
from .program import verbs

OTHERS = """--block-size --check --enforce-eager --flash-attn --max-model-len --no-kv-unified
--count --parallel --port --served-model-name --trust-remote-code --ubatch-size""".split()
"""Flags that pages mention of vLLM, llama.cpp, our own scripts and the example of a plug-in."""

RESULTS = sorted((DOCS / "results").glob("*.md"))


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> str:
    page = tmp_path_factory.mktemp("reference") / "reference.md"
    subprocess.run([sys.executable, "docs/reference.py", page], cwd=ROOT, check=True)
    return page.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def small() -> Dataset:
    return sonde.dataset("atlas", relations=("P30", "P36", "P103"), limit=3)


def test_the_reference_has_the_help_of_every_command(reference: str) -> None:
    for words in verbs():
        assert f"\n### sonde {words}".rstrip() + "\n" in reference, words


@pytest.mark.parametrize("name", sorted(PROBES))
def test_the_reference_has_every_setting_and_number_of_a_probe(
    name: str, reference: str, small: Dataset, tmp_path: Path
) -> None:
    text = reference.partition(f"\n### sonde run {name}\n")[2].partition("\n### ")[0]
    for setting in settings_of(PROBES[name]):
        assert f"--{setting.name.replace('_', '-')}" in text, setting.name
    run = sonde.run(sonde.probe(name), oracle_for(small), small, out=tmp_path / "run")
    documented = set(re.findall(r"^\| `([^`]+)` \|", reference, re.M))
    assert set(run.estimates()["metric"]) <= documented


@pytest.mark.parametrize("page", [*PAGES, *RESULTS], ids=lambda page: page.stem)
def test_every_flag_that_a_page_mentions_exists(page: Path) -> None:
    params = [p for verb in verbs().values() for p in verb.params]
    flags = {flag for p in params for flag in (*p.opts, *p.secondary_opts)} | {"--help"}
    for flag in re.findall(r"`(--[a-z][a-z-]*)", page.read_text(encoding="utf-8")):
        assert flag in flags.union(OTHERS), f"{page.name}: no command has {flag}"


def test_every_probe_is_run_on_some_page() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    for name in PROBES:
        assert f"sonde run {name}" in text, name


def test_the_documentation_stays_small_enough_to_read() -> None:
    pages = [*DOCS.glob("*.md"), *RESULTS]
    words = {page: len(page.read_text(encoding="utf-8").split()) for page in pages}
    assert len(pages) <= 38
    assert sum(words.values()) <= 67_000
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= 600
