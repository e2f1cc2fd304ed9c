"""BELIEF-ICL's answers in columns: some bytes per prompt, and each distinct answer once.

Knows written and drawn answers, nothing of estimates or tables. Texts are compared in a loop; what
is asked twice of the same words is looked up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from math import exp, nan
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from sonde.core.answers import Generated, Sampled
from sonde.core.columns import Answers, Given, in_blocks
from sonde.core.facts import Dataset, commonest_objects
from sonde.core.fingerprints import draw_key
from sonde.metrics.grid import Bools, Floats, Grid, Ints
from sonde.metrics.judged import Judged
from sonde.prompting.matching import alike, normal, within, word_count
from sonde.prompting.pairs import Keys, World

SHOWN = 2_000

COLUMNS: Mapping[str, type] = {
    **dict.fromkeys(("place", "answer", "tokens"), np.int64),
    **dict.fromkeys(("right", "given", "finished"), np.bool_),
    **dict.fromkeys(("likely", "words"), np.float64),
}

Drawn = tuple[Sequence[int], Sequence[int]]
"""The numbers of the distinct answers that were drawn, and how often each was."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcomes:
    """Every judged prompt, by pair, template and name; the columns beside it are as long.

    `tokens` of each answer without a closing full stop, `likely`: their probability together.
    `given`: a correct name stands in the subject's name, so that repeating the question is right.
    `by_majority`: for each pair, whether the commonest object is right. `shown`: the row, question
    and answer of some prompts.
    """

    judged: Judged
    tokens: Ints
    likely: Floats
    finished: Bools
    given: Bools
    by_majority: Bools
    shown: Sequence[tuple[int, str, str]]


def judge(
    dataset: Dataset, world: World, answers: Given, language: str, most: int = SHOWN
) -> Outcomes:
    """Judge answers in any order; of two to the same prompt the later one counts.

    At most `most` prompts are kept to be shown: those that the seed picks.
    """
    tally = _Tally(world, language, dataset.selection.seed, most)
    for block in in_blocks(answers):
        tally.add(block)
    places, columns = tally.sorted()
    shown = ((int(np.searchsorted(places, at)), asked, text) for _, at, asked, text in tally.shown)
    return Outcomes(
        judged=_judged(world, tally, places, columns),
        tokens=columns["tokens"],
        likely=columns["likely"],
        finished=columns["finished"],
        given=columns["given"],
        by_majority=_by_majority(dataset, world, tally.gold, language),
        shown=sorted(shown),
    )


def _judged(
    world: World, tally: _Tally, places: Ints, columns: Mapping[str, NDArray[Any]]
) -> Judged:
    texts, answer = list(tally.texts), columns["answer"]
    order = sorted(range(len(texts)), key=texts.__getitem__)
    pair, template, name = tally.unpacked(places)
    grid = Grid(
        pair=pair,
        template=template,
        name=name,
        right=columns["right"],
        answer=np.argsort(order)[answer] if texts else answer,
        confidence=_confidence(tally, places, [texts[number] for number in answer.tolist()], texts),
        relations=world.pair_relations,
        template_relations=world.template_relations,
    )
    return Judged(
        grid=grid,
        relations=world.relations,
        pairs=tuple(known.fact for known in world.pairs),
        names=tuple(known.names for known in world.pairs),
        templates=world.templates,
        answers=tuple(texts[number] for number in order),
        way="written",
        # of one token, whose probability is the answer's
        sure=np.where(columns["tokens"] == 1, columns["likely"], np.nan),
        matches=alike,
        words=columns["words"],
    )


def _confidence(tally: _Tally, places: Ints, said: Sequence[str], texts: Sequence[str]) -> Floats:
    """The share of drawn answers that match the written one; nan where none was drawn."""
    confidence = np.full(len(places), np.nan)
    for place, drawn in tally.samples.items():
        row = int(np.searchsorted(places, place))
        if row < len(places) and places[row] == place:
            confidence[row] = share_alike(said[row], drawn, texts)
    return confidence


class _Tally:
    """What was counted so far, by the places of prompts: pair, template and name as one number."""

    def __init__(self, world: World, language: str, seed: int, most: int) -> None:
        self.language, self._seed, self._most = language, seed, most
        self.texts: dict[str, int] = {}
        self.samples: dict[int, Drawn] = {}
        self.shown: list[tuple[int, int, str, str]] = []
        self.gold = [tuple(self._correct(pair.objects)) for pair in world.pairs]
        self._names = [pair.names for pair in world.pairs]
        self._keys = Keys(world)
        self._sizes = (len(world.templates), max(map(len, self._names), default=1))
        self._columns: dict[str, list[NDArray[Any]]] = {
            name: [np.zeros(0, kind)] for name, kind in COLUMNS.items()
        }

    def _correct(self, objects: Iterable[Iterable[str]]) -> Iterator[str]:
        lemmas = (normal(name, self.language) for names in objects for name in names)
        return (text for text in dict.fromkeys(lemmas) if text)

    def add(self, block: Answers) -> None:
        """Take what was written, or what was drawn."""
        at = self._keys.places(block)
        templates, names = self._sizes
        place = (at["pair"].astype(np.int64) * templates + at["template"]) * names + at["name"]
        if block.kind == "generated":
            self._add_written(place, at, block)
        elif block.kind == "sampled":
            for number, drawn in zip(
                place.tolist(), cast(list[Sampled], block.columns), strict=True
            ):
                self.samples[number] = ([self._number(text) for text in drawn.texts], drawn.counts)

    def _add_written(self, place: Ints, at: dict[str, NDArray[Any]], block: Answers) -> None:
        answers = cast(list[Generated], block.columns)
        logps = [answer_logps(answer) for answer in answers]
        words = [word_count(answer.text) for answer in answers]
        said = np.array([self._number(answer.text) for answer in answers], dtype=np.int64)
        texts = list(self.texts)
        columns = {
            "place": place,
            "answer": said,
            "right": self._holds(at["pair"], said, lambda _, number: texts[number]),
            "given": self._holds(at["pair"], at["name"], self._subject),
            "tokens": np.array([len(own) for own in logps], dtype=np.int64),
            "likely": np.array([exp(sum(own)) for own in logps]),
            "words": np.array([nan if count is None else count for count in words]),
            "finished": np.array([answer.finished for answer in answers], dtype=np.bool_),
        }
        for name, column in columns.items():
            self._columns[name].append(column)
        self.shown = nsmallest(self._most, [*self.shown, *self._to_show(place, block, answers)])

    def _subject(self, pair: int, name: int) -> str:
        return normal(self._names[pair][name], self.language)

    def _holds(self, pair: Ints, number: Ints, text: Callable[[int, int], str]) -> Bools:
        """Whether a correct name of each pair stands in a text; each couple is looked at once."""
        couples, index = np.unique(np.stack([pair, number]), axis=1, return_inverse=True)
        holds = [
            any(within(name, text(p, n)) for name in self.gold[p]) for p, n in couples.T.tolist()
        ]
        return np.array(holds, dtype=np.bool_)[index.ravel()]

    def _number(self, text: str) -> int:
        return self.texts.setdefault(normal(text, self.language), len(self.texts))

    def _to_show(
        self, places: Ints, block: Answers, answers: Sequence[Generated]
    ) -> Iterator[tuple[int, int, str, str]]:
        last = self.shown[-1][0] if len(self.shown) >= self._most else None
        numbers = zip(*(column.tolist() for column in self.unpacked(places)), strict=True)
        asked = block.asked.column("prefix")
        for row, (place, own) in enumerate(zip(places.tolist(), numbers, strict=True)):
            key = draw_key(self._seed, ":".join(map(str, own)))
            if last is None or key <= last:
                question = asked[row].as_py().rpartition("\nQ: ")[2].removesuffix("\nA:")
                yield key, place, question, answers[row].text.strip()

    def unpacked(self, places: Ints) -> tuple[Ints, Ints, Ints]:
        """The numbers of the pair, the template and the name of each place."""
        templates, names = self._sizes
        return (
            places // names // max(templates, 1),
            places // names % max(templates, 1),
            places % names,
        )

    def sorted(self) -> tuple[Ints, dict[str, NDArray[Any]]]:
        """The places in order, and what was written there."""
        whole = {name: np.concatenate(parts) for name, parts in self._columns.items()}
        rows, last = np.unique(whole["place"][::-1], return_index=True)
        return rows, {name: column[len(column) - 1 - last] for name, column in whole.items()}


def answer_logps(written: Generated) -> tuple[float, ...]:
    """The log-probabilities of an answer's tokens, less that of the full stop which closes it.

    The examples end so. It is a token of its own in nearly every tokenizer.
    """
    closed = written.text.rstrip().endswith(".") and len(written.logps) > 1
    return written.logps[:-1] if closed else written.logps


def share_alike(said: str, drawn: Drawn, texts: Sequence[str]) -> float:
    """The share of drawn answers that match the written one, in either direction."""
    numbers, counts = drawn
    matching = sum(n for a, n in zip(numbers, counts, strict=True) if alike(said, texts[a]))
    return matching / sum(counts)


def _by_majority(
    dataset: Dataset, world: World, gold: Sequence[tuple[str, ...]], language: str
) -> Bools:
    common = []
    for relation in world.relations:
        objects = commonest_objects(dataset.split_frame(relation.id))
        common.append(normal(objects[0][0], language) if objects else "")
    owners = zip(gold, world.pair_relations.tolist(), strict=True)
    right = [any(within(name, common[owner]) for name in names) for names, owner in owners]
    return np.array(right, dtype=np.bool_)
