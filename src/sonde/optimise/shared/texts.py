"""Training facts as token ids: where vectors stand, where the answer is read, what is right there.

Knows the two kinds of models; nothing of training.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sonde.core.errors import PromptError
from sonde.core.facts import Fact, Template
from sonde.core.prompts import Fill, spoken
from sonde.models.torch.causal.model import CausalModel
from sonde.models.torch.masked.model import MaskedModel

Wanted = tuple[int, tuple[int, ...]]
"""A place whose logits are read, and the tokens that are right there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """One fact's text; the first `answer` of the wanted places are the answer itself."""

    ids: tuple[int, ...]
    wanted: tuple[Wanted, ...]
    answer: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """The texts of some facts, and how many facts have none and why.

    `allowed` are the tokens that may be answered, None for every one.
    """

    texts: tuple[Text, ...]
    outside: int
    long: int
    allowed: frozenset[int] | None


def texts_of(
    model: CausalModel | MaskedModel,
    template: Template,
    facts: Sequence[Fact],
    vocabulary: tuple[str, ...] | None,
) -> Texts:
    """Each fact under a template, as the model itself would be asked."""
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
    if not sides:
        return Texts(texts=(), outside=0, long=0, allowed=None)
    before = sides[0][0]
    allowed = model.tables.table(Fill(vocabulary=vocabulary), before).allowed.may
    names = {name for fact in facts for entity in fact.objects for name in entity.names}
    tokens = model.encoder.single_tokens(sorted(names), before)
    texts, outside, long = [], 0, 0
    for fact, span in zip(facts, model.encoder.masked(sides), strict=True):
        own = (tokens.get(name) for entity in fact.objects for name in entity.names)
        gold = tuple(sorted({id for id in own if id is not None and id in allowed}))
        outside += not gold
        long += bool(gold) and len(span.ids) > model.loaded.context
        if gold and len(span.ids) <= model.loaded.context:
            texts.append(Text(ids=span.ids, wanted=((span.start, gold),), answer=1))
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
        wanted = tuple((i - 1, (span.ids[i],)) for i in range(span.start, span.end))
        # what is predicted last is never read
        ids = span.ids[: span.end - 1]
        texts.append(Text(ids=ids, wanted=wanted, answer=span.stop - span.start))
    return Texts(texts=tuple(texts), outside=outside, long=long, allowed=None)


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


def rows_of(groups: Sequence[Sequence[Text]], firsts: Sequence[range]) -> Rows:
    """The texts of each relation, whose vectors have the ids `firsts`."""
    texts = [(i, text) for i, group in enumerate(groups) for text in group]
    count = len(texts)
    longest = max((len(t.ids) for _, t in texts), default=0)
    most = max((len(t.wanted) for _, t in texts), default=0)
    names = max((len(g) for _, t in texts for _, g in t.wanted), default=0)
    ids = np.zeros((count, longest), dtype=np.int64)
    places = np.full((count, most), -1, dtype=np.int64)
    golds = np.full((count, most, names), -1, dtype=np.int64)
    vectors = np.full((count, max(map(len, firsts), default=0)), -1, dtype=np.int64)
    for row, (i, text) in enumerate(texts):
        ids[row, : len(text.ids)] = text.ids
        for k, (place, right) in enumerate(text.wanted):
            places[row, k] = place
            golds[row, k, : len(right)] = right
        for place, id in enumerate(text.ids):
            if id in firsts[i]:
                vectors[row, id - firsts[i].start] = place
    return Rows(
        ids=ids,
        lengths=np.array([len(t.ids) for _, t in texts], dtype=np.int64),
        vectors=vectors,
        places=places,
        golds=golds,
        answer=np.array([t.answer for _, t in texts], dtype=np.int64),
        relation=np.array([i for i, _ in texts], dtype=np.int64),
    )
