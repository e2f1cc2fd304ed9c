"""BELIEF's answers in columns: some bytes per prompt, so that millions fit in memory.

Knows how an answer is judged, nothing of estimates or tables.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, log

import numpy as np

from sonde.core.answers import Answered, Filled, Scored
from sonde.core.errors import AbilityError
from sonde.core.facts import Dataset, Relation, Template
from sonde.core.scores import option_logps, shares
from sonde.metrics.grid import Bools, Floats, Grid, Ints
from sonde.prompting.pairs import Pair, asked_pairs

CONTENT_FREE = "content-free"
"""The context of prompts whose subject says nothing."""

NAN = float("nan")


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Everything that is asked about, counted from 0: relations, their templates, their pairs."""

    relations: tuple[Relation, ...]
    templates: tuple[Template, ...]
    template_relations: Ints
    pairs: tuple[Pair, ...]
    pair_relations: Ints

    @property
    def majority(self) -> Bools:
        """For each pair, whether the relation's commonest object is correct."""
        return np.array([pair.majority for pair in self.pairs], dtype=np.bool_)


def world(dataset: Dataset, asked: Mapping[str, Sequence[Template]]) -> World:
    """Count what is asked about; `asked` are the templates of each relation."""
    relations = dataset.asked_relations()
    templates = [(r, t) for r, relation in enumerate(relations) for t in asked[relation.id]]
    pairs = [
        (r, pair)
        for r, relation in enumerate(relations)
        if asked[relation.id]
        for pair in asked_pairs(dataset, relation.id)
    ]
    return World(
        relations=relations,
        templates=tuple(t for _, t in templates),
        template_relations=np.array([r for r, _ in templates], dtype=np.int64),
        pairs=tuple(pair for _, pair in pairs),
        pair_relations=np.array([r for r, _ in pairs], dtype=np.int64),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """Every judged prompt, in the order of pair, template and name.

    `gold`: for each row of the grid, the log-probability of all correct names together. `helped`
    of `compared` added object names that were likelier than the object's usual name. `answers`
    are what the grid's numbers of answers mean. `contents`: the log-probability of each of a
    relation's `candidates`, a row per template and content-free subject, nan where a candidate
    cannot be answered. `unanswerable` counts prompts for which no correct name is one token.
    """

    grid: Grid
    gold: Floats
    helped: Ints
    compared: Ints
    answers: tuple[str, ...]
    contents: Mapping[int, Mapping[tuple[int, str], Floats]]
    candidates: Mapping[int, tuple[str, ...]]
    pairs_unanswerable: int
    prompts_unanswerable: int
    ties: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """How one answer did; `gold` is nan where no correct name could be answered."""

    answer: str
    confidence: float
    gold: float
    right: bool
    tied: bool
    helped: int = 0
    compared: int = 0


class Tally:
    """Takes answers in any order; of two for the same prompt the later one counts."""

    def __init__(self, known: World) -> None:
        self._known = known
        relations = [relation.id for relation in known.relations]
        self._relations = {id: r for r, id in enumerate(relations)}
        owners = known.template_relations.tolist()
        self._templates = {
            (relations[owners[t]], template.id): t for t, template in enumerate(known.templates)
        }
        owners = known.pair_relations.tolist()
        self._pairs = {(relations[owners[p]], pair.fact): p for p, pair in enumerate(known.pairs)}
        self._judge = _Judge()
        self._answers: dict[str, int] = {}
        self._contents: dict[int, dict[tuple[int, str], Floats]] = {}
        self._candidates: dict[int, tuple[str, ...]] = {}
        self._whole = {name: array("i") for name in ("pair", "template", "name", "answer")}
        self._small = {name: array("h") for name in ("right", "tied", "helped", "compared")}
        self._real = {name: array("f") for name in ("confidence", "gold")}

    def add(self, row: Answered) -> None:
        """Judge one answer."""
        key = row.key
        template = self._templates[key.relation, key.template]
        if key.context == CONTENT_FREE:
            relation = self._relations[key.relation]
            names, logps = _candidates(row.answer)
            self._contents.setdefault(relation, {})[template, key.subject] = logps
            self._candidates[relation] = names
            return
        number = self._pairs[key.relation, key.fact]
        pair = self._known.pairs[number]
        verdict = self._judge(pair, row.answer)
        whole, small, real = self._whole, self._small, self._real
        whole["pair"].append(number)
        whole["template"].append(template)
        whole["name"].append(pair.names.index(key.subject))
        whole["answer"].append(self._answers.setdefault(verdict.answer, len(self._answers)))
        small["right"].append(verdict.right)
        small["tied"].append(verdict.tied)
        small["helped"].append(verdict.helped)
        small["compared"].append(verdict.compared)
        real["confidence"].append(verdict.confidence)
        real["gold"].append(verdict.gold)

    def outcomes(self) -> Outcomes:
        """Everything that was counted; what no name could answer is left out."""
        columns = {n: np.asarray(c) for n, c in (self._whole | self._small | self._real).items()}
        order = _order(columns["pair"], columns["template"], columns["name"])
        gold = columns["gold"].astype(np.float64)
        kept = order[~np.isnan(gold[order])]
        answers = sorted(self._answers)
        places = np.empty(len(answers), dtype=np.int64)
        places[[self._answers[answer] for answer in answers]] = np.arange(len(answers))
        asked, left = np.unique(columns["pair"][order]), np.unique(columns["pair"][kept])
        return Outcomes(
            grid=Grid(
                pair=columns["pair"][kept].astype(np.int64),
                template=columns["template"][kept].astype(np.int64),
                name=columns["name"][kept].astype(np.int64),
                right=columns["right"][kept].astype(np.bool_),
                answer=places[columns["answer"][kept]],
                confidence=columns["confidence"][kept].astype(np.float64),
                relations=self._known.pair_relations,
                template_relations=self._known.template_relations,
            ),
            gold=gold[kept],
            helped=columns["helped"][kept].astype(np.int64),
            compared=columns["compared"][kept].astype(np.int64),
            answers=tuple(answers),
            contents=self._contents,
            candidates=self._candidates,
            pairs_unanswerable=len(asked) - len(left),
            prompts_unanswerable=len(order) - len(kept),
            ties=int(columns["tied"][kept].sum()),
        )


def _order(pair: Ints, template: Ints, name: Ints) -> Ints:
    """Rows by pair, template and name; the last of those that are equal."""
    order = np.lexsort((name, template, pair))
    keys = np.stack([pair, template, name])[:, order]
    last = np.append((keys[:, 1:] != keys[:, :-1]).any(axis=0), True)[: len(order)]
    return np.asarray(order[last], dtype=np.int64)


class _Judge:
    """Judges answers; remembers where the names of the last pair stand among those watched."""

    def __init__(self) -> None:
        self._watched: tuple[str, ...] = ()
        self._places: dict[str, int] = {}
        self._pair: Pair | None = None
        self._objects: list[list[int]] = []
        self._usual: list[bool] = []

    def __call__(self, pair: Pair, answer: object) -> Verdict:
        if isinstance(answer, Filled):
            self._look_up(pair, answer.watched)
            return self._filled(answer)
        if isinstance(answer, Scored):
            return _scored(answer, frozenset(name for names in pair.objects for name in names))
        raise AbilityError("belief reads filled holes and scored options, not written texts")

    def _look_up(self, pair: Pair, watched: tuple[str, ...]) -> None:
        if watched is not self._watched and watched != self._watched:
            self._places = {name: i for i, name in enumerate(watched)}
            self._pair = None
        self._watched = watched
        if pair is not self._pair:
            self._pair = pair
            places = self._places
            self._objects = [[places[n] for n in names if n in places] for names in pair.objects]
            self._usual = [names[0] in places for names in pair.objects]

    def _filled(self, answer: Filled) -> Verdict:
        ranks, logps = answer.watched_ranks, answer.watched_logps
        found: set[tuple[int | None, float | None]] = set()
        helped = compared = 0
        for places, usual in zip(self._objects, self._usual, strict=True):
            # two names that are the same token are the same answer
            own = list(dict.fromkeys((ranks[i], logps[i]) for i in places if logps[i] is not None))
            if len(own) > 1 and usual and logps[places[0]] is not None:
                compared += len(own) - 1
                helped += sum(1 for _, logp in own[1:] if (logp or 0.0) > (own[0][1] or 0.0))
            found.update(own)
        top = answer.top_logps
        return Verdict(
            answer=answer.top[0] if top else "",
            confidence=exp(top[0]) if top else NAN,
            gold=_pooled([logp for _, logp in found if logp is not None]),
            right=any(rank == 1 for rank, _ in found),
            tied=len(top) > 1 and top[0] == top[1],
            helped=helped,
            compared=compared,
        )


def _scored(answer: Scored, correct: frozenset[str]) -> Verdict:
    """The best option, its share of all options, and the share of the correct ones."""
    logps = option_logps(answer)
    right = np.array([option in correct for option in answer.options])
    best = int(logps.argmax())
    return Verdict(
        answer=answer.options[best],
        confidence=float(shares(logps)[best]),
        gold=_pooled(logps[right].tolist()) - _pooled(logps.tolist()),
        right=bool(right[best] and (logps[~right] < logps[best]).all()),
        tied=int((logps == logps[best]).sum()) > 1,
    )


def _pooled(logps: Sequence[float]) -> float:
    """The log of some probabilities together; nan for none."""
    if len(logps) < 2:
        return logps[0] if logps else NAN
    highest = max(logps)
    return highest + log(sum(exp(logp - highest) for logp in logps))


def _candidates(answer: object) -> tuple[tuple[str, ...], Floats]:
    """The candidates of a content-free prompt with their log-probabilities."""
    if isinstance(answer, Filled):
        logps = [NAN if logp is None else logp for logp in answer.watched_logps]
        return answer.watched, np.array(logps, dtype=np.float64)
    if isinstance(answer, Scored):
        return answer.options, option_logps(answer)
    raise AbilityError("belief reads filled holes and scored options, not written texts")
