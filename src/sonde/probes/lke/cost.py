"""What EIC-LKE makes a model read, beside what IC-LKE would. Counts names, since tokens differ.

Knows sequences and options, nothing of models; `sonde plan` counts a model's own tokens.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sonde.core.reports import Column, Table
from sonde.probes.lke.items import Item
from sonde.probes.lke.sequences import Passage


@dataclass(slots=True, kw_only=True)
class Cost:
    """Names of subjects and objects that are read, for the facts that are tested.

    `names` are those of the sequences as they are, `joined` those left where sequences that begin
    alike are read once up to the first fact that is tested. `naive`: by IC-LKE with a text for each
    option, with as many examples as stand before that fact; `shared`: the same with every beginning
    read once.
    """

    sequences: int = 0
    names: int = 0
    joined: int = 0
    facts: int = 0
    naive: int = 0
    shared: int = 0

    def read(self, passage: Passage) -> None:
        """Count one sequence."""
        self.sequences += 1
        self.names += 2 * passage.lines
        common = 2 * passage.before + 1  # the subject that is tested is common, too
        self.joined += 2 * passage.lines - (common if passage.number else 0)

    def compare(self, items: Iterable[Item], examples: int) -> None:
        """Count what IC-LKE would read for the facts of one relation."""
        offered = [len(item.options) for item in items]
        self.facts += len(offered)
        self.naive += sum(offered) * (2 * examples + 2)
        self.shared += 2 * examples * bool(offered) + sum(1 + count for count in offered)

    def counts(self) -> dict[str, int]:
        """By name, as the report gives it."""
        return {
            "sequences": self.sequences,
            "names_read": self.names,
            "names_read_shared": self.joined,
            "names_ic_lke_naive": self.naive,
            "names_ic_lke_shared": self.shared,
        }


def cost_table(cost: Cost) -> Table:
    """The three side by side."""
    ways = (
        ("EIC-LKE, every sequence by itself", cost.names),
        ("EIC-LKE, common beginnings read once", cost.joined),
        ("IC-LKE, a text for each option", cost.naive),
        ("IC-LKE, common beginnings read once", cost.shared),
    )
    return Table(
        id="cost",
        title="What the model has to read",
        columns=(
            Column(title="way"),
            Column(title="names", kind="count", help="of subjects and objects, for all facts"),
            Column(title="names per fact", kind="number"),
            Column(title="times", kind="number", help="as many as IC-LKE with shared beginnings"),
        ),
        rows=tuple(
            (way, names, names / max(cost.facts, 1), names / max(cost.shared, 1))
            for way, names in ways
        ),
        note="EIC-LKE saves against scoring text by text, not against sharing what begins alike. "
        "Names, not tokens; 'sonde plan' counts the tokens of a model.",
    )
