"""Where a build takes further objects and names from: options, progress, and what is told."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil
from pathlib import Path

from sonde.cli.console import progress, say, tell, waiting
from sonde.cli.endpoint import EndpointOptions
from sonde.cli.options import listed, option
from sonde.core.errors import EndpointError, UsageError, nearest
from sonde.core.facts import Dataset, Entity
from sonde.data.builders.myriadlama.assembly import Gathered
from sonde.data.builders.myriadlama.objects import (
    Mined,
    Names,
    Objects,
    Pair,
    mine,
    names_path,
    stated,
    table_names,
)
from sonde.data.builders.myriadlama.wikidata import BATCH, FLAG, URL, Wikidata, opened
from sonde.data.builders.triples import Faults, triple_paths
from sonde.data.builders.work import Journal
from sonde.data.readers.aliases import OBJECTS, read_objects
from sonde.http.address import check_url

MIB = 2**20
SOURCES = ("triples", "statements")
"""Where further objects may come from."""

PROPERTY = re.compile(r"P[1-9]\d*")


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectOptions:
    """Where names and objects come from."""

    triples: list[Path] | None = option(
        "Files or folders of triples, T-REx's own too, for more objects; may be repeated.", None
    )
    aliases: Path | None = option(
        "Names from a folder with LANGUAGE.tsv; objects from its multi_valued.tsv.", None
    )
    wikidata: bool = option("Names and objects from Wikidata's API.", False, "--wikidata")
    wikidata_url: str = option("Where that API is.", URL)
    objects: str = option("Where further objects come from.", ",".join(SOURCES))
    language: str = option("The language of names.", "en")
    translate: bool = option(
        "Call things by their names in that language alone, not as the base does.",
        False,
        "--translate",
    )
    skip: int = option("Faulty rows of triples to pass over before giving up.", 100, least=0)

    def __post_init__(self) -> None:
        if self.aliases and self.wikidata:
            raise UsageError(
                "names come from --aliases FOLDER or from --wikidata; give one of them"
            )
        if self.translate and not (self.aliases or self.wikidata):
            raise UsageError("--translate needs names: from --aliases FOLDER or from --wikidata")
        if not re.fullmatch(r"[a-z][a-z0-9-]*", self.language):
            raise UsageError(f"--language takes a code such as en or pt-br, not {self.language!r}")
        for name in listed(self.objects):
            if name not in (*SOURCES, "none"):
                raise UsageError(
                    f"--objects cannot be {name!r}; {nearest(name, [*SOURCES, 'none'])}"
                )

    def check(self) -> None:
        """Refuse what is not there, before any work is done."""
        check_url(self.wikidata_url, FLAG)
        for place in self.triples or ():
            triple_paths(place)
        if self.aliases is not None:
            names_path(self.aliases, self.language)

    def take(self, source: str) -> bool:
        """Whether further objects come from there."""
        return source in listed(self.objects)


def _mined(sources: ObjectOptions, base: Dataset, work: Path) -> Mined:
    """What triples say, if there are any."""
    if not sources.triples or not sources.take("triples"):
        return Mined()
    paths = [path for place in sources.triples for path in triple_paths(place)]
    faults = Faults(limit=sources.skip)
    size, done = sum(path.stat().st_size for path in paths), 0
    with progress("reading triples, MiB") as tick:

        def heard(count: int) -> None:
            nonlocal done
            done += count
            tick(done // MIB, ceil(size / MIB))

        mined = mine(base, paths, Journal(work / "triples.jsonl"), faults, heard)
    say(f"triples: {mined.rows:,} read, {mined.matched:,} of them about the base's pairs")
    for fault in faults.first:
        say(f"  passed over: {fault}")
    return mined


def gather(
    sources: ObjectOptions, ask: EndpointOptions, base: Dataset, work: Path
) -> tuple[Gathered, dict[str, int]]:
    """All further objects by where they come from, names of everything, and counts."""
    mined = _mined(sources, base, work)
    things = {entity.id for relation in base.relations for entity in _entities(base, relation.id)}
    things |= {id for found in mined.objects.values() for id in found}
    if sources.wikidata:
        return _asked(sources, ask, base, mined, things, work)
    found: Objects = {}
    names: Names = {}
    if sources.aliases:
        if sources.take("statements"):
            found = stated(_table_objects(sources.aliases), base)
        things |= {id for objects in found.values() for id in objects}
        with waiting(f"reading names in {sources.aliases}"):
            names = table_names(sources.aliases, sources.language, things)
    return Gathered(objects={"statements": found, "triples": mined.objects}, names=names), {}


def _table_objects(folder: Path) -> Iterator[tuple[Pair, list[str]]]:
    for (subject, relation), objects in read_objects(folder / OBJECTS):
        yield (relation, subject), objects


def _asked(
    sources: ObjectOptions,
    ask: EndpointOptions,
    base: Dataset,
    mined: Mined,
    things: set[str],
    work: Path,
) -> tuple[Gathered, dict[str, int]]:
    """The same from Wikidata: first what subjects are called and have, then what objects are."""
    relations = tuple(sorted(filter(PROPERTY.fullmatch, {r.same or r.id for r in base.relations})))
    claims = sources.take("statements") and bool(relations)
    subjects = sorted({id for r in base.relations for id in base.frame(r.id)["subject_id"]})
    journal = Journal(work / "wikidata.jsonl")
    place = (sources.wikidata_url, ask.retries, ask.wait, ask.timeout)
    with _kept(journal), opened(*place) as server:
        asked = Wikidata(
            server=server, journal=journal, language=sources.language, relations=relations
        )
        _fetch(asked, subjects, "subjects", claims=claims)
        found = stated(asked.statements(subjects), base) if claims else {}
        things |= {id for objects in found.values() for id in objects}
        _fetch(asked, sorted(things), "objects")
    failed = ", ".join(f"{kind} {n}" for kind, n in sorted(asked.failures.items()))
    say(f"Wikidata: {len(things):,} items; failed tries: {failed or 'none'}")
    names = asked.names(things)
    notes = {
        "items_missing": len(asked.missing(things)),
        "items_merged": sum(named.same != id for id, named in names.items()),
    }
    return Gathered(objects={"statements": found, "triples": mined.objects}, names=names), notes


@contextmanager
def _kept(journal: Journal) -> Iterator[None]:
    """Whatever fails, what came before is kept."""
    try:
        yield
    except EndpointError as error:
        kept = f"the items that came are kept in {journal.path}; " * bool(journal)
        raise EndpointError(
            f"{error}; {kept}run the same command again to go on, or take names from a table with "
            "--aliases FOLDER"
        ) from None


def _fetch(asked: Wikidata, ids: Sequence[str], what: str, *, claims: bool = False) -> None:
    """Ask for items, saying before what it takes."""
    lacking = len(asked.lacking(ids, claims=claims))
    if not lacking:
        return
    requests = ceil(lacking / BATCH)
    tell(f"Wikidata: {lacking:,} {what} in {requests:,} requests to {asked.server.address.shown}")
    done = 0
    with progress(f"{what} from Wikidata") as tick:

        def heard(count: int) -> None:
            nonlocal done
            done += count
            tick(done, lacking)

        asked.fetch(ids, claims=claims, progress=heard)


def _entities(dataset: Dataset, relation: str) -> Iterator[Entity]:
    for fact in dataset.facts(relation):
        yield fact.subject
        yield from fact.objects
