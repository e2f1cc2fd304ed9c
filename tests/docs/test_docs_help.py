"""Help texts, verbs, probes and settings: each stands in its page as the program has it."""

from __future__ import annotations

from pathlib import Path

import pytest

from sonde.core.components import settings_of
from sonde.probes import PROBES

from .pages import CROSSED, DOCS, METRICS, PAGES, USES, Block, blocks, rows
from .program import crossed_table, help_text, metrics_table, uses_table, verbs

STUDIES = DOCS / "lke-studies.md"
"""One page for several probes."""

HELP = [block for page in PAGES for block in blocks(page) if block.kind == "help"]


@pytest.mark.parametrize("block", HELP, ids=lambda block: f"sonde {block.rest}".strip())
def test_a_help_text_is_what_the_program_prints(block: Block) -> None:
    hint = f"{block.where}: run python -m tests.docs.refresh"
    assert block.text == help_text(block.rest), hint


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.name))
def test_tables_of_metrics_are_those_of_the_catalogue(page: Path) -> None:
    for found in METRICS.finditer(page.read_text(encoding="utf-8")):
        hint = f"{page.name}: run python -m tests.docs.refresh {page.name}"
        assert found[0] == metrics_table(found), hint


def test_the_table_of_fields_is_what_probes_do_without_each() -> None:
    (found,) = USES.finditer((DOCS / "dataset-format.md").read_text(encoding="utf-8"))
    hint = "dataset-format.md: run python -m tests.docs.refresh dataset-format.md"
    assert found[0] == uses_table(found), hint


def test_the_files_that_a_run_passes_through_are_listed() -> None:
    (found,) = CROSSED.finditer((DOCS / "architecture.md").read_text(encoding="utf-8"))
    hint = "architecture.md: run python -m tests.docs.refresh architecture.md"
    assert found[0] == crossed_table(found), hint


def test_every_command_has_its_help_text_in_the_documentation() -> None:
    assert sorted(block.rest for block in HELP) == sorted(verbs())


def test_every_verb_has_a_page() -> None:
    for words in verbs():
        if words and " " not in words:
            shown = {block.rest.split()[0] for block in HELP if block.page.stem == words}
            assert shown == {words}, f"docs/{words}.md does not show sonde {words} --help"


@pytest.mark.parametrize("name", sorted(PROBES))
def test_a_probe_has_a_page_with_every_setting_and_its_default(name: str) -> None:
    own = [p for p in (DOCS / f"probe-{name}.md", DOCS / f"{name}.md") if p.exists()]
    page, heading = (own[0], "Settings") if own else (STUDIES, f"Settings of {name}")
    documented = [row[:2] for row in rows(page, heading)]
    there = [[f"`{s.name}`", f"`{s.default}`"] for s in settings_of(PROBES[name])]
    assert documented == there
