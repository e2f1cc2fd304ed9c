"""`sonde data build fktc`: frames and wrong objects for any dataset, and what is lacking."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, dataclass
from pathlib import Path

from sonde.cli.console import print_table, progress, say, waiting
from sonde.cli.options import DRAWS, FOLDER, FORCE, matching, option, verb
from sonde.core.errors import EndpointError, UsageError
from sonde.data import catalog
from sonde.data.builders.endpoint import KEY, Chat, Endpoint, opened
from sonde.data.builders.fktc import Built, Recipe, Tally, build
from sonde.data.builders.fktc_questions import (
    Journal,
    ModelWriter,
    Rule,
    Writer,
    need_bleu,
    read_questions,
)
from sonde.data.builders.writing import check_place, write_whole

NAMED = 20
ANSWERS = "answers.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointOptions:
    """Where a model is asked for more questions, and how patiently."""

    endpoint: str = option("Ask for more questions at this OpenAI-compatible address.", "")
    model: str = option("The model to ask there.", "")
    turns: int = option("Times it is asked about a relation.", 5, least=1)
    retries: int = option("New tries where it fails.", 5, least=0)
    wait: float = option("Seconds before the first new try; doubles.", 1.0, least=0)
    timeout: float = option("Seconds to wait for an answer.", 60.0, least=0.1)

    def __post_init__(self) -> None:
        if bool(self.endpoint) != bool(self.model):
            raise UsageError("--endpoint URL and --model NAME go together; give both or neither")


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
    seed: int = option(DRAWS, 0)
    name: str = option("What the dataset is called; else DATA-frames.", "")
    force: bool = option(FORCE, False, "--force")


@verb
def build_fktc(wanted: FktcOptions) -> None:
    """Build question frames and wrong objects for a dataset, in the manner of FKTC.

    The key of an endpoint is taken from the environment variable SONDE_API_KEY.

    Example: sonde data build fktc -d lama:./LAMA --endpoint http://localhost:8000/v1 --model NAME
    -o ./frames
    """
    out = wanted.out
    recipe = matching(Recipe, wanted, rule=matching(Rule, wanted), turns=wanted.ask.turns)
    endpoint = _endpoint(wanted.ask)
    check_place(out, force=wanted.force)
    need_bleu()
    built, asking = _built(wanted, recipe, endpoint)
    with waiting(f"writing {out}"):
        write_whole(built.dataset, out, force=wanted.force)
    shutil.rmtree(work_of(out), ignore_errors=True)
    show(built, recipe, out)
    if asking:
        show_asked(asking)


def _built(
    wanted: FktcOptions, recipe: Recipe, endpoint: Endpoint | None
) -> tuple[Built, Asking | None]:
    given = read_questions(wanted.paraphrases) if wanted.paraphrases else {}
    with waiting("reading the dataset"):
        dataset = catalog.load(wanted.data)
    with _asking(endpoint, wanted.out) as asking, progress("frames, relations") as tick:
        built = build(
            dataset,
            recipe,
            name=wanted.name or f"{dataset.name}-frames",
            given=given,
            writer=asking.writer if asking else None,
            sources=_sources(wanted.paraphrases, wanted.ask.model),
            progress=tick,
        )
    return built, asking


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


def _endpoint(ask: EndpointOptions) -> Endpoint | None:
    if not ask.endpoint:
        return None
    key = os.environ.get(KEY, "").strip()
    return matching(Endpoint, ask, url=ask.endpoint, key=key)


@contextmanager
def _asking(endpoint: Endpoint | None, out: Path) -> Iterator[Asking | None]:
    """Open the endpoint and the journal; a failure says that nothing is lost, and how to go on."""
    if endpoint is None:
        yield None
        return
    journal = Journal(work_of(out) / ANSWERS)
    with opened(endpoint) as chat:
        writer = ModelWriter(chat=chat, model=endpoint.model, journal=journal)
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
    tallies = built.tallies
    titles = ("relation", "label", "own", "file", "model", "frames", "alike", "other", "facts")
    print_table((*titles, "wrong"), [_row(t) for t in tallies], right=range(2, 10))
    _show_lacks(tallies, recipe)
    if built.strangers:
        say(f"questions of --paraphrases for relations that are not there: {built.strangers:,}")
    facts = sum(t.facts for t in tallies)
    frames = sum(t.kept for t in tallies)
    say(f"{out}: {len(tallies)} relations, {frames:,} frames, {facts:,} facts")


def _row(t: Tally) -> list[str]:
    other = t.faults("repeated") + t.faults("malformed") + t.faults("telling")
    refused = (t.faults("alike"), other)
    counts = (*t.frames.values(), t.kept, *refused, t.facts, min(t.wrong, default=0))
    return [t.id, t.label, *(f"{count:,}" for count in counts)]


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
