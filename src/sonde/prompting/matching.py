"""Whether a generated answer states a name: words are compared by their lemmas.

Knows texts and a language, nothing of facts or models. A text is split into words, lower-cased and
lemmatized, so that "a guitar" and "Guitars" match. An article at its beginning is dropped, so that
"The Hague" and "Hague" match. Sequences of words are compared, never letters: "Romania" does not
contain "Oman".

Scripts without spaces between words are split by a segmenter if the language has one (see
`segmenting`): 南アフリカ contains アフリカ, 東京都 does not contain 京都. In other languages a run
of such a script is one piece. In Japanese, hiragana is then separated from the rest, because it
mostly writes endings and particles: 東京です contains 東京. Kanji and katakana stay together:
南アフリカ does not contain アフリカ.

Numbers and dates are compared by value (`is_same_number_or_date`). A date may be more exact than
the one in the name: `12 March 1950` is correct if the name is `1950` or `1950-03-12`, but `1950` is
not the day `12 March 1950`. Months are English. Days in digits need the year first, because
`03/12/1950` has two meanings.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable
from datetime import date
from decimal import Decimal
from functools import cache, lru_cache
from typing import NamedTuple

from sonde.core.errors import UsageError
from sonde.prompting.segmenting import PACKAGES, check_segmenter, load_segmenters

AUTO = "auto"
"""The setting that uses each relation's language, and English if it has none."""

PLAIN = "none"
"""The language of texts that are split and lower-cased, but not lemmatized."""

ARTICLES = {
    "en": ("a", "an", "the"),
    "de": tuple("der die das den dem des ein eine einen einem einer".split()),
    "fr": ("le", "la", "les", "l", "un", "une"),
    "es": ("el", "la", "los", "las", "un", "una", "unos", "unas"),
    "it": ("lo", "la", "i", "gli", "le", "l", "il", "un", "uno", "una"),
    "pt": ("o", "a", "os", "as", "um", "uma"),
    "nl": ("de", "het", "een"),
}

HIRAGANA = "\u3041-\u309f\u30fc"
# Thai, Lao, Tibetan, Burmese, Khmer, Japanese and Chinese
UNSPACED = (
    "\u0e00-\u0eff\u0f00\u0f18-\u0fbc\u1000-\u109f\u1780-\u17ff\uaa60-\uaa7f\ua9e0-\ua9ff"
    f"\u3005-\u3007{HIRAGANA}\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f\u31a0-\u31bf\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
INITIALS = re.compile(r"\b[^\W\d_](?:\.\s?[^\W\d_])+\b\.?")
THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+")

LANGUAGE_HELP = (
    "the language in which answers are compared by lemmas: a code such as en or ja, auto for that "
    "of each relation (English if it has none), or none to compare words as they are"
)


def check_language(language: str) -> None:
    """Raise if a language has neither lemmas nor a segmenter, or its segmenter is missing."""
    if language in PACKAGES:
        check_segmenter(language)
    elif language not in (AUTO, PLAIN, *_lemma_languages()):
        known = ", ".join(sorted({*_lemma_languages(), *PACKAGES}))
        raise UsageError(
            f"no list of lemmas for language {language!r}; known: {known}. "
            f"With {PLAIN!r} words are lower-cased and compared as they are"
        )


def comparison_language(setting: str, relation_language: str) -> str:
    """The language to compare answers in, by the setting and the language of the relation.

    A relation's language without a list of lemmas is compared as it is written.

    >>> comparison_language("auto", ""), comparison_language("auto", "fr")
    ('en', 'fr')
    >>> comparison_language("de", "fr"), comparison_language("auto", "ta")
    ('de', 'none')
    """
    if setting != AUTO:
        return setting
    language = relation_language or "en"
    return language if language in PACKAGES or language in _lemma_languages() else PLAIN


@cache
def _lemma_languages() -> frozenset[str]:
    # imported late, so that listing the probes does not wait for it
    from simplemma.strategies.dictionaries.dictionary_factory import SUPPORTED_LANGUAGES

    return frozenset(SUPPORTED_LANGUAGES)


@lru_cache(maxsize=1 << 17)
def lemmatize(text: str, language: str = "en") -> str:
    """The lemmas of a text, separated by single spaces; empty if it has no word.

    >>> lemmatize("The Guitars!"), lemmatize("New York City."), lemmatize("?!")
    ('guitar', 'new york city', '')
    """
    words = split_words(text, language)
    while len(words) > 1 and words[0] in ARTICLES.get(language, ()):
        words = words[1:]
    return " ".join(_lemmatize_word(word, language) for word in words)


def is_contained(part_lemmas: str, whole_lemmas: str) -> bool:
    """Whether the lemmas of one text are consecutive in another; both texts are lemmatized.

    >>> is_contained("york", "new york"), is_contained("new city", "new york city")
    (True, False)
    >>> is_contained("", "york")
    False
    """
    return bool(part_lemmas) and f" {part_lemmas} " in f" {whole_lemmas} "


def one_contains_other(lemmas: str, other_lemmas: str) -> bool:
    """Whether one of two lemmatized texts is within the other, or both are empty."""
    if lemmas == other_lemmas:
        return True
    return is_contained(lemmas, other_lemmas) or is_contained(other_lemmas, lemmas)


def answer_contains_name(answer: str, names: Iterable[str], language: str = "en") -> bool:
    """Whether an answer contains one of the names; a part of a name is not enough.

    >>> answer_contains_name("the city of Tokyo", ["Tokyo"])
    True
    >>> answer_contains_name("city", ["Tokyo City"])
    False
    """
    answer_lemmas = lemmatize(answer, language)
    return any(is_contained(lemmatize(name, language), answer_lemmas) for name in names)


def answers_agree(answer: str, other: str, language: str = "en") -> bool:
    """Whether one of two answers contains the other.

    >>> answers_agree("a guitar", "Guitars"), answers_agree("city", "Tokyo City")
    (True, True)
    >>> answers_agree("", "city")
    False
    """
    return one_contains_other(lemmatize(answer, language), lemmatize(other, language))


@lru_cache(maxsize=1 << 17)
def clean_answer(text: str) -> str:
    """The first line of a generated answer, without final spaces and punctuation.

    >>> clean_answer(" New York City.\\nQ: And"), clean_answer(' "Oslo",'), clean_answer(" ...")
    ('New York City', '"Oslo', '')
    """
    line = text.strip().partition("\n")[0].strip()
    while line and (line[-1].isspace() or unicodedata.category(line[-1])[0] == "P"):
        line = line[:-1]
    return line


def begins_with_name(text: str, name: str) -> bool:
    """Whether a text begins with a name as a word: Nigeria does not begin with Niger.

    In Japanese a word may end before hiragana.

    >>> begins_with_name("Niger, in Africa", "Niger"), begins_with_name("Nigeria", "Niger")
    (True, False)
    >>> begins_with_name("東京です", "東京"), begins_with_name("東京都", "東京")
    (True, False)
    """
    if not text.startswith(name):
        return False
    rest = text.removeprefix(name)
    if re.search(f"[{UNSPACED}]$", name) and re.match("[\u3041-\u3096]", rest):
        return True
    return not rest or not (rest[0].isalnum() or unicodedata.category(rest[0])[0] == "M")


def count_words(text: str, language: str = "") -> int | None:
    """The number of words in a text, separated by spaces; punctuation alone is no word.

    None if it has a script without spaces between words and the language has no segmenter.

    >>> [*map(count_words, (" Jean-Paul.", "New York .", "...", "東京"))]
    [1, 2, 0, None]
    """
    normalized = unicodedata.normalize("NFKC", text)
    if not re.search(f"[{UNSPACED}]", normalized):
        return sum(any(map(str.isalnum, piece)) for piece in text.split())
    return (
        len(_words_with(normalized, load_segmenters(language).words_to_count))
        if language in PACKAGES
        else None
    )


def split_words(text: str, language: str) -> list[str]:
    """The lower-cased words of a text; initials are joined, since U.S. and US are one name."""
    normalized = unicodedata.normalize("NFKC", text)
    joined = INITIALS.sub(lambda match: re.sub(r"[.\s]", "", match[0]) + " ", normalized)
    if language in PACKAGES:
        words = _words_with(joined, load_segmenters(language).words_to_compare)
    else:
        words = [match[0] for match in _word_patterns().without_segmenter.finditer(joined)]
    return [w.replace(",", "") if THOUSANDS.fullmatch(w) else w.lower() for w in words]


def _words_with(text: str, segmenter: Callable[[str], list[str]]) -> list[str]:
    """The words of a text; a segmenter splits the scripts without spaces."""
    words: list[str] = []
    for run in _word_patterns().with_segmenter.finditer(text):
        words += segmenter(run[0]) if run["unspaced"] else [run[0]]
    return [word for word in words if any(map(str.isalnum, word))]


@lru_cache(maxsize=1 << 17)
def _lemmatize_word(word: str, language: str) -> str:
    """The lemma of a lower-case word."""
    if language == PLAIN or language in PACKAGES or any(map(str.isdigit, word)):
        return word.casefold().replace(" ", "_")
    from simplemma import lemmatize

    lemma = lemmatize(word, lang=language)
    if lemma == word:  # names are listed only with a capital
        lemma = lemmatize(word.capitalize(), lang=language)
    return lemma.replace(" ", "_").casefold()


class _WordPatterns(NamedTuple):
    without_segmenter: re.Pattern[str]
    with_segmenter: re.Pattern[str]


@cache
def _word_patterns() -> _WordPatterns:
    r"""Patterns of words without and with a segmenter.

    Both match numbers and words. Of scripts without spaces the first matches pieces, and the second
    whole runs, with the dot inside Japanese names.
    """
    # vowel signs belong to words, though \w omits them
    marks = [c for c in map(chr, range(0x300, 0x10000)) if unicodedata.category(c)[0] == "M"]
    signs = re.escape("".join(marks))
    letter, sign = rf"[^\W_{UNSPACED}]", rf"(?![{UNSPACED}])[{signs}]"
    spaced = rf"\d+(?:[.,]\d+)+|(?:{letter}|{sign})+[+#]*"
    piece = rf"(?:(?=[{UNSPACED}])(?![{HIRAGANA}])[\w{signs}]|\u30fc)+"
    run = rf"(?:(?=[{UNSPACED}])[\w{signs}]|\u30fc|\u30fb)+"
    # the mark between the syllables of a Tibetan word belongs to it
    pieces = rf"{spaced}|[{HIRAGANA}]+|{piece}(?:\u0f0b{piece})*"
    return _WordPatterns(re.compile(pieces), re.compile(rf"{spaced}|(?P<unspaced>{run})"))


MONTHS = "january february march april may june july august september october november december"
MONTH_NUMBERS = {name: number for number, name in enumerate(MONTHS.split(), 1)}
MONTH_NUMBERS |= {name[:3]: number for name, number in MONTH_NUMBERS.items()} | {"sept": 9}
MONTH = f"(?P<month>{'|'.join(sorted(MONTH_NUMBERS, key=len, reverse=True))})\\.?"
DAY, YEAR = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?", r"(?P<year>\d{3,4})"
DATES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        YEAR,
        rf"{MONTH},? (?:of )?{YEAR}",
        rf"(?:the )?{DAY} (?:of )?{MONTH},? {YEAR}",
        rf"{MONTH} {DAY},? {YEAR}",
        r"(?P<year>\d{4})-(?P<month>\d{1,2})(?:-(?P<day>\d{1,2}))?",
    )
)
NUMBER = re.compile(r"[+-]?(?:\d{1,3}(?:[, '\u00a0\u2009\u202f]\d{3})+|\d+)(?:\.\d+)?")

Date = tuple[int, ...]
"""A year, then a month and a day if the text states them."""


@lru_cache(maxsize=1 << 16)
def parse_date(text: str) -> Date | None:
    """The date that a text states, if it states nothing else.

    >>> parse_date("12 March 1950"), parse_date("March 12th, 1950"), parse_date("1950-03")
    ((1950, 3, 12), (1950, 3, 12), (1950, 3))
    >>> parse_date("in 1950"), parse_date("31 June 1950")
    (None, None)
    """
    words = " ".join(text.split()).rstrip(".")
    match = next(filter(None, (pattern.fullmatch(words) for pattern in DATES)), None)
    if match is None:
        return None
    year, month, day = (match.groupdict().get(part) or "0" for part in ("year", "month", "day"))
    parts = int(year), MONTH_NUMBERS.get(month.lower()) or int(month), int(day)
    try:
        date(parts[0], parts[1] or 1, parts[2] or 1)
    except ValueError:
        return None
    return tuple(filter(None, parts))


@lru_cache(maxsize=1 << 16)
def parse_number(text: str) -> Decimal | None:
    """The number that a text states, if it states nothing else; thousands may be separated.

    >>> parse_number("1,000"), parse_number("1000.0") == parse_number("1 000")
    (Decimal('1000'), True)
    >>> parse_number("−3"), parse_number("3 km")
    (Decimal('-3'), None)
    """
    stripped = text.strip().replace("\u2212", "-").rstrip(".")
    return Decimal(re.sub(r"[^\d.+-]", "", stripped)) if NUMBER.fullmatch(stripped) else None


def is_same_number_or_date(answer: str, name: str) -> bool | None:
    """Whether an answer is the number or the date of a name; None if one of them is neither.

    >>> is_same_number_or_date("1,000", "1000"), is_same_number_or_date("12 March 1950", "1950")
    (True, True)
    >>> is_same_number_or_date("x", "1") is None
    True
    >>> is_same_number_or_date("1950", "12 March 1950"), is_same_number_or_date("-5", "5")
    (False, False)
    """
    stated_date, name_date = parse_date(answer), parse_date(name)
    if stated_date and name_date and stated_date[: len(name_date)] == name_date:
        return True
    stated_number, number = parse_number(answer), parse_number(name)
    if stated_number is not None and number is not None:
        return stated_number == number
    both = (stated_date or stated_number is not None) and (name_date or number is not None)
    return False if both else None
