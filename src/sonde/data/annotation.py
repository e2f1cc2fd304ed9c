"""Blind judging of template quality: which templates, in what order, and what answers add up to.

An annotator sees a relation and a template with a subject in it, never the dataset, and answers
four questions with 0 or 1. Answers are lines of a file that only grows; a line `undo` takes the
last one back. Knows nothing of terminals.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sonde.core.errors import DataError
from sonde.core.facts import ANSWER_SLOT, Dataset, Relation
from sonde.core.fingerprints import draw_key
from sonde.core.reports import Estimate
from sonde.data.lines import Row, read_rows

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

    @property
    def total(self) -> int:
        """0 to 4."""
        return sum(self.answers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quality:
    """What the judgements of one dataset's templates add up to (the papers' table 9)."""

    source: str
    shares: tuple[Estimate, ...]
    total: Estimate
    irrelevant: int
    fully_matching: int
    histogram: tuple[int, int, int, int, int]


def sample(datasets: Sequence[Dataset], n: int = SAMPLE, seed: int = 0) -> list[Item]:
    """Up to n templates of each dataset, mixed and shuffled; a shared text is judged once."""
    found: dict[tuple[str, str], Item] = {}
    for dataset in datasets:
        for relation, text in _drawn(dataset, n, seed):
            known = found.get((relation.id, text))
            sources = (*known.sources, dataset.name) if known else (dataset.name,)
            found[relation.id, text] = Item(
                id=f"{relation.id}|{text}",
                relation=relation.id,
                label=relation.label,
                text=text,
                subject=known.subject if known else _subject(dataset, relation, text, seed),
                sources=tuple(dict.fromkeys(sources)),
            )
    return sorted(found.values(), key=lambda item: draw_key(seed, f"order:{item.id}"))


def _drawn(dataset: Dataset, n: int, seed: int) -> list[tuple[Relation, str]]:
    pairs = dict.fromkeys((r.id, t.text) for r in dataset.relations for t in r.templates)
    chosen = sorted(pairs, key=lambda pair: draw_key(seed, f"{dataset.name}:{'|'.join(pair)}"))[:n]
    relations = {relation.id: relation for relation in dataset.relations}
    return [(relations[id], text) for id, text in chosen]


def _subject(dataset: Dataset, relation: Relation, text: str, seed: int) -> str:
    """The usual name of some subject of the relation."""
    keyed = ((draw_key(seed, f"{text}:{f.id}"), f.subject.name) for f in dataset.facts(relation.id))
    return min(keyed, default=(0, "[X]"))[1]


def implied(answers: Sequence[int]) -> tuple[int, ...]:
    """Answers with what follows from them: where one contains the other, they overlap.

    >>> implied([1, 0, 1]), implied([1, 0, 0])
    ((1, 0, 1, 1), (1, 0, 0))
    """
    given = tuple(answers)
    return (*given, 1) if len(given) == 3 and any(given[1:]) else given


def read_judgements(path: Path) -> list[Judgement]:
    """The judgements that stand, in order, those taken back left out."""
    found: dict[tuple[str, str], Judgement] = {}
    for row in read_rows(path) if path.exists() else ():
        key = (row.text("annotator"), row.text("item"))
        if row.values.get("undo"):
            found.pop(key, None)
        else:
            found[key] = _judgement(row)
    return list(found.values())


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
    histogram = [0] * 5
    for judgement in judged:
        histogram[judgement.total] += 1
    return Quality(
        source=source,
        shares=tuple(_mean([j.answers[q] for j in judged], _items(judged)) for q in range(4)),
        total=_mean([j.total for j in judged], _items(judged)),
        irrelevant=sum(not any(j.answers[1:]) for j in judged),
        fully_matching=sum(all(j.answers[1:]) for j in judged),
        histogram=tuple(histogram),  # type: ignore[arg-type]  # five of them
    )


def _items(judged: Sequence[Judgement]) -> list[str]:
    """The templates that were judged; what several annotators say of one belongs together."""
    return [judgement.item for judgement in judged]


def _mean(values: Sequence[int], items: Sequence[str]) -> Estimate:
    """A mean with its interval: Wilson's for shares of single judgements, else a bootstrap."""
    import numpy as np

    from sonde.stats.intervals import percentile_interval, resampled_means, wilson

    mean, n = sum(values) / len(values), len(values)
    if len(set(items)) == n and max(values) <= 1:
        low, high = wilson(sum(values), n)
    else:
        _, index = np.unique(np.asarray(items), return_inverse=True)
        sums = np.bincount(index, weights=np.asarray(values, dtype=float)).astype(np.float64)
        sizes = np.bincount(index).astype(float)
        low, high = percentile_interval(resampled_means(sums, sizes, np.random.default_rng(0)))
    return Estimate(value=mean, low=min(low, mean), high=max(high, mean), n=n)


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
    shared = [item for item in first if item in second]
    return {
        question: (
            kappa([(first[i].answers[q], second[i].answers[q]) for i in shared]),
            len(shared),
        )
        for q, question in enumerate(QUESTIONS)
    }


def kappa(pairs: Sequence[tuple[int, int]]) -> float | None:
    """Cohen's kappa of answers 0 or 1: agreement beyond chance, 1 at most.

    >>> kappa([(1, 1), (0, 0), (1, 0), (0, 0)])
    0.5
    """
    n = len(pairs)
    if not n:
        return None
    agree = sum(a == b for a, b in pairs) / n
    first, second = sum(a for a, _ in pairs) / n, sum(b for _, b in pairs) / n
    chance = first * second + (1 - first) * (1 - second)
    return None if chance == 1 else (agree - chance) / (1 - chance)
