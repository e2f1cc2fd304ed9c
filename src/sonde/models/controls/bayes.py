"""Naive Bayes over the words of a subject's name. Knows names and counts, no text and no weights.

    P(o | r) Π_i (count(o, w_i) + 1) / Σ_w (count(o, w) + 1)

over the words w_i of the subject, separated by spaces; w runs over all words of the relation's
training subjects. Logarithms throughout.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sonde.core.abilities import Identity
from sonde.core.answers import Filled, Generated, Sampled, Scored, Traced
from sonde.core.columns import FilledColumns
from sonde.core.facts import Fact, commonest_objects
from sonde.core.fingerprints import canonical, fingerprint
from sonde.core.prompts import Prompt, Prompts
from sonde.models.tables import (
    UNSEEN,
    fill_distinct,
    fill_from,
    generate_from,
    sample_from,
    score_from,
    trace_from,
)

Floats = NDArray[np.float64]
Table = dict[str, float]

LEAST_APART = 1e-3
"""Nats between the commonest and the rarest of objects that are equally likely, so that none tie;
enough to outlast being stored with seven digits."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Words:
    """One relation counted: entries go by object, the commonest first.

    prior: log P(object | relation). spread: log of how many words the object's subjects have, each
    word counted once more. more: for each word, log (count + 1) of every object.
    """

    objects: tuple[str, ...]
    prior: Floats
    spread: Floats
    more: Mapping[str, Floats]

    def table(self, subject: str) -> Table:
        """The log-probability of every object for a subject of that name; they sum to 1."""
        words = subject.split()
        found = self.prior - len(words) * self.spread
        for word in words:
            if word in self.more:
                found = found + self.more[word]
        found = found - np.arange(len(found)) * (LEAST_APART / len(found))
        highest = found.max()
        found = found - highest - np.log(np.exp(found - highest).sum())
        return dict(zip(self.objects, found.tolist(), strict=True))


def counted(facts: Sequence[Fact]) -> Words:
    """Count the subjects' words of each object; a fact counts for every object it has."""
    order = commonest_objects(facts)
    places = {name: i for i, (name, _) in enumerate(order)}
    counts: dict[str, Counter[int]] = {}
    for fact in facts:
        for word in fact.subject.name.split():
            own = counts.setdefault(word, Counter())
            own.update(places[entity.name] for entity in fact.objects)
    table = {word: _spread_out(own, len(order)) for word, own in counts.items()}
    total = sum((np.bincount(list(c), list(c.values()), len(order)) for c in counts.values()), 0.0)
    numbers = np.array([count for _, count in order], dtype=np.float64)
    return Words(
        objects=tuple(places),
        prior=np.log(numbers / numbers.sum()),
        spread=np.log(np.asarray(total) + len(counts)) * np.ones(len(order)),
        more=table,
    )


def _spread_out(counts: Counter[int], size: int) -> Floats:
    """log (count + 1) of every object."""
    found = np.zeros(size)
    found[list(counts)] = np.log1p(np.array(list(counts.values()), dtype=np.float64))
    return found


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NaiveBayes:
    """Answers by the words of the subject's name alone, as the training facts have them.

    `subjects`: the usual name of each fact's subject, for prompts that ask about several.
    """

    words: Mapping[str, Words]
    subjects: Mapping[str, str] = field(default_factory=dict)
    details: Mapping[str, str] = field(default_factory=dict)

    @property
    def identity(self) -> Identity:
        """Named by what it counted."""
        return Identity(
            name="control:naive-bayes",
            architecture="counting",
            weights=fingerprint(_parts(self.words)),
            details=self.details,
        )

    def score(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Scored]]:
        """Yield (position, answer)."""
        for i, prompt in enumerate(prompts):
            table = self._tables(prompt)[0]
            yield i, score_from(prompt, table, _below(table))

    def fill(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Filled]]:
        """Yield (position, answer)."""
        for i, prompt in enumerate(prompts):
            table = self._tables(prompt)[0]
            yield i, fill_from(prompt, table, _below(table))

    def fill_columns(self, prompts: Prompts) -> Iterator[tuple[Any, FilledColumns]]:
        """Yield (positions, answers); only the subject's name counts."""

        def filled(prompt: Prompt) -> Filled:
            table = self._tables(prompt)[0]
            return fill_from(prompt, table, _below(table))

        return fill_distinct(prompts, ("relation", "subject"), filled)

    def generate(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Generated]]:
        """Yield (position, answer)."""
        for i, prompt in enumerate(prompts):
            yield i, generate_from(prompt, self._tables(prompt)[0])

    def sample(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Sampled]]:
        """Yield (position, answer)."""
        for i, prompt in enumerate(prompts):
            yield i, sample_from(prompt, self._tables(prompt)[0])

    def trace(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Traced]]:
        """Yield (position, answer)."""
        for i, prompt in enumerate(prompts):
            tables = self._tables(prompt)
            yield i, trace_from(prompt, tables, min(map(_below, tables)))

    def _tables(self, prompt: Prompt) -> list[Table]:
        """A table for the subject, or for each of the facts that a prompt asks about."""
        words = self.words.get(prompt.key.relation)
        if words is None:
            return [{}]
        if prompt.key.subject:
            return [words.table(prompt.key.subject)]
        return [words.table(self.subjects.get(fact, "")) for fact in prompt.facts]


def _below(table: Table) -> float:
    """A log-probability below all of a table's: that of an object no training fact has."""
    return min(UNSEEN, min(table.values(), default=0.0) - 1.0)


def _parts(words: Mapping[str, Words]) -> Iterator[str]:
    """Everything that was counted, in an order that does not depend on the facts'."""
    for relation in sorted(words):
        own = words[relation]
        yield canonical([relation, own.objects, own.prior.tolist(), own.spread.tolist()])
        for word in sorted(own.more):
            (places,) = np.nonzero(own.more[word])
            yield canonical([word, places.tolist(), own.more[word][places].tolist()])
