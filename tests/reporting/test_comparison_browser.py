"""The page of compared runs in a real browser: the verdict, the differences, facts to search."""

from __future__ import annotations

from dataclasses import replace

import pytest
from playwright.sync_api import expect

from sonde.core.reports import Report
from tests.analysis.world import asked, changed, report_of

from .window import Opener

pytestmark = pytest.mark.browser

SUBJECTS = tuple((f"subject {i}",) for i in range(80))


def compared() -> Report:
    """Two runs of two relations; the second knows all of the first that the other does not."""
    known = {"first": [[0] * 40, [1] * 40], "second": [[1] * 40, [1] * 30 + [0] * 10]}
    runs = [changed(asked(name, right), names=SUBJECTS) for name, right in known.items()]
    return report_of([replace(run, group=run.name) for run in runs])


def test_the_verdict_heads_the_page_and_differences_have_a_sign(opened: Opener) -> None:
    shown = opened(compared())
    page = shown.page
    expect(page.locator("h1")).to_contain_text("second is better than first: +37.5 points [")
    expect(page.locator(".card").first).to_contain_text("+37.5 points")
    expect(page.locator("#figures")).to_contain_text("Differences by relation")
    expect(page.locator("#tables")).to_contain_text("−25.0")
    assert not shown.complaints and not shown.requests[1:]


def test_facts_that_flipped_can_be_searched_and_chosen_by_what_became_of_them(
    opened: Opener,
) -> None:
    page = opened(compared()).page
    browse = page.locator("#browse")
    expect(browse).to_contain_text("Facts that flipped")
    search = browse.get_by_label("Search").first
    search.fill("lost subject")
    expect(browse.locator(".range").first).to_contain_text("10 found (of 50)")
    search.fill("subject 17")
    expect(browse.locator("tbody").first).to_contain_text("gained")
