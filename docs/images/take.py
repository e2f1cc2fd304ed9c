"""Take the pictures of the README from real pages: `python docs/images/take.py REPORT COMPARISON`.

Needs playwright and Chromium, as the tests do. How the pages are made is in docs/images/README.md.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

HERE = Path(__file__).parent
WIDTH, HEIGHT = 1100, 880  # pixels


def take(browser: Browser, page: Path, picture: Path) -> None:
    """The top of a page, in light colors."""
    tab = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
    tab.goto(page.resolve().as_uri())
    tab.screenshot(path=picture)
    tab.close()


def main(report: str, comparison: str) -> None:
    """Both pictures."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        take(browser, Path(report), HERE / "report.png")
        take(browser, Path(comparison), HERE / "compare.png")
        browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:3])
