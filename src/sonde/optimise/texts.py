"""Training facts as token ids: where vectors stand, where the answer is read, what is right there.

Knows the two kinds of models; nothing of training.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from sonde.core.errors import PromptError
from sonde.core.facts import Fact, Template
from sonde.core.prompts import Fill
from sonde.core.texts import spoken
from sonde.models.torch.causal.model import CausalModel
from sonde.models.torch.masked.model import MaskedModel
from sonde.optimise.making import Made, Task

Trainable = CausalModel | MaskedModel
WORD = "Paris"  # stands in a slot while a sentence is cut into tokens


class Text(NamedTuple):
    """One fact's tokens; each place whose logits are read, and the tokens that are right there.

    The first `answer` of the places are the answer itself.
    """

    ids: tuple[int, ...]
    places: tuple[int, ...]
    golds: tuple[tuple[int, ...], ...]
    answer: int


OUTSIDE, LONG = "outside_vocabulary", "too_long"
"""Why a fact has no text: no object of it may be answered, or it is too long for the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A relation about to be trained or searched: its prompt, its texts, the ids of its vectors.

    `allowed` are the tokens that may be answered, None for every one; `otherwise`: so many facts
    are other tokens under the vectors than under the words before.
    """

    task: Task
    template: Template
    train: tuple[Text, ...]
    dev: tuple[Text, ...]
    left_out: Counter[str]
    allowed: frozenset[int] | None
    ids: range
    otherwise: int

    @property
    def counts(self) -> dict[str, int]:
        """What is used and what is left out."""
        return {
            **self.task.counts,
            "train": len(self.train),
            "dev": len(self.dev),
            OUTSIDE: self.left_out[OUTSIDE],
            LONG: self.left_out[LONG],
            "tokenised_otherwise": self.otherwise,
        }

    def nothing_left(self) -> Made:
        """What is made of a relation none of whose training facts can be used: nothing."""
        return Made(
            relation=self.task.relation.id,
            counts=self.counts,
            problem=f"none of its {len(self.task.train)} training facts can be used: "
            f"{self.left_out[OUTSIDE]} have no object that may be answered, "
            f"{self.left_out[LONG]} are too long (train and dev)",
        )


def draft(
    model: Any,
    task: Task,
    template: Template,
    vocabulary: tuple[str, ...] | None,
    *,
    ids: range = range(0),
    words: Sequence[int] = (),
) -> Draft:
    """A relation under a template; `words` are the tokens that its vectors were taken from."""
    otherwise = 0
    if words:
        plain, tokens = task.relation.templates[0], dict(zip(ids, words, strict=True))
        otherwise = tokenised_otherwise(model, task, template, tokens, plain)
    allowed = None
    if isinstance(model, MaskedModel):
        allowed = allowed_answers(model, template, task.train[0], vocabulary)
    train, dev = (
        list(texts_of(model, template, facts, vocabulary)) for facts in (task.train, task.dev)
    )
    return Draft(
        task=task,
        template=template,
        train=tuple(text for text in train if isinstance(text, Text)),
        dev=tuple(text for text in dev if isinstance(text, Text)),
        left_out=Counter(reason for reason in (*train, *dev) if isinstance(reason, str)),
        allowed=allowed,
        ids=ids,
        otherwise=otherwise,
    )


def tokenised_otherwise(
    model: Trainable, task: Task, soft: Template, tokens: Mapping[int, int], plain: Template
) -> int:
    """How many facts are other tokens under vectors, each written as its token, than in words."""
    count = 0
    for fact in (*task.train, *task.dev):
        ids = prompt_ids(model, soft, fact.subject.name)
        read = prompt_ids(model, plain, fact.subject.name)
        count += tuple(tokens.get(id, id) for id in ids) != read
    return count


def prompt_ids(model: Trainable, template: Template, subject: str) -> tuple[int, ...]:
    """The tokens of a template with a subject, as the model reads them."""
    prefix, suffix = template.fill(subject)
    if isinstance(model, MaskedModel):
        return model.encoder.masked([(prefix, suffix)])[0].ids
    return model.encoder.encode(prefix, [WORD], spoken(suffix))[0].ids


def allowed_answers(
    model: MaskedModel, template: Template, fact: Fact, vocabulary: tuple[str, ...] | None
) -> frozenset[int]:
    """The tokens that a masked model may answer with under a template."""
    before = template.fill(fact.subject.name, fact)[0]
    return model.tables.table(Fill(vocabulary=vocabulary), before).allowed.may


def texts_of(
    model: Trainable,
    template: Template,
    facts: Sequence[Fact],
    vocabulary: tuple[str, ...] | None,
) -> Iterator[Text | str]:
    """Each fact under a template, as the model itself would be asked, or why it has no text."""
    if isinstance(model, CausalModel):
        yield from (causal_text(model, template, fact) for fact in facts)
    elif facts:
        allowed = allowed_answers(model, template, facts[0], vocabulary)
        yield from masked_texts(model, template, facts, allowed)


def masked_texts(
    model: MaskedModel, template: Template, facts: Sequence[Fact], allowed: frozenset[int]
) -> Iterator[Text | str]:
    """One place to read, the mask; every name of an object that is one allowed token is right."""
    sides = [template.fill(fact.subject.name, fact) for fact in facts]
    names = {name for fact in facts for entity in fact.objects for name in entity.names}
    tokens = model.encoder.single_tokens(sorted(names), sides[0][0])
    for fact, span in zip(facts, model.encoder.masked(sides), strict=True):
        ids = {tokens.get(name) for entity in fact.objects for name in entity.names}
        gold = tuple(sorted(id for id in ids if id is not None and id in allowed))
        if not gold:
            yield OUTSIDE
        elif len(span.ids) > model.loaded.context:
            yield LONG
        else:
            yield Text(ids=span.ids, places=(span.start,), golds=(gold,), answer=1)


def causal_text(model: CausalModel, template: Template, fact: Fact) -> Text | str:
    """The tokens of the first object's usual name, and of what follows it, each read before it."""
    prefix, suffix = template.fill(fact.subject.name, fact)
    try:
        (span,) = model.encoder.encode(prefix, [fact.objects[0].name], spoken(suffix))
    except PromptError:
        return OUTSIDE
    if len(span.ids) > model.loaded.context:
        return LONG
    return Text(
        ids=span.ids[: span.end - 1],  # what is predicted last is never read
        places=tuple(range(span.start - 1, span.end - 1)),
        golds=tuple((id,) for id in span.ids[span.start : span.end]),
        answer=span.stop - span.start,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Texts of several relations as arrays, a row each; what is missing is -1.

    `ids` [rows, tokens]; `vectors` [rows, vectors] the place of each of the relation's vectors;
    `places` [rows, wanted] and `golds` [rows, wanted, names] what is read and what is right there;
    `answer` [rows] how many of these are the answer; `relation` [rows].
    """

    ids: np.ndarray
    lengths: np.ndarray
    vectors: np.ndarray
    places: np.ndarray
    golds: np.ndarray
    answer: np.ndarray
    relation: np.ndarray


def rows_of(drafts: Sequence[Draft], split: str) -> Rows:
    """The texts of some relations' training or dev facts; a relation is its place in `drafts`."""
    texts = [(i, text) for i, d in enumerate(drafts) for text in getattr(d, split)]
    longest = max((len(text.ids) for _, text in texts), default=0)
    most = max((len(text.places) for _, text in texts), default=0)
    names = max((len(right) for _, text in texts for right in text.golds), default=0)
    ids = np.zeros((len(texts), longest), dtype=np.int64)
    places = np.full((len(texts), most), -1, dtype=np.int64)
    golds = np.full((len(texts), most, names), -1, dtype=np.int64)
    width = max((len(d.ids) for d in drafts), default=0)
    vectors = np.full((len(texts), width), -1, dtype=np.int64)
    for row, (i, text) in enumerate(texts):
        ids[row, : len(text.ids)] = text.ids
        places[row, : len(text.places)] = text.places
        for k, right in enumerate(text.golds):
            golds[row, k, : len(right)] = right
        for place, id in enumerate(text.ids):
            if id in drafts[i].ids:
                vectors[row, id - drafts[i].ids.start] = place
    return Rows(
        ids=ids,
        lengths=np.array([len(text.ids) for _, text in texts], dtype=np.int64),
        vectors=vectors,
        places=places,
        golds=golds,
        answer=np.array([text.answer for _, text in texts], dtype=np.int64),
        relation=np.array([i for i, _ in texts], dtype=np.int64),
    )
