"""Facts held in memory, and models small enough to read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from sonde.core.abilities import Identity
from sonde.core.answers import Scored
from sonde.core.facts import Card, Dataset, Entity, Fact, Relation, Template
from sonde.core.fingerprints import fingerprint
from sonde.core.prompts import Prompt, Score
from sonde.store.complete import Complete


def fact(relation: str, number: int, split: str = "test") -> Fact:
    """The fact of that number: subject 3 has object 3."""
    return Fact(
        id=f"{relation}:{number}",
        relation=relation,
        subject=Entity(id=f"s{number}", names=(f"subject {number}",)),
        objects=(Entity(id=f"o{number}", names=(f"object {number}",)),),
        split=split,
    )


def world(facts: Mapping[str, Sequence[Fact]]) -> Dataset:
    """A dataset of these facts, with one template for each relation."""
    relations = tuple(
        Relation(
            id=id,
            label=f"label of {id}",
            kind="N-1",
            templates=(Template(id=f"{id}-1", text=f"{id} of [X] is [Y].", group=f"{id}-1"),),
        )
        for id in facts
    )
    name = fingerprint(f.id for relation in facts.values() for f in relation)
    return Dataset(
        card=Card(name="world"), relations=relations, read=lambda id: facts[id], fingerprint=name
    )


def small_world(facts: int = 6) -> Dataset:
    """Two relations with a few facts each."""
    return world({id: [fact(id, number) for number in range(facts)] for id in ("P1", "P2")})


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Scores each option by its length, and lists the facts it was asked about."""

    name: str = "listing"
    asked: list[str] = field(default_factory=list)

    @property
    def identity(self) -> Identity:
        return Identity(name=self.name, architecture="listing")

    def score(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Scored]]:
        for position, prompt in reversed(list(enumerate(prompts))):  # any order will do
            assert isinstance(prompt.want, Score)
            self.asked.append(prompt.key.fact)
            logps = tuple((-float(len(option)), -0.5) for option in prompt.want.options)
            yield position, Scored(options=prompt.want.options, logps=logps)


def shard_bytes(folder: Path) -> dict[str, bytes]:
    """The shards and the dataset of a run, byte for byte."""
    kept = [*folder.glob("shards/*.parquet"), *folder.glob("dataset/**/*.json*")]
    return {str(path.relative_to(folder)): path.read_bytes() for path in kept}


def unseal(out: Path) -> None:
    """Make a finished run one of those that were made before runs were sealed."""
    path = out / "complete.json"
    path.write_text(replace(Complete.from_json(path.read_text()), sealed={}).to_json())
