"""A line of text for the terminal. Light: whatever is printed goes through it."""

from __future__ import annotations

from rich.text import Text

from sonde.core.words import legible


def line(text: str, style: str = "") -> Text:
    """Text as it is: no markup is read in it, and control characters are spelt out."""
    return Text(legible(text), style)
