"""Prompts whose parts are known: examples, a name in front, the subject, the rest.

The prompts of a fact are those of MONITOR. Knows facts and texts, nothing of models.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from polars import col

from sonde.core.errors import UsageError, nearest
from sonde.core.facts import SUBJECT_SLOT, Dataset, Fact, Selection, Template
from sonde.prompting.cues import Form, question_prompt, question_templates, write_question_examples
from sonde.prompting.examples import choose_fixed_examples, fill_question
from sonde.prompting.matching import clean_answer
from sonde.prompting.options import (
    draw_wrong_names,
    names_correct_for,
    names_correct_for_repeated_subjects,
)

__all__ = ["Parted", "Shape", "clean_answer", "find_fact", "free", "of_fact"]

Kind = Literal["prompt", "anchor", "framing", "interference"]
PartName = Literal["examples", "context", "subject", "rest"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A stretch of a prompt's characters; what no part holds is the rest of the question."""

    name: PartName
    start: int
    stop: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Parted:
    """A prompt up to where its answer begins, with its parts; `answer`, if one is given.

    `turns`: where answers of its examples begin and end, one by one.
    """

    kind: Kind
    label: str
    text: str
    parts: tuple[Part, ...] = ()
    answer: str | None = None
    shots: int = 0
    turns: tuple[int, ...] = ()

    def part_of(self, start: int, stop: int) -> PartName:
        """The part that a token belongs to: the one it shares most characters with.

        A space before a word belongs to the word, so of equal shares the later part has it.
        """
        shares: dict[PartName, int] = {}
        for part in self.parts:
            within = min(stop, part.stop) - max(start, part.start)
            if within > 0:
                shares[part.name] = shares.get(part.name, 0) + within
        outside = len(self.text[start:stop].lstrip(" ")) - sum(shares.values())
        if not shares:
            return "rest"
        best = max(shares, key=lambda name: shares[name])
        return best if shares[best] >= outside else "rest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How the prompts of a fact look: their form, examples before them, wordings, wrong names.

    0 frames are all that the relation has.
    """

    form: Form = "plain"
    shots: int = 0
    frames: int = 0
    negatives: int = 5


def free(text: str, answer: str | None) -> Parted:
    """A prompt as a user wrote it; a space stands between it and its answer."""
    if not text.strip():
        raise UsageError("the prompt is empty; give the text that the answer follows")
    spaced = text if text[-1].isspace() else f"{text} "
    return Parted(kind="prompt", label=text.strip(), text=spaced, answer=answer)


def find_fact(dataset: Dataset, id: str, relation: str) -> Fact:
    """The fact of an id; several relations may have one, and then the relation is needed."""
    wanted = [dataset.relation(relation)] if relation else list(dataset.relations)
    facts = [fact for each in wanted for fact in dataset.facts(each.id)]
    matches = [fact for fact in facts if fact.id == id]
    if len(matches) == 1:
        return matches[0]
    if matches:
        names = ", ".join(sorted({fact.relation for fact in matches}))
        raise UsageError(f"fact {id!r} is in several relations ({names}); name one by --relation")
    hint = nearest(id, (fact.id for fact in facts))
    hint = hint if hint.endswith("?") else "see 'sonde data show' for the ids"
    where = f"relation {relation!r} of " if relation else ""
    raise UsageError(f"{where}dataset {dataset.name!r} has no fact {id!r}; {hint}")


def of_fact(dataset: Dataset, fact: Fact, shape: Shape, answer: str | None) -> list[Parted]:
    """The fact's anchor, its frames with nothing told, and its base frame after wrong names.

    Without an answer it is the fact's object, whose probability MONITOR takes.
    """
    wordings = question_templates(dataset.relation(fact.relation), shape.frames or None)
    if not wordings:
        raise UsageError(
            f"relation {fact.relation!r} of dataset {dataset.name!r} has no question templates; "
            "take one that has, or give a prompt instead of a fact"
        )
    before, turns, count = examples(dataset, fact, wordings[0], shape)
    gold = fact.objects[0].name
    correct = names_correct_for(fact, names_correct_for_repeated_subjects(dataset, fact.relation))
    pool, seed = dataset.object_names(fact.relation), dataset.selection.seed
    wrong, _ = draw_wrong_names(fact, correct, pool, seed, shape.negatives)

    def put(kind: Kind, label: str, frame: Template, name: str = "") -> Parted:
        text, parts = parted(before, frame, fact.subject.name, name, shape.form)
        return Parted(kind=kind, label=label, text=text, parts=parts,
                      answer=gold if answer is None else answer, shots=count,
                      turns=turns)  # fmt: skip

    def all_of() -> Iterator[Parted]:
        yield put("anchor", f"told {gold} (right)", wordings[0], gold)
        for k, frame in enumerate(wordings):
            yield put("framing", f"frame {frame.id}" + (" (base)" if k == 0 else ""), frame)
        for name in wrong:
            yield put("interference", f"told {name} (wrong)", wordings[0], name)

    return list(all_of())


def examples(
    dataset: Dataset, fact: Fact, base: Template, shape: Shape
) -> tuple[str, tuple[int, ...], int]:
    """The examples before every prompt of the fact, where their answers are, and their number."""
    if not shape.shots:
        return "", (), 0
    whole = dataset.select(Selection(split=fact.split, seed=dataset.selection.seed))
    shown = choose_fixed_examples(whole, fact.relation, shape.shots)
    if fact.id in shown.filter("held")["fact"]:  # MONITOR excludes it; here another replaces it
        shown = choose_fixed_examples(whole, fact.relation, shape.shots + 1)
    others = shown.filter(~col("subject").is_in(fact.subject.names)).head(shape.shots)
    usual = others.select("subject", object=col("object_names").list.first().list.first())
    text, turns = write_question_examples(base, usual.to_dicts(), shape.form)
    return text, tuple(turns), others.height


def parted(
    before: str, frame: Template, subject: str, name: str, form: Form
) -> tuple[str, tuple[Part, ...]]:
    """A prompt's text, and where its parts stand in it."""
    body = fill_question(frame, subject, "qa")
    bare, prompt = (question_prompt(frame, subject, form, cue) for cue in ("", name))
    text = before + prompt
    at, cue = len(before) + bare.index(body), len(prompt) - len(bare)
    parts = [Part(name="examples", start=0, stop=len(before))] if before else []
    if name:
        parts.append(Part(name="context", start=at, stop=at + cue))
    first = at + cue + frame.text.index(SUBJECT_SLOT)
    parts.append(Part(name="subject", start=first, stop=first + len(subject)))
    return text, tuple(parts)
