"""A warning where most answers are punctuation or function words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from sonde.core.reports import Report
from sonde.core.words import listed
from sonde.metrics.judged import AnswerKind, Judged

FUNCTION_WORDS: Mapping[str, frozenset[str]] = {
    language: frozenset(words.split())
    for language, words in {
        "en": "a an and are as at be but by for from had has have he her his i in is it its not of "
        "on or s she so that the their there they this to was were which who with",
        "de": "als am an auch auf aus bei das dem den der des die ein eine einem einen einer er es "
        "für hat im in ist mit nicht sich sie sind und von war wurde zu zum zur",
        "fr": "a au aux avec ce d dans de des du elle en est et il l la le les ou par pas pour qu "
        "que qui se son sa sur un une",
        "es": "a al como con de del el en es esta este la las lo los más no o para por que se su "
        "un una y",
        "it": "a al che con da dal del della di e è gli i il in la le lo non per si su un una",
        "pt": "a ao as com da de do e é em foi na no o os para por que se um uma",
        "nl": "aan als bij dat de die een en het hij in is met niet of op te tot van voor was zijn",
        "ja": "の は が を に で と も へ から まで より や など た て です ます",
        "zh": "的 是 在 了 和 與 与 有 为 為 于 於 一",
    }.items()
}

ADVICE: Mapping[AnswerKind, str] = {
    "filled": "check how the templates end",
    "written": "check the prompts and where an answer ends",
}
SHOWN = 3


def says_nothing(answer: str, language: str = "") -> bool:
    """Whether an answer has no letter or digit, or nothing but function words.

    >>> says_nothing("…"), says_nothing(" of the"), says_nothing("The Hague"), says_nothing("der")
    (True, True, False, False)
    """
    common = FUNCTION_WORDS.get(language or "en", frozenset())
    words = "".join(c if c.isalnum() else " " for c in answer.casefold()).split()
    return bool(answer.strip()) and all(word in common for word in words)


def warn_of_function_words(report: Report) -> Report:
    """A report that begins with a warning if most of its filled or written answers say nothing."""
    judged = report.judged
    if judged is None or judged.way == "scored" or not len(judged.grid):
        return report
    counts = _counts(judged)
    total = len(judged.grid)
    if 2 * counts.total() <= total:
        return report
    most = [f"{answer!r} ({count:,})" for answer, count in counts.most_common(SHOWN)]
    warning = (
        f"Warning: {counts.total():,} of {total:,} top answers are punctuation or function words, "
        f"most often {listed(most)}. The accuracy then says little about what the model knows; "
        f"{ADVICE[judged.way]}."
    )
    return replace(report, findings=(warning, *report.findings))


def _counts(judged: Judged) -> Counter[str]:
    """How often each wrong answer is given that says nothing."""
    grid = judged.grid
    rows = np.flatnonzero(~grid.right)
    owners, answers = grid.relations[grid.pair[rows]], grid.answer[rows]
    pairs, counts = np.unique(np.stack([owners, answers]), axis=1, return_counts=True)
    found = Counter[str]()
    for (owner, answer), count in zip(pairs.T.tolist(), counts.tolist(), strict=True):
        text = judged.answers[answer]
        if says_nothing(text, judged.relations[owner].language):
            found[text.strip()] += count
    return found
