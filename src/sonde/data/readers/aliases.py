"""Read more names, and more correct objects, for facts whose entities have Wikidata identifiers.

    en.tsv            identifier, then names, separated by tabs
    multi_valued.tsv  optional: subject, relation, and the correct objects separated by spaces

The names a fact already has stay first. Only what the facts mention is kept in memory. An
identifier that is missing here leaves its entity as it is; a missing object is left out, counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from sonde.core.errors import DataError
from sonde.core.fact_frames import entities, text_frame, united
from sonde.core.facts import Card, Dataset
from sonde.core.fingerprints import fingerprint
from sonde.data.format import hash_files
from sonde.data.joining import is_apart
from sonde.data.lines import read_lines

if TYPE_CHECKING:
    from polars import DataFrame, LazyFrame

NAMES = "en.tsv"
OBJECTS = "multi_valued.tsv"

Pair = tuple[str, str]
"""A subject and a relation, by their identifiers."""


@dataclass(frozen=True, slots=True)
class AliasReader:
    """English aliases and multi-valued objects by Wikidata identifier."""

    name: ClassVar[str] = "aliases"
    summary: ClassVar[str] = "more names by identifier: en.tsv, and multi_valued.tsv if there"

    def card(self) -> Card:
        """Where the names come from."""
        return Card(name=self.name, licence="none stated", sources=("Wikidata aliases",))

    def extend(self, dataset: Dataset, folder: Path) -> Dataset:
        """The same facts with more names and more correct objects."""
        table = _table(dataset, folder)
        paths = [p for p in (folder / NAMES, folder / OBJECTS) if p.is_file()]
        extended = replace(
            dataset,
            read=lambda id: table.extended(dataset.frame(id)),
            fingerprint=fingerprint([dataset.fingerprint, self.name, hash_files(folder, paths)]),
        )
        return replace(extended, notes={**dataset.notes, **_notes(dataset, extended, table)})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    """What the files say about the entities of a dataset.

    `names` are those of the file by id; before them `named` has the name that the facts use.
    `objects` are the correct ones by subject and relation.
    """

    names: LazyFrame
    named: LazyFrame
    objects: LazyFrame

    def extended(self, facts: DataFrame) -> DataFrame:
        """The facts of a relation with all the names of their entities, and all correct objects."""
        import polars

        alone = self._with_names(facts.lazy().filter(~is_apart()), "subject").with_row_index("row")
        given = self._with_names(entities(alone, "row"), "object")
        added = self.listed(alone, "row").join(
            given, on=("row", "object_ids"), how="anti", maintain_order="left"
        )
        added = added.join(self.named, on="object_ids", maintain_order="left")
        objects = united(polars.concat([given, added]), "row")
        made = alone.drop("object_ids", "object_names").join(
            objects, on="row", how="left", maintain_order="left"
        )
        made = made.select(facts.columns)
        return polars.concat([made, facts.lazy().filter(is_apart())]).collect()

    def listed(self, facts: LazyFrame, key: str) -> LazyFrame:
        """The correct objects that the file lists for each fact."""
        listed = facts.select("subject_id", "relation", key).join(
            self.objects, on=("subject_id", "relation"), maintain_order="left"
        )
        return listed.select(key, "object_ids").explode("object_ids").drop_nulls()

    def _with_names(self, rows: LazyFrame, of: str) -> LazyFrame:
        from polars import col, concat_list

        id, names = ("subject_id" if of == "subject" else "object_ids"), f"{of}_names"
        more = self.names.rename({"object_ids": id, "object_names": "more"})
        rows = rows.join(more, on=id, how="left", maintain_order="left")
        together = concat_list(names, col("more").fill_null([])).list.unique(maintain_order=True)
        return rows.with_columns(together.alias(names)).drop("more")


def _table(dataset: Dataset, folder: Path) -> _Table:
    usual, pairs = _mentioned(dataset)
    objects = dict(_objects(folder, pairs))
    wanted = dict.fromkeys((*usual, *(id for ids in objects.values() for id in ids)))
    names = {id: names for id, names in _names(folder) if id in wanted}
    named = {
        id: tuple(dict.fromkeys((*([usual[id]] if id in usual else ()), *names.get(id, ()))))
        for id in wanted
    }
    subjects, relations = zip(*objects, strict=True) if objects else ((), ())
    return _Table(
        names=_named(names),
        named=_named({id: names for id, names in named.items() if names}),
        objects=text_frame(
            {"subject_id": subjects, "relation": relations}, {"object_ids": list(objects.values())}
        ).lazy(),
    )


def _named(names: Mapping[str, tuple[str, ...]]) -> LazyFrame:
    return text_frame({"object_ids": list(names)}, {"object_names": list(names.values())}).lazy()


def _identified(dataset: Dataset) -> LazyFrame:
    """The facts whose entities may have identifiers; those collected apart have names alone."""
    import polars

    frames = [dataset.frame(relation.id).lazy() for relation in dataset.relations]
    return polars.concat(frames).filter(~is_apart())


def _mentioned(dataset: Dataset) -> tuple[dict[str, str], set[Pair]]:
    """The usual name of each entity that the facts mention, and their pairs."""
    from polars import col, concat_list, element

    facts = _identified(dataset)
    usual = col("object_names").list.eval(element().list.first())
    entities = facts.select(concat_list("subject_id", "object_ids"), concat_list("subject", usual))
    names = entities.explode("subject_id", "subject").unique("subject_id", keep="first")
    pairs = facts.select("subject_id", "relation").collect()
    return dict(names.collect().iter_rows()), set(pairs.iter_rows())


def _notes(dataset: Dataset, extended: Dataset, table: _Table) -> dict[str, int]:
    from polars import col

    facts = _identified(dataset)
    sums = col("subject_names", "object_ids").list.len().cast(int).sum()
    before, after = (d.select(sums).collect().row(0) for d in (facts, _identified(extended)))
    nameless = facts.join(table.names, left_on="subject_id", right_on="object_ids", how="anti")
    unnamed = table.listed(facts, "fact").join(table.named, on="object_ids", how="anti")
    return {
        "subjects_without_aliases": nameless.collect()["subject_id"].n_unique(),
        "subject_names_added": after[0] - before[0],
        "objects_added": after[1] - before[1],
        "objects_without_names": unnamed.collect().height,
    }


def _names(folder: Path) -> Iterator[tuple[str, tuple[str, ...]]]:
    path = folder / NAMES
    for number, line in read_lines(path):
        id, *names = line.split("\t")
        found = tuple(name.strip() for name in names if name.strip())
        if line.strip() and not (id.strip() and found):
            raise DataError(f"{path}, line {number}: expected an identifier, a tab and names")
        if found:
            yield id.strip(), found


def _objects(folder: Path, pairs: set[Pair]) -> Iterator[tuple[Pair, tuple[str, ...]]]:
    path = folder / OBJECTS
    if not path.is_file():
        return
    for number, line in read_lines(path):
        if not line.strip():
            continue
        parts = line.split("\t")
        if len(parts) != 3 or not all(part.strip() for part in parts):
            raise DataError(
                f"{path}, line {number}: expected a subject, a relation and objects, "
                f"separated by tabs, found {line[:80]!r}"
            )
        if (parts[0], parts[1]) in pairs:
            yield (parts[0], parts[1]), tuple(parts[2].split())


COMPONENT = AliasReader()
