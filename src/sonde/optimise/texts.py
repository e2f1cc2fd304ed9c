"""Training facts as token ids: where vectors stand, where the answer is read, what is right there.

Knows the two kinds of models; nothing of training.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from sonde.core.errors import PromptError
from sonde.core.facts import Fact, Template
from sonde.core.prompts import Fill, spoken
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """The texts of some facts, and how many facts have none and why.

    `allowed` are the tokens that may be answered, None for every one.
    """

    texts: tuple[Text, ...] = ()
    outside: int = 0
    long: int = 0
    allowed: frozenset[int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A relation about to be trained or searched: its prompt, its texts, the ids of its vectors.

    `otherwise`: so many facts are other tokens under the vectors than under the words before.
    """

    task: Task
    template: Template
    train: Texts
    dev: Texts
    ids: range
    otherwise: int

    @property
    def counts(self) -> dict[str, int]:
        """What is used and what is left out."""
        return {
            **self.task.counts,
            "train": len(self.train.texts),
            "dev": len(self.dev.texts),
            "outside_vocabulary": self.train.outside + self.dev.outside,
            "too_long": self.train.long + self.dev.long,
            "tokenised_otherwise": self.otherwise,
        }

    def nothing_left(self) -> Made:
        """What is made of a relation none of whose training facts can be used: nothing."""
        counts = self.counts
        return Made(
            relation=self.task.relation.id,
            counts=counts,
            problem=f"none of its {len(self.task.train)} training facts can be used: "
            f"{counts['outside_vocabulary']} have no object that may be answered, "
            f"{counts['too_long']} are too long (train and dev)",
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
    return Draft(
        task=task,
        template=template,
        train=texts_of(model, template, task.train, vocabulary),
        dev=texts_of(model, template, task.dev, vocabulary),
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


def texts_of(
    model: Trainable,
    template: Template,
    facts: Sequence[Fact],
    vocabulary: tuple[str, ...] | None,
) -> Texts:
    """Each fact under a template, as the model itself would be asked."""
    if not facts:
        return Texts()
    if isinstance(model, MaskedModel):
        return masked_texts(model, template, facts, vocabulary)
    return causal_texts(model, template, facts)


def masked_texts(
    model: MaskedModel,
    template: Template,
    facts: Sequence[Fact],
    vocabulary: tuple[str, ...] | None,
) -> Texts:
    """One place to read, the mask; every name of an object that is one allowed token is right."""
    sides = [template.fill(fact.subject.name) for fact in facts]
    before = sides[0][0]
    allowed = model.tables.table(Fill(vocabulary=vocabulary), before).allowed.may
    names = {name for fact in facts for entity in fact.objects for name in entity.names}
    tokens = model.encoder.single_tokens(sorted(names), before)
    texts, outside, long = [], 0, 0
    for fact, span in zip(facts, model.encoder.masked(sides), strict=True):
        ids = {tokens.get(name) for entity in fact.objects for name in entity.names}
        gold = tuple(sorted(id for id in ids if id is not None and id in allowed))
        if not gold:
            outside += 1
        elif len(span.ids) > model.loaded.context:
            long += 1
        else:
            texts.append(Text(ids=span.ids, places=(span.start,), golds=(gold,), answer=1))
    return Texts(texts=tuple(texts), outside=outside, long=long, allowed=allowed)


def causal_texts(model: CausalModel, template: Template, facts: Sequence[Fact]) -> Texts:
    """The tokens of the first object's usual name, and of what follows it, each read before it."""
    texts, outside, long = [], 0, 0
    for fact in facts:
        prefix, suffix = template.fill(fact.subject.name)
        try:
            (span,) = model.encoder.encode(prefix, [fact.objects[0].name], spoken(suffix))
        except PromptError:
            outside += 1
            continue
        if len(span.ids) > model.loaded.context:
            long += 1
            continue
        text = Text(
            ids=span.ids[: span.end - 1],  # what is predicted last is never read
            places=tuple(range(span.start - 1, span.end - 1)),
            golds=tuple((id,) for id in span.ids[span.start : span.end]),
            answer=span.stop - span.start,
        )
        texts.append(text)
    return Texts(texts=tuple(texts), outside=outside, long=long)


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
    texts = [(i, text) for i, d in enumerate(drafts) for text in getattr(d, split).texts]
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
