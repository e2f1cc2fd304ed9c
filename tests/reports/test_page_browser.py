"""The page in a browser: silent, offline, searchable, printable."""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.reports.sample import sample_report, say, world

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not shutil.which("chromium"), reason="no chromium"),
]


def listen(page: "Page", seen: list[str]) -> None:
    """Note what a page prints, throws and requests."""
    page.on("console", lambda message: seen.append(message.text))
    page.on("pageerror", lambda error: seen.append(str(error)))
    page.on("request", lambda request: seen.append(request.url))


def test_facts_are_found_opened_linked_to_and_printed(tmp_path: Path) -> None:
    from playwright.sync_api import expect, sync_playwright

    path = tmp_path / "report.html"
    path.write_text(sample_report(world(facts=60), say(default="b")).to_html(), encoding="utf-8")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        for width, most in ((1400, 1000), (400, 1200)):
            page = browser.new_page(viewport={"width": width, "height": 900})
            complaints: list[str] = []
            listen(page, complaints)
            page.goto(path.as_uri())
            expect(page.locator(".range")).to_contain_text("of 60 facts")
            box = page.locator("#facts").bounding_box()
            assert box is not None and box["y"] <= most
            assert page.evaluate("document.documentElement.scrollWidth") == width
            assert [line for line in complaints if not line.startswith(("file:", "data:"))] == []
        page.locator("input[type=search]").fill("subject 0-59")
        expect(page.locator("tr.fact")).to_have_count(1)
        page.locator("tr.fact").click()
        expect(page.locator(".deep")).to_contain_text("subject 0-59 of 0 is ____.")
        assert page.url.endswith("#q=subject+0-59&fact=P0-subject+0-59")
        page.goto(page.url)
        page.reload()
        expect(page.locator(".deep")).to_have_count(1)
        page.locator("input[type=search]").fill("")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        expect(page.locator("tr.fact")).to_have_count(60)
        browser.close()
