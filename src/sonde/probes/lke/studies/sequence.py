"""lke-sequence: how probable each object is along a sequence of facts, and next to false ones.

Knows no model. One prompt holds a whole sequence of facts, each in front of the next; the model
says how probable it finds each object where it stands. With `replace` the same sequence is asked
again with some facts made up or wrong, so that what these do to their neighbours is a difference
between two answers about one fact at one place.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

from sonde.core.abilities import Ability, need
from sonde.core.columns import Given
from sonde.core.facts import Dataset
from sonde.core.prompts import Key, Prompt, Trace
from sonde.core.reports import Report
from sonde.core.settings import setting
from sonde.probes.lke.items import BETWEEN_HELP, INSIDE_HELP, separators
from sonde.probes.lke.studies.sequence_places import Shape, Told, outcomes, sequences
from sonde.probes.lke.studies.sequence_report import build_report
from sonde.prompting.sequences import Line, spans, told


@dataclass(frozen=True, slots=True, kw_only=True)
class LkeSequence:
    """Probability of each object along a sequence of facts, and what false ones do to it."""

    name: ClassVar[str] = "lke-sequence"
    shrinks: ClassVar[str] = "length"

    length: int = setting(200, "how many facts stand in a sequence", least=3)
    replace: Literal["none", "unknown", "incorrect"] = setting(
        "none", "also put unknown (made-up) or incorrect facts in the place of some"
    )
    replaced: int = setting(40, "how many facts of a full sequence to replace", least=1)
    layout: Literal["spread", "block"] = setting(
        "spread", "replace facts here and there, or in one block"
    )
    seeds: int = setting(5, "how many sequences of a relation, each in another order", least=1)
    inside: str = setting(" ", INSIDE_HELP)
    between: str = setting(" ", BETWEEN_HELP)
    after: int = setting(
        3, "how many places after a replaced fact are told apart", least=1, reads=True
    )

    def __post_init__(self) -> None:
        separators(self.inside, self.between)

    def suited(self, can: frozenset[Ability]) -> Self:
        """As it is: the model must say how probable it finds a given text."""
        need(self.name, can, "trace")
        return self

    def ask(self, dataset: Dataset) -> Iterator[Prompt]:
        """Each sequence as it is, then changed."""
        for sequence in sequences(dataset, self._shape()):
            yield self._prompt(sequence, sequence.clean, changed=False)
            if sequence.changed:
                yield self._prompt(sequence, sequence.changed, changed=True)

    def read(self, dataset: Dataset, answered: Given) -> Report:
        """Average the probabilities by place and by what stands before."""
        places = outcomes(sequences(dataset, self._shape()), answered, self.after)
        return build_report(dataset, places, self._shape(), self.after)

    def _prompt(self, sequence: Told, lines: tuple[Line, ...], *, changed: bool) -> Prompt:
        chosen = separators(self.inside, self.between)
        where = spans(lines, chosen)
        facts = [line.fact for line in lines]
        return Prompt(
            key=Key(fact=facts[0], relation=sequence.relation, template=self.name, subject=""),
            prefix=told(lines, chosen)[: where[-1][1]],
            want=Trace(spans=where),
            own={"facts": facts, "sequence": sequence.number, "changed": changed},
        )

    def _shape(self) -> Shape:
        return Shape(
            length=self.length,
            replace=self.replace,
            replaced=self.replaced,
            layout=self.layout,
            seeds=self.seeds,
        )


COMPONENT = LkeSequence
