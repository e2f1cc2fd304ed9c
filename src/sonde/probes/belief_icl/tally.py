"""BELIEF-ICL's answers in columns: some bytes per prompt, and each distinct answer once.

Knows written and drawn answers, nothing of estimates or tables.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from heapq import heappush, heappushpop
from math import exp, nan
from typing import NamedTuple

import numpy as np

from sonde.core.answers import Answered, Generated, Sampled
from sonde.core.fingerprints import draw_key
from sonde.metrics.grid import Bools, Floats, Grid, Ints
from sonde.probes.belief_icl.pairs import Known, World
from sonde.prompting.matching import alike, normal, within, word_count

SHOWN = 2_000


class Place(NamedTuple):
    """Where a prompt stands: the numbers of its pair, its template and its subject's name."""

    pair: int
    template: int
    name: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One prompt with its answer, as the table of prompts shows it."""

    place: Place
    subject: str
    question: str
    answer: str
    correct: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcomes:
    """Every judged prompt, in an order of their own; the columns beside the grid are as long.

    `texts[a]` are the lemmas of the answer numbered a. `words` of each answer, nan where they
    cannot be counted, and its `tokens` without a closing full stop; `likely`: their probability
    together. `given`: a correct name stands in the subject's name, so that repeating the question
    is right.
    """

    grid: Grid
    texts: Sequence[str]
    words: Floats
    tokens: Ints
    likely: Floats
    finished: Bools
    given: Bools
    shown: Sequence[tuple[Shown, bool, float]]


class Tally:
    """Takes answers in any order; at most `most` are kept to be shown: those the seed picks."""

    def __init__(self, world: World, language: str, seed: int, most: int = SHOWN) -> None:
        self._world, self._language, self._seed, self._most = world, language, seed, most
        self._texts: dict[str, int] = {}
        self._whole = {name: array("q") for name in ("pair", "template", "name", "answer")}
        self._words, self._tokens = array("d"), array("i")
        self._flags = {name: array("b") for name in ("right", "finished", "given")}
        self._likely = array("d")
        self._samples: dict[Place, tuple[array[int], array[int]]] = {}
        self._kept: list[tuple[int, Place, Shown]] = []

    def add(self, row: Answered) -> None:
        """Count one answer: what was written, or what was drawn."""
        pair = self._world.pairs[row.key.relation, row.key.fact]
        template = self._world.template_numbers[row.key.relation, row.key.template]
        place = Place(pair.number, template, pair.names.index(row.key.subject))
        if isinstance(row.answer, Generated):
            self._add_written(place, pair, row.answer)
            self._show(place, pair, row, row.answer.text)
        elif isinstance(row.answer, Sampled):
            drawn = [self._number(normal(text, self._language)) for text in row.answer.texts]
            self._samples[place] = (array("q", drawn), array("q", row.answer.counts))

    def outcomes(self) -> Outcomes:
        """Everything that was counted, in the order of pairs, templates and names."""
        order = np.lexsort([self._column(name) for name in ("name", "template", "pair")])
        pair, template, name, answer = (self._column(n)[order] for n in self._whole)
        texts, ranks = self._ranked()
        grid = Grid(
            pair=pair,
            template=template,
            name=name,
            right=np.array(self._flags["right"], dtype=np.bool_)[order],
            answer=ranks[answer],
            confidence=np.full(len(order), np.nan),
            relations=self._world.pair_relations,
            template_relations=self._world.template_relations,
        )
        self._put_confidence(grid, answer)
        return Outcomes(
            grid=grid,
            texts=texts,
            words=np.array(self._words, dtype=np.float64)[order],
            tokens=np.array(self._tokens, dtype=np.int64)[order],
            likely=np.array(self._likely, dtype=np.float64)[order],
            finished=np.array(self._flags["finished"], dtype=np.bool_)[order],
            given=np.array(self._flags["given"], dtype=np.bool_)[order],
            shown=self._to_show(grid),
        )

    def _column(self, name: str) -> Ints:
        return np.array(self._whole[name], dtype=np.int64)

    def _ranked(self) -> tuple[list[str], Ints]:
        """The texts in order, and for each in the order it came the number it gets by that."""
        texts = sorted(self._texts)
        ranks = np.empty(len(texts), dtype=np.int64)
        ranks[[self._texts[text] for text in texts]] = np.arange(len(texts))
        return texts, ranks

    def _add_written(self, place: Place, pair: Known, written: Generated) -> None:
        said = normal(written.text, self._language)
        logps = answer_logps(written)
        for name, number in zip(("pair", "template", "name"), place, strict=True):
            self._whole[name].append(number)
        self._whole["answer"].append(self._number(said))
        words = word_count(written.text)
        self._words.append(nan if words is None else words)
        self._tokens.append(len(logps))
        self._flags["right"].append(any(within(name, said) for name in pair.gold))
        self._flags["finished"].append(written.finished)
        subject = normal(pair.names[place.name], self._language)
        self._flags["given"].append(any(within(name, subject) for name in pair.gold))
        self._likely.append(exp(sum(logps)))

    def _number(self, text: str) -> int:
        return self._texts.setdefault(text, len(self._texts))

    def _put_confidence(self, grid: Grid, answer: Ints) -> None:
        """The share of drawn answers that match the written one; nan where none was drawn."""
        texts = list(self._texts)
        for row, place in _rows(grid, self._samples):
            grid.confidence[row] = share_alike(texts[answer[row]], self._samples[place], texts)

    def _show(self, place: Place, pair: Known, row: Answered, text: str) -> None:
        key = -draw_key(self._seed, ":".join(map(str, place)))
        full = len(self._kept) >= self._most
        if full and key < self._kept[0][0]:
            return
        asked = row.prefix.rpartition("\nQ: ")[2].removesuffix("\nA:")
        shown = Shown(
            place=place,
            subject=row.key.subject,
            question=asked,
            answer=text.strip(),
            correct=pair.correct,
        )
        if full:
            heappushpop(self._kept, (key, place, shown))
        else:
            heappush(self._kept, (key, place, shown))

    def _to_show(self, grid: Grid) -> list[tuple[Shown, bool, float]]:
        kept = {place: shown for _, place, shown in self._kept}
        return [
            (kept[place], bool(grid.right[row]), float(grid.confidence[row]))
            for row, place in _rows(grid, kept)
        ]


def _rows(grid: Grid, places: Collection[Place]) -> list[tuple[int, Place]]:
    """The rows at which places stand in a sorted grid, in order; those it lacks are left out."""
    if not len(grid) or not places:
        return []
    sizes = (int(grid.pair.max()) + 1, int(grid.template.max()) + 1, int(grid.name.max()) + 1)
    codes = np.ravel_multi_index((grid.pair, grid.template, grid.name), sizes)
    known = sorted(p for p in places if all(a < b for a, b in zip(p, sizes, strict=True)))
    wanted = np.ravel_multi_index(tuple(np.array(known, dtype=np.int64).reshape(-1, 3).T), sizes)
    rows = np.minimum(np.searchsorted(codes, wanted), len(codes) - 1)
    held = codes[rows] == wanted
    return [(int(row), known[i]) for i, row in enumerate(rows) if held[i]]


def answer_logps(written: Generated) -> tuple[float, ...]:
    """The log-probabilities of an answer's tokens, less that of the full stop which closes it.

    The examples end so. It is a token of its own in nearly every tokenizer.
    """
    closed = written.text.rstrip().endswith(".") and len(written.logps) > 1
    return written.logps[:-1] if closed else written.logps


def share_alike(
    said: str, drawn: tuple[Sequence[int], Sequence[int]], texts: Sequence[str]
) -> float:
    """The share of drawn answers that match the written one, in either direction."""
    numbers, counts = drawn
    matching = sum(n for a, n in zip(numbers, counts, strict=True) if alike(said, texts[a]))
    return matching / sum(counts)
