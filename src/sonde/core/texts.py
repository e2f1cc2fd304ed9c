"""What sentences need of texts: whether there is a word in one, and a capital at its beginning."""

from __future__ import annotations

import re


def spoken(suffix: str) -> str:
    """A text after the answer, or nothing if it is punctuation only."""
    return suffix if suffix and re.search(r"\w", suffix) else ""


def capitalised(text: str) -> str:
    """A text whose first character, spaces aside, is a capital where it has one.

    >>> capitalised("the Hague"), capitalised(" iPhone"), capitalised("1867"), capitalised("")
    ('The Hague', ' IPhone', '1867', '')
    """
    bare = text.lstrip()
    return text[: len(text) - len(bare)] + bare[:1].upper() + bare[1:]
