"""The words of prompts that come from no fact, by language: instructions, markers and spaces.

Knows languages, nothing of facts or models. Names and templates come from a dataset. A language
that is not listed here uses English. Settings of a probe can replace each text.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sonde.core.errors import UsageError
from sonde.core.facts import ANSWER_SLOT
from sonde.core.words import listed

INSTRUCTION_HELP = "the first line; if empty, an instruction in the relation's language"
MARKERS_HELP = (
    "two texts that precede a question and its answer; if none, those of the relation's language "
    "(English Q: and A:)"
)
QUESTION_MARKS = ("?", "？", "؟", "か。")
STOP_HELP = "the text that ends a sentence; if empty, the full stop of the relation's language"


def add_answer_slot(text: str) -> str:
    """The template; a question without [Y] gets it after the question mark.

    >>> [*map(add_answer_slot, ("Where is [X]?", "[X]はどこ？", "[X] is"))]
    ['Where is [X]? [Y]', '[X]はどこ？[Y]', '[X] is']
    """
    question = text.rstrip()
    if ANSWER_SLOT in text or not question.endswith(QUESTION_MARKS):
        return text
    return f"{question}{' ' if question[-1] in '?؟' else ''}{ANSWER_SLOT}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Phrasing:
    """The words around facts in one language.

    Args:
        mask: the instruction before sentences with [MASK].
        qa: the instruction before questions.
        question: precedes a question.
        answer: precedes an answer, and a `space` follows it.
        stop: ends a sentence.
        space: separates two sentences.
        separators: space, colon, comma and newline, as they separate names in lists.
        check: the question whether the statement [S] is true.
        verdicts: the two answers to `check`.
    """

    mask: str
    qa: str
    question: str = "Q: "
    answer: str = "A:"
    stop: str = "."
    space: str = " "
    separators: tuple[str, str, str, str] = (" ", " : ", ", ", "\n")
    check: str = "Statement: [S]. The statement is True or False?"
    verdicts: tuple[str, str] = ("True", "False")


ENGLISH = Phrasing(
    mask="Predict the [MASK] in each sentence in one word.",
    qa="Answer each question in one word.",
)

PHRASINGS: Mapping[str, Phrasing] = {
    "en": ENGLISH,
    "ja": Phrasing(
        mask="各文の[MASK]に入る言葉を一語で答えてください。",
        qa="各質問に一語で答えてください。",
        question="質問：",
        answer="答え：",
        stop="。",
        space="",
        separators=("\u3000", "：", "、", "\n"),
        check="文：[S]。この文は正しいですか、誤りですか？",
        verdicts=("正しい", "誤り"),
    ),
    "zh": Phrasing(
        mask="请用一个词填写每个句子中的[MASK]。",
        qa="请用一个词回答每个问题。",
        question="问：",
        answer="答：",
        stop="。",
        space="",
        separators=("\u3000", "：", "，", "\n"),
        check="陈述：[S]。这个陈述是正确还是错误？",
        verdicts=("正确", "错误"),
    ),
    "th": Phrasing(
        mask="เติมคำหนึ่งคำแทน [MASK] ในแต่ละประโยค",
        qa="ตอบแต่ละคำถามด้วยคำเดียว",
        question="ถาม: ",
        answer="ตอบ:",
        stop="",
        check="ข้อความ: [S] ข้อความนี้ถูกหรือผิด?",
        verdicts=("ถูก", "ผิด"),
    ),
    "de": Phrasing(
        mask="Sage in jedem Satz das [MASK] mit einem Wort voraus.",
        qa="Beantworte jede Frage mit einem Wort.",
        question="F: ",
        check="Aussage: [S]. Ist die Aussage wahr oder falsch?",
        verdicts=("Wahr", "Falsch"),
    ),
    "fr": Phrasing(
        mask="Devine le [MASK] de chaque phrase en un mot.",
        qa="Réponds à chaque question en un mot.",
        question="Q : ",
        answer="R :",
        check="Énoncé : [S]. L'énoncé est-il vrai ou faux ?",
        verdicts=("Vrai", "Faux"),
    ),
    "es": Phrasing(
        mask="Predice el [MASK] de cada oración en una palabra.",
        qa="Responde a cada pregunta con una palabra.",
        question="P: ",
        answer="R:",
        check="Enunciado: [S]. ¿El enunciado es verdadero o falso?",
        verdicts=("Verdadero", "Falso"),
    ),
    "ar": Phrasing(
        mask="توقّع ما يحلّ محلّ [MASK] في كل جملة بكلمة واحدة.",
        qa="أجب عن كل سؤال بكلمة واحدة.",
        question="س: ",
        answer="ج:",
        check="العبارة: [S]. هل العبارة صحيحة أم خاطئة؟",
        verdicts=("صحيحة", "خاطئة"),
    ),
}


def build_phrasing(
    language: str, *, instruction: str = "", markers: tuple[str, ...] = (), stop: str = ""
) -> Phrasing:
    """The words around facts in a language, or in English if it is not listed, with replacements.

    >>> build_phrasing("ja").answer, build_phrasing("ja", markers=("Q: ", "A:")).answer
    ('答え：', 'A:')
    >>> build_phrasing("fi").answer
    'A:'
    """
    check_markers(markers)
    words = {"mask": instruction, "qa": instruction, "stop": stop}
    texts: dict[str, Any] = {field: text for field, text in words.items() if text}
    texts |= dict(zip(("question", "answer"), markers, strict=False))
    return replace(PHRASINGS.get(language, ENGLISH), **texts)


def check_markers(markers: tuple[str, ...]) -> None:
    """Raise UsageError for another number of markers than two or none."""
    if len(markers) not in (0, 2):
        raise UsageError(
            "setting markers takes two texts, one before a question and one before its answer, "
            f"such as 'Q: ,A:'; not {len(markers)}"
        )


def notice_about_english_words(languages: Iterable[str], settings: str) -> tuple[str, ...]:
    """A notice if facts of other languages get English words around them.

    `settings` are those that replace these words.

    >>> [len(notice_about_english_words(codes, "markers")) for codes in (["ja", "", "en"], ["fi"])]
    [0, 1]
    """
    codes = sorted({code for code in languages if code and code not in PHRASINGS})
    if not codes:
        return ()
    return (
        f"Instructions and markers are English for {listed(codes)}, since sonde has none in "
        f"{'these languages' if len(codes) > 1 else 'this language'}. Set them with {settings}.",
    )
