"""Whether a written answer and a name say the same: words compared by their lemmas.

Knows texts and a language, nothing of facts or models. A text is cut into words, lower-cased and
lemmatised, so that "a guitar" and "Guitars" meet; an article at its beginning is dropped, so that
"The Hague" and "Hague" do. Runs of words are compared, never letters: "Oman" is not in "Romania".

Scripts without spaces between words are cut into words by a segmenter where the language says so
(see `segmenting`): 南アフリカ holds アフリカ, 東京都 does not hold 京都. In other languages what
stands there between spaces, punctuation and letters of other scripts is one piece. In Japanese,
hiragana, which mostly writes endings and particles, then parts from the rest: 東京です holds 東京.
Kanji and katakana do not part: アフリカ is not in 南アフリカ.

Numbers and dates are compared by what they mean (`same_literal`). A date is as exact as it is
written, and the one that a name gives if it agrees with all that the name says: `12 March 1950` is
right where the name is `1950` or `1950-03-12`, but `1950` is not the day `12 March 1950`. Months
are English. Days in digits are read with the year first; `03/12/1950` has two meanings and is none.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from datetime import date
from decimal import Decimal
from functools import cache, lru_cache

from sonde.core.errors import UsageError
from sonde.prompting.segmenting import PACKAGES, check_segmenter, comparing, counting

OWN = "auto"
"""The setting that leaves the language to each relation; English where it says none."""

PLAIN = "none"
"""The language of texts that are only cut and lower-cased, for want of a list of lemmas."""

ARTICLES = {
    "en": "a an the",
    "de": "der die das den dem des ein eine einen einem einer",
    "fr": "le la les l un une",
    "es": "el la los las un una unos unas",
    "it": "il lo la i gli le l un uno una",
    "pt": "o a os as um uma",
    "nl": "de het een",
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
    "whose words answers are compared by: a code such as en or ja, each relation's own (auto; "
    "English if it names none), or none: as they are written"
)


def check_language(language: str) -> None:
    """Refuse a language that has neither a list of lemmas nor a segmenter, or none installed."""
    if language in PACKAGES:
        check_segmenter(language)
    elif language not in (OWN, PLAIN, *_lemmatised()):
        known = ", ".join(sorted({*_lemmatised(), *PACKAGES}))
        raise UsageError(
            f"no list of lemmas for language {language!r}; known: {known}. "
            f"With {PLAIN!r} words are lower-cased and compared as they are"
        )


def language_of(setting: str, own: str) -> str:
    """The language that answers are compared in, by the setting and a relation's own language.

    A relation's language that has no list of lemmas is compared as it is written.

    >>> language_of("auto", ""), language_of("auto", "fr"), language_of("de", "fr")
    ('en', 'fr', 'de')
    >>> language_of("auto", "ta")
    'none'
    """
    if setting != OWN:
        return setting
    known = not own or own in PACKAGES or own in _lemmatised()
    return (own or "en") if known else PLAIN


@cache
def _lemmatised() -> frozenset[str]:
    # imported where it is used, because listing the probes should not wait for it
    from simplemma.strategies.dictionaries.dictionary_factory import SUPPORTED_LANGUAGES

    return frozenset(SUPPORTED_LANGUAGES)


@lru_cache(maxsize=1 << 17)
def normal(text: str, language: str = "en") -> str:
    """The lemmas of a text, one space between them; nothing where it has no word.

    >>> normal("The Guitars!"), normal("New York City."), normal("?!")
    ('guitar', 'new york city', '')
    """
    words = words_in(text, language)
    articles = _articles(language)
    while len(words) > 1 and words[0] in articles:
        words = words[1:]
    return " ".join(_lemma(word, language) for word in words)


def within(part: str, whole: str) -> bool:
    """Whether the lemmas of `part` follow each other in `whole`; both are `normal`, neither empty.

    >>> within("york", "new york"), within("new city", "new york city"), within("", "york")
    (True, False, False)
    """
    return bool(part) and f" {part} " in f" {whole} "


def alike(one: str, other: str) -> bool:
    """Whether one of two `normal` texts is within the other; an empty one is like an empty one."""
    return one == other or within(one, other) or within(other, one)


def correct(answer: str, names: Iterable[str], language: str = "en") -> bool:
    """Whether an answer holds one of the names; a part of a name is not enough.

    >>> correct("the city of Tokyo", ["Tokyo"]), correct("city", ["Tokyo City"])
    (True, False)
    """
    said = normal(answer, language)
    return any(within(normal(name, language), said) for name in names)


@lru_cache(maxsize=1 << 17)
def cleaned(text: str) -> str:
    """A written answer as it is compared: its first line, without space or closing punctuation.

    >>> cleaned(" New York City.\\nQ: And"), cleaned(' "Oslo",'), cleaned(" ...")
    ('New York City', '"Oslo', '')
    """
    line = text.strip().partition("\n")[0].strip()
    while line and (line[-1].isspace() or unicodedata.category(line[-1])[0] == "P"):
        line = line[:-1]
    return line


def begins(text: str, name: str) -> bool:
    """Whether a text begins with a name as a word: Nigeria does not begin with Niger.

    In Japanese a word may end where hiragana begins.

    >>> begins("Niger, in Africa", "Niger"), begins("Nigeria", "Niger")
    (True, False)
    >>> begins("東京です", "東京"), begins("東京都", "東京")
    (True, False)
    """
    if not text.startswith(name):
        return False
    rest = text.removeprefix(name)
    goes_on = rest and (rest[0].isalnum() or unicodedata.category(rest[0])[0] == "M")
    parted = re.search(f"[{UNSPACED}]$", name) and re.match("[\u3041-\u3096]", rest)
    return bool(not goes_on or parted)


def consistent(one: str, other: str, language: str = "en") -> bool:
    """Whether two answers say the same: one holds the other, whichever it is.

    >>> consistent("a guitar", "Guitars"), consistent("city", "Tokyo City"), consistent("", "city")
    (True, True, False)
    """
    return alike(normal(one, language), normal(other, language))


def word_count(text: str, language: str = "") -> int | None:
    """How many words a text has, as spaces part them; punctuation alone is no word.

    None where they cannot be counted, since a script in it has no spaces between words and the
    language no segmenter.

    >>> word_count(" Jean-Paul."), word_count("New York ."), word_count("..."), word_count("東京")
    (1, 2, 0, None)
    """
    plain = unicodedata.normalize("NFKC", text)
    if not re.search(f"[{UNSPACED}]", plain):
        return sum(any(map(str.isalnum, piece)) for piece in text.split())
    return len(_cut(plain, counting(language))) if language in PACKAGES else None


def words_in(text: str, language: str) -> list[str]:
    """The words of a text in lower case; initials are joined, since U.S. and US are one name."""
    plain = unicodedata.normalize("NFKC", text)
    joined = INITIALS.sub(lambda found: re.sub(r"[.\s]", "", found[0]) + " ", plain)
    if language in PACKAGES:
        found = _cut(joined, comparing(language))
    else:
        found = [match[0] for match in _pattern().finditer(joined)]
    return [w.replace(",", "") if THOUSANDS.fullmatch(w) else w.lower() for w in found]


def _cut(text: str, cut: Callable[[str], list[str]]) -> list[str]:
    """The words of a text, those of scripts without spaces by a segmenter."""
    words: list[str] = []
    for run in _runs().finditer(text):
        words += cut(run[0]) if run["unspaced"] else [run[0]]
    return [word for word in words if any(map(str.isalnum, word))]


@lru_cache(maxsize=1 << 17)
def _lemma(word: str, language: str) -> str:
    """The lemma of a lower-case word; names may be listed with a capital alone."""
    if language == PLAIN or language in PACKAGES or any(map(str.isdigit, word)):
        return word.casefold().replace(" ", "_")
    from simplemma import lemmatize

    lemma = lemmatize(word, lang=language)
    if lemma == word:
        lemma = lemmatize(word.capitalize(), lang=language)
    return lemma.replace(" ", "_").casefold()


@cache
def _articles(language: str) -> frozenset[str]:
    return frozenset(ARTICLES.get(language, "").split())


@cache
def _pattern() -> re.Pattern[str]:
    """Numbers, words, and pieces of scripts without spaces.

    The mark between the syllables of a Tibetan word belongs to it.
    """
    joined = rf"(?:(?=[{UNSPACED}])(?![{HIRAGANA}])[\w{_signs()}]|\u30fc)+"
    return re.compile(rf"{_spaced()}|[{HIRAGANA}]+|{joined}(?:\u0f0b{joined})*")


@cache
def _runs() -> re.Pattern[str]:
    """Numbers, words, and runs of scripts without spaces, with the dot inside Japanese names."""
    run = rf"(?:(?=[{UNSPACED}])[\w{_signs()}]|\u30fc|\u30fb)+"
    return re.compile(rf"{_spaced()}|(?P<unspaced>{run})")


@cache
def _spaced() -> str:
    letter, sign = rf"[^\W_{UNSPACED}]", rf"(?![{UNSPACED}])[{_signs()}]"
    return rf"\d+(?:[.,]\d+)+|(?:{letter}|{sign})+[+#]*"


@cache
def _signs() -> str:
    r"""Vowel signs belong to words, though `\w` omits them."""
    marks = [c for c in map(chr, range(0x300, 0x10000)) if unicodedata.category(c)[0] == "M"]
    return re.escape("".join(marks))


MONTHS = "january february march april may june july august september october november december"
NUMBERED = {name: number for number, name in enumerate(MONTHS.split(), 1)}
NUMBERED |= {name[:3]: number for name, number in NUMBERED.items()} | {"sept": 9}
MONTH = f"(?P<month>{'|'.join(sorted(NUMBERED, key=len, reverse=True))})\\.?"
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
"""A year, then a month and a day where they are told."""


@lru_cache(maxsize=1 << 16)
def dated(text: str) -> Date | None:
    """The date that a text is, if it is nothing else.

    >>> dated("12 March 1950"), dated("March 12th, 1950"), dated("1950-03"), dated("in 1950")
    ((1950, 3, 12), (1950, 3, 12), (1950, 3), None)
    """
    words = " ".join(text.split()).rstrip(".")
    for pattern in DATES:
        if found := pattern.fullmatch(words):
            parts = found.groupdict()
            month = parts.get("month") or "0"
            told = (int(parts["year"]), NUMBERED.get(month.lower()) or int(month))
            return _sound(*told, int(parts.get("day") or 0))
    return None


def _sound(year: int, month: int, day: int) -> Date | None:
    """The parts that are told; none where there is no such day."""
    try:
        date(year, month or 1, day or 1)
    except ValueError:
        return None
    return tuple(part for part in (year, month, day) if part)


@lru_cache(maxsize=1 << 16)
def numeric(text: str) -> Decimal | None:
    """The number that a text is, if it is nothing else; thousands may be parted.

    >>> numeric("1,000"), numeric("1000.0") == numeric("1 000"), numeric("−3"), numeric("3 km")
    (Decimal('1000'), True, Decimal('-3'), None)
    """
    plain = text.strip().replace("\u2212", "-").rstrip(".")
    return Decimal(re.sub(r"[^\d.+-]", "", plain)) if NUMBER.fullmatch(plain) else None


def same_literal(answer: str, name: str) -> bool | None:
    """Whether an answer is the number or the date that a name is; None where one is neither.

    >>> same_literal("1,000", "1000"), same_literal("12 March 1950", "1950"), same_literal("x", "1")
    (True, True, None)
    >>> same_literal("1950", "12 March 1950"), same_literal("-5", "5")
    (False, False)
    """
    wanted, told = dated(name), dated(answer)
    if wanted and told and told[: len(wanted)] == wanted:
        return True
    number, given = numeric(name), numeric(answer)
    if number is not None and given is not None:
        return number == given
    literal = (wanted or number is not None) and (told or given is not None)
    return False if literal else None
