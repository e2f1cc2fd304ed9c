"""`sonde data build`: make datasets out of triples, tables and others; say what was left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, dataclass
from functools import partial
from pathlib import Path

from sonde.cli.build_fktc import build_fktc
from sonde.cli.console import print_table, progress, say, waiting
from sonde.cli.options import DRAWS, FOLDER, FORCE, NAMED, argument, group, matching, option, verb
from sonde.core.errors import UsageError
from sonde.data import catalog
from sonde.data.builders import nobel, trex_mc
from sonde.data.builders.triple_passes import Recipe
from sonde.data.builders.triples import DatasetTriples, Source, triple_files
from sonde.data.builders.writing import check_place, write_whole

MOST = 100
"""Relations that do not qualify and are named; the rest is counted."""


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
    recipe, out = matching(Recipe, wanted), wanted.out
    check_place(out, force=wanted.force)
    if not wanted.triples and not wanted.facts:
        raise UsageError("name a file or folder of triples, or --facts with a dataset")
    files = [triple_files(path) for path in wanted.triples or ()]
    with waiting("reading datasets"):
        facts = [catalog.load(source) for source in wanted.facts or ()]
        templates = [catalog.load(source) for source in wanted.templates or ()] or facts
    sources: list[Source] = [*files, *(DatasetTriples(dataset=dataset) for dataset in facts)]
    build = partial(trex_mc.build, sources, recipe, templates=templates, skip=wanted.skip)
    with progress("reading triples, MiB") as tick:
        built = build(name=wanted.name, progress=tick)
    with waiting(f"writing {out}"):
        write_whole(built.dataset, out, force=wanted.force)
    show_trex_mc(built, recipe.options, out)


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
    write_whole(built.dataset, out, force=wanted.force)
    show_nobel(built, out)


def show_trex_mc(built: trex_mc.Built, options: int, out: Path) -> None:
    """Print what was built, and what became of every relation and row."""
    titles = ("relation", "label", "rows", "facts", "objects", "train", "test", "options")
    rows = [(*_sizes(t), t.train, t.test, t.options, t.templates) for t in built.kept]
    print_table((*titles, "templates"), rows, right=range(2, 9))
    for t in built.kept:
        if t.short:
            among = f" among the {t.objects.value:,} drawn" if t.objects.more else ""
            say(
                f"{t.id}: {t.short} of {t.test} test facts have fewer than {options} wrong "
                f"objects{among} and use all of them, {t.options} at least"
            )
    _show_failed(built.failed)
    _show_rows(built)
    train, test = sum(t.train for t in built.kept), sum(t.test for t in built.kept)
    say(f"{out}: {len(built.kept)} relations, {train:,} training and {test:,} test facts")


def _sizes(t: trex_mc.Tally) -> tuple[object, ...]:
    return (t.id, t.label, f"{t.rows:,}", t.facts, t.objects)


def _show_failed(failed: Sequence[trex_mc.Tally]) -> None:
    if not failed:
        return
    say(f"\n{len(failed):,} relations do not qualify:")
    titles = ("relation", "label", "rows", "facts", "objects", "too few")
    print_table(titles, [(*_sizes(t), t.lacks) for t in failed[:MOST]], right=range(2, 5))
    if len(failed) > MOST:
        say(f"and {len(failed) - MOST:,} with no more facts than these")


def _show_rows(built: trex_mc.Built) -> None:
    kept, left = (sum(t.rows for t in some) for some in (built.kept, built.failed))
    say(f"\nrows: {built.rows:,} read = {kept:,} of relations kept + {left:,} of others")
    if built.faults.count:
        say(f"rows passed over as faulty: {built.faults.count:,}")
        for fault in built.faults.first:
            say(f"  {fault}")
    if bare := sum(not t.templates for t in built.kept):
        say(f"relations without a template: {bare} (--templates takes them from a dataset)")


def show_nobel(built: nobel.Built, out: Path) -> None:
    """Print what was built and what became of the rows."""
    rows = built.rows
    say(f"rows read              {rows.read:6,}")
    for what, count in rows.left_out.items():
        say(f"- {what:21}{count:6,}")
    say(f"= laureates            {len(rows.laureates):6,}")
    say(f"{out}: {built.train + built.test} laureates, {built.train} training, {built.test} test")


VERBS = {"trex-mc": build_trex_mc, "nobel": build_nobel, "fktc": build_fktc}
app = group(
    "Build datasets from triples, tables and other datasets.\n\n"
    "Example: sonde data build trex-mc ./t_rex -o ./trex-mc",
    VERBS,
    VERBS.__getitem__,
)
