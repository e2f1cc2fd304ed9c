"""The same facts in several languages: how many are known in each, and how alike answers are.

Facts of two languages are the same where their relations are (`same`), their subjects and their
splits; of several facts of a subject also their objects decide. A fact's first answer is the
commonest of its prompts', and it is known where that one is right. Of two languages, over the facts
that were asked in both: RankC of how a model ranks the candidates, the share of first answers that
name the same thing, and what is known in one of them only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sonde.analysis.readings import Asked, worded
from sonde.core.errors import MissingExtra
from sonde.core.facts import Relation
from sonde.core.fingerprints import draw_key
from sonde.core.reports import Estimate, Metric
from sonde.metrics.estimates import (
    FACTS,
    RELATIONS,
    ByFact,
    Over,
    Resampled,
    hold_together,
    p_value,
)
from sonde.metrics.ranking import Candidates, candidates, consistencies, thing_names
from sonde.metrics.verdicts import Bools, Floats, Ints
from sonde.prompting.matching import OWN, PLAIN, check_language, language_of, normal, within

if TYPE_CHECKING:
    from polars import DataFrame


ACCURACY = Metric(
    "language.accuracy", "accuracy", "percent", "share of a fact's prompts right, in one language"
)
RANKC = Metric(
    "language.rankc",
    "RankC",
    "number",
    "how alike candidates are ranked in two languages, the first ranks above all; 1 is equal",
)
AGREEMENT = Metric(
    "language.agreement",
    "same answer",
    "percent",
    "share of facts whose first answers name the same thing in two languages",
)
ONLY = Metric(
    "language.known_only",
    "known in one only",
    "percent",
    "share of facts known in the first language and not in the second",
    better="lower",
)
LESS = Metric(
    "language.difference",
    "difference",
    "points",
    "accuracy in the first language minus that in the second, paired by fact",
    better="",
)
METRICS = (ACCURACY, RANKC, AGREEMENT, ONLY, LESS)

Couple = tuple[str, str]
"""Two languages."""


def at(couple: Couple) -> str:
    """How two languages stand in the names of estimates."""
    return "-".join(couple)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ranked:
    """RankC of two languages, a value a fact, nan where there is none, and why there is none.

    `other`: facts whose candidates differ. `few`: those with fewer than two that both rank.
    """

    values: Floats
    other: int
    few: int


class Shared:
    """Facts, each once, with what was answered in every language: arrays [languages, facts]."""

    def __init__(self, asked: Asked) -> None:
        self.asked = asked
        self.relations = worded(asked.judged.relations)
        frame = _units(asked, self.relations)
        self.languages = tuple(dict.fromkeys(frame["language"]))
        self.sames = tuple(dict.fromkeys(frame["same"]))
        unit, language = frame["unit"].to_numpy(), self._codes(frame["language"], self.languages)
        self.shape = (len(self.languages), int(unit.max(initial=-1)) + 1)
        at = language, unit
        self.accuracy = self._placed(at, frame["accuracy"].to_numpy(), np.nan)
        self.known = self._placed(at, frame["known"].cast(float).to_numpy(), np.nan)
        named = dict.fromkeys(frame["thing"].drop_nulls())
        things = {id: number for number, id in enumerate(named)}
        self.things = self._placed(at, np.array([things.get(t, -1) for t in frame["thing"]]), -1)
        self.facts = self._placed(at, frame["fact"].to_numpy(), None)
        one = frame.unique("unit", keep="first").sort("unit")
        self.owner = self._codes(one["same"], self.sames)
        subject = one["subject_id"].rank("dense").to_numpy().astype(np.int64)
        seed = asked.dataset.selection.seed
        self.by_fact = ByFact(ids=self.sames, relation=self.owner, subject=subject, seed=seed)

    @staticmethod
    def _codes(column: Any, names: Sequence[str]) -> Ints:
        numbers = {name: number for number, name in enumerate(names)}
        return np.array([numbers[name] for name in column], dtype=np.int64)

    def _placed(self, at: tuple[Ints, Ints], values: NDArray[Any], missing: Any) -> NDArray[Any]:
        placed = np.full(self.shape, missing, dtype=values.dtype)
        placed[at] = values
        return placed

    def of(self, language: str) -> int:
        """The place of a language."""
        return self.languages.index(language)

    def both(self, couple: Couple) -> Bools:
        """Which facts were asked in two languages."""
        a, b = map(self.of, couple)
        return np.asarray(~np.isnan(self.known[a]) & ~np.isnan(self.known[b]))

    @cached_property
    def scored(self) -> dict[tuple[str, str], Candidates]:
        """How candidates were scored, by what a relation is and by language."""
        asked = self.asked
        found = candidates(asked.dataset, self.relations, asked.answers(), asked.normalise)
        return {(r.same, r.language): found[r.id] for r in self.relations}

    @cached_property
    def ranked(self) -> dict[Couple, Ranked]:
        """RankC of every two languages."""
        return {couple: self._ranked(couple) for couple in combinations(self.languages, 2)}

    def _ranked(self, couple: Couple) -> Ranked:
        values, both, other, few = np.full(self.shape[1], np.nan), self.both(couple), 0, 0
        for number, same in enumerate(self.sames):
            at = np.flatnonzero(both & (self.owner == number))
            if not len(at):
                continue
            sides = [self.scored[same, language] for language in couple]
            rows = [
                [side.facts[fact] for fact in self.facts[self.of(language), at]]
                for side, language in zip(sides, couple, strict=True)
            ]
            ties = [self._ties(same, language) for language in couple]
            values[at], alike, scored = _compared(sides, rows, ties)
            other += int((~alike & scored).sum())
            few += int((alike & np.isnan(values[at])).sum())
        return Ranked(values=values, other=other, few=few)

    def _ties(self, same: str, language: str) -> Floats:
        """An order of candidates for equal scores, drawn for each language by itself."""
        ids, seed = self.scored[same, language].ids, self.asked.dataset.selection.seed
        return np.array([float(draw_key(seed, f"ties:{same}:{language}:{id}")) for id in ids])

    def _numbers(self) -> Iterator[tuple[str, Floats, Floats | None]]:
        """Every number by the name of its estimate, a value a fact, with what is taken from it."""
        for place, language in enumerate(self.languages):
            yield ACCURACY.at(language), self.accuracy[place], None
        for couple in combinations(self.languages, 2):
            a, b = map(self.of, couple)
            both, known = self.both(couple), self.known == 1
            same = (self.things[a] == self.things[b]) & (self.things[a] >= 0)
            yield RANKC.at(at(couple)), self.ranked[couple].values, None
            yield AGREEMENT.at(at(couple)), np.where(both, same, np.nan), None
            yield ONLY.at(at(couple)), np.where(both, known[a] & ~known[b], np.nan), None
            yield (
                ONLY.at(at((couple[1], couple[0]))),
                np.where(both, known[b] & ~known[a], np.nan),
                None,
            )
            yield LESS.at(at(couple)), self.accuracy[a], self.accuracy[b]

    def estimates(self) -> Iterator[tuple[str, Estimate]]:
        """Every number over facts and over relations; differences hold together."""
        numbers = {name: (values, minus) for name, values, minus in self._numbers()}
        together = self.by_fact.together(numbers)
        for over in (FACTS, RELATIONS):
            differences = {}
            for name, resampled in together.items():
                if name.startswith(LESS.id):
                    differences[f"{name}.{over}"] = self._tested(name, resampled, over)
                else:
                    yield f"{name}.{over}", _mean(resampled, over)
            yield from zip(differences, hold_together(list(differences.values())), strict=True)

    def _tested(self, name: str, of: Resampled, over: str) -> Estimate:
        """A difference with the p of its test, where there is one."""
        made = _mean(of, over)
        if made.value is None:
            return made
        counted: Over = "facts" if over == FACTS else "relations"
        return replace(made, p=p_value(of.samples, self.by_fact.seed, name, counted))

    def counts(self) -> dict[str, int]:
        """How many facts there are, and how many have no RankC, over all pairs of languages."""
        return {
            "facts_in_some_language": self.shape[1],
            "facts_in_every_language": int((~np.isnan(self.known)).all(axis=0).sum()),
            "rankc_other_candidates": sum(ranked.other for ranked in self.ranked.values()),
            "rankc_too_few_candidates": sum(ranked.few for ranked in self.ranked.values()),
        }


def _mean(of: Resampled, over: str) -> Estimate:
    return of.mean_over_facts() if over == FACTS else of.mean_over_relations()


def _units(asked: Asked, relations: Sequence[Relation]) -> DataFrame:
    """Judged facts, each with its language, its first answer and the number it has in all of them.

    `thing` is the identifier of what the first answer names, null where it names nothing known.
    """
    import polars
    from polars import col, struct

    spoken = polars.DataFrame(
        {
            "relation": [r.id for r in relations],
            "language": [r.language for r in relations],
            "same": [r.same for r in relations],
        },
        schema=dict.fromkeys(("relation", "language", "same"), polars.String),
    )
    answers = asked.judged.facts().select("relation", "fact", "answer", "verdict")
    subject = ("same", "split", "subject_id")
    several = struct("fact").len().over("language", *subject).max().over(subject) > 1
    objects = col("object_ids").list.sort().list.join("\n")
    key = (*subject, "objects")
    frame = (
        asked.facts()
        .join(spoken, on="relation", how="inner", maintain_order="left")
        .join(answers, on=("relation", "fact"), how="left", maintain_order="left")
        .with_columns(
            known=col("verdict") == "right",
            objects=polars.when(several).then(objects).otherwise(polars.lit("")),
        )
        .with_columns(again=col("fact").cum_count().over("language", *key))
        .with_columns(unit=struct(*key, "again").rank("dense").cast(polars.Int64) - 1)
    )
    things = polars.Series(_things(asked, relations, frame), dtype=polars.String)
    return frame.with_columns(thing=things)


def _things(asked: Asked, relations: Sequence[Relation], frame: DataFrame) -> Iterator[str | None]:
    """What each fact's first answer names: of a right one, which of the objects that are right."""
    dataset, written = asked.dataset, asked.judged.way == "written"
    plain = {r.id: _lemmas(r.language) if written else str.casefold for r in relations}
    every = {r.id: _named(thing_names(dataset, r).items(), plain[r.id]) for r in relations}
    right = {r.id: _right_names(dataset.frame(r.id)) for r in relations}
    columns = ("relation", "subject_id", "answer", "known", "object_ids", "object_names")
    for relation, subject, answer, known, ids, names in frame.select(columns).iter_rows():
        first = [(name, id) for id, all in zip(ids, names, strict=True) for name in all]
        pairs = [*right[relation][subject], *first] if known else []
        said, own = plain[relation]((answer or "").strip()), _named(pairs, plain[relation])
        yield own.get(said) or every[relation].get(said) or _held(own, said)


def _lemmas(language: str) -> Callable[[str], str]:
    """How written texts of a language are compared; as they are where its segmenter is missing."""
    chosen = language_of(OWN, language)
    try:
        check_language(chosen)
    except MissingExtra:
        chosen = PLAIN
    return partial(normal, language=chosen)


def _right_names(facts: DataFrame) -> dict[str, list[tuple[str, str]]]:
    """The names of what is right for each subject, whichever of its facts says so, with the ids."""
    rows = facts.select("subject_id", "object_ids", "object_names")
    pairs = rows.explode("object_ids", "object_names").explode("object_names").iter_rows()
    found: dict[str, list[tuple[str, str]]] = {}
    for subject, id, name in pairs:
        found.setdefault(subject, []).append((name, id))
    return found


def _held(right: Mapping[str, str], answer: str) -> str | None:
    """The right object whose name a written answer has among other words; else the only one."""
    names = sorted(right, key=len, reverse=True)
    held = next((name for name in names if within(name, answer)), "")
    only = next(iter(right.values()), None) if len(set(right.values())) == 1 else None
    return right.get(held, only)


def _named(names: Iterable[tuple[str, str]], plain: Callable[[str], str]) -> dict[str, str]:
    return {plain(name): id for name, id in names}


def _compared(
    sides: Sequence[Candidates], rows: Sequence[list[int]], ties: Sequence[Floats]
) -> tuple[Floats, Bools, Bools]:
    """RankC of each fact, whether its candidates are the same things, whether any was scored.

    Facts that name their candidates must name the same; else those count that both languages have.
    """
    one, other = sides
    shared = [id for id in one.ids if id in other.ids]
    columns = [np.array([side.ids[id] for id in shared], dtype=np.int64) for side in sides]
    values = [s.values[r][:, c] for s, r, c in zip(sides, rows, columns, strict=True)]
    own = [s.own[r] for s, r in zip(sides, rows, strict=True)]
    common = [o[:, c] for o, c in zip(own, columns, strict=True)]
    alike = np.ones(len(rows[0]), dtype=np.bool_)
    if one.named or other.named:
        alike = (common[0] == common[1]).all(axis=1)
        for every, kept in zip(own, common, strict=True):
            alike &= every.sum(axis=1) == kept.sum(axis=1)
    ranked = common[0] & common[1] & ~np.isnan(values[0]) & ~np.isnan(values[1])
    order = (ties[0][columns[0]], ties[1][columns[1]])
    found = consistencies(values[0], values[1], ranked, order)
    return np.where(alike, found, np.nan), np.asarray(alike), np.asarray(ranked.any(axis=1))
