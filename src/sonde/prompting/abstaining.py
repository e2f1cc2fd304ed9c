"""Whether a generated answer states that the model does not know. Knows phrases, not facts.

An answer abstains if it begins with a phrase of two or more words, or is a phrase of one word:
"I don't know that" abstains, "Unknown Pleasures" does not. In scripts without spaces between words
an answer may begin with a phrase of three or more letters. Only letters and digits are compared,
whatever their case; apostrophes are removed. Probes count an answer that abstains and is correct as
correct.
"""

import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import cache

from sonde.core.errors import UsageError
from sonde.prompting.matching import UNSPACED, clean_answer

ALL, NONE = "all", "none"

ABSTAINING_HELP = (
    "which answers count as abstaining: lists of phrases by language (en, de, …), all lists, none, "
    "or other phrases"
)

PHRASES: dict[str, tuple[str, ...]] = {
    "en": (
        *("i don't know", "i do not know", "don't know", "do not know", "dont know", "idk"),
        *("i am not sure", "i'm not sure", "not sure", "i am unsure", "i'm unsure", "unsure"),
        *("unknown", "it is unknown", "the answer is unknown", "it is not known", "not known"),
        *("no idea", "i have no idea", "no answer", "n/a", "not available", "not applicable"),
        *("i cannot", "i can't", "i can not", "i am unable", "i'm unable", "i am not able"),
        *("i'm not able", "cannot determine", "can't determine", "cannot be determined"),
        *("can't say", "cannot say", "hard to say", "unclear", "it is unclear", "sorry i"),
        *("i'm sorry but", "i am sorry but", "i'm sorry i", "i am sorry i", "sorry but i"),
        *("as an ai", "i don't have", "i do not have", "not specified", "no information"),
        *("insufficient information", "not enough information"),
    ),
    "de": (
        *("ich weiß es nicht", "ich weiß nicht", "weiß ich nicht", "weiß nicht", "unbekannt"),
        *("keine ahnung", "das weiß ich nicht", "ich bin mir nicht sicher", "nicht sicher"),
        *("nicht bekannt", "keine angabe", "ich kann nicht", "ich kann das nicht", "unklar"),
    ),
    "fr": (
        *("je ne sais pas", "je l'ignore", "je ne suis pas sûr", "je ne suis pas sûre"),
        *("inconnu", "inconnue", "aucune idée", "je n'ai aucune idée", "je ne peux pas"),
        *("impossible à déterminer", "pas sûr", "désolé", "je suis désolé"),
    ),
    "es": (
        *("no lo sé", "no sé", "yo no sé", "desconocido", "desconocida", "no estoy seguro"),
        *("no estoy segura", "ni idea", "no tengo idea", "no se sabe", "no puedo", "lo siento"),
        *("se desconoce", "no se puede determinar"),
    ),
    "it": (
        *("non lo so", "non so", "sconosciuto", "sconosciuta", "non sono sicuro", "ignoto"),
        *("non sono sicura", "nessuna idea", "non ne ho idea", "non posso", "mi dispiace"),
    ),
    "pt": (
        *("não sei", "eu não sei", "desconhecido", "desconhecida", "não tenho certeza"),
        *("não faço ideia", "não posso", "não se sabe", "sinto muito", "desculpe"),
    ),
    "nl": (
        *("ik weet het niet", "ik weet niet", "weet ik niet", "onbekend", "geen idee"),
        *("ik ben niet zeker", "niet bekend", "ik kan niet", "het spijt me"),
    ),
    "pl": ("nie wiem", "nieznany", "nieznana", "nie jestem pewien", "nie mam pojęcia"),
    "ru": ("я не знаю", "не знаю", "неизвестно", "неизвестен", "не уверен", "не могу"),
    "tr": ("bilmiyorum", "bilinmiyor", "emin değilim", "hiçbir fikrim yok"),
    "zh": ("我不知道", "不知道", "我不清楚", "不清楚", "未知", "不确定", "无法确定", "我无法"),
    "ja": ("わかりません", "分かりません", "知りません", "不明", "わからない", "分からない"),
    "ko": ("모르겠습니다", "모릅니다", "모르겠어요", "알 수 없습니다", "알 수 없음"),
}
"""Phrases by language that models generate instead of an answer."""


def check_abstaining_setting(lists_and_phrases: Sequence[str]) -> None:
    """Raise UsageError for a text that is neither the name of a list nor a phrase."""
    for name in lists_and_phrases:
        if not normalize_words(name) or (len(name) == 2 and name.isascii() and name not in PHRASES):
            raise UsageError(
                f"setting abstaining: there is no list of phrases for {name!r}; known: "
                f"{', '.join(sorted(PHRASES))}, {ALL} and {NONE}, or write a phrase of your own"
            )


def build_abstention_test(lists_and_phrases: tuple[str, ...] = (ALL,)) -> Callable[[str], bool]:
    """A function that decides whether an answer abstains, by lists of phrases and by phrases.

    >>> abstains = build_abstention_test()
    >>> abstains("I don’t know."), abstains("Unknown"), abstains("Unknown Pleasures")
    (True, True, False)
    >>> build_abstention_test(("none", "pass"))("Pass!")
    True
    """
    lists = (
        PHRASES.values()
        if ALL in lists_and_phrases
        else [PHRASES.get(name, ()) for name in lists_and_phrases]
    )
    phrases = {name for name in lists_and_phrases if name not in {*PHRASES, ALL, NONE}}
    phrases.update(phrase for listed in lists for phrase in listed)
    whole = frozenset(map(normalize_words, phrases))
    # a phrase of several words ends with a space; scripts without spaces have none
    several = [f"{normalize_words(phrase)} " for phrase in phrases if " " in phrase]
    unspaced = [p for p in whole if len(p) > 2 and re.search(f"[{UNSPACED}]", p)]
    beginnings = (*several, *unspaced)

    @cache
    def abstains(answer: str) -> bool:
        text = normalize_words(clean_answer(answer))
        return text in whole or f"{text} ".startswith(beginnings)

    return abstains


def normalize_words(text: str) -> str:
    """The words of a text in lower case, separated by single spaces.

    >>> normalize_words("I don’t know…"), normalize_words("N/A")
    ('i dont know', 'n a')
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(re.sub(r"[\W_]+", " ", re.sub("['’ʼ`]", "", folded)).split())
