"""What is seen in texts: words, capitals, spellings alike, markers of a soft prompt's vectors.

A marker such as ⟦P36:2⟧ stands for one vector, the second of relation P36's prompt. Knows nothing
of vectors or tokenizers.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache


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


NOTHING = "\u2581\ufffd"
"""How tokenizers write a space, and what cannot be read: nothing of a name."""


@lru_cache(maxsize=2**16)
def folded(text: str) -> str:
    """What is left of a text under everything that a tokenizer may fold.

    That is case, accents, compatible forms of characters, spaces and marks that are not seen. Texts
    of which something else is left are never the same token.

    >>> folded("Perú") == folded("PERU"), folded("ﬁ") == folded("fi"), folded("Lima")
    (True, True, 'lima')
    """
    return _bare(_bare(text).casefold())


def _bare(text: str) -> str:
    plain = text if text.isascii() else unicodedata.normalize("NFKD", text)
    return "".join(c for c in plain if unicodedata.category(c)[0] not in "CMZ" and c not in NOTHING)


OPENS = "⟦"
MARKER = re.compile(r"⟦[^⟦⟧:]+:[1-9][0-9]*⟧")


def marker(relation: str, number: int) -> str:
    """The marker of one vector, counted from 1.

    >>> marker("P36", 2)
    '⟦P36:2⟧'
    """
    return f"⟦{relation}:{number}⟧"


def markers(text: str) -> list[str]:
    """The markers of a text, in order.

    >>> markers("[X]⟦P36:1⟧⟦P36:2⟧ [Y] .")
    ['⟦P36:1⟧', '⟦P36:2⟧']
    """
    return MARKER.findall(text) if OPENS in text else []
