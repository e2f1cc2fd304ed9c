"""Markers: how a text names the vectors of a soft prompt. Knows nothing of vectors or tokenizers.

A marker such as ⟦P36:2⟧ stands for one vector, the second of relation P36's prompt.
"""

from __future__ import annotations

import re

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
