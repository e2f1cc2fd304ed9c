"""Read more names, and more correct objects, for facts whose entities have Wikidata identifiers.

    en.tsv            identifier, then names, separated by tabs
    multi_valued.tsv  optional: subject, relation, and the correct objects separated by spaces

The names a fact already has stay first. Only what the facts mention is kept in memory. An
identifier that is missing here leaves its entity as it is; a missing object is left out, counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from sonde.core.errors import DataError
from sonde.core.fact_frames import entities, is_apart, text_frame, united
from sonde.core.facts import Card, Dataset
from sonde.core.fingerprints import fingerprint
from sonde.data.format import hash_files
from sonde.data.lines import read_lines

if TYPE_CHECKING:
    from polars import DataFrame, LazyFrame

NAMES = "en.tsv"
OBJECTS = "multi_valued.tsv"


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
        files = hash_files(folder, (folder / NAMES, folder / OBJECTS))
        extended = replace(
            dataset,
            read=lambda id: table.extended(dataset.frame(id)),
            fingerprint=fingerprint([dataset.fingerprint, self.name, files]),
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

        alone = self._with_names(facts.lazy().filter(~is_apart()), "subject_id", "subject_names")
        alone = alone.with_row_index("row")
        given = self._with_names(entities(alone, "row"), "object_ids", "object_names")
        added = self.listed(alone, "row").join(
            given, on=("row", "object_ids"), how="anti", maintain_order="left"
        )
        added = added.join(self.named, on="object_ids", maintain_order="left")
        objects = united(polars.concat([given, added]), "row")
        extended = alone.drop("object_ids", "object_names").join(
            objects, on="row", how="left", maintain_order="left"
        )
        apart = facts.lazy().filter(is_apart())
        return polars.concat([extended.select(facts.columns), apart]).collect()

    def listed(self, facts: LazyFrame, key: str) -> LazyFrame:
        """The correct objects that the file lists for each fact."""
        listed = facts.select("subject_id", "relation", key).join(
            self.objects, on=("subject_id", "relation"), maintain_order="left"
        )
        return listed.select(key, "object_ids").explode("object_ids").drop_nulls()

    def _with_names(self, rows: LazyFrame, id: str, names: str) -> LazyFrame:
        from polars import col, concat_list

        more = self.names.rename({"object_ids": id, "object_names": "more"})
        rows = rows.join(more, on=id, how="left", maintain_order="left")
        together = concat_list(names, col("more").fill_null([])).list.unique(maintain_order=True)
        return rows.with_columns(together.alias(names)).drop("more")


def _table(dataset: Dataset, folder: Path) -> _Table:
    import polars
    from polars import col

    facts = _identified(dataset)
    usual = _usual_names(facts)
    pairs = set(facts.select("subject_id", "relation").collect().iter_rows())
    objects = {pair: ids for pair, ids in read_objects(folder / OBJECTS) if pair in pairs}
    wanted = {*usual["object_ids"], *chain.from_iterable(objects.values())}
    more = {id: names for id, names in read_names(folder / NAMES) if id in wanted}
    names = text_frame({"object_ids": list(more)}, {"object_names": list(more.values())})
    every = polars.concat([usual, names]).lazy().explode("object_names")
    subjects, relations = zip(*objects, strict=True) if objects else ((), ())
    keys = {"subject_id": subjects, "relation": relations}
    return _Table(
        names=names.lazy(),
        named=every.group_by("object_ids").agg(col("object_names").unique(maintain_order=True)),
        objects=text_frame(keys, {"object_ids": list(objects.values())}).lazy(),
    )


def _identified(dataset: Dataset) -> LazyFrame:
    """The facts whose entities may have identifiers; those collected apart have names alone."""
    import polars

    frames = [dataset.frame(relation.id).lazy() for relation in dataset.relations]
    return polars.concat(frames).filter(~is_apart())


def _usual_names(facts: LazyFrame) -> DataFrame:
    """Each entity that the facts mention, with the name that they use first."""
    from polars import col, concat_list, element

    usual = col("object_names").list.eval(element().list.first())
    mentioned = facts.select(
        concat_list("subject_id", "object_ids").alias("object_ids"),
        concat_list("subject", usual).alias("object_names"),
    ).explode("object_ids", "object_names")
    once = mentioned.unique("object_ids", keep="first", maintain_order=True)
    return once.with_columns(concat_list("object_names")).collect()


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


def read_names(path: Path) -> Iterator[tuple[str, list[str]]]:
    """The names of each identifier."""
    for where, line in read_lines(path):
        id, *names = (part.strip() for part in line.split("\t"))
        names = [name for name in names if name]
        if id and names:
            yield id, names
        elif line.strip():
            raise DataError(f"{where}: expected an identifier, a tab and names")


def read_objects(path: Path) -> Iterator[tuple[tuple[str, str], list[str]]]:
    """The correct objects of each subject and relation, if there is such a file."""
    for where, line in read_lines(path) if path.is_file() else ():
        parts = line.split("\t")
        if len(parts) == 3 and all(part.strip() for part in parts):
            yield (parts[0], parts[1]), parts[2].split()
        elif line.strip():
            raise DataError(
                f"{where}: expected a subject, a relation and objects, separated by tabs, "
                f"found {line[:80]!r}"
            )


COMPONENT = AliasReader()
