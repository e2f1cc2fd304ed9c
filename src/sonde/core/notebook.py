"""How a notebook shows what it is given. Knows no HTML: that is written where pages are made."""

from __future__ import annotations

from importlib import import_module

RENDERER = "sonde.reports.legacy"
"""Imported when something is first shown, by its name: the nouns know nothing of pages."""


def html(shown: object) -> str:
    """A report, a table or a figure as a piece of HTML that stands by itself."""
    return str(import_module(RENDERER).html(shown))
