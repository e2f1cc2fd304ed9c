"""Find a dataset by the name or path a user gives, and join what is named with a plus.

A joined dataset has one fact per subject and relation, with every correct object: that is the pair
that BELIEF asks about. Facts are still read a relation at a time.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from sonde.core.components import Components
from sonde.core.errors import DataError, UsageError, nearest
from sonde.core.fact_frames import DATES, entities, is_apart, united
from sonde.core.facts import Card, Dataset, Selection
from sonde.core.fingerprints import fingerprint
from sonde.data.format import is_dataset, open_dataset
from sonde.data.readers import ADDITIONS, DATASETS
from sonde.data.sentences import is_sentence, worded_by
from sonde.data.tables import HUB
from sonde.data.tables.columns import PAGE, Given
from sonde.data.tables.files import TABLES, is_table, tables
from sonde.data.wordings import Wordings, worded, wordings_of

if TYPE_CHECKING:
    from polars import DataFrame

log = logging.getLogger(__name__)

BUNDLED = Path(__file__).parent / "bundled"


class Reader(Protocol):
    """Reads one public dataset's files; one with a true `takes_file` reads a single one, too."""

    name: str
    summary: str

    def recognises(self, folder: Path) -> bool:
        """Whether a folder looks like this dataset."""

    def read(self, folder: Path) -> Dataset:
        """Open it."""


class TemplateReader(Protocol):
    """Reads a source that has templates and no facts."""

    name: str
    summary: str

    def templates(self, folder: Path) -> Wordings:
        """Read them; the path may also be a file, where the source has its parts in files."""


class Extender(Protocol):
    """Reads a source that adds to the facts of another: names, say."""

    name: str
    summary: str

    def card(self) -> Card:
        """Where it comes from and how it may be used."""

    def extend(self, dataset: Dataset, folder: Path) -> Dataset:
        """The dataset with what the source adds."""


def readers() -> Mapping[str, Reader]:
    """Every reader of a whole dataset by name."""
    return Components(DATASETS, "sonde.readers", lambda c: hasattr(c, "read"))


def additions() -> Mapping[str, TemplateReader | Extender]:
    """Every source that can be added to a dataset with a plus, by name."""
    return Components(ADDITIONS, "sonde.readers", lambda c: not hasattr(c, "read"))


def bundled() -> dict[str, Path]:
    """The datasets that come with sonde, by name."""
    return {p.name: p for p in sorted(BUNDLED.iterdir()) if is_dataset(p)}


def folder_of(reference: str) -> Path | None:
    """The folder in sonde's own form that a reference names; None where it names something else."""
    path = bundled().get(reference, Path(reference).expanduser())
    return path if is_dataset(path) else None


def load(
    reference: str,
    wording: str | Sequence[str] = (),
    columns: Given | None = None,
    relations: Sequence[str] = (),
) -> Dataset:
    """Open a bundled dataset, a folder, a table or READER:FOLDER; +SOURCE:FOLDER adds to it.

    `lama:A+pararel:B+aliases:C` is LAMA's facts under ParaRel's patterns with more names.
    `wording`, one sentence, SOURCE:FOLDER or dataset or several, are templates that together take
    the place of the dataset's own and leave its facts as they are. `columns` of a table: see there.
    """
    first, *rest = _parts(reference)
    one = _load_one(first, columns or {})
    dataset = _joined(one, rest) if rest else one
    given = [text for text in ([wording] if isinstance(wording, str) else wording) if text]
    return reworded(dataset, given, relations=relations) if given else dataset


def _parts(reference: str) -> list[str]:
    """What is named, and what a plus adds to it."""
    names = "|".join(map(re.escape, additions()))
    return re.split(rf"\+(?=(?:{names}):)", reference)


def reworded(
    dataset: Dataset,
    given: Sequence[str],
    flag: str = "--template",
    relations: Sequence[str] = (),
) -> Dataset:
    """The same facts under given sentences and other sources' templates, which a flag names.

    A sentence that names no relation is for the only one of the dataset or of `relations`.
    """
    chosen = replace(dataset, selection=Selection(relations=tuple(relations)))
    said = [text for text in given if is_sentence(text)]
    named = [part for text in given if text not in said for part in _parts(text)]
    sources = [worded_by(said, chosen, flag)] if said else []
    sources += [_wordings(text) for text in named]
    under = worded(dataset, sources)
    if not under.relations:
        raise DataError(f"{'+'.join(given)} has no template for any relation of {dataset.name!r}")
    kept = {relation.id for relation in under.relations}
    if said and (left := [r.label for r in dataset.relations if r.id not in kept]):
        log.info("left out, for no wording was given: %s", ", ".join(left))
    cards = [source.card for source in sources]
    names = [card.name for card in cards]
    card = _joined_card(
        (dataset.card, *cards),
        name=f"{dataset.name} under {'+'.join(names)}",
        description=f"{dataset.name} under the templates of {', '.join(names)}",
    )
    if not named and not any(relation.templates for relation in dataset.relations):
        card = dataset.card  # these are its own sentences
        counts = {name: count for name, count in under.notes.items() if count}
        under = replace(under, notes=counts)
    parts = ["reworded", dataset.fingerprint, *(source.fingerprint for source in sources)]
    return replace(under, card=card, fingerprint=fingerprint(parts))


def _wordings(text: str) -> Wordings:
    """The templates of a source, or those of a dataset."""
    scheme, colon, place = text.partition(":")
    able = {name: c for name, c in additions().items() if hasattr(c, "templates")}
    if colon and scheme in able:
        return cast(TemplateReader, able[scheme]).templates(_there(place))
    if text in bundled() or scheme in readers() or is_dataset(Path(text).expanduser()):
        return wordings_of(_load_one(text, {}))
    raise UsageError(
        f"no source of templates called {scheme!r} (write a sentence with [X] and [Y], a file of "
        f"them, SOURCE:FOLDER as in lpaqa:./LPAQA/mine, or a dataset: {PAGE}); "
        f"{nearest(scheme, [*able, *readers(), *bundled()])}"
    )


def _joined(facts: Dataset, rest: list[str]) -> Dataset:
    """Facts made one per pair, then all templates that are named, then everything else."""
    dataset, cards = merged(facts), [facts.card]
    sources: list[Wordings] = []
    extenders: list[tuple[Extender, Path]] = []
    for part in rest:
        scheme, _, place = part.partition(":")
        addition: Any = additions()[scheme]
        if hasattr(addition, "templates"):
            sources.append(addition.templates(_there(place)))
            cards.append(sources[-1].card)
        else:
            extenders.append((addition, _folder(place)))
            cards.append(addition.card())
    names = [card.name for card in cards]
    if sources:
        parts = [dataset.fingerprint, *(source.fingerprint for source in sources)]
        dataset = replace(worded(dataset, sources), fingerprint=fingerprint(parts))
    if not dataset.relations:
        raise DataError(f"{'+'.join(names)}: no relation has facts and templates")
    for extender, folder in extenders:
        dataset = extender.extend(dataset, folder)
    described = f"{facts.name}, joined with {', '.join(names[1:])}"
    return replace(dataset, card=_joined_card(cards, name="+".join(names), description=described))


def _joined_card(cards: Sequence[Card], *, name: str, description: str) -> Card:
    """A card that names everything a dataset was joined from."""
    licences = dict.fromkeys(f"{card.name}: {card.licence}" for card in cards)
    return Card(
        name=name,
        licence="; ".join(licences),
        sources=tuple(dict.fromkeys(source for card in cards for source in card.sources)),
        description=description,
    )


def _load_one(reference: str, columns: Given) -> Dataset:
    if reference in bundled() and not columns:
        return _opened_once(bundled()[reference])
    if reference.startswith(f"{HUB}:"):
        from sonde.data.tables.hub import open_hub

        return open_hub(reference.partition(":")[2], columns)
    scheme, colon, rest = reference.partition(":")
    named = colon and scheme in readers()
    path = Path(reference).expanduser()
    if not named and is_table(path) and not path.is_dir():
        if inside := [folder for folder in path.parents[:2] if is_dataset(folder)]:
            raise DataError(f"{path} is a part of a dataset; give its folder: {inside[0]}")
        from sonde.data.tables.dataset import open_table

        return open_table(path, columns)
    if columns:
        raise UsageError(f"--columns is for tables; {reference} is none ({PAGE})")
    if named:
        reader = readers()[scheme]
        takes_file = getattr(reader, "takes_file", False) and Path(rest).expanduser().is_file()
        return _read(reader, _there(rest) if takes_file else _folder(rest))
    if colon and scheme in additions():
        raise UsageError(
            f"{scheme} holds no facts; name a dataset before it, such as lama:FOLDER+{reference}"
        )
    if colon and scheme.isidentifier() and not path.exists():
        raise UsageError(f"no reader called {scheme!r}; {nearest(scheme, [HUB, *readers()])}")
    if not path.exists() and "/" not in reference:
        raise UsageError(
            f"no dataset called {reference!r}, and no folder or table of that name ({PAGE}); "
            f"{nearest(reference, [*bundled(), *readers()])}"
        )
    return _open_folder(_folder(reference))


@cache
def _opened_once(folder: Path) -> Dataset:
    """What comes with sonde stays as it is while a program runs."""
    return open_dataset(folder)


def _open_folder(folder: Path) -> Dataset:
    """A folder in sonde's own form, or one that a reader knows."""
    if is_dataset(folder):
        return open_dataset(folder)
    for reader in readers().values():
        if reader.recognises(folder):
            return _read(reader, folder)
    held = [path for path in tables(folder) if path.parent == folder]
    instead = f"; it holds tables: give one of them, such as {held[0]}" if held else ""
    raise DataError(
        f"{folder} is no dataset: it has no dataset.json, and no reader knows its files "
        f"(readers: {', '.join(sorted(readers()))}){instead}. {PAGE} says how your own facts are "
        "read, docs/public-datasets.md what readers look for"
    )


def _read(reader: Reader, path: Path) -> Dataset:
    """The dataset of a reader; rejects one without facts. A relation that cannot be read does not
    matter while another has facts."""
    dataset, faults = reader.read(path), []
    for relation in dataset.relations:
        try:
            if dataset.frame(relation.id).height:
                return dataset
        except DataError as fault:
            faults.append(fault)
    if faults:
        raise faults[0]
    raise DataError(f"{path}: no fact of {reader.name} is in it; are its files whole?")


def _folder(text: str) -> Path:
    path = Path(text).expanduser()
    if path.is_file():
        endings = ", ".join(TABLES)
        raise DataError(
            f"{path} is not a folder, and no table by its ending ({endings}); {PAGE} says what is "
            "read"
        )
    return _existing(
        text,
        Path.is_dir,
        f"is not a folder; give the folder that holds the dataset, or a table ({PAGE})",
    )


def _there(text: str) -> Path:
    return _existing(text, Path.exists, "does not exist; give the folder that holds the templates")


def _existing(text: str, fits: Callable[[Path], bool], fault: str) -> Path:
    """A path that is there; if not, it may be that nothing answers to the WORD of a +WORD in it."""
    path, known = Path(text).expanduser(), additions()
    if fits(path):
        return path
    if (added := re.search(r"\+(\w+):", text)) and added[1] not in known:
        raise UsageError(f"nothing called {added[1]!r} can be added; {nearest(added[1], known)}")
    raise DataError(f"{path} {fault}")


def merged(dataset: Dataset) -> Dataset:
    """One fact per subject, relation, split and date, with the objects of all of them."""
    apart = any(dataset.frame(r.id).select(is_apart().any()).item() for r in dataset.relations)
    how = "merged, some apart" if apart else "merged"
    joined = replace(
        dataset,
        read=lambda id: merged_facts(dataset.frame(id)),
        fingerprint=fingerprint([dataset.fingerprint, how]),
    )
    return replace(joined, notes={**dataset.notes, "rows_merged": dataset.size - joined.size})


def merged_facts(facts: DataFrame) -> DataFrame:
    """The facts of one relation, those of one subject, split and date made one, as they appear.

    A merged fact is called after its relation and subject, `P36:Q142`. Facts collected apart follow
    as they are: they name things that may share a name, and to count them is what they are for.
    """
    import polars
    from polars import col, concat_str, format, lit, when

    key = ("subject_id", "split", "date")
    alone = facts.lazy().filter(~is_apart())
    right = entities(alone, *key)
    firsts = alone.unique(key, keep="first", maintain_order=True)
    wrong = entities(firsts, *key, of="wrong").join(
        right,
        left_on=(*key, "wrong_ids"),
        right_on=(*key, "object_ids"),
        how="anti",
        maintain_order="left",
    )
    texts = col("subject_names", "tags").explode().drop_nulls().unique(maintain_order=True)
    columns = {
        "fact": concat_str(
            format("{}:{}", "relation", "subject_id"),
            *(
                when(col(name) != usual).then(format(":{}", name)).otherwise(lit(""))
                for name, usual in (("split", "test"), ("date", ""))
            ),
        ),
        "subject": col("subject_names").list.first(),
        "wrong_ids": col("wrong_ids").fill_null([]),
        "wrong_names": col("wrong_names").fill_null([]),
    }
    merged = firsts.select("relation", "details", "numbers", *DATES[1:], *key)
    for part in (
        alone.group_by(key).agg(texts),
        united(right, *key),
        wrong.group_by(key, maintain_order=True).agg("wrong_ids", "wrong_names"),
    ):
        merged = merged.join(part, on=key, how="left", maintain_order="left")
    merged = merged.with_columns(**columns).select(facts.columns)
    return polars.concat([merged, facts.lazy().filter(is_apart())]).collect()
