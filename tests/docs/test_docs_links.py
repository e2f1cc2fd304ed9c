"""Links between pages lead somewhere, and every page can be reached."""

from __future__ import annotations

from pathlib import Path

import pytest

from .pages import DOCS, PAGES, ROOT, anchors, links

WITH_LINKS = (*PAGES, *sorted(DOCS.glob("results/*.md")), ROOT / "CHANGELOG.md")


@pytest.mark.parametrize("page", WITH_LINKS, ids=lambda page: page.stem)
def test_links_of_a_page_resolve(page: Path) -> None:
    for link in links(page):
        if link.startswith(("https://", "http://")):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), f"{page.name}: {link} leads nowhere"
        if anchor:
            assert anchor in anchors(target), f"{page.name}: {link} names no heading"


def test_every_page_is_linked_from_the_index() -> None:
    linked = {(DOCS / link.partition("#")[0]).resolve() for link in links(DOCS / "index.md")}
    for page in DOCS.glob("*.md"):
        assert page.name == "index.md" or page.resolve() in linked, f"{page.name} is not linked"
