"""Blind judging of template quality: which templates, in what order, and what answers add up to.

An annotator sees a relation and a template with a subject in it, never the dataset, and answers
four questions with 0 or 1. Answers are lines of a file that only grows; a line `undo` takes the
last one back. Knows nothing of terminals.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sonde.core.errors import DataError
from sonde.core.facts import ANSWER_SLOT, Dataset, Relation
from sonde.core.fingerprints import draw_key
from sonde.core.reports import Estimate
from sonde.data.lines import Row, read_rows
from sonde.data.statistics import resampled_mean
from sonde.stats.intervals import wilson

QUESTIONS = ("fluent", "template_in_relation", "relation_in_template", "overlap")
SAMPLE = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A template to be judged; `sources` are the datasets that have it, which nobody is shown."""

    id: str
    relation: str
    label: str
    text: str
    subject: str
    sources: tuple[str, ...]

    @property
    def shown(self) -> str:
        """The template as a model sees it, the subject in its place."""
        return self.text.replace("[X]", self.subject).replace(ANSWER_SLOT, "___")


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """One annotator's answers about one template, in the order of `QUESTIONS`."""

    item: str
    annotator: str
    sources: tuple[str, ...]
    answers: tuple[int, int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Quality:
    """What the judgements of one dataset's templates add up to (the papers' table 9)."""

    source: str
    shares: tuple[Estimate, ...]
    total: Estimate
    irrelevant: int
    fully_matching: int
    histogram: tuple[int, ...]


def sample(datasets: Sequence[Dataset], n: int = SAMPLE, seed: int = 0) -> list[Item]:
    """Up to n templates of each dataset, mixed and shuffled; a shared text is judged once."""
    items: dict[tuple[str, str], Item] = {}
    for dataset in datasets:
        pairs = {(r.id, t.text): r for r in dataset.relations for t in r.templates}
        keyed = {pair: draw_key(seed, f"{dataset.name}:{'|'.join(pair)}") for pair in pairs}
        for pair in sorted(pairs, key=keyed.__getitem__)[:n]:
            first = items.get(pair) or _item(dataset, pairs[pair], pair[1], seed)
            sources = dict.fromkeys((*first.sources, dataset.name))
            items[pair] = replace(first, sources=tuple(sources))
    return sorted(items.values(), key=lambda item: draw_key(seed, f"order:{item.id}"))


def _item(dataset: Dataset, relation: Relation, text: str, seed: int) -> Item:
    """A template with the usual name of some subject of the relation."""
    subjects = dataset.frame(relation.id).select("fact", "subject").iter_rows()
    keyed = ((draw_key(seed, f"{text}:{fact}"), subject) for fact, subject in subjects)
    return Item(
        id=f"{relation.id}|{text}",
        relation=relation.id,
        label=relation.label,
        text=text,
        subject=min(keyed, default=(0, "[X]"))[1],
        sources=(),
    )


def implied(answers: Sequence[int]) -> tuple[int, ...]:
    """Answers with what follows from them: where one contains the other, they overlap.

    >>> implied([1, 0, 1]), implied([1, 0, 0])
    ((1, 0, 1, 1), (1, 0, 0))
    """
    given = tuple(answers)
    return (*given, 1) if len(given) == 3 and any(given[1:]) else given


def read_judgements(path: Path) -> list[Judgement]:
    """The judgements that stand, in order, those taken back left out."""
    standing: dict[tuple[str, str], Judgement] = {}
    for row in read_rows(path) if path.exists() else ():
        key = (row.text("annotator"), row.text("item"))
        if row.values.get("undo"):
            standing.pop(key, None)
        else:
            standing[key] = _judgement(row)
    return list(standing.values())


def _judgement(row: Row) -> Judgement:
    answers = tuple(row.values.get(question) for question in QUESTIONS)
    if any(type(answer) is not int or answer not in (0, 1) for answer in answers):
        raise row.fault(f"{', '.join(QUESTIONS)} must each be 0 or 1", list(answers))
    if any(answers[1:3]) and not answers[3]:
        raise row.fault("'overlap' must be 1 where one contains the other", 0)
    return Judgement(
        item=row.text("item"),
        annotator=row.text("annotator"),
        sources=row.texts("sources"),
        answers=answers,  # type: ignore[arg-type]  # checked above
    )


def append(path: Path, judgement: Judgement, *, undo: bool = False) -> None:
    """Write one more line: a judgement, or that it is taken back."""
    line: dict[str, Any] = {"item": judgement.item, "annotator": judgement.annotator}
    if undo:
        line["undo"] = True
    else:
        line |= {"sources": list(judgement.sources)}
        line |= dict(zip(QUESTIONS, judgement.answers, strict=True))
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror or error}") from error


def qualities(judgements: Iterable[Judgement]) -> list[Quality]:
    """The quality of each dataset's templates, by name; all annotators together."""
    groups: dict[str, list[Judgement]] = {}
    for judgement in judgements:
        for source in judgement.sources:
            groups.setdefault(source, []).append(judgement)
    return [_quality(source, groups[source]) for source in sorted(groups)]


def _quality(source: str, judged: Sequence[Judgement]) -> Quality:
    answers = np.array([judgement.answers for judgement in judged])
    totals, fitting = answers.sum(axis=1), answers[:, 1:].sum(axis=1)
    items = [judgement.item for judgement in judged]
    return Quality(
        source=source,
        shares=tuple(_mean(column, items) for column in answers.T),
        total=_mean(totals, items),
        irrelevant=int((fitting == 0).sum()),
        fully_matching=int((fitting == 3).sum()),
        histogram=tuple(np.bincount(totals, minlength=5).tolist()),
    )


def _mean(values: NDArray[np.int64], items: Sequence[str]) -> Estimate:
    """A mean with its interval: Wilson's for shares of single judgements, else a bootstrap.

    What several annotators say of one template belongs together.
    """
    mean, n = float(values.mean()), len(values)
    _, index = np.unique(np.asarray(items), return_inverse=True)
    sizes = np.bincount(index).astype(float)
    if len(sizes) == n and values.max() <= 1:
        low, high = wilson(float(values.sum()), n)
        return Estimate(value=mean, low=min(low, mean), high=max(high, mean), n=n)
    sums = np.bincount(index, weights=values.astype(float)).astype(np.float64)
    return resampled_mean(sums, sizes, np.random.default_rng(0), n)


def agreement(judgements: Iterable[Judgement]) -> dict[str, tuple[float | None, int]]:
    """Cohen's kappa of two annotators for each question, with the number of shared templates.

    None: not measured, where chance alone would agree fully. Empty unless there are two annotators.
    """
    by: dict[str, dict[str, Judgement]] = {}
    for judgement in judgements:
        by.setdefault(judgement.annotator, {})[judgement.item] = judgement
    if len(by) != 2:
        return {}
    first, second = by.values()
    shared = [(first[item].answers, second[item].answers) for item in first if item in second]
    return {
        question: (kappa([(a[q], b[q]) for a, b in shared]), len(shared))
        for q, question in enumerate(QUESTIONS)
    }


def kappa(pairs: Sequence[tuple[int, int]]) -> float | None:
    """Cohen's kappa of answers 0 or 1: agreement beyond chance, 1 at most.

    >>> kappa([(1, 1), (0, 0), (1, 0), (0, 0)])
    0.5
    """
    if not pairs:
        return None
    agree = sum(a == b for a, b in pairs) / len(pairs)
    first, second = (sum(answers) / len(pairs) for answers in zip(*pairs, strict=True))
    chance = first * second + (1 - first) * (1 - second)
    return None if chance == 1 else (agree - chance) / (1 - chance)
