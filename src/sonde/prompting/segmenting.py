"""Words of scripts that have no spaces between them. The segmenters are optional dependencies.

Knows texts and languages, nothing of names or answers. A run of such a script contains no space, no
punctuation and no letter of another script. Japanese is split into short units to compare, 東京 and
都, and into long ones to count, 東京都; names of Chinese places likewise, 北京 and 市. Thai has the
same words for both.
"""

from collections.abc import Callable, Mapping
from functools import cache
from importlib.util import find_spec
from typing import NamedTuple

from sonde.core.errors import MissingExtra

Segmenter = Callable[[str], list[str]]
"""Splits a run of one script into words."""

PACKAGES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "ja": ("Japanese", ("sudachipy", "sudachidict_core")),
    "th": ("Thai", ("pythainlp",)),
    "zh": ("Chinese", ("jieba",)),
}
"""Languages with a segmenter, by code, and the packages of it. The code is also the extra."""

SUFFIXES = ("語", "人")
"""Japanese suffixes that change the name before them: フランス語 does not contain フランス."""

PLACES = ("市", "省", "县", "州")
"""Kinds of places that end Chinese names: 北京市 contains 北京."""


def check_segmenter(language: str) -> None:
    """Raise MissingExtra if the segmenter of a language is not installed."""
    name, packages = PACKAGES[language]
    missing = [package for package in packages if find_spec(package) is None]
    if missing:
        raise MissingExtra(
            f"{name} has no spaces between words, and answers in it are compared word by word: "
            f"that needs {' and '.join(missing)}; run: pip install 'sonde[{language}]', or compare "
            "them as they are written with the setting language=none"
        )


class Segmenters(NamedTuple):
    """Splits words to compare, in a spelling that variants share, and words to count."""

    words_to_compare: Segmenter
    words_to_count: Segmenter


@cache
def load_segmenters(language: str) -> Segmenters:
    """The segmenters of a language with a package for them."""
    check_segmenter(language)
    return {"ja": _japanese_segmenters, "zh": _chinese_segmenters, "th": _thai_segmenters}[
        language
    ]()


def _japanese_segmenters() -> Segmenters:
    from sudachipy import Dictionary, SplitMode

    dictionary = Dictionary()
    short, long = dictionary.tokenizer(SplitMode.A), dictionary.tokenizer(SplitMode.C)

    def compare(run: str) -> list[str]:
        words: list[str] = []
        after_noun = False
        for token in short.tokenize(run):
            if after_noun and token.surface() in SUFFIXES:
                words[-1] += token.surface()
            else:
                words.append(token.normalized_form())
            after_noun = token.part_of_speech()[0] == "名詞"
        return words

    return Segmenters(compare, lambda run: [token.surface() for token in long.tokenize(run)])


def _chinese_segmenters() -> Segmenters:
    import jieba

    jieba.setLogLevel("ERROR")  # it logs each loading of its dictionary

    def count(run: str) -> list[str]:
        # HMM guesses unknown words, and the guesses depend on the words around
        return list(jieba.lcut(run, HMM=False))

    def compare(run: str) -> list[str]:
        words: list[str] = []
        for word in count(run):
            name, kind = word[:-1], word[-1]
            is_place = kind in PLACES and len(name) > 1 and jieba.dt.FREQ.get(name)
            words += (name, kind) if is_place else (word,)
        return words

    return Segmenters(compare, count)


def _thai_segmenters() -> Segmenters:
    from pythainlp.tokenize import word_tokenize

    def split(run: str) -> list[str]:
        return list(word_tokenize(run, engine="newmm"))

    return Segmenters(split, split)
