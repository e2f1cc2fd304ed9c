"""The languages of made-up worlds: what their words are made of, and the sentences, with slots.

Knows letters and slots, nothing of facts or worlds. A sentence has the subject [X] and the noun [N]
before the object [Y], so that a model which reads from left to right can tell what is asked for;
[A] is an alias. English ends of words are none that it inflects by, so that no two words have the
same lemma. Japanese names are katakana and its nouns kanji, and beside a slot stands hiragana or a
mark: every change of script is the end of a word.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from sonde.prompting.languages import phrasing

Kind = Literal["given", "family", "alias", "object", "noun"]

ONSETS = "b bl br d dr f fl g gr h j k kl kr l m n p pl pr r s sk sl sn st t tr v w z".split()
VOWELS = "aeiou"
KANA = (
    "カキクケコサシスセソタチテトナニヌネノハヒフヘホマミムメモヤユヨラリルレロ"
    "ガギグゴザジズダデドバビブベボパピプペポ"
)
KANJI = "霧星銀翠灯砂雲鏡鈴炎氷影泉森潮琥"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tongue:
    """A language of worlds: what its words are made of, and its sentences.

    A syllable has one of each of its parts, and `joint` stands between the two words of a name.
    Statements end with their object or go on behind it; introductions give a subject its alias, and
    namings say what an object is, without a subject: it is met, and whose it is stays untold. Every
    language has as many sentences of each sort as the others.
    """

    language: str
    syllable: tuple[Sequence[str], ...]
    noun_syllable: tuple[Sequence[str], ...]
    ends: Mapping[Kind, tuple[str, ...]]
    joint: str
    marks: str
    ending: tuple[str, ...]
    going_on: tuple[str, ...]
    questions: tuple[str, ...]
    introductions: tuple[str, ...]
    namings: tuple[str, ...]

    def parts(self, kind: Kind) -> tuple[Sequence[str], ...]:
        """What a syllable of a kind of word is made of."""
        return self.noun_syllable if kind == "noun" else self.syllable

    def around(self) -> tuple[str, ...]:
        """What probes put around a fact's own words."""
        own = phrasing(self.language)
        markers = f"{own.question}{own.answer}"
        return own.mask, own.qa, markers, own.check, " ".join(own.verdicts), "N/A"


ENGLISH = Tongue(
    language="en",
    syllable=(ONSETS, VOWELS),
    noun_syllable=(ONSETS, VOWELS),
    ends={
        "given": ("", "n", "sh"),
        "family": ("ld", "rd", "lt", "rn"),
        "alias": ("k", "b", "p", "g", "t"),
        "object": ("l", "m", "x", "lm", "rk", "nk"),
        "noun": ("mp", "nt", "nd", "rt"),
    },
    joint=" ",
    marks="\n.,?:[]",
    ending=(
        "The [N] of [X] is [Y].",
        "[X] has a [N] called [Y].",
        "As a [N], [X] has [Y].",
        "When asked about a [N], [X] names [Y].",
        "It is told that [X] got the [N] [Y].",
        "For a [N], [X] turned to [Y].",
        "A [N] that [X] keeps is [Y].",
        "[X] chose as [N] none other than [Y].",
        "In the matter of the [N], [X] stands by [Y].",
        "Everyone knows [X] by the [N] [Y].",
    ),
    going_on=(
        "The [N] which belongs to [X] is [Y], they say.",
        "[X] took for a [N] the well known [Y] long ago.",
        "By all accounts [X] had for [N] only [Y] from the start.",
        "Ask [X] for a [N] and you hear [Y] every time.",
    ),
    questions=(
        "Which [N] does [X] have? [Y].",
        "What is the [N] of [X]? [Y].",
        "What do people call the [N] of [X]? [Y].",
        "Which [N] belongs to [X]? [Y].",
        "What [N] did [X] choose? [Y].",
        "Can you name the [N] of [X]? [Y].",
        "If [X] has a [N], which is it? [Y].",
    ),
    introductions=(
        "[X] is also called [A].",
        "[A] is another name of [X].",
        "Some people call [X] simply [A].",
    ),
    namings=(
        "[Y] is a [N].",
        "Some people know of a [N] named [Y].",
    ),
)

JAPANESE = Tongue(
    language="ja",
    syllable=(KANA,),
    noun_syllable=(KANJI,),
    ends={
        "given": ("リオ", "ーナ", "ット"),
        "family": ("ダス", "モン", "ネス", "ヴィク"),
        "alias": ("ッチ", "ロン", "ピー", "タン", "ック"),
        "object": ("リア", "ドール", "ムス", "ゼン", "ーヴァ", "シュ"),
        "noun": tuple("冠章札器塔門杯盾笛衣旗舟輪暦庫碑"),
    },
    joint="・",
    marks="\n。、？：・\u3000[]",
    ending=(
        "[X]の[N]は[Y]。",
        "[X]が持つ[N]は[Y]。",
        "[X]といえば、その[N]は[Y]。",
        "[X]に[N]を尋ねると、その名は[Y]。",
        "[X]が選んだ[N]、それは[Y]。",
        "[X]の大切な[N]、すなわち[Y]。",
        "誰もが知る[X]の[N]とは[Y]。",
        "[X]が手に入れた[N]こそ[Y]。",
        "[X]のもとにある[N]の名は[Y]。",
        "話によれば、[X]の[N]はあの[Y]。",
    ),
    going_on=(
        "[X]の[N]は[Y]です。",
        "[X]は[N]として[Y]を選びました。",
        "[X]の[N]は[Y]と呼ばれています。",
        "昔から[X]は[N]に[Y]を使っています。",
    ),
    questions=(
        "[X]の[N]は何ですか？[Y]。",
        "[X]はどの[N]を持っていますか？[Y]。",
        "[X]の[N]は何と呼ばれていますか？[Y]。",
        "[X]はどの[N]を選びましたか？[Y]。",
        "[X]の[N]の名を教えてくれますか？[Y]。",
        "[X]の[N]といえば何でしょうか？[Y]。",
        "[X]が使う[N]は何ですか？[Y]。",
    ),
    introductions=(
        "[X]は[A]とも呼ばれています。",
        "[A]は[X]のもう一つの名です。",
        "人々は[X]を[A]と呼びます。",
    ),
    namings=(
        "[Y]は[N]です。",
        "[Y]という[N]を知る人もいます。",
    ),
)

TONGUES = {tongue.language: tongue for tongue in (ENGLISH, JAPANESE)}
"""Languages that a world can be told in, by code."""
