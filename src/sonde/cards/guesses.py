"""What can be guessed about facts without knowing any of them, fact by fact.

An answer drawn from the answer space; the commonest object; class prior and naive Bayes exactly as
the controls of those names count them, on training facts without those that leak. Where a relation
has none, naive Bayes is counted on the other facts of the split, fold by fold; a class prior is
not: where objects come about equally often, a part lacks just what the others have more of, and it
would fall below chance. And LAMA-UHN's first filter: the object's name stands in the subject's.
Knows no model that reads text.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import log2

import numpy as np

from sonde.core.facts import Fact, commonest_objects
from sonde.core.fingerprints import draw_key
from sonde.metrics.judged import Floats
from sonde.models.controls import Words, counted
from sonde.prompting.sentences import object_in_subject

FOLDS = 10


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Guesses:
    """An entry for each fact: whether a guess is right, or how likely it is.

    `counted` says on how many training facts the controls were; 0: naive Bayes fold by fold on the
    facts themselves, none of the fact's own subject, and no class prior.
    """

    chance: Floats
    majority: Floats
    prior: Floats
    bayes: Floats
    in_name: Floats
    counted: int

    @property
    def easy(self) -> Floats:
        """Facts whose object stands in the name, or which a control that is not blind answers."""
        return np.fmax(self.in_name, np.fmax(self.prior, self.bayes))


def guesses(
    asked: Sequence[Fact], trained: Sequence[Fact], options: Collection[str], seed: int
) -> Guesses:
    """Guess every fact of a relation that is asked about."""
    commonest = commonest_objects(asked)[0][0] if asked else ""
    if trained:
        prior, bayes = _learnt(trained, asked)
    else:
        prior, bayes = np.full(len(asked), np.nan), _by_fold(asked, seed)
    return Guesses(
        chance=np.array([_share(fact, frozenset(options)) for fact in asked]),
        majority=_right(asked, [commonest] * len(asked)),
        prior=prior,
        bayes=bayes,
        in_name=np.array([float(object_in_subject(fact)) for fact in asked]),
        counted=len(trained),
    )


def _share(fact: Fact, options: frozenset[str]) -> float:
    """Of the options, those that are right."""
    return len(options & {entity.name for entity in fact.objects}) / max(len(options), 1)


def _learnt(trained: Sequence[Fact], asked: Sequence[Fact]) -> tuple[Floats, Floats]:
    """What class prior and naive Bayes, counted on some facts, get right of others."""
    words = counted(trained)
    priors = [words.objects[0]] * len(asked)
    return _right(asked, priors), _right(asked, [_likeliest(words, fact) for fact in asked])


def _likeliest(words: Words, fact: Fact) -> str:
    return words.objects[int(words.scores(fact.subject.name).argmax())]


def _by_fold(asked: Sequence[Fact], seed: int) -> Floats:
    """What naive Bayes gets right of facts that are counted themselves, each by other parts.

    Subjects are dealt into the parts object by object, so that each has a share of every object.
    """
    firsts = {fact.subject.id: fact.objects[0].name for fact in reversed(asked)}
    order = sorted(firsts, key=lambda id: (firsts[id], draw_key(seed, id)))
    fold = {id: number % FOLDS for number, id in enumerate(order)}
    bayes = np.full(len(asked), np.nan)
    for part in range(min(FOLDS, len(order))):
        held = [place for place, fact in enumerate(asked) if fold[fact.subject.id] == part]
        others = [fact for fact in asked if fold[fact.subject.id] != part]
        if others:
            bayes[held] = _learnt(others, [asked[place] for place in held])[1]
    return bayes


def _right(asked: Sequence[Fact], answers: Sequence[str]) -> Floats:
    pairs = zip(asked, answers, strict=True)
    return np.array([float(any(a in o.names for o in fact.objects)) for fact, a in pairs])


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """How the objects of a relation's facts are spread: names with their counts, commonest first.

    `options` is the size of the answer space; `distractors` of them are no fact's object.
    """

    objects: Sequence[tuple[str, int]]
    options: int
    distractors: int

    @property
    def entropy(self) -> float:
        """Shannon's, in bits: 0 where all facts have one object."""
        counts = np.array([count for _, count in self.objects], dtype=np.float64)
        shares = counts / counts.sum()
        return max(0.0, -float((shares * np.log2(shares)).sum())) if len(counts) else 0.0

    @property
    def evenness(self) -> float | None:
        """Entropy as a share of what it were if every option came equally often."""
        return self.entropy / log2(self.options) if self.options > 1 else None

    @property
    def effective(self) -> float:
        """How many options that come equally often have the same entropy."""
        return float(2**self.entropy)

    def covered(self, most: int) -> list[float]:
        """The share of all objects that the first, the first two, … make."""
        counts = [count for _, count in self.objects]
        total = max(sum(counts), 1)
        return [sum(counts[:k]) / total for k in range(1, min(most, len(counts)) + 1)]


def spread(asked: Sequence[Fact], facts: Sequence[Fact], options: Collection[str]) -> Spread:
    """The objects of the facts that are asked about, beside the options there are."""
    answers = {name for fact in facts for entity in fact.objects for name in entity.names}
    return Spread(
        objects=commonest_objects(asked),
        options=len(options),
        distractors=len(set(options) - answers),
    )
