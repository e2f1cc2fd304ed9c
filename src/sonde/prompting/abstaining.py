"""Whether a written answer says that the model does not know. Knows phrases, nothing of facts.

An answer abstains if it begins with a phrase of two words or more, or is one of a single word:
"I don't know that" abstains, "Unknown Pleasures" does not. In scripts without spaces between words
a phrase of three letters or more may begin it. Letters and digits are compared, whatever
their case and what stands between them; apostrophes go. What an answer says after such a phrase
does not matter here: whoever judges it counts an answer that is right as right.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import cache

from sonde.core.errors import UsageError
from sonde.prompting.matching import UNSPACED, cleaned

ALL, NONE = "all", "none"

HELP = (
    "what counts as not knowing: lists of phrases by language (en, de, …), all or none of them, "
    "and phrases of your own"
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
"""What is said instead of an answer, by language."""


def check_abstaining(chosen: Sequence[str]) -> None:
    """Refuse what is neither the name of a list nor a phrase."""
    for each in chosen:
        if not plain(each) or (len(each) == 2 and each.isascii() and each not in PHRASES):
            raise UsageError(
                f"setting abstaining: there is no list of phrases for {each!r}; known: "
                f"{', '.join(sorted(PHRASES))}, {ALL} and {NONE}, or write a phrase of your own"
            )


def abstaining(chosen: tuple[str, ...] = (ALL,)) -> Callable[[str], bool]:
    """Whether an answer abstains, by the lists and phrases chosen.

    >>> abstains = abstaining()
    >>> abstains("I don’t know."), abstains("Unknown"), abstains("Unknown Pleasures")
    (True, True, False)
    >>> abstaining(("none", "pass"))("Pass!")
    True
    """
    alone, first = _phrases(chosen)

    @cache
    def abstains(answer: str) -> bool:
        said = plain(cleaned(answer))
        return said in alone or f"{said} ".startswith(first)

    return abstains


@cache
def _phrases(chosen: tuple[str, ...]) -> tuple[frozenset[str], tuple[str, ...]]:
    """Phrases that may be the whole answer, and what answers that abstain begin with.

    A phrase of several words ends with a space; scripts without spaces have none.
    """
    lists = PHRASES.values() if ALL in chosen else [PHRASES.get(name, ()) for name in chosen]
    own = [each for each in chosen if each not in {*PHRASES, ALL, NONE}]
    every = {*own, *(phrase for each in lists for phrase in each)}
    several = [f"{plain(phrase)} " for phrase in every if " " in phrase]
    joined = [p for p in map(plain, every) if len(p) > 2 and re.search(f"[{UNSPACED}]", p)]
    return frozenset(map(plain, every)), (*sorted(several), *sorted(joined))


def plain(text: str) -> str:
    """The words of a text in lower case, one space between them.

    >>> plain("I don’t know…"), plain("N/A")
    ('i dont know', 'n a')
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(re.sub(r"[\W_]+", " ", re.sub("['’ʼ`]", "", folded)).split())
