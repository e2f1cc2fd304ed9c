"""`sonde data annotate`: judge templates without seeing where they come from."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.table import Table

from sonde.cli.console import cells, output, say
from sonde.core.errors import UsageError
from sonde.core.reports import Estimate

if TYPE_CHECKING:
    from sonde.data.annotation import Item, Judgement

ASK = (
    "Is it a natural sentence or noun phrase?",
    "T⊆R: is every pair that fits the template a pair of the relation?",
    "R⊆T: does every pair of the relation fit the template?",
    "R∩T>0: does some pair of the relation fit the template?",
)
KEYS = "1 yes, 0 no, u undo the last answer, q stop (go on later with the same command)"


def annotate(
    names: Annotated[
        list[str] | None, typer.Argument(help="Datasets, named as everywhere else.")
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The file of judgements; it is added to.")
    ] = Path("annotations.jsonl"),
    annotator: Annotated[str, typer.Option(help="Who judges.")] = "annotator",
    sample: Annotated[int, typer.Option(min=1, help="Templates of each dataset.")] = 200,
    seed: Annotated[int, typer.Option(help="Chooses the templates and their order.")] = 0,
    table: Annotated[
        Path | None,
        typer.Option(help="Judge nothing; show what this file of judgements adds up to."),
    ] = None,
) -> None:
    """Judge template quality blindly, and add the judgements up.

    Example: sonde data annotate atlas ./my-dataset -o judged.jsonl
    """
    if table is not None:
        show_table(table)
    elif names:
        judge(names, out, annotator, sample, seed)
    else:
        raise UsageError("name the datasets to judge, or give --table FILE to see what is judged")


def judge(names: list[str], out: Path, annotator: str, size: int, seed: int) -> None:
    """Ask about every template that this annotator has not judged yet."""
    from sonde.data.annotation import append, read_judgements, sample
    from sonde.data.catalog import load

    items = sample([load(name) for name in names], size, seed)
    done = {j.item: j for j in read_judgements(out) if j.annotator == annotator}
    known = {item.id for item in items}
    order = [id for id in done if id in known]  # the last one is the first to be taken back
    say(f"{len(items)} templates, {len(order)} judged. Keys: {KEYS}")
    while left := [item for item in items if item.id not in done]:
        given = _asked(left[0], len(items) - len(left), len(items), annotator)
        if given == "stop":
            break
        if given != "undo":
            append(out, given)
            done[given.item] = given
            order.append(given.item)
        elif order:
            append(out, done.pop(order.pop()), undo=True)
    say(f"{len(order)} of {len(items)} judged: {out}")


def _asked(
    item: Item, place: int, total: int, annotator: str
) -> Judgement | Literal["undo", "stop"]:
    """One template's four answers; undo steps back a question, or to the template before."""
    from sonde.data.annotation import Judgement, implied

    say(f"\n[{place + 1}/{total}] relation: {item.label} ({item.relation})\n  {item.shown}")
    answers: list[int] = []
    while len(answers) < len(ASK):
        key = _key(ASK[len(answers)])
        if key == "q":
            return "stop"
        if key == "u" and not answers:
            return "undo"
        if key == "u":
            answers.pop()
        else:
            answers = list(implied([*answers, int(key)]))
    fluent, inside, around, overlap = answers
    return Judgement(
        item=item.id,
        annotator=annotator,
        sources=item.sources,
        answers=(fluent, inside, around, overlap),
    )


def _key(question: str) -> str:
    """0, 1, u or q; the end of the input is q."""
    while True:
        sys.stdout.write(f"  {question} [1/0/u/q] ")
        sys.stdout.flush()
        line = sys.stdin.readline()
        key = line.strip().lower()
        if not line:
            say("")
            return "q"
        if key in ("0", "1", "u", "q"):
            return key
        say(f"  {KEYS}")


def show_table(path: Path) -> None:
    """Print the papers' table 9, the histogram of totals, and how far two annotators agree."""
    from sonde.data.annotation import agreement, qualities, read_judgements

    judgements = read_judgements(path)
    if not judgements:
        raise UsageError(
            f"{path} holds no judgement; make some with: sonde data annotate NAME -o {path}"
        )
    found = qualities(judgements)
    table = Table("dataset", "n", "fluent", "T⊆R", "R⊆T", "R∩T>0", "total (0-4)", box=None)
    for row in found:
        estimates = [_shown(estimate) for estimate in (*row.shares, row.total)]
        table.add_row(*cells(row.source, str(row.total.n), *estimates))
    output().print(table)
    heads = ("score 0", "1", "2", "3", "4", "irrelevant", "fully matching")
    scores = Table("dataset", *heads, box=None)
    for row in found:
        counts = (*row.histogram, row.irrelevant, row.fully_matching)
        scores.add_row(*cells(row.source, *map(str, counts)))
    output().print(scores)
    for question, (kappa, n) in agreement(judgements).items():
        value = "not measured" if kappa is None else f"{kappa:.3f}"
        say(f"kappa of {question}: {value} (n = {n} templates that both judged)")


def _shown(estimate: Estimate) -> str:
    if estimate.value is None:
        return "not measured"
    if estimate.low is None or estimate.high is None:
        return f"{estimate.value:.3f}"
    return f"{estimate.value:.3f} [{estimate.low:.3f}, {estimate.high:.3f}]"
