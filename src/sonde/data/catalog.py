"""Find a dataset by the name or path a user gives, and join what is named with a plus.

A joined dataset has one fact per subject and relation, with every correct object: that is the pair
that BELIEF asks about. Facts are still read a relation at a time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from sonde.core.components import Components
from sonde.core.errors import DataError, UsageError, nearest
from sonde.core.fact_frames import entities, is_apart, united
from sonde.core.facts import Card, Dataset
from sonde.core.fingerprints import fingerprint
from sonde.data.format import is_dataset, open_dataset
from sonde.data.readers import ADDITIONS, DATASETS
from sonde.data.wordings import Wordings, worded, wordings_of

if TYPE_CHECKING:
    from polars import DataFrame

BUNDLED = Path(__file__).parent / "bundled"


class Reader(Protocol):
    """Reads one public dataset's files."""

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


def load(reference: str, wording: str | Sequence[str] = ()) -> Dataset:
    """Open a dataset: a bundled name, a folder, or READER:FOLDER; +SOURCE:FOLDER adds to it.

    `lama:A+pararel:B+aliases:C` is LAMA's facts under ParaRel's patterns with more names.
    `wording`, one SOURCE:FOLDER or dataset or several, names templates that together take the place
    of the dataset's own and leave its facts as they are.
    """
    first, *rest = _parts(reference)
    dataset = _joined(_load_one(first), rest) if rest else _load_one(first)
    named = [wording] if isinstance(wording, str) else wording
    sources = [part for text in named if text for part in _parts(text)]
    return _reworded(dataset, sources) if sources else dataset


def _parts(reference: str) -> list[str]:
    """What is named, and what a plus adds to it."""
    names = "|".join(map(re.escape, additions()))
    return re.split(rf"\+(?=(?:{names}):)", reference)


def _reworded(dataset: Dataset, named: Sequence[str]) -> Dataset:
    """The same facts under other sources' templates."""
    sources = [_wordings(text) for text in named]
    reworded = worded(dataset, sources)
    if not reworded.relations:
        raise DataError(f"{'+'.join(named)} has no template for any relation of {dataset.name!r}")
    cards = [source.card for source in sources]
    names = [card.name for card in cards]
    card = _joined_card(
        (dataset.card, *cards),
        name=f"{dataset.name} under {'+'.join(names)}",
        description=f"{dataset.name} under the templates of {', '.join(names)}",
    )
    parts = ["reworded", dataset.fingerprint, *(source.fingerprint for source in sources)]
    return replace(reworded, card=card, fingerprint=fingerprint(parts))


def _wordings(text: str) -> Wordings:
    """The templates of a source, or those of a dataset."""
    scheme, colon, place = text.partition(":")
    able = {name: c for name, c in additions().items() if hasattr(c, "templates")}
    if colon and scheme in able:
        return cast(TemplateReader, able[scheme]).templates(_there(place))
    if text in bundled() or scheme in readers() or is_dataset(Path(text).expanduser()):
        return wordings_of(_load_one(text))
    raise UsageError(
        f"no source of templates called {scheme!r} (write SOURCE:FOLDER, as in "
        "lpaqa:./LPAQA/mine, or a dataset); "
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


def _load_one(reference: str) -> Dataset:
    if reference in bundled():
        return open_dataset(bundled()[reference])
    scheme, colon, rest = reference.partition(":")
    if colon and scheme in readers():
        return readers()[scheme].read(_folder(rest))
    if colon and scheme in additions():
        raise UsageError(
            f"{scheme} holds no facts; name a dataset before it, such as lama:FOLDER+{reference}"
        )
    if colon and scheme.isidentifier() and not Path(reference).exists():
        raise UsageError(f"no reader called {scheme!r}; {nearest(scheme, readers())}")
    if not Path(reference).exists() and "/" not in reference:
        raise UsageError(
            f"no dataset called {reference!r}, and no folder of that name; "
            f"{nearest(reference, [*bundled(), *readers()])}"
        )
    folder = _folder(reference)
    if is_dataset(folder):
        return open_dataset(folder)
    for reader in readers().values():
        if reader.recognises(folder):
            return reader.read(folder)
    raise DataError(
        f"{folder} is no dataset: it has no dataset.json, and no reader knows its files "
        f"(readers: {', '.join(sorted(readers()))}); see 'sonde data --help'"
    )


def _folder(text: str) -> Path:
    return _existing(text, Path.is_dir, "is not a folder; give the folder that holds the dataset")


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
    """One fact per subject, relation and split, with the objects of all of them."""
    apart = any(dataset.frame(r.id).select(is_apart().any()).item() for r in dataset.relations)
    how = "merged, some apart" if apart else "merged"
    joined = replace(
        dataset,
        read=lambda id: merged_facts(dataset.frame(id)),
        fingerprint=fingerprint([dataset.fingerprint, how]),
    )
    return replace(joined, notes={**dataset.notes, "rows_merged": dataset.size - joined.size})


def merged_facts(facts: DataFrame) -> DataFrame:
    """The facts of one relation, those of one subject and split made one, in order of appearance.

    A merged fact is called after its relation and subject, `P36:Q142`. Facts collected apart follow
    as they are: they name things that may share a name, and to count them is what they are for.
    """
    import polars
    from polars import col, format, when

    key = ("subject_id", "split")
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
        "fact": when(col("split") == "test")
        .then(format("{}:{}", "relation", "subject_id"))
        .otherwise(format("{}:{}:{}", "relation", "subject_id", "split")),
        "subject": col("subject_names").list.first(),
        "wrong_ids": col("wrong_ids").fill_null([]),
        "wrong_names": col("wrong_names").fill_null([]),
    }
    merged = firsts.select("relation", "details", *key)
    for part in (
        alone.group_by(key).agg(texts),
        united(right, *key),
        wrong.group_by(key, maintain_order=True).agg("wrong_ids", "wrong_names"),
    ):
        merged = merged.join(part, on=key, how="left", maintain_order="left")
    merged = merged.with_columns(**columns).select(facts.columns)
    return polars.concat([merged, facts.lazy().filter(is_apart())]).collect()
