"""Text that a chat model writes before its answer, from <think> to </think>. Knows texts alone."""

from __future__ import annotations

from typing import Literal

OPENED, CLOSED = "<think>", "</think>"

Thoughts = Literal["never", "may be", "begun"]
"""Whether a text may begin with thoughts: no, where it opens them, or they were opened before it.
"""


def thought_length(text: str, thoughts: Thoughts) -> int:
    """How many characters of a text stand before its answer: all, while its thoughts go on.

    >>> text = "<think>\\nHm.\\n</think>\\n\\nOslo"
    >>> text[thought_length(text, "may be") :], thought_length(text, "never")
    ('Oslo', 0)
    >>> thought_length("Hm. </think> Oslo", "begun"), thought_length("<think> Hm", "may be")
    (13, 10)
    """
    if thoughts == "never" or not (thoughts == "begun" or text.lstrip().startswith(OPENED)):
        return 0
    _, closed, answer = text.partition(CLOSED)
    return len(text) - len(answer.lstrip()) if closed else len(text)
