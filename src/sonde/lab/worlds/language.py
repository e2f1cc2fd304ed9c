"""What a made-up world is told in: words that nobody uses, and sentences with a place for them.

Knows letters, words and slots, nothing of facts or worlds. A word is two syllables and an end. The
kinds of words end differently, so that none can be of two kinds, and more words of one kind change
none of another.

A sentence has the subject [X] and the noun [N] before the object [Y], so that a model which reads
from left to right can tell what is asked for; [A] is an alias. English ends of words are none that
it inflects by, so that no two words have the same lemma. Japanese names are katakana and its nouns
kanji, and beside a slot stands hiragana or a mark: every change of script is the end of a word.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, cycle, islice
from math import prod
from random import Random
from typing import Literal

from sonde.core.errors import UsageError
from sonde.core.facts import Style, Template
from sonde.prompting.examples import MASK
from sonde.prompting.languages import build_phrasing

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
        own = build_phrasing(self.language)
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


SPARE = 2
"""Words that exist for each that may be made: drawing the last of them would take too long."""


ROOM: Mapping[Kind, tuple[str, str]] = {
    "given": ("given words", "lower words"),
    "family": ("family words", "lower families"),
    "alias": ("subjects with an alias each", "lower subjects"),
    "object": ("objects of all relations", "lower facts, objects or the number of relations"),
    "noun": ("relations", "lower one_one, many_one or many_many"),
}
"""What words of each kind name, and what to do where they do not suffice."""


def made_words(
    kind: Kind,
    count: int,
    random: Random,
    taken: Collection[str] = (),
    tongue: Tongue = ENGLISH,
) -> tuple[str, ...]:
    """So many words of a kind; more of them begin with the same ones.

    None of them is taken, whatever its capitals; those that are taken are given case-folded.

    >>> made_words("noun", 2, Random(0)) == made_words("noun", 3, Random(0))[:2]
    True
    """
    found: dict[str, None] = {}
    while len(found) < count:
        word = _word(kind, random, tongue)
        if word.casefold() not in taken:
            found[word] = None
    return tuple(found)


def most_words(kind: Kind, tongue: Tongue = ENGLISH) -> int:
    """How many words of a kind can be made."""
    letters = prod(map(len, tongue.parts(kind)))
    return letters**2 * len(tongue.ends[kind]) // SPARE


def check_room(kind: Kind, count: int, tongue: Tongue = ENGLISH) -> None:
    """Refuse to make more words of a kind than there are."""
    (what, change), most = ROOM[kind], most_words(kind, tongue)
    if count > most:
        raise UsageError(f"{count:,} {what} are more than the {most:,} that can be named; {change}")


def full_names(
    given: tuple[str, ...], family: tuple[str, ...], count: int, random: Random
) -> Iterator[tuple[str, str]]:
    """So many pairs of a given and a family word, no two alike; family words in even numbers."""
    if count > len(given) * len(family):
        raise UsageError(
            f"{count:,} subjects are more than {len(given)} given words with {len(family)} family "
            f"words can name: {len(given) * len(family):,}; raise words, or lower subjects"
        )
    decks = {word: random.sample(given, len(given)) for word in family}
    order = random.sample(family, len(family))
    for number in range(count):
        word = order[number % len(order)]
        yield decks[word][number // len(order)], word


def _word(kind: Kind, random: Random, tongue: Tongue) -> str:
    open_ones = [random.choice(part) for part in tongue.parts(kind) * 2]
    word = "".join(open_ones) + random.choice(tongue.ends[kind])
    return word if kind == "noun" else word.capitalize()


LEAST_QUESTIONS = 2
LEAST_TEMPLATES = 1 + LEAST_QUESTIONS
MOST_TEMPLATES = len(ENGLISH.ending) + len(ENGLISH.going_on) + len(ENGLISH.questions)
SCRIPTS = ("\u3041-\u3096", "\u30a1-\u30fa\u30fc", "\u3005\u4e00-\u9fff")
"""Hiragana, katakana and kanji: in Japanese a word ends where another of them begins."""

RUNS = "|".join(f"[{script}]+" for script in SCRIPTS)
PIECES = re.compile(rf"{re.escape(MASK)}|{RUNS}|(?:(?![{''.join(SCRIPTS)}])\w)+|[^\w\s]|\n|\u3000")


def pieces(text: str) -> list[str]:
    r"""The words and marks of a text, in order; [MASK] is one, and a line's end is one.

    >>> pieces("Q: The veldrin of [X] is [MASK].\n")[-3:]
    ['[MASK]', '.', '\n']
    """
    return PIECES.findall(text)


def plain_words(tongue: Tongue = ENGLISH) -> tuple[str, ...]:
    """Every word and mark of the frames and of the forms around them."""
    statements = tongue.ending + tongue.going_on
    others = tongue.introductions + tongue.namings
    texts = chain(statements, tongue.questions, others, tongue.around())
    bare = (re.sub(r"\[[NXYAS]\]", " ", text) for text in texts)
    found = chain.from_iterable(map(pieces, bare))
    return tuple(dict.fromkeys(chain(found, tongue.marks, ("MASK",))))


def templates(
    relation: str, noun: str, count: int, random: Random, tongue: Tongue = ENGLISH
) -> tuple[Template, ...]:
    """So many templates of a relation: a statement that ends with its object, a question, others.

    The first half count as written by hand, the others as paraphrases of these.
    """
    asking = max(LEAST_QUESTIONS, min(len(tongue.questions), count // 3))
    first = random.choice(tongue.ending)
    others = [t for t in tongue.ending + tongue.going_on if t != first]
    statements = random.sample(others, count - asking - 1)
    questions = random.sample(tongue.questions, asking)
    rest = [*statements, *questions[1:]]
    random.shuffle(rest)
    return tuple(_worded(relation, noun, [first, questions[0], *rest], tongue))


def _worded(relation: str, noun: str, frames: list[str], tongue: Tongue) -> Iterator[Template]:
    """Templates of the frames; a paraphrase is one of a statement or question like itself."""
    manual = (len(frames) + 1) // 2
    originals: dict[Style, list[str]] = {"statement": [], "question": []}
    for number, frame in enumerate(frames):
        id = f"{relation}-{number + 1:02d}"
        style: Style = "question" if frame in tongue.questions else "statement"
        group = id
        if number < manual:
            originals[style].append(id)
        else:
            group = originals[style][number % len(originals[style])]
        yield Template(
            id=id,
            text=frame.replace("[N]", noun),
            source="manual" if number < manual else "paraphrase",
            style=style,
            group=group,
        )


def in_turn(frames: Sequence[str], times: int, slots: Mapping[str, str]) -> Iterator[str]:
    """So many sentences with words in their slots, all frames in turn."""
    for frame in islice(cycle(frames), times):
        for slot, word in slots.items():
            frame = frame.replace(slot, word)
        yield frame


def distinct(texts: Iterable[str]) -> tuple[str, ...]:
    """Every word and mark of some texts, in order of first appearance."""
    return tuple(dict.fromkeys(chain.from_iterable(map(pieces, texts))))
