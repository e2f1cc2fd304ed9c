"""What can be guessed about facts without knowing any of them, fact by fact.

An answer drawn from the answer space; the commonest object; class prior and naive Bayes exactly as
the controls of those names count them, on training facts without those that leak. Where a relation
has none, naive Bayes is counted on the other facts of the split, fold by fold; a class prior is
not: where objects come about equally often, a part lacks just what the others have more of, and it
would fall below chance. And LAMA-UHN's first filter: the object's name stands in the subject's.
Where all facts name what is wrong, each guess chooses from the fact's own options. Knows no model
that reads text.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from math import log2

import numpy as np

from sonde.core.facts import Fact, commonest_objects
from sonde.core.fingerprints import draw_key
from sonde.evaluation.stats import Floats
from sonde.models.controls import Words, counted

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
    own = own_options(asked)
    order = [name for name, _ in commonest_objects(asked)]
    if trained:
        prior, bayes = _learnt(trained, asked, own)
    else:
        prior, bayes = np.full(len(asked), np.nan), _by_fold(asked, own, seed)
    spaces = own or [frozenset(options)] * len(asked)
    return Guesses(
        chance=np.array([*map(_share, asked, spaces)]),
        majority=_right(asked, _firsts(order, asked, own)),
        prior=prior,
        bayes=bayes,
        in_name=np.array([*map(_in_name, asked)], dtype=np.float64),
        counted=len(trained),
    )


Own = Sequence[frozenset[str]]
"""The options of each fact, by usual names; empty where they choose from all of the relation's."""


def own_options(asked: Sequence[Fact]) -> Own:
    """What each fact names, right or wrong, where all name something wrong."""
    if not all(fact.wrong for fact in asked):
        return ()
    return [frozenset(entity.name for entity in (*f.objects, *f.wrong)) for f in asked]


def _firsts(order: Sequence[str], asked: Sequence[Fact], own: Own) -> list[str]:
    """For each fact the first name of an order, of its own options if it has some."""
    if not own:
        return [next(iter(order), "")] * len(asked)
    return [_first(order, options) for options in own]


def _first(order: Iterable[str], options: frozenset[str]) -> str:
    """The first of some options in an order; the first by name where none is in it."""
    return next((name for name in order if name in options), min(options))


def _in_name(fact: Fact) -> bool:
    """Whether the subject's usual name contains that of an object, ignoring case."""
    within = fact.subject.name.casefold()
    return any(entity.name.casefold() in within for entity in fact.objects)


def _share(fact: Fact, options: frozenset[str]) -> float:
    """Of the options, those that are right."""
    return len(options & {entity.name for entity in fact.objects}) / max(len(options), 1)


def _learnt(trained: Sequence[Fact], asked: Sequence[Fact], own: Own) -> tuple[Floats, Floats]:
    """What class prior and naive Bayes, counted on some facts, get right of others."""
    words = counted(trained)
    likeliest = [
        _likeliest(words, fact, own[place] if own else None) for place, fact in enumerate(asked)
    ]
    return _right(asked, _firsts(words.objects, asked, own)), _right(asked, likeliest)


def _likeliest(words: Words, fact: Fact, options: frozenset[str] | None) -> str:
    scores = words.scores(fact.subject.name)
    if options is None:
        return words.objects[int(scores.argmax())]
    known = [place for place, name in enumerate(words.objects) if name in options]
    return words.objects[max(known, key=lambda place: scores[place])] if known else min(options)


def _by_fold(asked: Sequence[Fact], own: Own, seed: int) -> Floats:
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
            of_held = [own[place] for place in held] if own else ()
            bayes[held] = _learnt(others, [asked[place] for place in held], of_held)[1]
    return bayes


def _right(asked: Sequence[Fact], answers: Sequence[str]) -> Floats:
    pairs = zip(asked, answers, strict=True)
    return np.array([float(any(a in o.names for o in fact.objects)) for fact, a in pairs])


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """How the objects of a relation's facts are spread: names with their counts, commonest first.

    `options` is the size of the relation's answer space; `distractors` of them are no fact's
    object. `own`: the most options that a fact has for itself, 0 where facts name none.
    """

    objects: Sequence[tuple[str, int]]
    options: int
    distractors: int
    own: int = 0

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
        own=max(map(len, own_options(asked)), default=0),
    )
