"""Words of scripts that have no spaces between them, by segmenters that come as extras.

Knows texts and languages, nothing of names or answers. Only what stands in such a script is cut
here; no run of it holds a space, a mark or a letter of another script. Japanese is cut into short
units, 東京 and 都, to be compared, and into long ones, 東京都, to be counted; so is the name of a
Chinese place, 北京 and 市. Thai words are counted as they are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib.util import find_spec

from sonde.core.errors import MissingExtra

Cut = Callable[[str], list[str]]
"""Words of a run of one script."""

PACKAGES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "ja": ("Japanese", ("sudachipy", "sudachidict_core")),
    "th": ("Thai", ("pythainlp",)),
    "zh": ("Chinese", ("jieba",)),
}
"""Languages that are segmented, with what does it; each is an extra of its code."""

OTHER_WORD = ("語", "人")
"""What makes another word of the name before it: フランス語 does not hold フランス."""


PLACES = ("市", "省", "县", "州")
"""What says of a Chinese name which kind of place it is: 北京市 holds 北京."""


def check_segmenter(language: str) -> None:
    """Refuse a language that is segmented where its segmenter is not installed."""
    name, packages = PACKAGES[language]
    missing = [package for package in packages if find_spec(package) is None]
    if missing:
        raise MissingExtra(
            f"{name} has no spaces between words, and answers in it are compared word by word: "
            f"that needs {' and '.join(missing)}; run: pip install 'sonde[{language}]', or compare "
            "them as they are written with the setting language=none"
        )


@cache
def comparing(language: str) -> Cut:
    """Cuts a run into words to compare, each in the form that its spellings share."""
    return _cuts(language)[0]


@cache
def counting(language: str) -> Cut:
    """Cuts a run into words as a reader would count them."""
    return _cuts(language)[1]


@cache
def _cuts(language: str) -> tuple[Cut, Cut]:
    check_segmenter(language)
    if language == "ja":
        return _japanese()
    if language == "zh":
        return _chinese()
    cut = _thai()
    return cut, cut


def _japanese() -> tuple[Cut, Cut]:
    from sudachipy import Dictionary, SplitMode

    dictionary = Dictionary()
    short, long = dictionary.tokenizer(SplitMode.A), dictionary.tokenizer(SplitMode.C)

    def compared(run: str) -> list[str]:
        words: list[str] = []
        after_noun = False
        for found in short.tokenize(run):
            if after_noun and found.surface() in OTHER_WORD:
                words[-1] += found.surface()
            else:
                words.append(found.normalized_form())
            after_noun = found.part_of_speech()[0] == "名詞"
        return words

    return compared, lambda run: [found.surface() for found in long.tokenize(run)]


def _chinese() -> tuple[Cut, Cut]:
    import jieba

    jieba.setLogLevel("ERROR")  # it tells of every loading of its dictionary

    def counted(run: str) -> list[str]:
        # without its guesses at words that it does not know: they depend on what stands beside
        return list(jieba.lcut(run, HMM=False))

    def compared(run: str) -> list[str]:
        words: list[str] = []
        for word in counted(run):
            name, kind = word[:-1], word[-1]
            parted = kind in PLACES and len(name) > 1 and jieba.dt.FREQ.get(name)
            words += (name, kind) if parted else (word,)
        return words

    return compared, counted


def _thai() -> Cut:
    from pythainlp.tokenize import word_tokenize

    return lambda run: list(word_tokenize(run, engine="newmm"))
