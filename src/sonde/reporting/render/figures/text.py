"""How wide words are in the figures' font, and how they are wrapped and shortened to fit.

The widths are those of Helvetica, which Arial and Liberation Sans share; whatever has none of its
own is taken to be wide, so that it is rather cut than runs into something else.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache

FONT = "Helvetica, Arial, 'Liberation Sans', sans-serif"
BOLD = 1.1  # how much wider bold words are, at most

# thousandths of the font's size
WIDTHS = (
    (191, "'"), (222, "ijl’‘"), (260, "|"), (278, " !,./:;I[]\\ft·"), (333, "()-`r“”"),
    (334, "{}"), (355, '"•'), (389, "*"), (469, "^"), (500, "Jckvsxyz"),
    (556, "#$0123456789?L_abdeghnopqu–"), (584, "+<=>~−±"), (611, "FTZ"), (667, "&ABEKPSVXY"),
    (722, "CDHNRUw"), (778, "GOQ"), (833, "Mm"), (889, "%"), (944, "W"), (1000, "…"), (1015, "@"),
)  # fmt: skip
LETTERS = {letter: width for width, letters in WIDTHS for letter in letters}
OTHER, WIDE = 720, 1200
BREAKS = re.compile(r"[-/_.,]")
PIECES = re.compile(r"(?<=[-/_.,])|\s+")


@cache
def letter_width(letter: str) -> int:
    """The width of a letter in thousandths; accents add nothing."""
    base = unicodedata.normalize("NFD", letter)[0]
    if base in LETTERS:
        return LETTERS[base]
    kind = unicodedata.category(letter)
    if kind in ("Cf", "Mn"):
        return 0
    sign = kind[0] == "S" or kind in ("Cc", "Cs") or letter > "\uffff"
    return WIDE if sign or unicodedata.east_asian_width(letter) in "WF" else OTHER


def measure(words: str, size: float) -> float:
    """How many pixels words take on one line.

    >>> measure("iii", 10), measure("é", 10) == measure("e", 10)
    (6.66, True)
    """
    return sum(map(letter_width, words)) * size / 1000


def shortened(words: str, room: float, size: float) -> str:
    """Words that fit into the room, if need be cut and ended by three dots.

    >>> shortened("place of birth", 60, 12), shortened("capital", 60, 12)
    ('place of…', 'capital')
    """
    if measure(words, size) <= room:
        return words
    kept, left = 0, room - measure("…", size)
    for letter in words:
        left -= letter_width(letter) * size / 1000
        if left < 0:
            break
        kept += 1
    return words[:kept].rstrip(" ,;:-–(") + "…"


def wrapped(words: str, room: float, size: float, most: int = 99) -> list[str]:
    """Words over at most so many lines, each of which fits; the last is shortened.

    >>> wrapped("languages spoken, written or signed", 110, 12, most=2)
    ['languages spoken,', 'written or signed']
    """
    lines: list[str] = []
    rest = words.split()
    while rest and len(lines) < most - 1:
        taken = 1
        while taken < len(rest) and measure(" ".join(rest[: taken + 1]), size) <= room:
            taken += 1
        if taken == 1 and measure(rest[0], size) > room:
            rest[:1] = broken(rest[0], room, size)
        lines.append(" ".join(rest[:taken]))
        rest = rest[taken:]
    return [*lines, shortened(" ".join(rest), room, size)] if rest or not lines else lines


def fits(words: str, room: float, size: float, most: int) -> bool:
    """Whether so many lines hold all the words, none of them broken but after a hyphen or so."""
    whole = all(measure(piece, size) <= room for piece in PIECES.split(words))
    lines = wrapped(words, room, size, most)
    return whole and "".join(" ".join(lines).split()) == "".join(words.split())


def broken(word: str, room: float, size: float) -> list[str]:
    """A word too long for a line in two, of which the first fits; after a hyphen if it has one."""
    kept = 1
    while kept < len(word) - 1 and measure(word[: kept + 1], size) <= room:
        kept += 1
    pieces = list(BREAKS.finditer(word, 0, kept))
    kept = pieces[-1].end() if pieces else kept
    return [word[:kept], word[kept:]] if kept < len(word) else [word]
