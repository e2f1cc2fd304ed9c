r"""Separators by short names, so that a list of them can be written on one line.

Knows words, nothing of facts. `colon/newline` is a colon inside a pair and a new line between two;
what is no name is taken as it is written, `\n` for a new line.
"""

from __future__ import annotations

from collections.abc import Mapping

from sonde.core.errors import UsageError
from sonde.prompting.sequences import Separators

NAMES: Mapping[str, str] = {
    "space": " ",
    "colon": " : ",
    "comma": ", ",
    "newline": "\n",
}

USUAL = "space/space"


def named_separators(name: str) -> Separators:
    r"""The separators that a name stands for: inside a pair, a slash, between two pairs.

    >>> named_separators("colon/newline")
    Separators(inside=' : ', between='\n')
    >>> named_separators(" is /;").inside
    ' is '
    """
    inside, slash, between = name.rpartition("/")
    if not slash or not inside or not between:
        raise UsageError(
            f"separators are written INSIDE/BETWEEN, such as colon/newline, not {name!r}; named "
            f"are {', '.join(NAMES)}, and other texts stand for themselves"
        )
    return Separators(inside=_text(inside), between=_text(between))


def _text(word: str) -> str:
    return NAMES.get(word, word.replace("\\n", "\n"))
