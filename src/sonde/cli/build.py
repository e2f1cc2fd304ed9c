"""`sonde data build`: make datasets out of triples, tables and others; say what was left out."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import MISSING, dataclass
from pathlib import Path

from sonde.cli.build_myriadlama import build_myriadlama
from sonde.cli.console import print_table, progress, resumable, say, waiting
from sonde.cli.endpoint import EndpointOptions, asking, show_asked
from sonde.cli.options import DRAWS, FOLDER, FORCE, NAMED, argument, matching, option, verb
from sonde.cli.verbs import group
from sonde.core.errors import UsageError
from sonde.core.facts import Dataset
from sonde.data import catalog
from sonde.data.builders import check_place, fktc, nobel, trex_mc, write_whole
from sonde.data.builders.endpoint import read_by_relation
from sonde.data.builders.triples import dataset_triples, triple_files
from sonde.data.builders.work import work_of

MOST = 100
"""Relations that do not qualify and are named; the rest is counted."""

SHORT = 20
"""Relations with too few frames that are named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrexOptions:
    """Where triples come from, and what is made of them."""

    out: Path = option(FOLDER, MISSING, "--out", "-o")
    triples: list[Path] | None = argument(
        "Files or folders of .jsonl or .jsonl.gz: head, relation, tail.", None
    )
    facts: list[str] | None = option("A dataset whose facts are taken; may be repeated.", None)
    templates: list[str] | None = option(
        "A dataset whose templates are taken; may be repeated.", None
    )
    least_facts: int = option("Facts that a relation needs.", 500)
    least_objects: int = option("Distinct objects that it needs.", 100)
    train: int = option("Training facts of a relation.", 100)
    test: int = option("Test facts of a relation.", 400)
    options: int = option("Wrong options of a test fact.", 99)
    seed: int = option(DRAWS, 0)
    skip: int = option("Faulty rows to pass over before giving up.", 100, least=0)
    name: str = option(NAMED, "trex-mc")
    force: bool = option(FORCE, False, "--force")


@verb
def build_trex_mc(wanted: TrexOptions) -> None:
    """Build multiple-choice facts in the manner of T-REx-MC.

    Example: sonde data build trex-mc ./LAMA/train --facts lama:./LAMA -o ./trex-mc
    """
    recipe, out = matching(trex_mc.Recipe, wanted), wanted.out
    check_place(out, force=wanted.force)
    if not wanted.triples and not wanted.facts:
        raise UsageError("name a file or folder of triples, or --facts with a dataset")
    files = [triple_files(path) for path in wanted.triples or ()]
    with waiting("reading datasets"):
        facts = [catalog.load(source) for source in wanted.facts or ()]
        templates = [catalog.load(source) for source in wanted.templates or ()] or facts
    with progress("reading triples, MiB") as tick:
        built = trex_mc.build(
            [*files, *map(dataset_triples, facts)],
            recipe,
            name=wanted.name,
            templates=templates,
            skip=wanted.skip,
            progress=tick,
        )
    _write(built.dataset, out, force=wanted.force)
    show_trex_mc(built, recipe.options, out)


def _write(dataset: Dataset, out: Path, *, force: bool) -> None:
    with waiting(f"writing {out}"):
        write_whole(dataset, out, force=force)


def show_trex_mc(built: trex_mc.Built, options: int, out: Path) -> None:
    """Print what was built, and what became of every relation and row."""
    titles = ("relation", "label", "rows", "facts", "objects", "train", "test", "options")
    kept = [(*_sizes(t), t.train, t.test, t.options, len(t.relation.templates)) for t in built.kept]
    print_table((*titles, "templates"), kept, right=range(2, 9))
    for t in built.kept:
        if t.short:
            objects = t.survey.objects
            among = f" among the {len(objects):,} drawn" if objects.more else ""
            say(
                f"{t.relation.id}: {t.short} of {t.test} test facts have fewer than {options} "
                f"wrong objects{among} and use all of them, {t.options} at least"
            )
    _show_failed(built.failed)
    _show_rows(built)
    train, test = sum(t.train for t in built.kept), sum(t.test for t in built.kept)
    say(f"{out}: {len(built.kept)} relations, {train:,} training and {test:,} test facts")


def _sizes(t: trex_mc.Tally) -> tuple[object, ...]:
    rows = f"{t.survey.rows:,}"
    return (t.relation.id, t.relation.label, rows, t.survey.facts, t.survey.objects)


def _show_failed(failed: Sequence[trex_mc.Tally]) -> None:
    if not failed:
        return
    say(f"\n{len(failed):,} relations do not qualify:")
    titles = ("relation", "label", "rows", "facts", "objects", "too few")
    print_table(titles, [(*_sizes(t), t.lacks) for t in failed[:MOST]], right=range(2, 5))
    if len(failed) > MOST:
        say(f"and {len(failed) - MOST:,} with no more facts than these")


def _show_rows(built: trex_mc.Built) -> None:
    kept, left = (sum(t.survey.rows for t in some) for some in (built.kept, built.failed))
    say(f"\nrows: {built.rows:,} read = {kept:,} of relations kept + {left:,} of others")
    if built.faults.count:
        say(f"rows passed over as faulty: {built.faults.count:,}")
        for fault in built.faults.first:
            say(f"  {fault}")
    if bare := sum(not t.relation.templates for t in built.kept):
        say(f"relations without a template: {bare} (--templates takes them from a dataset)")


@dataclass(frozen=True, slots=True, kw_only=True)
class NobelOptions:
    """Where laureates come from, and how many are kept."""

    table: Path = argument("A CSV of laureates, a prize a row.")
    out: Path = option(FOLDER, MISSING, "--out", "-o")
    train: int = option("Laureates for examples, half at most.", 250)
    limit: int | None = option("Keep that many laureates, drawn by seed.", None)
    seed: int = option(DRAWS, 0)
    name: str = option(NAMED, "nobel")
    force: bool = option(FORCE, False, "--force")


@verb
def build_nobel(wanted: NobelOptions) -> None:
    """Build laureate → birth year from a table of Nobel prizes.

    Example: sonde data build nobel laureates.csv -o ./nobel
    """
    out, train, limit = wanted.out, wanted.train, wanted.limit
    check_place(out, force=wanted.force)
    built = nobel.build(wanted.table, train=train, limit=limit, seed=wanted.seed, name=wanted.name)
    _write(built.dataset, out, force=wanted.force)
    say(f"rows read              {built.read:6,}")
    for what, count in built.left_out.items():
        say(f"- {what:21}{count:6,}")
    say(f"= laureates            {built.laureates:6,}")
    say(f"{out}: {built.train + built.test} laureates, {built.train} training, {built.test} test")


@dataclass(frozen=True, slots=True, kw_only=True)
class FktcOptions:
    """What is made of which dataset."""

    out: Path = option(FOLDER, MISSING, "--out", "-o")
    data: str = option("The dataset to begin with.", "atlas", "--data", "-d")
    frames: int = option("Question frames of a relation.", 7, least=1)
    negatives: int = option("Wrong objects of a fact.", 5, least=0)
    bleu: float = option("Two frames stay under this BLEU, 0 to 100.", 70.0)
    paraphrases: Path | None = option("More questions: JSON lines with relation and text.", None)
    ask: EndpointOptions
    turns: int = option("Times a model is asked about a relation.", 5, least=1)
    seed: int = option(DRAWS, 0)
    name: str = option("What the dataset is called; else DATA-frames.", "")
    force: bool = option(FORCE, False, "--force")


@verb
@resumable()
def build_fktc(wanted: FktcOptions) -> None:
    """Build question frames and wrong objects for a dataset, in the manner of FKTC.

    The key of an endpoint is taken from the environment variable SONDE_API_KEY.

    Example: sonde data build fktc -d lama:./LAMA --endpoint http://localhost:8000/v1 --model NAME
    -o ./frames
    """
    recipe, out = matching(fktc.Recipe, wanted), wanted.out
    endpoint = wanted.ask.place()
    check_place(out, force=wanted.force)
    fktc.need_bleu()
    given = read_by_relation(wanted.paraphrases) if wanted.paraphrases else {}
    with waiting("reading the dataset"):
        dataset = catalog.load(wanted.data)
    advice = "bring the questions that are missing with --paraphrases FILE"
    with asking(endpoint, out, advice) as (asker, chat):
        with progress("frames, relations") as tick:
            built = fktc.build(
                dataset,
                recipe,
                name=wanted.name or f"{dataset.name}-frames",
                given=given,
                asker=asker,
                sources=_sources(wanted.paraphrases, wanted.ask.model),
                progress=tick,
            )
        _write(built.dataset, out, force=wanted.force)
        shutil.rmtree(work_of(out), ignore_errors=True)
    show_fktc(built, recipe, out)
    if asker and chat:
        show_asked(asker.journal, chat)


def _sources(paraphrases: Path | None, model: str) -> list[str]:
    file = [f"questions: {paraphrases.name}"] if paraphrases else []
    return file + ([f"questions written by {model}"] if model else [])


def show_fktc(built: fktc.Built, recipe: fktc.Recipe, out: Path) -> None:
    """Print what was built, and what became of every question and wrong object."""
    titles = ("relation", "label", "own", "file", "model", "frames", "alike", "other", "facts")
    rows = [_row(gathered) for gathered in built.gathered]
    print_table((*titles, "wrong"), rows, right=range(2, 10))
    _show_lacks(built.gathered, recipe)
    if built.strangers:
        say(f"questions of --paraphrases for relations that are not there: {built.strangers:,}")
    facts = sum(gathered.wrong.total() for gathered in built.gathered)
    frames = sum(len(gathered.frames) for gathered in built.gathered)
    say(f"{out}: {len(rows)} relations, {frames:,} frames, {facts:,} facts")


def _row(gathered: fktc.Gathered) -> list[str]:
    refused, wrong = gathered.refused, gathered.wrong
    origins = (gathered.count("own"), gathered.count("file"), gathered.count("endpoint"))
    alike = refused["alike"]
    counts = (*origins, len(gathered.frames), alike, refused.total() - alike, wrong.total())
    numbers = (*counts, min(wrong, default=0))
    return [gathered.relation.id, gathered.relation.label, *(f"{n:,}" for n in numbers)]


def _show_lacks(gathered: Sequence[fktc.Gathered], recipe: fktc.Recipe) -> None:
    if short := [each for each in gathered if each.missing > 0]:
        named = ", ".join(f"{g.relation.id} ({len(g.frames)})" for g in short[:SHORT])
        named += f" and {len(short) - SHORT} more" if len(short) > SHORT else ""
        say(f"fewer than {recipe.frames} frames: {named}; --paraphrases and --endpoint bring more")
    wrong = sum((each.wrong for each in gathered), Counter[int]())
    if few := sum(count for size, count in wrong.items() if size < recipe.negatives):
        say(f"facts with fewer than {recipe.negatives} wrong objects: {few:,} (none: {wrong[0]:,})")
    if mistaken := sum(each.mistaken for each in gathered):
        say(f"objects that the dataset called wrong and that are right: {mistaken:,}, left out")


VERBS = {
    "trex-mc": build_trex_mc,
    "nobel": build_nobel,
    "fktc": build_fktc,
    "myriadlama": build_myriadlama,
}
app = group(
    "Build datasets from triples, tables and other datasets.\n\n"
    "Example: sonde data build trex-mc ./t_rex -o ./trex-mc",
    VERBS,
    VERBS.__getitem__,
)
