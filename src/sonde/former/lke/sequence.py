"""lke-sequence: how probable each object is along a sequence of facts, and next to false ones.

Knows no model. One prompt holds a whole sequence of facts, each in front of the next; the model
says how probable it finds each object where it stands. With `replace` the same sequence is asked
again with some facts made up or wrong, so that what these do to their neighbours is a difference
between two answers about one fact at one place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

import numpy as np

from sonde.core.abilities import needs
from sonde.core.columns import Given, in_blocks
from sonde.core.components import setting
from sonde.core.errors import DataError
from sonde.core.facts import Dataset, Fact
from sonde.core.prompts import Key, Prompt, Trace
from sonde.core.reports import Report
from sonde.metrics.judged import Judged
from sonde.metrics.verdicts import Floats
from sonde.former.lke.asking import BETWEEN_HELP, INSIDE_HELP, separators_of
from sonde.former.lke.choices import as_judged, no_answers, worded
from sonde.former.lke.sequence_report import PARTS, Shape, build_report
from sonde.prompting.options import correct_for, correct_names
from sonde.prompting.sequences import (
    TRAIN,
    Line,
    Separators,
    drawn,
    line_of,
    places,
    separated,
    spans,
    told,
    with_unknown,
    with_wrong,
)

if TYPE_CHECKING:
    from polars import DataFrame

LEAST = 3
LIKELY = 0.5

Logps = Mapping[tuple[str, int, bool], Floats]
"""The log-probability of each object of a relation's sequence of a number, clean or changed."""


class Told(NamedTuple):
    """One sequence of a relation, as it is and, at the places `at`, changed; not always changed."""

    relation: str
    number: int
    clean: tuple[Line, ...]
    at: tuple[int, ...] = ()
    changed: tuple[Line, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LkeSequence:
    """Probability of each object along a sequence of facts, and what false ones do to it."""

    name: ClassVar[str] = "lke-sequence"
    shrinks: ClassVar[str] = "length"

    length: int = setting(200, "how many facts stand in a sequence", min=3)
    replace: Literal["none", "unknown", "incorrect"] = setting(
        "none", "also put unknown (made-up) or incorrect facts in the place of some"
    )
    replaced: int = setting(40, "how many facts of a full sequence to replace", min=1)
    layout: Literal["spread", "block"] = setting(
        "spread", "replace facts here and there, or in one block"
    )
    seeds: int = setting(5, "how many sequences of a relation, each in another order", min=1)
    inside: str = setting("space", INSIDE_HELP)
    between: str = setting("space", BETWEEN_HELP)
    after: int = setting(
        3, "how many places after a replaced fact are told apart", min=1, analysis_only=True
    )

    def __post_init__(self) -> None:
        separated(self.inside, self.between)

    suited = needs("trace")

    def ask(self, dataset: Dataset) -> Iterator[Prompt]:
        """Each sequence as it is, then changed."""
        for sequence in self.sequences(dataset):
            language = dataset.relation(sequence.relation).language
            chosen = separated(self.inside, self.between, language)
            yield self._prompt(sequence, sequence.clean, chosen, changed=False)
            if sequence.changed:
                yield self._prompt(sequence, sequence.changed, chosen, changed=True)

    def read(self, dataset: Dataset, answered: Given) -> Report:
        """Average the probabilities by place and by what stands before."""
        shape = Shape(self.length, self.replace, self.replaced, self.seeds, self.after)
        frame = self.places(dataset, answered)
        return build_report(dataset, frame, shape, self._judged(dataset, frame))

    def judged(self, dataset: Dataset, answered: Given) -> Judged:
        """Every object where it stands, right where it is likelier than all others together.

        Each sequence, as it is or changed, counts as a template; replaced facts are left out.
        """
        return self._judged(dataset, self.places(dataset, answered))

    def sequences(self, dataset: Dataset) -> list[Told]:
        """Every relation's sequences; one with too few facts is left out, all are refused."""
        real = _names(dataset) if self.replace == "unknown" else frozenset()
        relations = dataset.asked_relations()
        every = [told for r in relations for told in self._told(dataset, r.id, real)]
        if not every:
            raise DataError(
                f"dataset {dataset.name!r} has no relation with {LEAST} facts to put in a sequence;"
                " raise --limit, or name other relations"
            )
        return every

    def _told(self, dataset: Dataset, relation: str, real: frozenset[str]) -> Iterator[Told]:
        """The sequences of a relation; a made-up subject bears none of the `real` names."""
        seed, facts = dataset.selection.seed, _facts(dataset, relation)
        several = correct_names(dataset, relation) if self.replace == "incorrect" else {}
        right = {fact.id: correct_for(fact, several) for fact in facts}
        objects = dataset.object_names(relation)
        for number in range(self.seeds):
            clean = tuple(map(line_of, drawn(facts, seed + number)[: self.length]))
            if len(clean) < LEAST:
                continue
            # the same places in every sequence, so that their means can be drawn along the sequence
            at = places(self._count(len(clean)), len(clean), self.layout, seed)
            if self.replace == "none":
                yield Told(relation, number, clean)
            elif self.replace == "unknown":
                language = dataset.relation(relation).language
                changed = with_unknown(clean, at, seed + number, real, language)
                yield Told(relation, number, clean, at, changed)
            else:
                wrong = with_wrong(clean, at, lambda x: right[x.fact], objects, seed + number)
                yield Told(relation, number, clean, at, wrong)

    def _count(self, length: int) -> int:
        """How many facts of a sequence are replaced: the same share of a short one as of a full."""
        return max(1, min(length - 2, round(self.replaced * length / self.length)))

    def _prompt(
        self, sequence: Told, lines: tuple[Line, ...], chosen: Separators, *, changed: bool
    ) -> Prompt:
        where, facts = spans(lines, chosen), [line.fact for line in lines]
        return Prompt(
            key=Key(fact=facts[0], relation=sequence.relation, template=self.name, subject=""),
            prefix=told(lines, chosen)[: where[-1][1]],
            want=Trace(spans=where),
            own={"facts": facts, "sequence": sequence.number, "changed": changed},
        )

    def places(self, dataset: Dataset, answered: Given) -> DataFrame:
        """Every place of every sequence, in their order, whatever order the answers come in.

        A row each. `place` counts from 1, `part` is the tenth of the sequence it stands in, from 1,
        `group` what it is to the replaced facts; `line` is the fact as it is shown, `changed_line`
        what stands in its place in the changed sequence. `clean_log` and `changed_log` are the
        log-probabilities of its object in nats, `clean` and `changed` the probabilities; nan is not
        measured. `usual`: how often its object stands in the sequence, which is what a model could
        go by that knows no fact. `likely` and `usually`: whether the probability, and that share,
        is above one half.
        """
        import polars

        logps = _logps(answered)
        frame = polars.concat([_places(t, logps, self.after) for t in self.sequences(dataset)])
        clean, changed = frame["clean_log"].exp(), frame["changed_log"].exp()
        ids = frame["relation"].unique(maintain_order=True)
        return frame.with_columns(
            clean=clean,
            changed=changed,
            likely=np.where(clean.is_nan(), np.nan, clean > LIKELY),
            usually=frame["usual"] > LIKELY,
            owner=frame["relation"].replace_strict(ids, range(len(ids)), return_dtype=polars.Int64),
            subject=frame["fact"].rank("dense").cast(polars.Int64),
        )

    def _judged(self, dataset: Dataset, frame: DataFrame) -> Judged:
        from polars import col, concat, lit, when

        facts = frame.unique(["relation", "fact"], maintain_order=True).with_row_index("pair")
        numbers = facts.select("relation", "fact", "pair")
        every = frame.join(numbers, on=["relation", "fact"], how="left", maintain_order="left")
        stayed = every.filter(every["group"] != "replaced")
        rows = concat(
            part.with_columns(changed=lit(changed), confidence=name, gold_logprob=f"{name}_log")
            for part, changed, name in ((every, False, "clean"), (stayed, True, "changed"))
        ).filter(col("gold_logprob").is_not_nan())
        right = col("confidence") > LIKELY
        answer = when(right).then("object").otherwise(lit(""))
        rows = rows.with_columns(right=right, answer=answer, rank=lit(0)).sort(
            "pair", "sequence", "changed"
        )
        relations = tuple(map(dataset.relation, frame["relation"].unique(maintain_order=True)))
        chosen = separators_of(dataset, self.inside, self.between)
        template = worded("sequence-{sequence}-{changed}", chosen)
        return as_judged(rows, facts, relations, ("sequence", "changed"), template)


def _facts(dataset: Dataset, relation: str) -> list[Fact]:
    """What is asked about, and what is there for training: neither is told from the other here."""
    kept = {fact.id: fact for fact in dataset.asked(relation)}
    kept |= {fact.id: fact for fact in dataset.facts(relation) if fact.split == TRAIN}
    return list(kept.values())


def _names(dataset: Dataset) -> frozenset[str]:
    """Every name in the dataset, case-folded: no made-up subject may bear it."""
    return frozenset(
        name.casefold()
        for relation in dataset.relations
        for fact in dataset.facts(relation.id)
        for entity in (fact.subject, *fact.objects)
        for name in entity.names
    )


def groups(at: tuple[int, ...], length: int, after: int) -> list[str]:
    """What each place is to the replaced ones: replaced, so many after one, before all, other.

    >>> groups((1,), 5, 2)
    ['before', 'replaced', 'after_1', 'after_2', 'other']
    """
    kinds, last = [], None
    for place in range(length):
        last = place if place in at else last
        if last is None:
            kinds.append("before")
        elif last == place:
            kinds.append("replaced")
        else:
            kinds.append(f"after_{place - last}" if place - last <= after else "other")
    return kinds


def _logps(answered: Given) -> Logps:
    logps: dict[tuple[str, int, bool], Floats] = {}
    for block in in_blocks(answered):
        rated = block.rated
        # no token of its own: the object before shares it, so that nothing was measured
        sums = np.where(rated.counts() > 0, rated.sums(), np.nan)
        keys = block.frame.select("relation", "sequence", "changed").rows()
        for key, (start, stop) in zip(keys, pairwise(rated.bounds.tolist()), strict=True):
            logps[key] = sums[start:stop]
    if not logps:
        raise no_answers()
    return logps


def _places(sequence: Told, logps: Logps, after: int) -> DataFrame:
    from polars import DataFrame

    relation, number, clean, at, changed = sequence
    length, place = len(clean), np.arange(len(clean))
    unknown, counts = np.full(length, np.nan), Counter(line.object for line in clean)
    return DataFrame(
        {
            "relation": relation,
            "sequence": number,
            "place": place + 1,
            "part": 1 + place * PARTS // length,
            "group": groups(at, length, after),
            "fact": [line.fact for line in clean],
            "name": [line.subject for line in clean],
            "object": [line.object for line in clean],
            "line": list(map(_text, clean)),
            "changed_line": [
                "" if a == b else _text(b) for a, b in zip(clean, changed or clean, strict=True)
            ],
            "clean_log": logps.get((relation, number, False), unknown),
            "changed_log": logps.get((relation, number, True), unknown),
            "usual": [counts[line.object] / length for line in clean],
            "replaced": len(at),
        }
    )


def _text(line: Line) -> str:
    return f"{line.subject} → {line.object}"


COMPONENT = LkeSequence
