"""How alike two questions are by BLEU; the only file that knows sacrebleu."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import Any

from sonde.core.errors import MissingExtra
from sonde.core.facts import SUBJECT_SLOT

INSTALL = "pip install 'sonde[paraphrase]'"


def need_bleu() -> None:
    """Refuse clearly where sacrebleu is not installed."""
    if find_spec("sacrebleu") is None:
        raise MissingExtra(f"sacrebleu, which compares frames, is not installed; run: {INSTALL}")


def likeness(one: str, other: str) -> float:
    """Sentence BLEU of two questions, 0 to 100: the larger of both directions.

    The subject's slot counts as one word, not as a word in brackets.
    """
    return max(_directed(one, other), _directed(other, one))


@cache
def _directed(said: str, meant: str) -> float:
    score = _metric().sentence_score(_words(said), [_words(meant)]).score
    return min(float(score), 100.0)  # rounding leaves a trace above


@cache
def _metric() -> Any:
    need_bleu()
    from sacrebleu.metrics.bleu import BLEU

    return BLEU(effective_order=True)  # short questions may have no four words in a row in common


def _words(text: str) -> str:
    return text.replace(SUBJECT_SLOT, "X")
