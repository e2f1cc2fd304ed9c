"""`sonde data build myriadlama`: facts under many names and wordings, step by step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, dataclass, replace
from pathlib import Path
from typing import Literal

from sonde import api
from sonde.cli.console import print_table, resumable, say, waiting, writing
from sonde.cli.endpoint import asking_in, show_asked
from sonde.cli.gathering import ObjectOptions, gather
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
from sonde.cli.paraphrase import ParaphraseOptions, have_paraphrased, show_paraphrased
from sonde.core.errors import DataError, UsageError
from sonde.core.facts import LAMA, Card, Dataset, Relation
from sonde.core.fingerprints import fingerprint
from sonde.data import catalog
from sonde.data.builders import check_place, write_whole
from sonde.data.builders.endpoint import Endpoint
from sonde.data.builders.myriadlama import assembly
from sonde.data.builders.myriadlama.assembly import extended, prompt_rows, translated
from sonde.data.builders.myriadlama.paraphrases import Recipe
from sonde.data.builders.work import LOCK, working
from sonde.data.lines import write_rows
from sonde.data.review.judgements import Rule, apply, read_judgements
from sonde.data.statistics import relation_counts, totals
from sonde.runs.guessing import unguessable

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
    "facts_without_names": "facts left out that have no names in that language",
    "relations_without_templates": "relations left out, for they have no template",
    "facts_without_templates": "facts left out with them",
}
"""What is said of each count."""

EXTENDED = {
    "facts_with_more_subject_names": ("facts with more names of the subject", "13,123"),
    "facts_with_more_object_names": ("facts with more names of an object", "23,195"),
}
"""Counts of the paper's appendix C.1."""

COUNTED = {
    *("rows_read", "duplicate_rows", "rows_merged", "templates_read", "facts_with_more_objects"),
    *("templates_dropped_in_review", *TOLD, *EXTENDED),
}
"""What is noted in the dataset: not what was counted of facts that are not in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MyriadOptions:
    """What is built of which facts."""

    base: str = argument("LAMA's folder, or any other dataset, to begin with.")
    out: Path = option(FOLDER, MISSING, "--out", "-o")
    templates: list[str] | None = option(
        "Templates in the place of the base's own, as --template takes them: a file of sentences, "
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
    rule: Rule | None = option(
        "Where reviewers differ, keep what majority, all or any would (default: majority).", None
    )
    unjudged: Literal["keep", "drop"] | None = option(
        "What becomes of templates that nobody judged.", None
    )
    rows: Path | None = option(
        "Also write a prompt a row, as MyriadLAMA was published, into this .jsonl file.", None
    )
    name: str = option(NAMED, "myriadlama")
    force: bool = option(FORCE, False, "--force")

    def __post_init__(self) -> None:
        if self.guesser and self.keep_guessable:
            raise UsageError(
                "--guesser leaves facts out and --keep-guessable none; give one of them"
            )
        if self.review is None and (self.rule or self.unjudged):
            raise UsageError(
                "--rule and --unjudged say what is made of judgements; give these with --review"
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
    wanted.sources.check()
    if wanted.rows is not None:
        _check_rows(wanted.rows, force=wanted.force)
    if wanted.review is not None and not wanted.review.is_file():
        raise DataError(f"{wanted.review} is missing; 'sonde data review' writes such a file")
    endpoint, recipe = wanted.say.ask.place(), wanted.say.recipe
    with working(wanted.out) as work:
        base = _base(wanted, work)
        worded = _worded(base, wanted.templates or ())
        hints = wanted.say.hints_for(worded.relations)
        gathered, notes = gather(wanted.sources, wanted.say.ask, worded, work)
        language = wanted.sources.language
        if wanted.sources.translate:
            worded = translated(worded, gathered.names, language)
        facts = extended(worded, gathered, language)
        if endpoint is not None:
            facts = _paraphrased(facts, endpoint, recipe, hints, work)
        if wanted.review is not None:
            facts = _reviewed(facts, wanted.review, wanted)
        counted = {key: n for key, n in {**facts.notes, **notes}.items() if n and key in COUNTED}
        built = replace(facts, card=_card(wanted, base), notes=counted)
        with waiting(f"writing {wanted.out}"):
            write_whole(built, wanted.out, force=wanted.force)
        if wanted.rows is not None:
            with waiting(f"writing {wanted.rows}"), writing(wanted.rows):
                write_rows(wanted.rows, prompt_rows(built))
        show(base, built, wanted.out)
        if kept := sorted(path.name for path in work.iterdir() if path.name != LOCK):
            say(f"{work} keeps {', '.join(kept)}: nothing is asked twice; remove it in the end")


def _worded(base: Dataset, templates: Sequence[str]) -> Dataset:
    return catalog.reworded(base, templates, "--templates") if templates else base


def _check_rows(path: Path, *, force: bool) -> None:
    if path.suffix != ".jsonl" or not path.parent.is_dir():
        raise UsageError(f"--rows takes a .jsonl file in a folder that is there, not {path}")
    if path.exists() and not force:
        raise UsageError(f"{path} is there; give another file, or --force to replace it")


def _paraphrased(
    facts: Dataset, endpoint: Endpoint, recipe: Recipe, hints: dict[str, str], work: Path
) -> Dataset:
    """The facts under their templates and the paraphrases of these."""
    with asking_in(work, endpoint) as (asker, chat):
        found = have_paraphrased(facts, facts.relations, asker, recipe, hints)
        show_paraphrased(found, recipe)
        show_asked(asker.journal, chat)
    return replace(facts, relations=tuple(each.relation for each in found))


def _reviewed(facts: Dataset, path: Path, wanted: MyriadOptions) -> Dataset:
    """The facts under what reviewers keep of their templates."""
    unjudged = None if wanted.unjudged is None else wanted.unjudged == "keep"
    done = apply(facts, read_judgements(path), wanted.rule or "majority", unjudged=unjudged)
    counts = done.counts
    say(f"review: kept {counts['kept']:,}, dropped {counts['dropped']:,} templates")
    if done.lost:
        say(f"left out, because nothing of them was kept: {', '.join(done.lost)}")
    return done.dataset


def _base(wanted: MyriadOptions, work: Path) -> Dataset:
    """The facts to begin with; a guesser is asked once."""
    with waiting(f"opening {wanted.base}"):
        given = catalog.load(wanted.base)
    chosen = _chosen(given, wanted)
    parts = [given.fingerprint, *(relation.id for relation in chosen)]
    given = replace(given, relations=chosen, fingerprint=fingerprint(parts))
    if wanted.keep_guessable:
        return assembly.pairs(given)
    if not wanted.guesser:
        return assembly.pairs(unguessable(given, "string"))

    def judged() -> Dataset:
        with waiting(f"asking {wanted.guesser} about names"):
            model = api.model(wanted.guesser, device=wanted.device)
            return assembly.pairs(unguessable(given, "names", model))

    return assembly.kept(work, fingerprint([given.fingerprint, wanted.guesser]), judged)


def _chosen(given: Dataset, wanted: MyriadOptions) -> tuple[Relation, ...]:
    """The relations that are wanted, those of another language left out."""
    names, language = listed(wanted.relations), wanted.sources.language
    chosen = tuple(given.relation(name) for name in names) or given.relations
    if wanted.sources.translate:
        return chosen
    if spoken := tuple(r for r in chosen if r.language in ("", language)):
        return spoken
    has = ", ".join(sorted({relation.language for relation in chosen}))
    raise UsageError(
        f"no relation of {given.name!r} is in {language!r}, but in {has}; name one of these with "
        "--language, or add --translate"
    )


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
        (name, "", f"{built.notes.get(key, 0):,}", *(("", myriad) if paper else ()))
        for key, (name, myriad) in EXTENDED.items()
    ]
    titles = ("", "base", "built", *(("LAMA-UHN (paper)", "MyriadLAMA (paper)") if paper else ()))
    print_table(titles, rows, right=range(1, 5))
    for key, what in TOLD.items():
        if count := built.notes.get(key, 0):
            say(f"{what}: {count:,}")
    say(f"{out}: {len(built.relations)} relations, {built.size:,} facts")
