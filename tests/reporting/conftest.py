"""A browser for the tests that need one: Debian's chromium, from disk, offline."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from sonde.core.reports import Report
from sonde.reporting.render.html import page as html_page

from .sample import PROVENANCE
from .window import ARGUMENTS, Opener, Shown, listen

PATIENCE = 300_000
"""Milliseconds; only what never comes takes so long, however busy the machine."""


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """One chromium for all tests of this folder."""
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=ARGUMENTS
        )
        yield launched
        launched.close()


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Opener]:
    """Opens a report from disk; afterwards the page must have been silent and offline."""
    seen: list[Shown] = []

    def open_report(report: Report) -> Shown:
        path = tmp_path / "report.html"
        path.write_text(html_page(report, PROVENANCE), encoding="utf-8")
        context = browser.new_context(viewport={"width": 1200, "height": 900})
        context.set_default_timeout(PATIENCE)
        shown = Shown(page=context.new_page())
        listen(shown)
        shown.page.goto(path.as_uri())
        seen.append(shown)
        return shown

    yield open_report
    for shown in seen:
        shown.page.context.close()
        assert shown.complaints == []
        assert [r for r in shown.requests if not r.startswith(("file://", "data:", "blob:"))] == []
