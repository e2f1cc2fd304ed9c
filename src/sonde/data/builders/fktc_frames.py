"""Which questions become the frames of a relation. Knows nothing of where they come from.

A frame asks for the object and has one slot for the subject: `Where was [X] born?`. The first one
that qualifies is the base frame; any other is kept while it is not too alike to one kept before,
by BLEU; this is the only file that knows sacrebleu.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.util import find_spec
from typing import Any, Literal

from sonde.core.errors import MissingExtra
from sonde.core.facts import ANSWER_SLOT, SUBJECT_SLOT, Relation, Template
from sonde.data.check import bare, stands_in
from sonde.prompting.few_shot import QUESTION_MARKS

Origin = Literal["own", "file", "endpoint"]
Fault = Literal["malformed", "repeated", "alike", "telling"]

LONGEST = 300
INSTALL = "pip install 'sonde[paraphrase]'"
_ANSWER = re.compile(rf"\s*{re.escape(ANSWER_SLOT)}\W*$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """How many frames are wanted, and the BLEU that two of them must stay under."""

    frames: int = 7
    bleu: float = 70.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """A question that is kept; `template` is the dataset's own, where it is from there."""

    text: str
    origin: Origin
    template: Template | None = None


@dataclass(slots=True, kw_only=True)
class Gathered:
    """The frames of a relation so far, and how many questions of each origin were refused, why.

    `objects` are names that a question of another's must not give away.
    """

    rule: Rule
    objects: Sequence[str] = ()
    frames: list[Frame] = field(default_factory=list)
    refused: Counter[tuple[Origin, Fault]] = field(default_factory=Counter)

    @property
    def missing(self) -> int:
        """Frames that are still wanted."""
        return self.rule.frames - len(self.frames)

    @property
    def texts(self) -> tuple[str, ...]:
        """The questions that are kept."""
        return tuple(frame.text for frame in self.frames)

    def count(self, origin: Origin) -> int:
        """Frames of an origin."""
        return sum(frame.origin == origin for frame in self.frames)

    def offer(self, questions: Iterable[str | Template], origin: Origin) -> None:
        """Keep what qualifies, until there are enough frames."""
        for given in questions:
            if self.missing <= 0:
                return
            template = given if isinstance(given, Template) else None
            text = question_of(template.text if template else str(given))
            hidden = self.objects if template is None else ()
            if fault := fault_of(text, self.texts, self.rule.bleu, hidden):
                self.refused[origin, fault] += 1
            else:
                self.frames.append(Frame(text=text, origin=origin, template=template))


def question_of(text: str) -> str:
    """A question without the place of its answer, spare spaces dropped.

    >>> question_of("Where was  [X] born? [Y].")
    'Where was [X] born?'
    """
    return _ANSWER.sub("", " ".join(text.split()))


def fault_of(text: str, kept: Sequence[str], bleu: float, objects: Sequence[str]) -> Fault | None:
    """Why a question cannot join the frames that are kept; None where it can."""
    if not _sound(text):
        return "malformed"
    if bare(text) in map(bare, kept):
        return "repeated"
    if any(likeness(text, other) >= bleu for other in kept):
        return "alike"
    return "telling" if any(stands_in(name, text) for name in objects) else None


def templates(relation: Relation, frames: Sequence[Frame]) -> tuple[Template, ...]:
    """A relation's templates: its frames, the base frame first, then its statements."""
    statements = tuple(t for t in relation.templates if t.style == "statement")
    made = tuple(_made(relation, frames, statements))
    ids = {template.id for template in (*made, *statements)}
    kept = (*made, *statements)
    return tuple(t if t.group in ids else replace(t, group=t.id) for t in kept)


def _made(
    relation: Relation, frames: Sequence[Frame], statements: Sequence[Template]
) -> Iterator[Template]:
    taken = {template.id for template in relation.templates}
    base = statements[0].id if statements else ""
    for place, frame in enumerate(frames, 1):
        made = frame.template or Template(
            id=_free(f"{relation.id}-frame-{place}", taken),
            text=f"{frame.text} {ANSWER_SLOT}.",
            source="paraphrase",
            style="question",
            group=base,
        )
        base = made.id if place == 1 else base
        yield made


def _free(id: str, taken: set[str]) -> str:
    """An identifier that no template has."""
    while id in taken:
        id += "x"
    return id


def _sound(text: str) -> bool:
    return (
        text.count(SUBJECT_SLOT) == 1
        and ANSWER_SLOT not in text
        and text.endswith(QUESTION_MARKS)
        and len(text) <= LONGEST
        and text.isprintable()
    )


def need_bleu() -> None:
    """Refuse clearly where sacrebleu is not installed."""
    if find_spec("sacrebleu") is None:
        raise MissingExtra(f"sacrebleu, which compares frames, is not installed; run: {INSTALL}")


def likeness(one: str, other: str) -> float:
    """Sentence BLEU of two questions, 0 to 100: the larger of both directions.

    The subject's slot counts as one word, not as a word in brackets.
    """
    return max(_directed(one, other), _directed(other, one))


@cache
def _directed(said: str, meant: str) -> float:
    score = _metric().sentence_score(_words(said), [_words(meant)]).score
    return min(float(score), 100.0)  # rounding leaves a trace above


@cache
def _metric() -> Any:
    need_bleu()
    from sacrebleu.metrics.bleu import BLEU

    return BLEU(effective_order=True)  # short questions may have no four words in a row in common


def _words(text: str) -> str:
    return text.replace(SUBJECT_SLOT, "X")
