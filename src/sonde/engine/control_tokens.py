"""Tokens that a chat template writes are read as tokens; the same characters in a fact are not.

A rendered conversation is one text. What its template wrote and what stands in its turns are told
apart by a shield: a character inside a turn's own characters that would be read as a token of the
template. A tokenizer with control tokens does not read the shield, so that ids and offsets are
those of the text without it. Knows a tokenizer and its JSON form; nothing of templates.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

SHIELD = "\ufdd0"
"""Unicode keeps this one for use within a program: no text that is exchanged holds it."""


def shielded(text: str, controls: Sequence[str]) -> str:
    """A text in which no control token is read; nearly always the text itself.

    >>> shielded("an <|end|> b", ["<|end|>"]) == f"an <{SHIELD}|end|> b"
    True
    """
    for control in controls:
        if control in text:
            text = text.replace(control, f"{control[0]}{SHIELD}{control[1:]}")
    return text


def with_controls(form: str, controls: Sequence[str]) -> str:
    """A tokenizer, given as JSON, that reads these of its special tokens also where others are
    taken literally, and does not read the shield."""
    found: dict[str, Any] = json.loads(form)
    for token in found["added_tokens"]:
        if token["content"] in controls:
            # found in the text as it is written, before the shield is taken out
            token |= {"special": False, "normalized": False}
    unread = {"type": "Replace", "pattern": {"String": SHIELD}, "content": ""}
    before = found["normalizer"]
    both = {"type": "Sequence", "normalizers": [unread, before]}
    found["normalizer"] = unread if before is None else both
    return json.dumps(found, ensure_ascii=False)
