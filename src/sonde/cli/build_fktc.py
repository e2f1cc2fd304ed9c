"""`sonde data build fktc`: frames and wrong objects for any dataset, and what is lacking."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from sonde.cli.building import Force, Out, Seed, loaded
from sonde.cli.console import cells, output, progress, say, waiting
from sonde.core.errors import EndpointError, UsageError

if TYPE_CHECKING:
    from sonde.data.builders.endpoint import Chat, Endpoint
    from sonde.data.builders.fktc import Built, Recipe, Tally
    from sonde.data.builders.fktc_writer import Writer
    from sonde.data.builders.journal import Journal

NAMED = 20
ANSWERS = "answers.jsonl"


def build_fktc(
    out: Out,
    data: Annotated[str, typer.Option("--data", "-d", help="The dataset to begin with.")] = "atlas",
    frames: Annotated[int, typer.Option(min=1, help="Question frames of a relation.")] = 7,
    negatives: Annotated[int, typer.Option(min=0, help="Wrong objects of a fact.")] = 5,
    bleu: Annotated[float, typer.Option(help="Two frames stay under this BLEU, 0 to 100.")] = 70.0,
    paraphrases: Annotated[
        Path | None, typer.Option(help="More questions: JSON lines with relation and text.")
    ] = None,
    endpoint: Annotated[
        str, typer.Option(help="Ask for more questions at this OpenAI-compatible address.")
    ] = "",
    model: Annotated[str, typer.Option(help="The model to ask there.")] = "",
    turns: Annotated[int, typer.Option(min=1, help="Times it is asked about a relation.")] = 5,
    retries: Annotated[int, typer.Option(min=0, help="New tries where it fails.")] = 5,
    wait: Annotated[
        float, typer.Option(min=0, help="Seconds before the first new try; doubles.")
    ] = 1.0,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds to wait for an answer.")] = 60.0,
    seed: Seed = 0,
    name: Annotated[str, typer.Option(help="What the dataset is called; else DATA-frames.")] = "",
    force: Force = False,
) -> None:
    """Build question frames and wrong objects for a dataset, in the manner of FKTC.

    The key of an endpoint is taken from the environment variable SONDE_API_KEY.

    Example: sonde data build fktc -d lama:./LAMA --endpoint http://localhost:8000/v1 --model NAME
    -o ./frames
    """
    from sonde.data.builders.bleu import need_bleu
    from sonde.data.builders.fktc import Recipe, build
    from sonde.data.builders.fktc_frames import Rule
    from sonde.data.builders.fktc_writer import read_questions
    from sonde.data.builders.writing import check_place, write_whole

    recipe = Recipe(
        rule=Rule(frames=frames, bleu=bleu), negatives=negatives, turns=turns, seed=seed
    )
    place = _endpoint(endpoint, model, retries, wait, timeout)
    check_place(out, force=force)
    need_bleu()
    given = read_questions(paraphrases) if paraphrases else {}
    with waiting("reading the dataset"):
        dataset = loaded([data])[0]
    with _asking(place, out) as asking, progress("frames, relations") as tick:
        built = build(
            dataset,
            recipe,
            name=name or f"{dataset.name}-frames",
            given=given,
            writer=asking.writer if asking else None,
            sources=_sources(paraphrases, model),
            progress=tick,
        )
    with waiting(f"writing {out}"):
        write_whole(built.dataset, out, force=force)
    shutil.rmtree(work_of(out), ignore_errors=True)
    show(built, recipe, out)
    if asking:
        show_asked(asking)


def work_of(out: Path) -> Path:
    """Where a build keeps what it was answered, until it is finished."""
    named = out if out.name not in ("", "..") else out.resolve()
    return named.with_name(f"{named.name}.work")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """A model that writes questions, and the answers that were there already."""

    chat: Chat
    journal: Journal
    writer: Writer
    before: int


def _endpoint(url: str, model: str, retries: int, wait: float, timeout: float) -> Endpoint | None:
    from sonde.data.builders.endpoint import KEY, Endpoint

    if bool(url) != bool(model):
        raise UsageError("--endpoint URL and --model NAME go together; give both or neither")
    if not url:
        return None
    key = os.environ.get(KEY, "").strip()
    return Endpoint(url=url, model=model, key=key, retries=retries, wait=wait, timeout=timeout)


@contextmanager
def _asking(place: Endpoint | None, out: Path) -> Iterator[Asking | None]:
    """Open the endpoint and the journal; a failure says that nothing is lost, and how to go on."""
    if place is None:
        yield None
        return
    from sonde.data.builders.endpoint import opened
    from sonde.data.builders.fktc_writer import ModelWriter
    from sonde.data.builders.journal import Journal

    journal = Journal(work_of(out) / ANSWERS)
    with opened(place) as chat:
        writer = ModelWriter(chat=chat, model=place.model, journal=journal)
        try:
            yield Asking(chat=chat, journal=journal, writer=writer, before=len(journal))
        except EndpointError as error:
            kept = f"the {len(journal)} answers so far are kept in {journal.path}; " * bool(journal)
            raise EndpointError(
                f"{error}; {kept}run the same command again to go on, or bring the questions that "
                "are missing with --paraphrases FILE"
            ) from None


def _sources(paraphrases: Path | None, model: str) -> list[str]:
    file = [f"questions: {paraphrases.name}"] if paraphrases else []
    return file + ([f"questions written by {model}"] if model else [])


def show(built: Built, recipe: Recipe, out: Path) -> None:
    """Print what was built, and what became of every question and wrong object."""
    table = Table("relation", "label", box=None, padding=(0, 2, 0, 0))
    for column in ("own", "file", "model", "frames", "alike", "other", "facts", "wrong"):
        table.add_column(column, justify="right")
    tallies = built.tallies
    for t in tallies:
        other = t.faults("repeated") + t.faults("malformed") + t.faults("telling")
        refused = (t.faults("alike"), other)
        counts = (*t.frames.values(), t.kept, *refused, t.facts, min(t.wrong, default=0))
        table.add_row(*cells(t.id, t.label), *(f"{count:,}" for count in counts))
    output().print(table)
    _show_lacks(tallies, recipe)
    if built.strangers:
        say(f"questions of --paraphrases for relations that are not there: {built.strangers:,}")
    facts = sum(t.facts for t in tallies)
    frames = sum(t.kept for t in tallies)
    say(f"{out}: {len(tallies)} relations, {frames:,} frames, {facts:,} facts")


def _show_lacks(tallies: Sequence[Tally], recipe: Recipe) -> None:
    wanted = recipe.rule.frames
    if short := [t for t in tallies if t.kept < wanted]:
        say(f"fewer than {wanted} frames: {_named(short)}; --paraphrases and --endpoint bring more")
    wrong: Counter[int] = Counter()
    for t in tallies:
        wrong.update(t.wrong)
    if few := sum(count for size, count in wrong.items() if size < recipe.negatives):
        say(f"facts with fewer than {recipe.negatives} wrong objects: {few:,} (none: {wrong[0]:,})")
    if mistaken := sum(t.mistaken for t in tallies):
        say(f"objects that the dataset called wrong and that are right: {mistaken:,}, left out")


def _named(short: list[Tally]) -> str:
    more = f" and {len(short) - NAMED} more" if len(short) > NAMED else ""
    return f"{', '.join(f'{t.id} ({t.kept})' for t in short[:NAMED])}{more}"


def show_asked(asking: Asking) -> None:
    """Print how often the model was asked, and what failed on the way."""
    failures = asking.chat.failures
    failed = ", ".join(f"{kind} {count}" for kind, count in sorted(failures.items()))
    say(
        f"endpoint: {len(asking.journal) - asking.before} answers, {asking.before} kept from "
        f"before; failed tries: {failed or 'none'}"
    )
