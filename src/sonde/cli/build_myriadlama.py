"""`sonde data build myriadlama`: facts under many names and wordings, step by step."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, replace
from math import ceil
from pathlib import Path
from typing import Literal

from sonde import api
from sonde.cli.console import print_table, progress, resumable, say, tell, waiting
from sonde.cli.endpoint import EndpointOptions, asking_in, show_asked
from sonde.cli.options import (
    DEVICE,
    FOLDER,
    FORCE,
    NAMED,
    RELATIONS,
    argument,
    listed,
    option,
    verb,
)
from sonde.cli.paraphrase import (
    ADVICE,
    ParaphraseOptions,
    have_paraphrased,
    show_paraphrased,
)
from sonde.core.errors import DataError, EndpointError, UsageError, nearest
from sonde.core.facts import LAMA, Card, Dataset, Entity
from sonde.core.fingerprints import fingerprint
from sonde.data import catalog
from sonde.data.builders import check_place, write_whole
from sonde.data.builders.endpoint import Endpoint
from sonde.data.builders.journal import Journal
from sonde.data.builders.myriadlama import base as bases
from sonde.data.builders.myriadlama.assembly import Gathered, extended
from sonde.data.builders.myriadlama.names import Names, table_names
from sonde.data.builders.myriadlama.objects import Mined, Objects, Pair, base_of, mine, stated
from sonde.data.builders.myriadlama.paraphrases import Recipe
from sonde.data.builders.myriadlama.wikidata import BATCH, URL, Wikidata, opened
from sonde.data.builders.triples import Faults, triple_paths
from sonde.data.builders.work import LOCK, working
from sonde.data.readers.aliases import OBJECTS, read_objects
from sonde.data.review.judgements import read_judgements
from sonde.data.review.kept import Rule, apply
from sonde.data.statistics import relation_counts, totals
from sonde.runs.guessing import unguessable

MIB = 2**20
SOURCES = ("triples", "statements")
"""Where further objects may come from."""

PAPER = {
    "templates": ("relational templates", "41", "4,100"),
    "unique triples": ("unique triples", "27,106", "34,048"),
    "derived triples": ("derived triples", "27,106", "21,140,500"),
    "subject-relation pairs": ("subject-relation pairs", "24,643", "24,643"),
    "prompts": ("prompts", "24,643", "6,492,800"),
}
"""Table 1 of the paper, by how sonde calls its rows: LAMA-UHN and MyriadLAMA."""

TOLD = {
    "guessable_string": "objects left out whose name is in the subject's",
    "guessable_names": "objects left out that the model guesses from a part of the name",
    "objects_from_statements": "objects found in statements",
    "objects_from_triples": "objects found in triples alone",
    "objects_without_names": "objects left out for which no source has a name",
    "objects_outside_answers": "objects left out that are outside a relation's answer space",
    "items_missing": "items that Wikidata does not have",
    "items_merged": "items that were merged into others",
    "relations_without_templates": "relations left out, for they have no template",
    "facts_without_templates": "facts left out with them",
}
"""What is said of each count."""

PROPERTY = re.compile(r"P[1-9]\d*")

EXTENDED = {
    "facts_with_more_subject_names": ("facts with more names of the subject", "13,123"),
    "facts_with_more_object_names": ("facts with more names of an object", "23,195"),
}
"""Counts of the paper's appendix C.1."""


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
    skip: int = option("Faulty rows of triples to pass over before giving up.", 100, least=0)

    def __post_init__(self) -> None:
        if self.aliases and self.wikidata:
            raise UsageError(
                "names come from --aliases FOLDER or from --wikidata; give one of them"
            )
        if not re.fullmatch(r"[a-z][a-z0-9-]*", self.language):
            raise UsageError(f"--language takes a code such as en or pt-br, not {self.language!r}")
        for name in listed(self.objects):
            if name not in (*SOURCES, "none"):
                raise UsageError(
                    f"--objects cannot be {name!r}; {nearest(name, [*SOURCES, 'none'])}"
                )

    def take(self, source: str) -> bool:
        """Whether further objects come from there."""
        return source in listed(self.objects)


@dataclass(frozen=True, slots=True, kw_only=True)
class MyriadOptions:
    """What is built of which facts."""

    base: str = argument("LAMA's folder, or any other dataset, to begin with.")
    out: Path = option(FOLDER, MISSING, "--out", "-o")
    templates: list[str] | None = option(
        "Templates in the place of the base's own, as --wording takes them: a file of sentences, "
        "SOURCE:FOLDER, or a dataset; repeatable.",
        None,
    )
    relations: str = option(RELATIONS, "")
    guesser: str = option(
        "A masked model, such as hf:FOLDER: leave out what it guesses from persons' names, too.", ""
    )
    keep_guessable: bool = option(
        "Leave nothing out for being guessable.", False, "--keep-guessable"
    )
    device: str = option(DEVICE, "auto")
    sources: ObjectOptions
    say: ParaphraseOptions
    review: Path | None = option("Keep the templates that this file of judgements keeps.", None)
    rule: Rule = option("Where reviewers differ, keep what majority, all or any would.", "majority")
    unjudged: Literal["keep", "drop"] | None = option(
        "What becomes of templates that nobody judged.", None
    )
    name: str = option(NAMED, "myriadlama")
    force: bool = option(FORCE, False, "--force")

    def __post_init__(self) -> None:
        if self.guesser and self.keep_guessable:
            raise UsageError(
                "--guesser leaves facts out and --keep-guessable none; give one of them"
            )


@verb
@resumable()
def build_myriadlama(wanted: MyriadOptions) -> None:
    """Build facts under many names and wordings, in the manner of MyriadLAMA.

    The key of an endpoint is taken from the environment variable SONDE_API_KEY.

    Example: sonde data build myriadlama ./LAMA --templates mine.jsonl --aliases ./aliases
    -o ./myriadlama
    """
    check_place(wanted.out, force=wanted.force)
    if wanted.review is not None and not wanted.review.is_file():
        raise DataError(f"{wanted.review} is missing; 'sonde data review' writes such a file")
    endpoint, recipe = wanted.say.ask.place(), wanted.say.recipe
    with working(wanted.out) as work:
        base = _base(wanted, work)
        worded = catalog.reworded(base, wanted.templates) if wanted.templates else base
        hints = wanted.say.hints_for(worded.relations)
        gathered, notes = _gathered(wanted.sources, wanted.say.ask, worded, work)
        facts = extended(worded, gathered, wanted.sources.language)
        if endpoint is not None:
            facts = _paraphrased(facts, endpoint, recipe, hints, work)
        if wanted.review is not None:
            facts = _reviewed(facts, wanted.review, wanted)
        built = replace(facts, card=_card(wanted, base), notes={**facts.notes, **notes})
        with waiting(f"writing {wanted.out}"):
            write_whole(built, wanted.out, force=wanted.force)
        show(base, built, wanted.out)
        if kept := sorted(path.name for path in work.iterdir() if path.name != LOCK):
            say(f"{work} keeps {', '.join(kept)}: nothing is asked twice; remove it in the end")


def _paraphrased(
    facts: Dataset, endpoint: Endpoint, recipe: Recipe, hints: dict[str, str], work: Path
) -> Dataset:
    """The facts under their templates and the paraphrases of these."""
    with asking_in(work, endpoint, ADVICE) as (asker, chat):
        found = have_paraphrased(facts, facts.relations, asker, recipe, hints)
        show_paraphrased(found, recipe)
        show_asked(asker.journal, chat)
    return replace(facts, relations=tuple(each.relation for each in found))


def _reviewed(facts: Dataset, path: Path, wanted: MyriadOptions) -> Dataset:
    """The facts under what reviewers keep of their templates."""
    unjudged = None if wanted.unjudged is None else wanted.unjudged == "keep"
    done = apply(facts, read_judgements(path), wanted.rule, unjudged=unjudged)
    counts = done.counts
    say(f"review: kept {counts['kept']:,}, dropped {counts['dropped']:,} templates")
    if done.lost:
        say(f"left out, because nothing of them was kept: {', '.join(done.lost)}")
    return done.dataset


def _base(wanted: MyriadOptions, work: Path) -> Dataset:
    """The facts to begin with; a guesser is asked once."""
    with waiting(f"opening {wanted.base}"):
        given = catalog.load(wanted.base)
    if names := listed(wanted.relations):
        chosen = tuple(given.relation(name) for name in names)
        parts = [given.fingerprint, *(relation.id for relation in chosen)]
        given = replace(given, relations=chosen, fingerprint=fingerprint(parts))
    if wanted.keep_guessable:
        return bases.pairs(given)
    if not wanted.guesser:
        return bases.pairs(unguessable(given, "string"))

    def judged() -> Dataset:
        with waiting(f"asking {wanted.guesser} about names"):
            model = api.model(wanted.guesser, device=wanted.device)
            return bases.pairs(unguessable(given, "names", model))

    return bases.kept(work, fingerprint([given.fingerprint, wanted.guesser]), judged)


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


def _gathered(
    sources: ObjectOptions, ask: EndpointOptions, base: Dataset, work: Path
) -> tuple[Gathered, dict[str, int]]:
    """All further objects by where they come from, names of everything, and counts."""
    pairs, mined = base_of(base).pairs, _mined(sources, base, work)
    things = {entity.id for relation in base.relations for entity in _entities(base, relation.id)}
    things |= {id for found in mined.objects.values() for id in found}
    if sources.wikidata:
        return _asked(sources, ask, mined, pairs, things, work)
    found: Objects = {}
    names: Names = {}
    if sources.aliases:
        if sources.take("statements"):
            found = stated(_table_objects(sources.aliases), pairs)
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
    mined: Mined,
    pairs: frozenset[Pair],
    things: set[str],
    work: Path,
) -> tuple[Gathered, dict[str, int]]:
    """The same from Wikidata: first what subjects are called and have, then what objects are."""
    relations = tuple(sorted({relation for relation, _ in pairs if PROPERTY.fullmatch(relation)}))
    claims = sources.take("statements") and bool(relations)
    subjects = sorted({subject for _, subject in pairs})
    journal = Journal(work / "wikidata.jsonl")
    place = (sources.wikidata_url, ask.retries, ask.wait, ask.timeout)
    with _kept(journal), opened(*place) as server:
        asked = Wikidata(
            server=server, journal=journal, language=sources.language, relations=relations
        )
        _fetch(asked, subjects, "subjects", claims=claims)
        found = stated(asked.statements(subjects), pairs) if claims else {}
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
    tell(f"Wikidata: {lacking:,} {what} in {requests:,} requests to {asked.server.place.shown}")
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


def _card(wanted: MyriadOptions, base: Dataset) -> Card:
    """Where everything comes from."""
    sources, model = wanted.sources, wanted.say.ask.model
    more = [f"templates: {Path(text).name}" for text in wanted.templates or ()]
    more += [f"triples: {path.name}" for path in sources.triples or ()]
    more += [f"names: {sources.aliases.name}"] if sources.aliases else []
    more += ["names and statements: Wikidata (CC0)"] if sources.wikidata else []
    more += [f"paraphrases written by {model}"] if model else []
    return Card(
        name=wanted.name,
        licence=base.card.licence,
        sources=(*base.card.sources, *more),
        description=f"{base.card.name} under many names and wordings, in the manner of MyriadLAMA. "
        f"{base.card.description}".strip(),
    )


def show(base: Dataset, built: Dataset, out: Path) -> None:
    """Print what was built beside what the paper counts, and what was left out."""
    before, after = (totals(relation_counts(dataset)) for dataset in (base, built))
    paper = base.name.startswith(LAMA)
    rows = [
        (name, f"{before[key]:,}", f"{after[key]:,}", *((lama, myriad) if paper else ()))
        for key, (name, lama, myriad) in PAPER.items()
    ]
    rows += [
        (name, "", f"{built.notes[key]:,}", *(("", myriad) if paper else ()))
        for key, (name, myriad) in EXTENDED.items()
    ]
    titles = ("", "base", "built", *(("LAMA-UHN (paper)", "MyriadLAMA (paper)") if paper else ()))
    print_table(titles, rows, right=range(1, 5))
    for key, what in TOLD.items():
        if count := built.notes.get(key, 0):
            say(f"{what}: {count:,}")
    say(f"{out}: {len(built.relations)} relations, {built.size:,} facts")
