"""Pieces for notebooks in a real browser: they are seen, keep to themselves and do not run over."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from sonde.reporting.render.notebook import LONG, SHORT, html

from .sample import belief, hostile, lama

pytestmark = pytest.mark.browser

AROUND = """<!doctype html><meta charset="utf-8"><body style="margin:0">
<table id="other"><tr><th>outside</th></tr></table><p id="before">text</p>{}</body>"""


@pytest.fixture
def shown(browser: Browser, tmp_path: Path) -> Page:
    """A report as a notebook shows it, among other things."""
    path = tmp_path / "notebook.html"
    path.write_text(AROUND.format("".join(map(html, (lama(200), belief())))), encoding="utf-8")
    page = browser.new_page(viewport={"width": 900, "height": 800})
    page.goto(path.as_uri())
    return page


def test_headlines_findings_and_figures_are_seen(shown: Page) -> None:
    piece = shown.locator(".sonde-piece")
    assert piece.locator(".card").count() == len(lama(1).headlines) + len(belief().headlines)
    assert piece.locator(".plot svg:visible").count() == piece.locator(".plot").count() > 0
    for svg in piece.locator(".plot svg:visible").all():
        box = svg.bounding_box()
        assert box is not None and box["width"] > 200 and box["height"] > 50


def test_nothing_outside_the_piece_changes_its_look(shown: Page) -> None:
    look = (
        "e => { const s = getComputedStyle(e); return [s.fontFamily, s.color, s.borderTopWidth] }"
    )
    outside = shown.locator("#other th").evaluate(look)
    plain = shown.context.browser
    assert plain is not None
    page = plain.new_page()
    page.set_content(AROUND.format(""))
    assert page.locator("#other th").evaluate(look) == outside
    page.close()


@pytest.mark.parametrize("width", [400, 900, 1400])
def test_a_piece_is_no_wider_than_its_cell(shown: Page, width: int) -> None:
    shown.set_viewport_size({"width": width, "height": 800})
    assert shown.evaluate("document.documentElement.scrollWidth") <= width


def test_long_tables_are_cut_and_say_so() -> None:
    for table in lama(200).tables:
        most = SHORT if table.browsable else LONG
        left = len(table.rows) - most
        assert (f"{left:,} more rows are not shown" in html(table)) == (left > 0)


def test_hostile_texts_stay_texts() -> None:
    piece = html(hostile())
    assert "<script" not in piece and "<img" not in piece
