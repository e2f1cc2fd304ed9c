"""Words that are one token for several models, and a dataset restricted to them.

Models that have other tokens can answer other facts; on the words that all of them can answer they
are compared fairly. Knows prompts and answers, nothing of how a model makes them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from sonde.core.abilities import Ability, need
from sonde.core.answers import Answer, Filled, Scored
from sonde.core.errors import DataError
from sonde.core.facts import Dataset
from sonde.core.fingerprints import fingerprint
from sonde.core.prompts import Fill, Key, Prompt, Score
from sonde.data.lines import read_lines

if TYPE_CHECKING:
    from polars import DataFrame

BEFORE, AFTER = "The answer is ", " ."
"""A word is tried where most answers stand: after a space, inside a sentence."""


def words_of(dataset: Dataset) -> tuple[str, ...]:
    """The dataset's vocabulary; without one, the names of all objects."""
    if dataset.vocabulary is not None:
        return dataset.vocabulary
    frames = (dataset.frame(relation.id) for relation in dataset.relations)
    names = (frame["object_names"].explode().explode().drop_nulls() for frame in frames)
    return tuple(dict.fromkeys(chain.from_iterable(names)))


def trial(words: Sequence[str], can: frozenset[Ability]) -> Prompt:
    """One prompt whose answer tells which words are a single token."""
    fills = need("vocabulary", can, "fill", "score") == "fill"
    return Prompt(
        key=Key(fact="", relation="", template="", subject=""),
        prefix=BEFORE,
        suffix=AFTER,
        want=Fill(watched=tuple(words), vocabulary=tuple(words))
        if fills
        else Score(options=tuple(words)),
    )


def single(answer: Answer) -> frozenset[str]:
    """The words of a trial that are one token."""
    if isinstance(answer, Filled):
        pairs = zip(answer.watched, answer.watched_ranks, strict=True)
        return frozenset(word for word, rank in pairs if rank is not None)
    assert isinstance(answer, Scored)
    tokens = zip(answer.options, answer.logps, strict=True)
    return frozenset(word for word, logps in tokens if len(logps) == 1)


def common(words: Iterable[str], single: Mapping[str, Collection[str]]) -> tuple[str, ...]:
    """The words that are one token in every model, in their order; refused where there are none.

    >>> common(["Rome", "Paris"], {"a": {"Paris", "Rome"}, "b": {"Paris"}})
    ('Paris',)
    """
    kept = tuple(word for word in words if all(word in tokens for tokens in single.values()))
    if not kept:
        counts = ", ".join(f"{name} {len(tokens):,}" for name, tokens in single.items())
        raise DataError(f"no word is one token in all models (one token in each: {counts})")
    return kept


def restricted(dataset: Dataset, words: Sequence[str]) -> Dataset:
    """The facts that have an object among the words, of all splits alike; nothing else is allowed
    as an answer. Relations that lose all facts are left out and counted."""
    import polars

    allowed = polars.col("object_names").list.eval(polars.element().explode().is_in(words).any())

    def kept(relation: str) -> DataFrame:
        return dataset.frame(relation).filter(allowed.list.first())

    whole = replace(dataset, read=kept)
    relations = tuple(relation for relation in dataset.relations if whole.frame(relation.id).height)
    if not relations:
        raise DataError(f"no fact of {dataset.name!r} has an object among the {len(words):,} words")
    return replace(
        whole,
        relations=relations,
        vocabulary=tuple(words),
        fingerprint=fingerprint(["restricted", dataset.fingerprint, *words]),
        notes={
            **dataset.notes,
            "facts_outside_vocabulary": dataset.size - whole.size,
            "relations_outside_vocabulary": len(dataset.relations) - len(relations),
        },
    )


def read_words(path: Path) -> tuple[str, ...]:
    """A list of words, one a line, each once."""
    if not path.is_file():
        raise DataError(f"{path} is not a file; give a list of words, one a line")
    words = tuple(dict.fromkeys(word for _, line in read_lines(path) if (word := line.strip())))
    if not words:
        raise DataError(f"{path} has no words; write one a line")
    return words
