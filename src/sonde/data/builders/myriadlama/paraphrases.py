"""Paraphrases of hand-written templates, written by a chat model, in the manner of MyriadLAMA.

Each template is paraphrased until so many sentences differ from one another and from every other
template of the relation. What cannot be used is counted and asked for again: a sentence that lacks
a slot or has one twice, repeats another, or names an object of the relation. A model that brings
nothing new for some turns in a row ends the work. Knows nothing of servers and terminals.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count as numbers
from typing import Literal, NamedTuple

from sonde.core.errors import UsageError
from sonde.core.facts import ANSWER_SLOT, Relation, Template
from sonde.data.builders.endpoint import LOST, SPARE, Asker, Exhausted, candidates
from sonde.data.check import bare, finder
from sonde.data.review.judgements import item_id
from sonde.data.wordings import style_of
from sonde.prompting.languages import QUESTION_MARKS

Fault = Literal["slots", "repeated", "telling", "unfit"]

BY_HAND = 5
"""Hand-written templates of a relation, one of them a question at least, in the paper."""

LONGEST = 300
CHARACTERS = 4
"""Of a sentence at most; and of a token, roughly, to foretell what asking will cost."""

INSTRUCTION = """\
Your work is to rephrase sentences. Write natural sentences, in simple words, that say correctly \
how [X] and [Y] are related. Make them as different from one another as you can, and repeat none.
Rephrase this sentence {count} times:
{sentence}
{hint}
Write in the language of that sentence. Keep [X], [Y] and whatever else stands in square brackets \
as it is, each exactly once in every sentence, and put no name in their place. Where the sentence \
is a question with its answer behind it, write such questions. \
Write one sentence a line and nothing else."""
"""What the paper asks of GPT-4, in our words; the hint says what [X] and [Y] are."""

OTHERS = "These are there already; write others:"

_SLOT = re.compile(r"\[[^\[\]\s]+\]")
_MARKUP = re.compile(rf"[{{}}<>|\\{LOST}]|\":")

Told = Callable[[str], Collection[str]]
"""The answers that a sentence gives away."""

Progress = Callable[[int, int], None]
"""Called with the templates that are done and all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How many paraphrases a template gets, and how they are asked for.

    `patience` counts turns in a row without anything new, after which no more are expected: that
    ends the work, unless `fewer` will do. `dropped` are items that reviewers did not keep, which
    are not taken again.
    """

    paraphrases: int = 19
    patience: int = 5
    fewer: bool = False
    instruction: str = INSTRUCTION
    dropped: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if self.paraphrases < 1 or self.patience < 1:
            raise UsageError("--paraphrases and --patience must be at least 1")
        if missing := [slot for slot in ("{sentence}", "{count}") if slot not in self.instruction]:
            raise UsageError(f"--instruction has no {' and no '.join(missing)}; write it there")


@dataclass(slots=True, kw_only=True)
class Made:
    """A template, what it was paraphrased as, and how many sentences could not be used, why."""

    parent: Template
    texts: list[str]
    refused: Counter[Fault] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True, kw_only=True)
class Paraphrased:
    """A relation with its paraphrases, each behind those it belongs with; `made` says how."""

    relation: Relation
    made: tuple[Made, ...]


class Expected(NamedTuple):
    """What asking will cost at least: a request a template; tokens are a rough guess."""

    templates: int
    paraphrases: int
    sent: int
    received: int


def expected(relations: Iterable[Relation], recipe: Recipe, hints: Mapping[str, str]) -> Expected:
    """The cost of a model that writes nothing twice, before anything is asked."""
    lacks = [
        (parent.text, missing, request(parent, (), missing, hints.get(relation.id, ""), recipe))
        for relation in relations
        for parent, there in families(relation)
        if (missing := recipe.paraphrases - len(there)) > 0
    ]
    return Expected(
        templates=len(lacks),
        paraphrases=sum(missing for _, missing, _ in lacks),
        sent=sum(len(text) for _, _, text in lacks) // CHARACTERS,
        received=sum(len(text) * missing for text, missing, _ in lacks) // CHARACTERS,
    )


def paraphrase_all(
    relations: Sequence[Relation],
    asker: Asker,
    recipe: Recipe,
    *,
    hints: Mapping[str, str],
    objects: Callable[[str], Sequence[str]],
    progress: Progress = lambda done, total: None,
) -> Iterator[Paraphrased]:
    """Relations one by one, with their paraphrases; `objects` names those of a relation."""
    total = sum(len(families(relation)) for relation in relations)
    done = 0
    for relation in relations:
        progress(done, total)
        hint = hints.get(relation.id, "")
        found = paraphrased(relation, asker, recipe, hint=hint, objects=objects(relation.id))
        done += len(found.made)
        yield found
    progress(total, total)


def paraphrased(
    relation: Relation, asker: Asker, recipe: Recipe, *, hint: str = "", objects: Sequence[str] = ()
) -> Paraphrased:
    """A relation whose templates have `recipe.paraphrases` each; those that are there count.

    No sentence may name one of the `objects`, unless the template that it comes from does.
    """
    prefix = item_id(relation.id, "")
    dropped = (each.removeprefix(prefix) for each in recipe.dropped if each.startswith(prefix))
    taken = {bare(text) for text in (*(t.text for t in relation.templates), *dropped)}
    ids = {template.id for template in relation.templates}
    find, made, templates = finder(objects), [], []
    for parent, there in families(relation):
        one = Made(parent=parent, texts=[template.text for template in there])
        _fill(relation, one, asker, recipe, hint, _beyond(parent, find), taken)
        new = [_template(parent, text, ids) for text in one.texts[len(there) :]]
        made.append(one)
        templates += [parent, *there, *new]
    return Paraphrased(relation=replace(relation, templates=tuple(templates)), made=tuple(made))


def _beyond(parent: Template, find: Told) -> Told:
    """What a sentence gives away that the template which it comes from does not."""
    known = set(find(parent.text))
    return lambda text: set(find(text)) - known


def families(relation: Relation) -> list[tuple[Template, list[Template]]]:
    """Each template that is no paraphrase, with the paraphrases of it that are there already.

    A paraphrase whose template is gone stands for it.
    """
    ids = {template.id for template in relation.templates}
    heads: dict[str, Template] = {}
    members: dict[str, list[Template]] = {}
    for template in relation.templates:
        own = template.source != "paraphrase"
        group = template.id if own or template.group not in ids else template.group
        if group == template.id:
            heads[group] = template
        else:
            members.setdefault(group, []).append(template)
    return [(head, members.get(id, [])) for id, head in heads.items()]


def by_hand_doubt(relation: Relation) -> str:
    """What the paper asks of hand-written templates and a relation lacks; empty for nothing."""
    heads = [head for head, _ in families(relation)]
    few = f"{len(heads)} by hand" if len(heads) < BY_HAND else ""
    asked = "" if any(head.style == "question" for head in heads) else "no question"
    return ", ".join(filter(None, (few, asked)))


def _fill(
    relation: Relation,
    made: Made,
    asker: Asker,
    recipe: Recipe,
    hint: str,
    told: Told,
    taken: set[str],
) -> None:
    """Have sentences written until there are enough, or nothing new comes any more."""
    barren = 0
    for turn in numbers(1):
        missing = recipe.paraphrases - len(made.texts)
        if missing <= 0:
            return
        text = request(made.parent, made.texts, missing, hint, recipe)
        answer = asker.answer(text, relation.id, made.parent.id, str(turn))
        barren = 0 if _offer(made, candidates(answer), missing, told, taken) else barren + 1
        if barren == recipe.patience and recipe.fewer:
            return
        if barren == recipe.patience:
            last = " ".join(answer.split())[:80]
            raise Exhausted(
                f"the model wrote nothing new {barren} times in a row: template {made.parent.id!r} "
                f"has {len(made.texts)} of {recipe.paraphrases} paraphrases (its last answer: "
                f"{last!r}); go on with --fewer or more --patience, or ask another model"
            )


def _offer(made: Made, texts: Iterable[str], missing: int, told: Told, taken: set[str]) -> int:
    """Keep what can be used, as much as is missing, and count the rest; how much was kept."""
    kept = 0
    for given in texts:
        text = mended(given, made.parent)
        if kept == missing:
            break
        if fault := fault_of(text, made.parent, told, taken):
            made.refused[fault] += 1
        else:
            made.texts.append(text)
            taken.add(bare(text))
            kept += 1
    return kept


def request(parent: Template, there: Sequence[str], missing: int, hint: str, recipe: Recipe) -> str:
    """What a model is asked: the paper's instruction, then what is there already, if anything."""
    count = missing + SPARE if there else missing
    filled = {"{count}": str(count), "{hint}": hint, "{sentence}": parent.text}
    text = recipe.instruction
    for slot, value in filled.items():
        text = text.replace(f"{slot}\n", f"{value}\n" if value else "").replace(slot, value)
    if hint and "{hint}" not in recipe.instruction:
        text = f"{text}\n{hint}"
    return "\n".join((text, OTHERS, *there)) if there else text


def mended(text: str, parent: Template) -> str:
    """A sentence without spare spaces; a question also with the place of its answer.

    >>> mended("Where  is [X]?", Template(id="t", text="In what land is [X]? [Y]."))
    'Where is [X]? [Y].'
    """
    text = " ".join(text.split())
    after = max(parent.text.rfind(mark) for mark in QUESTION_MARKS) + 1
    answer = parent.text[after:]
    asked = after and ANSWER_SLOT in answer and text.endswith(QUESTION_MARKS)
    return text + answer if asked and ANSWER_SLOT not in text else text


def fault_of(text: str, parent: Template, told: Told, taken: set[str]) -> Fault | None:
    """Why a sentence cannot be used; None where it can."""
    if Counter(_SLOT.findall(text)) != Counter(_SLOT.findall(parent.text)):
        return "slots"
    if len(text) > LONGEST or not text.isprintable() or _MARKUP.search(text):
        return "unfit"
    if bare(text) in taken:
        return "repeated"
    return "telling" if told(text) else None


def _template(parent: Template, text: str, ids: set[str]) -> Template:
    """A paraphrase, numbered behind its template."""
    id = next(f"{parent.id}-{n}" for n in numbers(1) if f"{parent.id}-{n}" not in ids)
    ids.add(id)
    return Template(id=id, text=text, source="paraphrase", style=style_of(text), group=parent.id)
