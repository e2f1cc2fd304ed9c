"""The mark that closes a template without final punctuation.

A masked model fills a mask at the end of an unclosed sentence with a full stop or an ellipsis.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping

from sonde.core.facts import ANSWER_SLOT, SLOT, Relation, Template
from sonde.core.words import counted
from sonde.prompting.languages import PHRASINGS

CLOSE_HELP = (
    "for masked models, end each template that has no final punctuation with a full stop; other "
    "models read templates as they are"
)
BRACKETS = "\"'”’»›)]}」』）】"
"""Characters that may follow the final punctuation of a sentence."""

STOPS: Mapping[str, str] = {
    **dict.fromkeys(("CJK", "HIRAGANA", "KATAKANA"), "。"),
    **dict.fromkeys(("DEVANAGARI", "BENGALI", "GURMUKHI", "ORIYA"), "।"),
    **{"ARMENIAN": "։", "ETHIOPIC": "።", "MYANMAR": "။", "KHMER": "។", "TIBETAN": "།"},
    **dict.fromkeys(("THAI", "LAO"), ""),
}
"""The full stop of scripts that have another one than Latin, or none, by Unicode name."""

URDU = "۔"


def closing_mark(template: Template, language: str = "") -> str:
    """The full stop that a template lacks; empty if it has final punctuation, or needs none.

    Optimised templates are read as they were trained.

    >>> closing_mark(Template(id="t", text="[X] is in [Y]"))
    '.'
    >>> closing_mark(Template(id="t", text="[X]は[Y]にある", source="mined"))
    '。'
    >>> closing_mark(Template(id="t", text='"[X] is in [Y]!"')) or "closed"
    'closed'
    """
    text = SLOT.sub("x", template.text.replace(ANSWER_SLOT, "x")).rstrip().rstrip(BRACKETS)
    closed = not text or unicodedata.category(text[-1]).startswith("P")
    return "" if closed or template.source == "optimised" else _full_stop(text, language)


def _full_stop(text: str, language: str) -> str:
    """The full stop of a language, or else of the script of a text."""
    if language == "ur":
        return URDU
    if language in PHRASINGS:
        return PHRASINGS[language].stop
    scripts = (unicodedata.name(letter, "").partition(" ")[0] for letter in text)
    return next((STOPS[script] for script in scripts if script in STOPS), ".")


def closing_notice(relations: Iterable[tuple[Relation, Iterable[Template]]]) -> tuple[str, ...]:
    """How many of the templates are closed, as one sentence; nothing if none is."""
    marks = [closing_mark(t, relation.language) for relation, own in relations for t in own]
    closed = [mark for mark in marks if mark]
    if not closed:
        return ()
    number = f"{len(closed):,} of {counted(len(marks), 'template', 'templates')}"
    return (f"Closed {number} with a full stop (--no-close leaves templates as they are).",)
