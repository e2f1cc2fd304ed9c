"""Text that others wrote, made safe to look at: what a terminal would obey is spelt out.

Knows nothing of terminals but that they obey control characters (C0, DEL and C1, from which every
escape sequence is made), and let some others turn the order of what is read.
"""

from __future__ import annotations

import re

OBEYED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # all controls but tab and newline
    "\u202a-\u202e\u2066-\u2069"  # embeddings, overrides and isolates of bidirectional text
    "\ud800-\udfff]"  # halves of characters, as names of files that are not UTF-8 have them
)


def legible(text: str) -> str:
    r"""The text with an escape, as Python writes it, for each character that would be obeyed.

    >>> print(legible("caf\u00e9 \x1b[31m\r\x9b1m \u202e"))
    café \x1b[31m\r\x9b1m \u202e
    """
    return OBEYED.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def legible_json(text: str) -> str:
    r"""A JSON text that means the same, with JSON's own escapes for such characters.

    >>> print(legible_json('["\x9b1m"]'))
    ["\u009b1m"]
    """
    return OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
